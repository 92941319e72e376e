"""The seccomp filter of the sandbox: system calls that a command may not make.

The walls of bubblewrap hold files, processes and the network. They do not hold the keyring that a
run inherits, sockets to the machine below a virtual one (``AF_VSOCK``), memory that is in no
process and no file system (System V, ``memfd``), nor a user namespace of the run's own, in which it
would have a file system without a size. To a run the kernel seems to have none of them.
"""

from __future__ import annotations

import errno
import platform
import socket
import struct

from msgspec import Struct


class _Machine(Struct, frozen=True, kw_only=True):
    """A kind of processor: its number in the kernel, and the numbers of its calls."""

    audit: int
    clone: int
    socket: int
    refused: tuple[int, ...]


_MACHINES = {
    "x86_64": _Machine(
        audit=0xC000003E,
        clone=56,
        socket=41,
        # clone3, unshare, setns; add_key, request_key, keyctl; memfd_create, memfd_secret;
        # shmget, semget, msgget; bpf, perf_event_open, userfaultfd, io_uring_setup
        refused=(435, 272, 308, 248, 249, 250, 319, 447, 29, 64, 68, 321, 298, 323, 425),
    ),
    "aarch64": _Machine(
        audit=0xC00000B7,
        clone=220,
        socket=198,
        refused=(435, 97, 268, 217, 218, 219, 279, 447, 194, 190, 186, 280, 241, 282, 425),
    ),
}
_NEW_NAMESPACES = 0x7E020000
"""Flags of ``clone``."""
_SECOND_TABLE = 0x40000000
"""From here on the numbers of x86-64 are those of its 32-bit pointers, the same calls again."""
_FAMILIES = (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_LOAD, _RETURN = 0x20, 0x06
_EQUAL, _AT_LEAST, _ANY_BIT = 0x15, 0x35, 0x45
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000


def refusals(machine: str = "", *, network: bool = False) -> bytes:
    """Return the filter, as ``bwrap --seccomp`` reads it; empty where this machine's calls are not
    known.

    Args:
        machine: as ``platform.machine`` names it; empty for this one.
        network: the run is in the machine's own network, which has the machine's Unix sockets that
            are no files, such as a desktop's: it gets no Unix sockets but pairs.
    """
    kind = _MACHINES.get(machine or platform.machine())
    if kind is None:
        return b""
    families = _FAMILIES if network else (*_FAMILIES, socket.AF_UNIX)
    refuse = _step(_RETURN, _ERROR | errno.ENOSYS)
    steps = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, kind.audit, then=1),
        refuse,
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, _SECOND_TABLE, otherwise=1),
        refuse,
    ]
    for number in kind.refused:
        steps += [_step(_EQUAL, number, otherwise=1), refuse]
    steps += [
        _step(_EQUAL, kind.clone, otherwise=3),
        _step(_LOAD, _FIRST_ARGUMENT),
        _step(_ANY_BIT, _NEW_NAMESPACES, otherwise=1 + 1 + 1 + len(families) + 1),
        refuse,
        _step(_EQUAL, kind.socket, otherwise=1 + len(families) + 1),
        _step(_LOAD, _FIRST_ARGUMENT),
    ]
    steps += [
        _step(_EQUAL, family, then=len(families) - number) for number, family in enumerate(families)
    ]
    steps += [_step(_RETURN, _ERROR | errno.EAFNOSUPPORT), _step(_RETURN, _ALLOW)]
    return b"".join(steps)


def _step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """Return one instruction: what to do, and how many to leave out next."""
    return struct.pack("=HBBI", code, then, otherwise, value)
