"""What can go wrong around stored records."""

from __future__ import annotations

from collections.abc import Iterable

from debrief.errors import DebriefError, InputError


class StorageError(DebriefError):
    """The database is away, busy, or not in the state that this version works with.

    A service answers 503: the same request may succeed later, when the next move was made.
    """


class AwayError(StorageError):
    """Nothing answers at the database's address, or what answers lets nobody in.

    Its reason tells where that is, which is none of a client's business.
    """


class RevisionError(StorageError):
    """The database answers, and has the tables of another version, or none."""


class _ReasonsError(InputError):
    """An error that keeps its reasons apart, for who shows one a line."""

    def __init__(self, culprit: str, reasons: str | Iterable[str], next_move: str) -> None:
        self.reasons = [reasons] if isinstance(reasons, str) else list(reasons)
        super().__init__(culprit, "; ".join(self.reasons), next_move)


class ConflictError(_ReasonsError):
    """It contradicts what is stored: a service answers 409."""


class UnfitError(_ReasonsError):
    """A body that can be read and not be stored; names everything that is wrong with it."""


class UnknownTaskError(InputError):
    """A session names a task that nobody has made."""


class NotFoundError(InputError):
    """Nothing is stored under that id or name: a service answers 404."""


class CursorError(InputError):
    """A cursor that this database did not give, or that it gave before it was restored."""


class MalformedError(InputError):
    """Bytes that are not JSON, or JSON that two parsers would read in two ways: 400."""
