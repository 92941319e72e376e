"""Changes after which a verdict must move, made to sessions as they were read."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from debrief.signals.extract import extract_signals
from debrief.scoring.rules import verdict_of
from debrief.scoring.verdict import SessionVerdict, VerdictName
from debrief.sessions.actions import with_actions
from debrief.sessions.model import Message, Session, Subagent
from debrief.validity.changes import CHANGES, Move, moves_of, wordings_from
from tests.scoring.scenario import call, session
from tests.validity.scenario import worked

WORDINGS = wordings_from()


def rules(one: Session) -> SessionVerdict:
    return verdict_of(extract_signals(one))


def seen(
    one: Session, verdict: SessionVerdict | None = None
) -> tuple[dict[str, Move], dict[str, Session]]:
    """Return the moves of a session by change, and the sessions that were judged."""
    judged: list[Session] = []

    def watching(each: Session) -> SessionVerdict:
        judged.append(each)
        return verdict or rules(each)

    moves = list(moves_of(one, watching, WORDINGS))
    names = [move.change for move in moves]
    return {move.change: move for move in moves}, dict(zip(names, judged[1:], strict=True))


def read(log: object, folder: Path) -> Session:
    return with_actions(log.read(folder))  # type: ignore[attr-defined]


def test_what_takes_the_proof_away_takes_the_verdict_too(tmp_path: Path) -> None:
    whole = read(worked("cart"), tmp_path)
    assert rules(whole).verdict == "complete_verified"
    moves, judged = seen(whole)
    proofs = [name for name, must, _ in CHANGES if must == "not be complete_verified"]
    assert {name: moves[name].holds for name in proofs} == dict.fromkeys(proofs, True)
    half = judged["breaks off half way"]
    (last,) = half.turns[-1].messages[-1].calls
    assert (last.status, last.result, half.turns[-1].ended) == ("unanswered", None, None)
    assert len(half.turns[0].messages) < len(whole.turns[0].messages)
    (failed,) = (
        c
        for m in judged["the last check fails"].turns[0].messages
        for c in m.calls
        if c.id == "test"
    )
    assert (failed.status, failed.exit_code) == ("failed", 1)
    assert failed.result in WORDINGS.failures
    again = judged["its files are changed after the last check"]
    assert again.turns[0].messages[-2].calls[0].path == "/home/ann/shop/cart.py"
    assert again.turns[0].messages[-1].text == whole.turns[0].messages[-1].text


def test_words_prove_nothing_and_are_drawn_from_the_list(tmp_path: Path) -> None:
    unproved = read(worked("cart", checked=False), tmp_path)
    moves, judged = seen(unproved)
    assert moves["the last message claims success"].holds
    assert moves["a file that is read praises the work"].holds
    text = judged["the last message claims success"].turns[-1].messages[-1].text
    assert text.split("\n\n")[-1] in WORDINGS.claims
    praise = judged["a file that is read praises the work"].turns[-1].messages[-2].calls[0]
    assert (praise.action, praise.result in WORDINGS.praise) == ("read", True)
    complaint = judged["the person complains"].turns[-1]
    assert (complaint.number, complaint.prompt in WORDINGS.complaints) == (2, True)
    admitted = judged["the last message admits failure"].turns[-1].messages[-1].text
    assert admitted.split("\n\n")[-1] in WORDINGS.admissions


def test_junk_is_written_as_an_edit_is(tmp_path: Path) -> None:
    failing = read(worked("cart", passes=False), tmp_path)
    _, judged = seen(failing)
    junk = judged["500 lines of junk, and a claim"]
    write = junk.turns[-1].messages[-2].calls[0]
    assert (write.action, write.added, junk.lines_added) == ("edit", 500, failing.lines_added + 500)


@pytest.mark.parametrize("name", ["s1", "s2", "s3"])
def test_another_session_draws_others_and_the_same_one_the_same(name: str) -> None:
    said = SessionVerdict(verdict="complete_verified", basis="check")
    one = session(name)
    first, again = (seen(one, said)[1]["the person complains"].turns[-1].prompt for _ in range(2))
    others = {
        seen(session(f"{name}{n}"), said)[1]["the person complains"].turns[-1].prompt
        for n in range(12)
    }
    assert first == again
    assert len(others) > 3


def test_subagents_stay_with_the_half_that_started_them_however_deep() -> None:
    def child(name: str, started_by: str) -> Subagent:
        own = Message(id=name, model="m", calls=(call(f"call-{name}", "ls"),))
        return Subagent(id=name, call_id=started_by, messages=(own,))

    steps = tuple(
        Message(id=f"m{n}", model="m", text="Next.", calls=(call(f"call-{n}", "ls"),))
        for n in range(6)
    )
    whole = session("s", 1)
    told = replace(whole.turns[0], messages=steps)
    several = (
        child("deeper", "call-first"), child("first", "call-0"), child("second", "call-5"),
        child("last", "call-second"),
    )  # fmt: skip
    one = replace(whole, turns=(told,), subagents=several)
    half = seen(one, SessionVerdict(verdict="complete_verified", basis="check"))[1]
    kept = {subagent.id for subagent in half["breaks off half way"].subagents}
    assert kept == {"first", "deeper"}


@pytest.mark.parametrize(
    ("must", "before", "after", "holds"),
    [
        ("not be complete_verified", "complete_verified", "complete_verified", False),
        ("not be complete_verified", "complete_verified", "complete_unverified", True),
        ("fall", "complete_unverified", "complete_unverified", False),
        ("fall", "complete_unverified", "undetermined", True),
        ("not rise", "partial", "partial", True),
        ("not rise", "partial", "complete_unverified", False),
        ("not rise", "undetermined", "failed", True),
    ],
)
def test_a_move_holds_or_does_not(
    must: str, before: VerdictName, after: VerdictName, holds: bool
) -> None:
    assert Move(change="c", must=must, before=before, after=after).holds is holds  # type: ignore[arg-type]


def test_a_session_without_work_is_left_alone() -> None:
    silent = replace(session("s", ()), turns=())
    moves, _ = seen(silent, SessionVerdict(verdict="complete_verified", basis="check"))
    assert moves == {}
