"""Confine a timed process before it imports the agent's code: no other processes or cores, no new native code, no writing of files.

The means are a seccomp filter and a fixed core. The kernel enforces both for every thread, neither can be undone, and neither needs a
privilege. The sandbox decides what the code can see; this module adds the rule of timed tasks, that the work is done by this interpreter
and the packages it has loaded, on one core.

Denied are: starting a process, running a program, mapping memory executable (so that no library can be loaded and no machine code made
after the interpreter and its packages are loaded), leaving the core, opening a file for writing (`/proc/self/mem` would change code that is
mapped read-only), and the calls by which one of these could be reached another way. Threads stay possible and gain nothing.

This file also runs inside the sandbox, and so imports nothing of this package. It supports x86_64 and aarch64 Linux; elsewhere `confine`
returns that there is no filter, and the grader only watches from outside.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.machinery
import os
import platform
import struct
import sys
import warnings
from collections.abc import Mapping
from typing import NamedTuple

EPERM, EACCES, ENOSYS = 1, 13, 38

EXTENSION_SUFFIXES = tuple(importlib.machinery.EXTENSION_SUFFIXES)
_OF_NO_USE = ("test", "_tkinter", "_curses", "readline")
"""Parts of the names of modules that are not loaded: helpers of tests, and modules that need a terminal or a display."""

_PROT_EXEC = 0x4
_SHM_EXEC = 0o100000
_CLONE_THREAD = 0x10000
_WRITES = 0x3
"""O_WRONLY and O_RDWR: the access mode of open(2)."""


class _Rule(NamedTuple):
    """A system call to deny; with an `argument`, only where that has one of the `bits` (`any`) or lacks all of them (`none`)."""

    call: str
    error: int
    argument: int | None = None
    bits: int = 0
    when: str = "any"


_RULES = (
    _Rule("fork", EPERM),
    _Rule("vfork", EPERM),
    _Rule("clone", EPERM, 0, _CLONE_THREAD, "none"),
    _Rule("clone3", ENOSYS),  # its flags lie in memory that the filter cannot read; libraries fall back to clone
    _Rule("execve", EPERM),
    _Rule("execveat", EPERM),
    _Rule("mmap", EPERM, 2, _PROT_EXEC),
    _Rule("mprotect", EPERM, 2, _PROT_EXEC),
    _Rule("pkey_mprotect", EPERM, 2, _PROT_EXEC),
    _Rule("shmat", EPERM, 2, _SHM_EXEC),
    _Rule("personality", EPERM),  # it can make all readable memory executable
    _Rule("ptrace", EPERM),
    _Rule("process_vm_writev", EPERM),
    _Rule("sched_setaffinity", EPERM),
    _Rule("open", EACCES, 1, _WRITES),
    _Rule("openat", EACCES, 2, _WRITES),
    _Rule("openat2", ENOSYS),
    _Rule("creat", EACCES),
    _Rule("io_uring_setup", ENOSYS),  # no filter sees the calls made through it
)

_MACHINES: Mapping[str, tuple[int, Mapping[str, int]]] = {
    "x86_64": (
        0xC000003E,
        dict(mmap=9, mprotect=10, pkey_mprotect=329, shmat=30, clone=56, fork=57, vfork=58, execve=59, execveat=322, clone3=435)
        | dict(personality=135, ptrace=101, process_vm_writev=311, sched_setaffinity=203, open=2, openat=257, openat2=437, creat=85)
        | dict(io_uring_setup=425),
    ),
    "aarch64": (
        0xC00000B7,
        dict(mmap=222, mprotect=226, pkey_mprotect=288, shmat=196, clone=220, execve=221, execveat=281, clone3=435, personality=92)
        | dict(ptrace=117, process_vm_writev=271, sched_setaffinity=122, openat=56, openat2=437, io_uring_setup=425),
    ),
}
"""By machine: the kernel's constant for it (AUDIT_ARCH_*), and its numbers of the calls above, without those that it lacks."""

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _DENY, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2


def load_native_code(*packages: str) -> None:
    """Load the extension modules of the standard library and of some packages, since they cannot be loaded later."""
    folders = [(path, "") for path in sys.path if path.endswith("lib-dynload")]
    for package in packages:
        folders += [(path, f"{package}.") for path in importlib.import_module(package).__path__]
    for folder, prefix in folders:
        for place, _, files in os.walk(folder):
            parts = os.path.relpath(place, folder).replace(os.sep, ".").lstrip(".")
            for file in sorted(files):
                if file.endswith(EXTENSION_SUFFIXES) and not any(word in file for word in _OF_NO_USE):
                    _load(f"{prefix}{parts + '.' if parts else ''}{file.partition('.')[0]}")


def _load(name: str) -> None:
    with warnings.catch_warnings(), contextlib.suppress(ImportError):  # this machine may lack a system library that the module needs
        warnings.simplefilter("ignore")
        importlib.import_module(name)


def confine(core: int | None) -> str:
    """Confine this process for good, to one core and by the system call filter.

    Args:
        core: the processor core to stay on; None leaves the choice to the kernel.

    Returns:
        An empty text where all of it worked; otherwise what did not, in words.
    """
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    machine = platform.machine()
    if sys.platform != "linux" or machine not in _MACHINES or sys.byteorder != "little":
        return f"there is no system call filter for {sys.platform} on {machine}"
    program = _program(*_MACHINES[machine])
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    zero = ctypes.c_ulong(0)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) or libc.prctl(
        _PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), ctypes.c_char_p(head), zero, zero
    ):
        return f"the kernel refuses a system call filter: {os.strerror(ctypes.get_errno())}"
    return ""


def _program(machine: int, numbers: Mapping[str, int]) -> bytes:
    """Return the filter as classic BPF: each instruction is a code, two jumps (how many to skip if true, if false) and a constant.

    It reads `struct seccomp_data`: the call's number at 0, the machine at 4, the low half of argument n at 16 + 8n.
    """
    code = [(_LOAD, 0, 0, 4), (_IF_EQUAL, 1, 0, machine), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    if "open" in numbers:  # x86_64 has a second set of numbers, the x32 ones
        code += [(_IF_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _DENY | ENOSYS)]
    for rule in _RULES:
        if rule.call not in numbers:
            continue
        deny = (_RETURN, 0, 0, _DENY | rule.error)
        if rule.argument is None:
            code += [(_IF_EQUAL, 0, 1, numbers[rule.call]), deny]
        else:
            test = (0, 1) if rule.when == "any" else (1, 0)
            code += [
                (_IF_EQUAL, 0, 4, numbers[rule.call]),
                (_LOAD, 0, 0, 16 + 8 * rule.argument),
                (_IF_BITS, *test, rule.bits),
                deny,
                (_RETURN, 0, 0, _ALLOW),
            ]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)
