"""Note which sessions a question is about, so that forgetting one finds its cached answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ABOUT: ContextVar[tuple[str, ...]] = ContextVar("about", default=())


@contextmanager
def asking_about(*sessions: str) -> Iterator[None]:
    """Say which sessions the questions are about that this thread asks within the block."""
    token = _ABOUT.set(sessions)
    try:
        yield
    finally:
        _ABOUT.reset(token)


def asked_about() -> tuple[str, ...]:
    """Return the ids of the sessions that this thread's questions are about."""
    return _ABOUT.get()
