"""Confine this process by Landlock and a system call filter, drop its capabilities, and execute a command.

    python -I -S landlock_exec.py RULES COMMAND...

RULES is the JSON of `landlock.py`'s rules. The command can also write to the folder named by TMPDIR. Needs no privilege.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""Numbers of system calls, the same on every architecture."""

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
REMOVE_FILE, MAKE_REG, TRUNCATE, IOCTL_DEVICE = 1 << 5, 1 << 8, 1 << 14, 1 << 15
ALL = (1 << 16) - 1

READ = EXECUTE | READ_FILE | READ_DIR
WRITE = ALL & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEVICE)
DEVICE = READ_FILE | WRITE_FILE | IOCTL_DEVICE
SHARED = READ_FILE | WRITE_FILE | MAKE_REG | REMOVE_FILE | TRUNCATE
"""For a /dev/shm that is not private: a command can use files there by name, but cannot list the folder."""
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
"""Rights that can be allowed for a file that is no folder."""

RIGHTS = {"read": READ, "list": READ_DIR, "write": WRITE, "device": DEVICE, "shared": SHARED}

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_SECUREBITS = 24, 38, 22, 28
SIGPIPE, SIGXFSZ = 13, 25
"""Defined here, since importing `signal` takes longer than all else in this program."""
CAPABILITY_VERSION_3 = 0x20080522
SHARED_MEMORY = "/dev/shm"
NEW_MOUNTS, NEW_IPC, NEW_USER = 0x20000, 0x8000000, 0x10000000
RECURSIVE, PRIVATE, NO_SUID, NO_DEVICES = 0x4000, 0x40000, 2, 4


def abi() -> int:
    """Return the version of Landlock that the kernel supports; 0 for none."""
    version: int = _libc().syscall(CREATE_RULESET, None, 0, 1)
    return max(version, 0)


def main(arguments: list[str]) -> int:
    """Confine this process and execute the command. Returns an exit status only where that fails."""
    rules, command = json.loads(arguments[0]), arguments[1:]
    try:
        shared = "write" if make_private_memory(rules["shared_mb"]) else "shared"
        restrict([*rules["paths"], [shared, SHARED_MEMORY], ["write", os.environ["TMPDIR"]]], tcp=rules["tcp"])
        drop_capabilities()
        filter_calls(bytes.fromhex(rules["filter"]))
        for ignored in (SIGPIPE, SIGXFSZ):  # Python ignores these, and the command would inherit that
            _libc().signal(ignored, None)
    except OSError as error:
        sys.stderr.write(f"cannot confine this process: {error}\n")
        return 126
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127


def make_private_memory(megabytes: int) -> bool:
    """Mount a private /dev/shm, which is removed when the process and its children end. Returns False where the kernel refuses."""
    libc, user, group = _libc(), os.geteuid(), os.getegid()
    if libc.unshare(NEW_MOUNTS | NEW_IPC):
        if libc.unshare(NEW_USER | NEW_MOUNTS | NEW_IPC):
            return False
        try:
            for name, line in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(line)
        except OSError:
            return False
    if libc.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None):
        return False
    mounted: int = libc.mount(b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", NO_SUID | NO_DEVICES, f"size={megabytes}m,mode=1777".encode())
    return mounted == 0


def restrict(paths: list[list[str]], tcp: bool) -> None:
    """Deny access to every file but those below some paths, and to TCP unless it is allowed.

    Args:
        paths: pairs of a key of `RIGHTS` and a path. A path that does not exist is skipped.
        tcp: whether ports can be bound and connected to.

    Raises:
        OSError: the kernel refuses.
    """
    version = abi()
    files = ALL if version >= 5 else ALL & ~IOCTL_DEVICE
    ports = 0 if tcp or version < 4 else 3
    scopes = 3 if version >= 6 else 0  # abstract local sockets and signals, of processes outside
    attributes = struct.pack("QQQ", files, ports, scopes)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    rules = _call("landlock_create_ruleset", CREATE_RULESET, attributes, len(attributes), 0)
    for right, path in paths:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        allowed = RIGHTS[right] & files
        if not os.path.isdir(path):
            allowed &= OF_FILES
        _call(f"landlock_add_rule {path}", ADD_RULE, rules, 1, struct.pack("=Qi", allowed, place), 0)
        os.close(place)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _call("landlock_restrict_self", RESTRICT_SELF, rules, 0)
    os.close(rules)


def drop_capabilities() -> None:
    """Drop all capabilities for good, also those of root, who keeps only the rights to its own files.

    Raises:
        OSError: the kernel refuses.
    """
    if os.geteuid() == 0:
        for capability in range(64):
            _libc().prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails for numbers that are no capability
        _prctl(PR_SET_SECUREBITS, 0b101111)  # uid 0 no longer gives capabilities, and this is locked
    if _libc().capset(struct.pack("II", CAPABILITY_VERSION_3, 0), bytes(24)):
        raise OSError(ctypes.get_errno(), f"capset: {os.strerror(ctypes.get_errno())}")


def filter_calls(program: bytes) -> None:
    """Install a system call filter, an array of struct sock_filter.

    Raises:
        OSError: the kernel refuses.
    """
    code = ctypes.create_string_buffer(program, len(program))
    described = ctypes.create_string_buffer(struct.pack("HP", len(program) // 8, ctypes.addressof(code)))
    _prctl(PR_SET_SECCOMP, 2, ctypes.addressof(described))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, number: int, *arguments: object) -> int:
    result: int = _libc().syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


def _prctl(option: int, *arguments: int) -> None:
    padded = [ctypes.c_ulong(argument) for argument in (*arguments, 0, 0, 0)[:4]]
    if _libc().prctl(option, *padded):
        raise OSError(ctypes.get_errno(), f"prctl {option}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
