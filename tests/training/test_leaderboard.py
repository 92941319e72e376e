"""How models and prompts compare: an answer, or what is missing for one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest

from debrief.keys import week_of
from debrief.lake import Lake
from debrief.outcomes.store import SUCCESS, Label, Labels, put_labels
from debrief.outcomes.verdicts import verdicts_in
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from debrief.signals.schema import TABLE as SIGNALS
from debrief.signals.schema import SessionSignals
from debrief.snapshots.model import SessionMetadataRow
from debrief.training.comparison import ComparedSession, answers
from debrief.training.families import family_of
from debrief.training.leaderboard import (
    Leaderboard,
    compared_sessions,
    leaderboard,
    leaderboard_markdown,
    tasks_of,
)
from tests.training.scenario import MONDAY, metadata, said, scores, session, signals


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-opus-4-7", "opus"),
        ("claude-opus-4-8", "opus"),
        ("claude-opus-4-8[1m]", "opus"),
        ("opus", "opus"),
        ("claude-3-5-sonnet-20241022", "sonnet"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "sonnet"),
        ("claude-opus-4@20250514", "opus"),
        ("openrouter/anthropic/claude-haiku-4.5", "haiku"),
        ("gpt-5.1-codex", "gpt-codex"),
        ("gpt-5.1-codex-mini", "gpt-codex-mini"),
        ("gpt-4o", "gpt"),
        ("o3-mini", "o3-mini"),
        ("gemini-2.5-pro", "gemini-pro"),
        ("kimi-k2-0905", "kimi"),
        ("deepseek-r1", "deepseek"),
        ("Qwen3-Coder-480B-A35B", "qwen-coder"),
        ("mixtral-8x22b", "mixtral"),
        ("glm-4.6", "glm"),
        ("<synthetic>", "<synthetic>"),
        ("4.5", "4.5"),
    ],
)
def test_a_family_is_a_name_without_versions_dates_and_sizes(model: str, family: str) -> None:
    assert family_of(model) == family


def went(letters: str, place: str = "shop") -> list[ComparedSession]:
    """Sessions on one place: ``c`` complete, ``n`` not, ``?`` not reviewed."""
    said = {"c": True, "n": False, "?": None}
    return [
        ComparedSession(
            prompt_fingerprint="p",
            tool="claude-code",
            model="m",
            place=place,
            is_complete=said[letter],
            cost_usd=None,
            minutes=None,
        )
        for letter in letters
    ]


def told(**sides: Iterable[ComparedSession]) -> list[str]:
    return list(answers({name: list(own) for name, own in sides.items()}))


def test_the_first_line_says_which_completes_more() -> None:
    opus, sonnet = went("c" * 18 + "nn??"), went("c" * 5 + "n" * 14)
    expected = (
        "Opus completes more of your reviewed sessions than sonnet: 18 of 20 against 5 of 19 on "
        "the same work."
    )
    assert told(opus=opus, sonnet=sonnet) == [expected]
    assert told(sonnet=sonnet, opus=opus) == [expected]


def test_sides_that_cannot_be_told_apart_say_how_many_sessions_would_do() -> None:
    (said,) = told(opus=went("ccccn"), sonnet=went("cccnn"))
    found = re.fullmatch(
        r"Opus and sonnet cannot be told apart: 4 of 5 against 3 of 5 reviewed sessions on the "
        r"same work are complete; about (\d+) more reviewed sessions would do, were it to go on "
        r"so\.",
        said,
    )
    assert found is not None
    assert 50 < int(found[1]) < 500
    (same,) = told(opus=went("ccccn"), sonnet=went("ccccn"))
    assert same.endswith("4 of 5 against 4 of 5 reviewed sessions on the same work are complete.")


@pytest.mark.parametrize(
    ("opus", "sonnet", "missing"),
    [
        (went("ccccccc"), went("cn??????"), "3 more reviewed sessions of sonnet in shop would do"),
        (went("ccccccc"), went(""), "5 more reviewed sessions of sonnet in shop would do"),
        (went("cc"), went("c"), "7 more reviewed sessions (3 of opus and 4 of sonnet) in shop would do"),
        (
            went("ccccccc"),
            went("cccccc", "till"),
            "5 more reviewed sessions of sonnet in shop would do",
        ),
    ],
    ids=["too few", "none", "both", "another repository"],
)  # fmt: skip
def test_too_little_in_common_says_what_is_missing(
    opus: list[ComparedSession], sonnet: list[ComparedSession], missing: str
) -> None:
    expected = f"Opus against sonnet cannot be told: {missing}."
    assert told(opus=opus, sonnet=[*sonnet, *went("?")]) == [expected]


def test_like_is_compared_with_like() -> None:
    opus = [*went("c" * 10, "easy"), *went("n" * 5, "hard")]
    sonnet = [*went("c" * 3, "easy"), *went("n" * 30, "hard")]
    (said,) = told(opus=opus, sonnet=sonnet)
    assert "cannot be told apart" in said, "sonnet was given the hard work, and did as well on each"


def test_without_a_review_or_another_side_there_is_nothing_to_tell() -> None:
    assert told(opus=went("???"), sonnet=went("??")) == ["Cannot be told: no session is reviewed."]
    assert told(opus=went("ccc")) == ["Nothing to compare: all sessions are of opus."]


def test_each_other_side_with_enough_sessions_gets_an_answer() -> None:
    said = told(opus=went("c" * 12), sonnet=went("n" * 8), haiku=went("n" * 6), gpt=went("cc"))
    assert [line.partition(":")[0] for line in said] == [
        "Opus completes more of your reviewed sessions than sonnet",
        "Opus completes more of your reviewed sessions than haiku",
    ]


def filed(
    folder: Path, models: dict[str, str], letters: dict[str, str], prompt: str = "aaaa1111"
) -> Lake:
    """A lake in which each model's sessions ended as its letters say."""
    lake, weeks = Lake(str(folder)), dict[str, list[tuple[Session, str, str]]]()
    for name, model in models.items():
        for number, letter in enumerate(letters[name]):
            began = MONDAY + timedelta(weeks=number % 2)
            of = session(f"{name}{number}", started=began, task="shop")
            weeks.setdefault(week_of(of.started), []).append((of, model, letter))
    for week, own in weeks.items():
        sessions = [of for of, *_ in own]
        lake.write("raw_sessions", week, sessions, Session)
        rows = [metadata(of, model=model, prompt_fingerprint=prompt) for of, model, _ in own]
        lake.write("session_metadata", week, rows, SessionMetadataRow)
        seen = [signals(of, cost_usd=0.5) for of in sessions]
        lake.write(SIGNALS, week, seen, SessionSignals)
        verdict = {"c": "complete_unverified", "n": "failed", "u": "undetermined"}
        reviews = [
            scores(of, verdict=said(verdict[letter]))  # type: ignore[arg-type]
            for of, _, letter in own
            if letter in verdict
        ]
        lake.write("session_scores", week, reviews, SessionScores)
    return lake


def board_of(lake: Lake) -> Leaderboard:
    return leaderboard(compared_sessions(lake, verdicts_in(lake), tasks_of(lake)))


MODELS = {
    "a": "claude-opus-4-7",
    "b": "claude-opus-4-8",
    "s": "claude-sonnet-4-5",
    "h": "claude-haiku-4-5",
}


def test_versions_are_one_family_and_what_cannot_be_told_has_no_interval(tmp_path: Path) -> None:
    lake = filed(tmp_path, MODELS, {"a": "cccc??", "b": "ccccu", "s": "ccn???", "h": "c"})
    board = board_of(lake)
    rows = {row.model: row for row in board.models}
    assert set(rows) == {"opus", "sonnet", "haiku"}
    opus, sonnet = rows["opus"], rows["sonnet"]
    assert (opus.sessions, opus.reviewed, opus.complete) == (11, 8, 8)
    assert opus.share is not None
    assert (sonnet.sessions, sonnet.reviewed, sonnet.share) == (6, 3, None)
    assert (sonnet.cost_usd, sonnet.minutes) == (0.5, 20.0)
    assert board.about_models == (
        "Opus against sonnet cannot be told: 2 more reviewed sessions of sonnet in shop would do.",
    )
    page = leaderboard_markdown(board)
    assert page.index("cannot be told") < page.index("| opus |")
    assert "| sonnet | 6 | 3 | 2 | – | 0.50 | 20 |" in page
    assert "1 row of fewer than 5 sessions (1 session in all)." in page
    assert "haiku" not in page


def test_a_person_comes_before_a_review(tmp_path: Path) -> None:
    lake = filed(tmp_path, {"a": "claude-opus-4-7"}, {"a": "ccccc"})
    label = Label(session_id="a0", name=SUCCESS, value="no", source="view", rater="ann")
    put_labels(lake, Labels(labels=(label,)))
    (row,) = board_of(lake).models
    assert (row.reviewed, row.complete) == (5, 4)


def test_prompts_are_compared_by_name(tmp_path: Path) -> None:
    lake = filed(tmp_path, {"a": "claude-opus-4-7"}, {"a": "cccccccc"})
    sessions = compared_sessions(lake, verdicts_in(lake), {})
    other = [
        ComparedSession(
            prompt_fingerprint="bbbb2222",
            tool="claude-code",
            model="opus",
            place="shop",
            is_complete=False,
            cost_usd=None,
            minutes=None,
        )
    ] * 8
    names = {"aaaa1111": "Be brief", "bbbb2222": "Be long"}
    board = leaderboard([*sessions, *other], names)
    assert board.about_prompts == (
        "Be brief completes more of your reviewed sessions than Be long: 8 of 8 against 0 of 8 "
        "on the same work.",
    )
    assert [row.prompt_fingerprint for row in board.prompts] == ["aaaa1111", "bbbb2222"]
    assert "| Be brief | claude-code | opus | 8 | 8 | 8 |" in leaderboard_markdown(board, names)


def test_without_a_review_cost_and_time_are_told_all_the_same(tmp_path: Path) -> None:
    lake = filed(tmp_path, {"a": "claude-opus-4-7"}, {"a": "?????"})
    page = leaderboard_markdown(board_of(lake))
    assert "Cannot be told: no session is reviewed." in page
    assert "| opus | 5 | 0 | – | – | 0.50 | 20 |" in page


def test_an_empty_lake_has_an_empty_comparison(tmp_path: Path) -> None:
    board = board_of(Lake(str(tmp_path)))
    assert (board.models, board.about_models) == ((), ())
    assert "## Models" in leaderboard_markdown(board)
