"""The receipt of ``debrief forget``: a few of many are named, and how many more there are is said."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from debrief.cli.receipt import print_receipt
from debrief.forgetting.forget import ForgetReceipt, Remaining


def printed(receipt: ForgetReceipt) -> list[str]:
    out = Console(file=io.StringIO(), width=120)
    print_receipt(receipt, out)
    return [line.strip() for line in out.file.getvalue().splitlines()]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("count", "headline"),
    [
        (1, "Forgotten: 1 session: s0"),
        (5, "Forgotten: 5 sessions: s0, s1, s2, s3, s4"),
        (6, "Forgotten: 6 sessions: s0, s1, s2, s3, s4 and 1 more"),
    ],
)
def test_five_sessions_and_five_transcripts_are_named(count: int, headline: str) -> None:
    ids = [f"s{number}" for number in range(count)]
    left = tuple(Remaining(what="transcript", where=f"/{id_}.jsonl") for id_ in ids)
    lines = printed(ForgetReceipt(sessions=tuple(ids), remaining=left, is_done=True))
    assert lines[0] == headline
    named = [line for line in lines if line.endswith(".jsonl")]
    assert len(named) == min(count, 5)
    assert ("and 1 more transcripts" in lines) == (count > 5)


def test_copies_a_persons_labels_and_stale_weeks_are_said() -> None:
    receipt = ForgetReceipt(
        sessions=("s1", "s2"), relatives=("s2",), person="sam", weeks=("2026-01-05",)
    )
    lines = printed(receipt)
    assert lines[0] == (
        "To be forgotten: 2 sessions: s1, s2; of these, 1 are copies or forks of the others; "
        "the labels of sam"
    )
    assert "Nothing of it is in any place that Debrief knows of." in lines
    assert "What would remain:" in lines
    assert not any("stale" in line for line in lines)
    done = ForgetReceipt(sessions=("s1",), weeks=("2026-01-05",), is_done=True)
    assert any(line.startswith("1 week held them and are stale") for line in printed(done))
