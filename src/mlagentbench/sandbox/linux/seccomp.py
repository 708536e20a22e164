"""Build a seccomp filter, as classic BPF, for system calls that no experiment needs and that give access to much of the kernel.

The list of calls follows Flatpak's. The filter is a second line of defence: namespaces isolate without it. It is made for x86-64 and 64-bit
ARM; on other machines bubblewrap runs without it. Not covered: 32-bit programs, which are killed.
"""

from __future__ import annotations

import functools
import os
import platform
import struct
from typing import NamedTuple

_X86_64, _AARCH64 = 0xC000003E, 0xC00000B7

_DENIED: dict[str, tuple[int | None, int | None]] = {  # name: (number on x86-64, number on ARM)
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}


_UNCHANGED: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "futimesat": (261, None),
    "utime": (132, None),
    "utimensat": (280, 88),
    "utimes": (235, None),
}
"""Calls that change a file's mode or times. A filter cannot see which file a call names. In a sandbox that shares the host's files these
calls thus succeed and change nothing: `shutil.copy` and programs that unpack archives work, and no file of the user's is touched."""
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "chown": (92, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "file_setattr": (469, 469),
    "fremovexattr": (199, 16),
    "fsetxattr": (190, 7),
    "lchown": (94, None),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "semget": (64, 190),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "shmget": (29, 194),
}
"""Calls that change a file's owner or attributes, or create what outlives a command outside of any folder, such as shared memory. Programs
expect that these may fail."""


class _Machine(NamedTuple):
    audit: int
    column: int
    clone: int
    socket: int
    ioctl: int


_MACHINES = {"x86_64": _Machine(_X86_64, 0, 56, 41, 16), "aarch64": _Machine(_AARCH64, 1, 220, 198, 29)}
_CLONE3 = 435
_NEW_NAMESPACES = 0x7E020080
"""The flags of clone(2) that create a namespace: mount, cgroup, uts, ipc, user, pid, net, time."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
"""Requests of ioctl(2) that type into the terminal."""
_SETFLAGS, _FSSETXATTR = 0x40086602, 0x401C5820
"""Requests of ioctl(2) that change a file's attributes, as `chattr` does."""
_AF_UNIX = 1
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
"""Offsets in struct seccomp_data."""


def build(machine: str | None = None, *, sockets: bool = True, own_files: bool = True) -> bytes | None:
    """Build the filter as an array of struct sock_filter; None for a machine that it does not support.

    Args:
        machine: as `platform.machine()` names it; by default this one.
        sockets: False refuses all sockets but local ones, for a sandbox that shares the host's network.
        own_files: False keeps modes, owners, times and attributes of files unchanged, for a sandbox that shares the host's files.
    """
    numbers = _MACHINES.get(machine or platform.machine())
    if numbers is None:
        return None
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, numbers.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, 0x40000000),  # calls of the x32 ABI, which would pass the filter under other numbers
        (_RETURN, 0, 0, _ERROR | _ENOSYS),
    ]
    answers = {pair[numbers.column]: _EPERM for pair in (_DENIED if own_files else _DENIED | _REFUSED).values()}
    answers |= {} if own_files else {pair[numbers.column]: 0 for pair in _UNCHANGED.values()}
    for number, error in answers.items():
        if number is not None:
            program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | error)]
    # clone3 has its flags in memory, where a filter cannot read them. With ENOSYS the C library falls back to clone.
    program += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERROR | _ENOSYS)]
    program += [(_EQUAL, 0, 4, numbers.clone), (_LOAD, 0, 0, _FIRST), (_ANY_BIT, 0, 1, _NEW_NAMESPACES)]
    program += [(_RETURN, 0, 0, _ERROR | _EPERM), (_RETURN, 0, 0, _ALLOW)]
    requests = (_TIOCSTI, _TIOCLINUX, *(() if own_files else (_SETFLAGS, _FSSETXATTR)))
    program += [(_EQUAL, 0, 2 * len(requests) + 2, numbers.ioctl), (_LOAD, 0, 0, _SECOND)]
    for request in requests:
        program += [(_EQUAL, 0, 1, request), (_RETURN, 0, 0, _ERROR | _EPERM)]
    program.append((_RETURN, 0, 0, _ALLOW))
    if not sockets:
        program += [(_EQUAL, 0, 4, numbers.socket), (_LOAD, 0, 0, _FIRST), (_EQUAL, 1, 0, _AF_UNIX)]
        program += [(_RETURN, 0, 0, _ERROR | _EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def filter_file() -> str | None:
    """Return a path, valid while this process lives, from which the filter can be read; None for a machine that it does not support."""
    descriptor = _descriptor()
    return None if descriptor is None else f"/proc/{os.getpid()}/fd/{descriptor}"


@functools.cache
def _descriptor() -> int | None:
    program = build()
    if program is None:
        return None
    descriptor = os.memfd_create("mlagentbench-seccomp")
    os.write(descriptor, program)
    return descriptor
