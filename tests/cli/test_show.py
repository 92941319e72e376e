"""``debrief show``: a session in the terminal, and as one file that loads nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from debrief.cli.show import show
from debrief.errors import InputError
from debrief.lake import Lake
from tests.langfuse.test_source import transcript
from tests.view.every_kind import fill_every_kind
from tests.view.test_session import EVIL, EVIL_ID, LIVE, fill_hostile

IDENTITY = "0b5f7c1e-1111-4222-8333-444455556666"


@pytest.fixture(autouse=True)
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    for name in ("LANGFUSE_HOST", "LANGFUSE_BASE_URL", "DEBRIEF_LAKE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBRIEF_SESSIONS", str(tmp_path / "projects"))
    monkeypatch.setenv("COLUMNS", "100")
    return Lake(str(tmp_path / "home" / "lake"))


def test_a_session_is_printed_with_its_reasons_and_their_evidence(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    fill_every_kind(lake)
    show("every-k")
    printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    for shown in (
        "The session holds words that look made for a judge",
        "verdict  partial\n    Reviewed by openai/reader. It says complete, verified; the last check "
        "failed (turn 1: “FAILED",
        "    openai/reader: confidence high, quality 0.40",
        "\nsignals\n    refused twice (turn 1: `The person said no`)",
        "    `pytest` failed: 1 of 1 failed (turn 1: `FAILED shop/test_cart.py",
        "review by claude-code  failed\n    Reviewed by claude-code.\n",
        "request 1  partly done\n    turn 1: fix the sum of the cart\n    seen in turn 1: “1 failed”",
        "request 2  done, not seen\n    turn 2: review the work\n",
        "claim  contradicted\n    “All is well now”\n    seen in turn 1: “1 failed”",
        "friction\n    It says that all is well while a test fails.\n"
        "    instead: Run the tests again before you say that all is well.",
        "the person  corrects\n    “it adds up wrong”",
        "train on  turns 1, 2 to 3\ntask completion  partial 0.33  weight 0.30\n",
        "plan-compliance  not judged  weight 0.60\n    There is no plan to compare with.\n",
        "Given to the model: output of a command that the person ran, notice of work in the background",
        "person’s words)\n  <bash-stdout>2 passed",
        "a fork of later",
        "from the session that this is a fork of",
        "Turn 1  09:00  1 image ──",
        "Thinking  The sign must be wrong.",
        "● Grep  total in /home/ada/shop\n    1 line\n",
        "● Edit  cart.py  +1 −1",
        "    -total = a - b\n    +total = a + b\n    ↖ evidence for code, incident, plan-compliance",
        "● Edit  cart.py  refused",
        "● Bash  cd shop &&  exit 1",
        "    FAILED shop/test_cart.py - assert 3 == 4\n    1 failed\n    ↖ evidence for verdict",
        "Interrupted",
        "    ✓ Find it\n    ▸ Fix it\n    ○ Test it",
        "    Subagent explorer: 1 message, 1 call",
        "The conversation was compacted",
        "the person went back to before it",
    ):
        assert shown in printed, shown


def test_one_turn_is_printed_with_all_that_its_calls_gave(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    fill_every_kind(lake)
    show("every-kind", turn=1)
    printed = capsys.readouterr().out
    assert "1→total = a - b" in printed
    assert "Turn 2" not in printed
    with pytest.raises(InputError, match="has no turn 7"):
        show("every-kind", turn=7)


def test_a_saved_file_holds_everything_and_loads_nothing(lake: Lake, tmp_path: Path) -> None:
    session = fill_every_kind(lake)
    show(session.id, html=tmp_path / "one.html")
    saved = (tmp_path / "one.html").read_text()
    assert "<script" not in saved
    assert 'http-equiv="Content-Security-Policy" content="default-src' in saved
    assert not re.search(r'(?:src|href)="(?!#)(?!https://)', saved)
    assert "FAILED shop/test_cart.py" in saved
    assert set(re.findall(r'href="#([^"]+)"', saved)) <= set(re.findall(r'id="([^"]+)"', saved))
    with pytest.raises(InputError, match="cannot be written"):
        show(session.id, html=tmp_path / "no" / "folder.html")


def test_a_transcript_that_nobody_reviewed_is_shown_with_its_signals_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = transcript(tmp_path / "projects", IDENTITY)
    for wanted in (str(path), IDENTITY[:8]):
        show(wanted)
        printed = capsys.readouterr().out
        assert "\nverdict  not reviewed\nsignals\n    " in printed
        assert "    ends with an answer" in printed
        assert not [word for word in ("quality", "task completion") if word in printed]


def test_nothing_that_a_terminal_or_a_browser_would_obey_gets_through(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill_hostile(lake, EVIL)
    show(EVIL_ID)
    show(EVIL_ID, turn=1)
    printed = capsys.readouterr().out
    assert "<script>alert(1)</script>" in printed
    show(EVIL_ID, html=tmp_path / "evil.html")
    saved = (tmp_path / "evil.html").read_text()
    assert not LIVE.search(saved)
    for text in (printed, saved):
        assert not re.search("[\x00\x07\x1b\u202e\u2066]", text)


def test_what_is_long_in_every_field_is_cut_in_each(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    fill_hostile(lake, "<x>" * 100_000)
    show(EVIL_ID)
    assert len(capsys.readouterr().out) < 1_500_000
