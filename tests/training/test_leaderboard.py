from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.judging.model import JudgeEvaluation
from debrief.scoring.model import SessionScores
from debrief.snapshots.model import SessionMetadataRow
from debrief.training.leaderboard import (
    LeaderboardRow,
    estimate,
    leaderboard,
    leaderboard_markdown,
)
from debrief.training.plots import leaderboard_plot, scores_over_weeks_plot
from tests.training.scenario import MONDAY, judgement, metadata, scores, session

PNG = b"\x89PNG\r\n\x1a\n"
World = tuple[list[SessionScores], list[SessionMetadataRow], list[JudgeEvaluation]]


def world(*candidates: tuple[str, list[float]], **fields: Any) -> World:
    """Sessions by prompt fingerprint, with these overall qualities."""
    made: World = ([], [], [])
    for prompt, values in candidates:
        for number, value in enumerate(values):
            of = session(f"{prompt}-{number}", started=MONDAY + timedelta(weeks=number % 5))
            made[0].append(scores(of, value, **fields.get("scores", {})))
            made[1].append(metadata(of, prompt_fingerprint=prompt))
            made[2].append(judgement(of, score=value, **fields.get("judgement", {})))
    return made


def together(*worlds: World) -> World:
    return (
        [row for one in worlds for row in one[0]],
        [row for one in worlds for row in one[1]],
        [row for one in worlds for row in one[2]],
    )


def test_candidates_are_ranked_by_mean_quality() -> None:
    rows = leaderboard(*world(("aaaa", [0.2, 0.4]), ("bbbb", [0.9, 0.7, 0.8])))
    assert [(row.rank, row.prompt_fingerprint, row.sessions) for row in rows] == [
        (1, "bbbb", 3),
        (2, "aaaa", 2),
    ]
    assert rows[0].overall_quality.mean == pytest.approx(0.8)
    assert rows[0].judges.mean == pytest.approx(0.8)
    assert rows[0].token_efficiency.mean == pytest.approx(1.5)
    assert rows[0].user_turn_efficiency.mean is None


@pytest.mark.parametrize(
    "other",
    [{"judgement": {"eval_fingerprint": "00000000"}}, {"scores": {"scoring_fingerprint": "0"}}],
    ids=["other judges", "another scorer"],
)
def test_what_was_not_judged_alike_is_not_ranked_together(other: dict[str, Any]) -> None:
    rows = leaderboard(*together(world(("aaaa", [0.2])), world(("bbbb", [0.9]), **other)))
    assert [row.rank for row in rows] == [1, 1]
    assert len({row.group for row in rows}) == 2
    assert leaderboard_markdown(rows).count("### Eval fingerprint") == 2


def test_a_session_that_was_not_scored_or_is_not_known_is_not_counted() -> None:
    made_scores, made_metadata, judged = world(("aaaa", [0.2, 0.4, 0.6]))
    made_scores[0] = scores(session("aaaa-0"), None)
    rows = leaderboard(made_scores, made_metadata[:2], judged)
    assert [row.sessions for row in rows] == [1]


def test_a_mean_of_judges_leaves_out_sessions_on_which_one_failed() -> None:
    made_scores, made_metadata, judged = world(("aaaa", [0.5, 0.5]))
    judged.append(judgement(session("aaaa-0"), "plan", None))
    judged.append(judgement(session("aaaa-1"), "plan", 0.9, weight=3.0))
    (row,) = leaderboard(made_scores, made_metadata, judged)
    assert row.judges.count == 1
    assert row.judges.mean == pytest.approx(0.8)


def test_each_judge_has_an_interval_of_its_own_over_what_it_did_not_fail_on() -> None:
    made_scores, made_metadata, judged = world(("aaaa", [0.4, 0.6]), ("bbbb", [0.5]))
    judged.append(judgement(session("aaaa-0"), "plan", None))
    judged.append(judgement(session("aaaa-1"), "plan", 0.9))
    rows = leaderboard(made_scores, made_metadata, judged)
    (first,) = [row for row in rows if row.prompt_fingerprint == "aaaa"]
    found = {one.judge: one.score for one in first.by_judge}
    assert found == {"plan": estimate([0.9], 1.0), "reuse": estimate([0.4, 0.6], 1.0)}
    page = leaderboard_markdown(rows)
    assert "| # | prompts | tool | model | plan | reuse |" in page
    assert "| `bbbb` | claude-code | opus | – | 0.50 |" in page


def test_one_judge_alone_needs_no_table_of_its_own() -> None:
    assert "Each judge by itself" not in leaderboard_markdown(leaderboard(*world(("a", [0.5]))))


def test_a_session_without_judges_is_in_the_group_of_unknown_ones() -> None:
    made_scores, made_metadata, _ = world(("aaaa", [0.5]))
    (row,) = leaderboard(made_scores, made_metadata)
    assert row.eval_fingerprint == "unknown"
    assert "| – |" in leaderboard_markdown([row])


def test_offline_judges_stand_beside_offline_scores_only() -> None:
    offline = world(("aaaa", [0.2]))
    model = {"model": "m"}
    asked = world(
        ("aaaa", [0.8]),
        scores={**model, "scoring_fingerprint": "0"},
        judgement={**model, "eval_fingerprint": "00000000"},
    )
    found = leaderboard(*together(offline, asked))
    assert {(row.group, row.judges.mean) for row in found} == {
        (("a3f8b2c1", "5c0e1d2a"), 0.2),
        (("00000000", "0"), 0.8),
    }


def test_the_interval_is_student_s() -> None:
    found = estimate([0.4, 0.5, 0.6])
    assert found.mean == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5 - 4.302653 * 0.1 / 3**0.5)
    assert found.high == pytest.approx(0.5 + 4.302653 * 0.1 / 3**0.5)


def test_one_session_has_no_interval() -> None:
    found = estimate([0.4])
    assert (found.mean, found.low, found.high) == (0.4, None, None)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_every_interval_holds_its_mean_and_stays_in_range(values: list[float]) -> None:
    found = estimate(values, 1.0)
    assert found.mean is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.mean + 1e-12
    assert found.mean - 1e-12 <= found.high <= 1 + 1e-12


def test_intervals_hold_the_true_mean_19_times_of_20() -> None:
    draw = random.Random(1)
    held = 0
    for _ in range(1_000):
        found = estimate([draw.gauss(0.5, 0.1) for _ in range(8)], 1.0)
        held += (found.low or 0) <= 0.5 <= (found.high or 0)
    assert 930 <= held <= 970


def many(count: int) -> list[LeaderboardRow]:
    candidates = [(f"{number:08x}", [number / count, 0.5]) for number in range(count)]
    return leaderboard(*world(*candidates))


def size_of(picture: bytes) -> tuple[int, int]:
    assert picture.startswith(PNG)
    return int.from_bytes(picture[16:20]), int.from_bytes(picture[20:24])


def test_the_plot_grows_with_its_rows_up_to_twenty() -> None:
    heights = [size_of(leaderboard_plot(many(count)))[1] for count in (1, 20, 21)]
    assert heights[0] < heights[1]
    assert heights[2] == heights[1]


def test_plots_are_the_same_bytes_for_the_same_numbers() -> None:
    made_scores = world(("aaaa", [0.2, 0.4, 0.9]), ("bbbb", [0.3]))[0]
    picture = leaderboard_plot(many(2))
    assert leaderboard_plot(many(2)) == picture
    assert leaderboard_plot(many(3)) != picture
    assert scores_over_weeks_plot(made_scores) == scores_over_weeks_plot(made_scores[::-1])
    assert b"Software" not in picture


def test_plots_of_nothing_say_so() -> None:
    assert leaderboard_plot([]).startswith(PNG)
    assert scores_over_weeks_plot([]).startswith(PNG)
    assert "No scored session" in leaderboard_markdown([])


def test_a_picture_needs_no_pyplot() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from debrief.training.plots import leaderboard_plot; "
        "assert 'matplotlib' not in sys.modules; leaderboard_plot([]); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
