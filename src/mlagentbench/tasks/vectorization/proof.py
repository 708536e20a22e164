"""Submissions and scripts by which the task proves its grader.

The submissions are the same for both variants.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from mlagentbench import Files, Invalid, Prepared, edited_starter

WINDOWS = """
edge = (self.padding, self.padding)
x = np.pad(x, ((0, 0), (0, 0), edge, edge))
windows = np.lib.stride_tricks.sliding_window_view(x, self.weights.shape[2:], axis=(2, 3))
windows = windows[:, :, :: self.stride, :: self.stride]
out = np.tensordot(windows, self.weights, axes=((1, 4, 5), (1, 2, 3)))
out = out.transpose(0, 3, 1, 2) + self.biases[:, None, None]
"""
"""A vectorized forward pass: a view of all patches of the input, times all kernels."""

OFFSETS = """
s, p, k = self.stride, self.padding, self.weights.shape[2]
height, width = ((size + 2 * p - k) // s + 1 for size in x.shape[2:])
x = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
out = np.zeros((len(x), len(self.weights), height, width)) + self.biases[:, None, None]
for u in range(k):
    for v in range(k):
        part = x[:, :, u : u + height * s : s, v : v + width * s : s]
        out += np.einsum("nchw,oc->nohw", part, self.weights[:, :, u, v])
"""
"""Another one: a loop over the kernel's few positions."""


def layer(forward: str, top: str = "", init: str = "") -> Files:
    """Return a `train.py` with these lines as the forward pass, which compute `out` from `x`.

    Args:
        forward: the lines of the forward pass.
        top: lines above the class.
        init: further lines of the constructor.
    """
    lines = [
        "import numpy as np",
        top.strip(),
        "class Conv2DLayer:",
        "    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0):",
        "        self.stride, self.padding = stride, padding",
        "        self.weights = np.zeros((out_channels, in_channels, kernel_size, kernel_size))",
        "        self.biases = np.zeros(out_channels)",
        textwrap.indent(init.strip(), " " * 8),
        "    def forward(self, x):",
        textwrap.indent(forward.strip(), " " * 8),
        "        return out",
    ]
    return {"train.py": "\n".join(lines) + "\n"}


GOLD: Mapping[str, Files] = {
    "offsets in another file": {
        "train.py": "from fast.layers import Conv2DLayer\n",
        "fast/__init__.py": "",
        "fast/layers.py": layer(OFFSETS)["train.py"],
    },
    "single precision": layer(
        "x = x.astype(np.float32)\n" + WINDOWS.replace("windows, self.weights", "windows, self.weights.astype('f4')")
    ),
}
"""Layers that are far more than 10% faster than the starter, beside `solution()`: each proves what no other does, since it is timed."""

NAIVE: Mapping[str, Files] = {
    "late answer": layer(WINDOWS + "import time\ntime.sleep(x.size / 5000)"),
    "lazy answer": layer(
        WINDOWS + "\nout = Late(out)",
        top="""
import time

class Late:
    def __init__(self, out):
        self.out = out

    def __array__(self, dtype=None, copy=None):
        time.sleep(self.out.size / 20000)
        return self.out
""",
    ),
}
"""Layers that are right, and no faster once their delays are counted: about a second or more in each timed pass."""

_MACHINE_CODE = """
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b82a000000c3"))
"""
_OWN_LIBRARY = """
import ctypes, os
path = next(line.split()[5] for line in open("/proc/self/maps") if "libstdc++" in line)
library = os.memfd_create("library")
os.write(library, open(path, "rb").read())
ctypes.CDLL(f"/proc/self/fd/{library}")
"""
_ANSWERS_EARLY = """
import os, struct
for descriptor in range(3, 32):
    try:
        os.write(descriptor, struct.pack("<4sQIII", b"MLAB", 2, 2, 0, 0) * 8)
    except OSError:
        pass
"""
_WORKS_ON = """
import threading
def work():
    while True:
        pass
threading.Thread(target=work, daemon=True).start()
"""

INVALID: Mapping[str, Invalid] = {
    "no class": Invalid({"train.py": "print('all done, 100 times faster')\n"}, "has no attribute 'Conv2DLayer'"),
    "syntax error": Invalid({"train.py": "class Conv2DLayer\n"}, "SyntaxError"),
    "other constructor": Invalid(layer(WINDOWS, init="raise TypeError('use make_layer')"), "use make_layer"),
    "other weights": Invalid(layer(WINDOWS, init="self.weights = self.weights.reshape(-1)"), "the weights of a new Conv2DLayer have shape"),
    "exception": Invalid(layer("raise ValueError('not implemented yet')"), "ValueError: not implemented yet (train.py, line"),
    "wrong shape": Invalid(layer(WINDOWS + "out = out.transpose(0, 2, 3, 1)"), "returned shape"),
    "no array": Invalid(layer("out = None"), "must be an array of real numbers"),
    "no biases": Invalid(layer(WINDOWS.replace(" + self.biases[:, None, None]", "")), "returned wrong numbers"),
    "no stride": Invalid(layer(WINDOWS.replace(":: self.stride", "::1")), "returned shape"),
    "not finite": Invalid(layer(WINDOWS + "out[0, 0, 0, 0] = np.nan"), "not finite"),
    "remembered": Invalid(
        layer("self.known = out = self.known if hasattr(self, 'known') else known.setdefault(x.shape, np.zeros(1))", top="known = {}"),
        "returned shape",
    ),
    "changes its input": Invalid(
        layer(WINDOWS.replace("edge =", "x *= 1\nx += 0.0\nkept = x\nedge =") + "kept[:] = 0"), "forward changes its input"
    ),
    "leaves": Invalid(layer("import os\nos._exit(0)"), "the process ended without an answer"),
    "all the memory": Invalid(layer("out = [np.ones(2**26) for _ in range(200)]"), "emory"),
    "other process": Invalid(layer("import os\nif os.fork() == 0:\n    os._exit(0)\n" + WINDOWS), "can start no process"),
    "other program": Invalid(layer(WINDOWS, top="import subprocess\nsubprocess.run(['true'])"), "can start no process"),
    "process pool": Invalid(layer(WINDOWS, top="import multiprocessing\npool = multiprocessing.Pool(2)"), "can start no process"),
    "other package": Invalid(layer("import torch\nout = torch.nn.functional.conv2d(x, self.weights)"), "No module named 'torch'"),
    "machine code": Invalid(layer(WINDOWS, top=_MACHINE_CODE), "load no native code"),
    "own library": Invalid(layer(WINDOWS, top=_OWN_LIBRARY), "load no native code"),
    "changed code": Invalid(layer(WINDOWS, top="memory = open('/proc/self/mem', 'r+b')"), "write no file"),
    "works on": Invalid(layer(WINDOWS, top=_WORKS_ON), "it works while it is asked nothing"),
    "answers early": Invalid(layer(WINDOWS, top=_ANSWERS_EARLY), "a question that was not asked"),
}
"""Submissions that must be refused."""


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return layers that are far more than 10% faster than the starter."""
    return GOLD


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return layers that are right and no faster than the starter."""
    return NAIVE


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return submissions that the grader must refuse."""
    return INVALID


def solution() -> Files:
    """Return a vectorized layer."""
    return layer(WINDOWS)


def ineffective() -> Files:
    """Return the starter with its two outer loops exchanged, which take as many passes."""
    batch, channels = "        for n in range(batch):\n", "            for o in range(self.out_channels):\n"
    return edited_starter(__file__, {batch + channels: channels[4:] + "    " + batch})
