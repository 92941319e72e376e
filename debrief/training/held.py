"""Training lines held back because they may hold a secret, and people's decisions on them.

A training line is held back while it holds a token that looks made by chance and that no other
session of its set has. A person releases the token, or removes the line for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct

from debrief.lake import Lake
from debrief.redaction.gate import digest_of_token, random_tokens
from debrief.remembering import by_digest

HELD, DECISIONS = "held_back", "held_decisions"
Decision = Literal["released", "removed"]


class HeldToken(Struct, frozen=True, kw_only=True):
    """A token for which a session is held back: a row of ``held_back``, a partition a set."""

    session_id: str
    token: str
    digest: str
    before: str
    after: str
    """The text beside it."""


class HeldDecision(Struct, frozen=True, kw_only=True):
    """What a person decided on a token: a partition of ``held_decisions`` each."""

    digest: str
    """SHA-256 of the token, in hex."""
    decision: Decision
    rater: str
    at: datetime


def decide(lake: Lake, digest: str, decision: Decision, rater: str) -> None:
    """Keep what a person decided on a token; what was decided on it before goes."""
    row = HeldDecision(digest=digest, decision=decision, rater=rater, at=datetime.now(UTC))
    lake.write(DECISIONS, digest, [row], HeldDecision)


def decisions(lake: Lake) -> dict[str, Decision]:
    """Return what was decided, by digest of the token."""
    rows = (
        row for key in lake.partitions(DECISIONS) for row in lake.read(DECISIONS, key, HeldDecision)
    )
    return {row.digest: row.decision for row in rows}


def held_tokens(
    lines: Iterable[tuple[str, bytes]], decided: Mapping[str, Decision]
) -> dict[str, list[HeldToken]]:
    """Return the random tokens that only one session of a set holds, by session.

    A session that is left out for its tokens no longer speaks for those of others: a token that it
    shared with one session alone is then held by that one.

    Args:
        lines: of the set, each with its session's id.
        decided: by people, by digest of the token.
    """
    found: dict[str, dict[str, HeldToken]] = {}
    for session_id, line in lines:
        for token, before, after in _tokens_in(line):
            found.setdefault(token, {}).setdefault(
                session_id,
                HeldToken(
                    session_id=session_id,
                    token=token,
                    digest=digest_of_token(token),
                    before=before,
                    after=after,
                ),
            )
    left_out: dict[str, list[HeldToken]] = {}
    while True:
        held: dict[str, list[HeldToken]] = {}
        for by_session in found.values():
            kept = [token for name, token in by_session.items() if name not in left_out]
            if len(kept) == 1:
                held.setdefault(kept[0].session_id, []).append(kept[0])
        more = {name: tokens for name, tokens in held.items() if held_for(tokens, decided)}
        if not more:
            return left_out | held
        left_out |= more


@by_digest
def _tokens_in(line: bytes) -> list[tuple[str, str, str]]:
    return list(random_tokens(line))


def held_for(
    tokens: Iterable[HeldToken], decided: Mapping[str, Decision]
) -> Literal["", "held", "removed"]:
    """Return why a session with such tokens is left out; empty when all are released."""
    known = {decided.get(token.digest, "") for token in tokens}
    return "removed" if "removed" in known else "held" if "" in known else ""


def undecided(lake: Lake) -> Iterator[tuple[str, HeldToken]]:
    """Yield the tokens that wait for a person, each once, with the set that they are held from."""
    seen = set(decisions(lake))
    for partition in lake.partitions(HELD):
        for row in lake.read(HELD, partition, HeldToken):
            if row.digest not in seen:
                seen.add(row.digest)
                yield partition, row
