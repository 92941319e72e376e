"""Ports for servers whose port has to be known before they listen."""

from __future__ import annotations

import random
import socket

_OURS = range(10_000, 16_000)
"""Below all that kernels give to those who ask for any: nobody is given one of them by chance."""


def free_port() -> int:
    """Return a port of loopback that nobody listens on, nor will soon."""
    chance = random.SystemRandom()
    while True:
        port = chance.choice(_OURS)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
