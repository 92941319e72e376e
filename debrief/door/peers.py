"""Find the account that opened a loopback connection, from Linux's table of TCP sockets."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import TypeAlias

Endpoint: TypeAlias = tuple[str, int]
"""An IP address and a port."""

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED = "01"


def is_own_account(client: Endpoint, server: Endpoint) -> bool:
    """Return whether a loopback connection comes from this process's account or from root.

    Systems other than Linux do not tell whose a connection is; there, every account of the machine
    counts as this one.

    Args:
        client: Where the connection comes from.
        server: The address that it reached.
    """
    if not _TABLES[0].is_file():
        return True
    return account_of(client, server) in (os.getuid(), 0)


def account_of(client: Endpoint, server: Endpoint) -> int | None:
    """Return the user id that owns the client's end of a connection; None if it is closed.

    A socket that its program closed already belongs to user 0 in the table, so only open
    connections count.
    """
    ends = _plain(client), _plain(server)
    return next((uid for *known, uid in _connections() if tuple(known) == ends), None)


def _plain(endpoint: Endpoint) -> tuple[IPv4Address | IPv6Address, int]:
    address = ip_address(endpoint[0])
    return getattr(address, "ipv4_mapped", None) or address, endpoint[1]


def _connections() -> Iterator[tuple[object, object, int]]:
    for table in filter(Path.is_file, _TABLES):
        for line in table.read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == _ESTABLISHED:
                yield _endpoint(fields[1]), _endpoint(fields[2]), int(fields[7])


def _endpoint(text: str) -> tuple[IPv4Address | IPv6Address, int]:
    """Return an endpoint that the table gives as hexadecimal words in the machine's byte order."""
    address, _, port = text.partition(":")
    data = bytes.fromhex(address)
    if sys.byteorder == "little":
        data = b"".join(data[start : start + 4][::-1] for start in range(0, len(data), 4))
    return _plain((str(ip_address(data)), int(port, 16)))
