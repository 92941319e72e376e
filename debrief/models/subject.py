"""Note which sessions a question is about, so that forgetting one finds its cached answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ABOUT: ContextVar[tuple[str, ...]] = ContextVar("about", default=())
_QUESTION: ContextVar[str] = ContextVar("question", default="")


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


@contextmanager
def asking(about: str) -> Iterator[None]:
    """Say what the one question is about that this thread asks within the block."""
    token = _QUESTION.set(about)
    try:
        yield
    finally:
        _QUESTION.reset(token)


def question_about() -> str:
    """Return what this thread's question is about, in words; empty where nobody said it."""
    return _QUESTION.get()
