"""The repositories that the stories are about, as streams that ``git fast-import`` reads.

Each holds the code base before the first story, and a commit for every story that kept its work.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct

FIRST = datetime(2026, 10, 1, 8, tzinfo=UTC)
"""When each code base began."""
AFTER = timedelta(minutes=2)
"""From the end of a story to its commit."""


class SampleCommit(Struct, frozen=True, kw_only=True):
    """One state of a code base."""

    at: datetime
    subject: str
    files: dict[str, str]


def stream_of(commits: Sequence[SampleCommit], branch: str) -> bytes:
    """Return the commits, oldest first, as a stream for ``git fast-import``.

    Args:
        commits: of one repository.
        branch: that they are on; ``main`` has the same.
    """
    parts: list[bytes] = []
    for number, commit in enumerate(commits):
        when = f"Sam <sam@example.org> {int(commit.at.timestamp())} +0000"
        parts.append(f"commit refs/heads/{branch}\ncommitter {when}\n".encode())
        parts.append(_data(commit.subject))
        before = commits[number - 1].files if number else {}
        for path, text in sorted(commit.files.items()):
            if before.get(path) != text:
                parts.append(f"M 644 inline {path}\n".encode() + _data(text))
        parts += [f"D {path}\n".encode() for path in sorted(before.keys() - commit.files.keys())]
        parts.append(b"\n")
    parts.append(f"reset refs/heads/main\nfrom refs/heads/{branch}\n\ndone\n".encode())
    return b"".join(parts)


def _data(text: str) -> bytes:
    data = text.encode()
    return f"data {len(data)}\n".encode() + data + b"\n"
