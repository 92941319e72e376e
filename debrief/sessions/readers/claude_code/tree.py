"""Merge the records of several transcripts of one session into one tree, each record once.

A resumption or a copy of a session has the records that it copied under the ids that they had.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from operator import itemgetter

import msgspec

from debrief.sessions.readers.claude_code.conversion import TranscriptFile
from debrief.sessions.readers.claude_code.records import DECODER, ClaudeRecord
from debrief.sessions.readers.documents import JsonLines
from debrief.sessions.readers.forks import Branch, TurnMark, message_mark, place_of_turn
from debrief.sessions.readers.values import UNIQUE, moment

_SPEECH = ("user", "assistant")
_NO_TIME = datetime.min.replace(tzinfo=UTC)


class RecordFile:
    """All records of one transcript, with what each is known by.

    Raises:
        OSError: it cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.lines = JsonLines(path)
        self.records = list(self.lines.typed(DECODER))
        self.keys = [_key(record) for record in self.records]
        self.said = sum(record.type in _SPEECH for record in self.records)
        """Prompts, answers and results."""

    @property
    def times(self) -> list[datetime]:
        """Those of its first and its last record that have one."""
        found = (at for at in map(_time, self.records) if at is not None)
        first = next(found, None)
        back = (at for at in map(_time, reversed(self.records)) if at is not None)
        return [at for at in (first, next(back, None)) if at is not None]


def _time(record: ClaudeRecord) -> datetime | None:
    return moment(record.timestamp)


def _key(record: ClaudeRecord) -> str:
    """Return what a record is known by in every copy of it; empty for bookkeeping."""
    return _id_of(record.uuid) or _words(record)


def _id_of(uuid: object) -> str:
    """Return an id that its program made up; empty for a word that another tool put there."""
    return uuid if isinstance(uuid, str) and UNIQUE.fullmatch(uuid) else ""


def _words(record: ClaudeRecord) -> str:
    if record.type not in _SPEECH:
        return ""
    return f"{record.type} {record.timestamp} {msgspec.json.encode(record.message)!r}"


def joined_records(main: RecordFile, others: Sequence[RecordFile]) -> list[ClaudeRecord]:
    """Return the records of a transcript, with those of others that it lacks in their time.

    The bookkeeping of a copy is that of the same session once more, and left out.
    """
    known = set(main.keys)
    added: list[list[ClaudeRecord]] = []
    for other in others:
        is_copy = not known.isdisjoint(filter(None, other.keys))
        pairs = zip(other.records, other.keys, strict=True)
        new = [record for record, key in pairs if (key not in known if key else not is_copy)]
        known.update(other.keys)
        added.append(new)
    if not any(added):
        return main.records
    ways = [_timed(records) for records in (main.records, *added)]
    return [record for _, record in heapq.merge(*ways, key=itemgetter(0))]


def _timed(records: Sequence[ClaudeRecord]) -> Iterator[tuple[datetime, ClaudeRecord]]:
    """Yield records with times that never run backwards; one without a time has that before."""
    latest = _NO_TIME
    for record in records:
        at = moment(record.timestamp) if record.timestamp is not None else None
        latest = max(latest, at) if at is not None else latest
        yield latest, record


def branch_of_file(file: TranscriptFile, records: RecordFile) -> Branch:
    """Return the branch of a file that was read and whose prompts are settled.

    In the beginning of a fork there is nothing of the bookkeeping that the program does around
    each answer: until its own first prompt it stands as it was copied.
    """
    ids = {id(asked.turn): _id_of(asked.uuid) for asked in file.prompts}
    marks = []
    for turn in file.main.timeline.turns:
        place = place_of_turn(turn.at, turn.prompt)
        uuid = ids.get(id(turn))
        marks.append(
            TurnMark(
                prompt=f"{uuid} {turn.prompt}" if uuid else place,
                place=place,
                messages=frozenset(
                    message_mark(message.id, message.at) for message in turn.messages
                ),
                is_left=turn.rewound,
                is_asked=turn.origin == "prompt" and bool(turn.messages),
            )
        )
    starts = [ids[id(turn)] for turn in file.main.timeline.turns if ids.get(id(turn))]
    places = [place for place, key in enumerate(records.keys) if key in starts[:2]]
    first, second = (*places, len(records.keys), len(records.keys))[:2]
    return Branch(tuple(marks), is_copy="" not in records.keys[first:second])
