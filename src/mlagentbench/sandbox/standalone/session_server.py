"""Run Python commands one after the other in one namespace. `sandbox/session.py` starts this program in a sandbox. Standard library only.

A request on standard input is a length (8 bytes, big-endian) and Python source. A reply on standard output is the length of the whole
output, the length of what follows (8 bytes each), and the output, of a long one its head and its tail. What the command and the processes
it starts print goes to a temporary file until the reply is sent.
"""

from __future__ import annotations

import ast
import os
import struct
import sys
import tempfile
import traceback
from typing import BinaryIO

KEPT = int(sys.argv[1])
"""Bytes of a command's output that are sent at most."""


def answer(answers: BinaryIO, output: int) -> None:
    """Send the output of a command, and empty the file that holds it."""
    size = os.lseek(output, 0, os.SEEK_END)
    head = os.pread(output, size if size <= KEPT else KEPT // 2, 0)
    tail = os.pread(output, KEPT // 2, size - KEPT // 2) if size > KEPT else b""
    answers.write(struct.pack(">QQ", size, len(head) + len(tail)) + head + tail)
    answers.flush()
    os.ftruncate(output, 0)


def run(source: str, namespace: dict[str, object]) -> None:
    """Run a command; print the value of a last expression, and any error."""
    try:
        tree = ast.parse(source, "<command>")
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr):
            tree.body.pop()
        exec(compile(tree, "<command>", "exec"), namespace)
        if isinstance(last, ast.Expr):
            sys.displayhook(eval(compile(ast.Expression(last.value), "<command>", "eval"), namespace))
    except SystemExit as stop:
        print(f"SystemExit: {stop.code} (the session goes on)")
        sys.stdin = os.fdopen(0, closefd=False)  # `exit()` has closed it
    except BaseException as error:
        # Leave this function's frame out of the traceback. With a syntax error there is no other frame.
        traceback.print_exception(error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None))


def main() -> None:
    """Run the commands of requests until standard input is closed."""
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with tempfile.TemporaryFile() as file:
        output = os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDWR | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    namespace: dict[str, object] = {"__name__": "__main__"}
    while len(header := orders.read(8)) == 8:
        run(orders.read(struct.unpack(">Q", header)[0]).decode("utf-8", "replace"), namespace)
        sys.stdout.flush()
        sys.stderr.flush()
        answer(answers, output)


main()
