"""How fast a client takes its answer, counting only the time for which it keeps us waiting."""

from __future__ import annotations

import fcntl
import struct
import termios
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import Transport


class ReadingPace:
    """The time that a client has used up by not reading, given back by what it takes.

    A client that stops reading has ``patience`` seconds, and so has, in all, one that reads on at
    less than ``rate``. One that keeps to the rate may read for ever.

    Args:
        patience: seconds.
        rate: bytes a second.
    """

    def __init__(self, patience: float, rate: float) -> None:
        self._patience = patience
        self._rate = rate
        self._used = 0.0
        self._since = 0.0
        self._held = 0

    def pause(self, now: float, held: int) -> None:
        """Begin to wait for the client.

        Args:
            now: in seconds, of a clock that never goes back.
            held: bytes that wait to be taken; nothing is added to them until ``resume``.
        """
        self._since, self._held = now, held

    def resume(self, now: float, held: int) -> None:
        """End the wait, with so many bytes not taken yet."""
        self._used = max(0.0, self._spent(now, held))
        self.pause(now, held)

    def left(self, now: float, held: int) -> float:
        """Return the seconds that the client still has if it takes nothing more in them."""
        return self._patience - max(0.0, self._spent(now, held))

    def _spent(self, now: float, held: int) -> float:
        return self._used + (now - self._since) - (self._held - held) / self._rate


def bytes_held(transport: Transport) -> int:
    """Return how much of what was written the client's machine has not taken yet.

    The kernel's part is counted where it tells: it holds megabytes, and asks for more only when
    a third of them is gone, so that a slow client would seem to take nothing for long.
    """
    held = transport.get_write_buffer_size()
    with suppress(OSError, ValueError):
        number = transport.get_extra_info("socket").fileno()
        (waiting,) = struct.unpack("i", fcntl.ioctl(number, termios.TIOCOUTQ, bytes(4)))
        held += waiting
    return held
