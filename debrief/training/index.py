"""The traits of all sessions of a lake, read off once, and who is related to whom."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from debrief.digests import digest_of
from debrief.lake import Lake
from debrief.sessions.heads import SessionHead
from debrief.sessions.model import Session
from debrief.training.kinship import Kinship
from debrief.training.traits import TRAITS, SessionTraits, traits_of

TABLE = "training_traits"


class TrainingIndex(Struct, frozen=True, kw_only=True):
    """What training sets are chosen by."""

    traits: dict[str, SessionTraits]
    """By session id; signatures left out."""
    kinship: Kinship


def read_index(lake: Lake) -> TrainingIndex:
    """Bring the traits of all weeks up to date and return them.

    Only sessions that are new or have changed are decoded.
    """
    found: dict[str, SessionTraits] = {}
    for week in lake.partitions("raw_sessions"):
        _bring_up_to_date(lake, week)
        for row in lake.read(TABLE, week, SessionTraits):
            found[row.session_id] = row
    kinship = Kinship(found.values())
    return TrainingIndex(
        traits={name: _without_signature(row) for name, row in found.items()}, kinship=kinship
    )


def _bring_up_to_date(lake: Lake, week: str) -> None:
    raw = lake.stamp("raw_sessions", week)
    if raw is None:
        return
    made_from = digest_of(version(), raw.digest)
    stamp = lake.stamp(TABLE, week)
    if stamp is not None and stamp.inputs == made_from:
        return
    lake.write(TABLE, week, _rows(lake, week), SessionTraits, lambda: made_from)


def version() -> str:
    """Return what makes traits comparable: ours and the MinHash library's."""
    from rensa import RMinHash

    return f"{TRAITS}.{RMinHash.ALGORITHM_VERSION}"


def _rows(lake: Lake, week: str) -> list[SessionTraits]:
    digests = {head.id: head.digest for head in lake.read("raw_sessions", week, SessionHead)}
    current = version()
    rows = [
        row
        for row in lake.read(TABLE, week, SessionTraits)
        if row.version == current and digests.get(row.session_id) == row.session_digest
    ]
    missing = digests.keys() - {row.session_id for row in rows}
    if missing:
        rows += [
            replace(traits_of(session), version=current)
            for session in lake.read("raw_sessions", week, Session, only=("id", missing))
        ]
    return sorted(rows, key=lambda row: row.session_id)


def _without_signature(row: SessionTraits) -> SessionTraits:
    return replace(row, signature=b"", message_marks=b"")
