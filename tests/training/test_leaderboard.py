from __future__ import annotations

import re
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.outcomes.store import Label, Labels, put_labels
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import VerdictName
from debrief.sessions.model import Session
from debrief.snapshots.model import SessionMetadataRow
from debrief.stats import mean_of, share_of
from debrief.training.decomposition import (
    FACTORS,
    Factor,
    FactorEffect,
    WeeklyMove,
    moves_markdown,
    weekly_moves,
)
from debrief.training.leaderboard import (
    STANDINGS,
    LeaderboardRow,
    Standing,
    WorkedOn,
    leaderboard,
    leaderboard_markdown,
    work_of,
)
from debrief.training.plots import leaderboard_plot, moves_plot, scores_over_weeks_plot
from tests.training.scenario import MONDAY, judgement, metadata, said, scores, session

World = tuple[
    list[SessionScores], list[SessionMetadataRow], list[JudgeEvaluation], dict[str, WorkedOn]
]


LETTERS: dict[str, VerdictName] = {
    "v": "complete_verified",
    "u": "complete_unverified",
    "p": "partial",
    "n": "failed",
    "?": "undetermined",
}


def world(*candidates: tuple[str, str], **fields: Any) -> World:
    """Sessions by prompt fingerprint, a letter a verdict, on one small piece of work each."""
    made: World = ([], [], [], {})
    for prompt, verdicts in candidates:
        for number, letter in enumerate(verdicts):
            id_ = f"{fields.get('name', '')}{prompt}-{number}"
            of = session(id_, started=MONDAY + timedelta(weeks=number % 5))
            verdict = said(LETTERS[letter])
            made[0].append(scores(of, 0.5, verdict=verdict, **fields.get("scores", {})))
            known = {"prompt_fingerprint": prompt, **fields.get("metadata", {})}
            made[1].append(metadata(of, **known))
            made[2].append(judgement(of, **{"score": 0.5, **fields.get("judgement", {})}))
            made[3][of.id] = WorkedOn(**{"growth": 10, **fields.get("work", {})})
    return made


def together(*worlds: World) -> World:
    scored, known, judged, work = zip(*worlds, strict=True)
    every = {id_: one for each in work for id_, one in each.items()}
    return list(chain(*scored)), list(chain(*known)), list(chain(*judged)), every


def stands(rows: list[LeaderboardRow]) -> list[tuple[int | None, str, str]]:
    return [(row.rank, row.prompt_fingerprint, row.standing) for row in rows]


def test_rows_on_the_same_work_are_ranked_by_what_is_done_and_checked() -> None:
    rows = leaderboard(
        *world(
            ("aaaa", "nnnnnnnv"), ("bbbb", "vvvvvvvu?"), ("cccc", "vvvvvp"), ("dddd", "nnnnnnnn")
        )
    )
    assert stands(rows) == [
        (1, "bbbb", "best"), (1, "cccc", "level"), (2, "aaaa", "behind"), (3, "dddd", "behind"),
    ]  # fmt: skip
    best, level, behind, _ = rows
    assert (best.sessions, best.with_verdict, best.verified) == (9, 8, 7)
    assert best.done == share_of(7, 8)
    assert level.difference.value == pytest.approx(5 / 6 - 7 / 8, abs=1e-6)
    assert behind.difference.value == pytest.approx(1 / 8 - 7 / 8)
    assert (behind.difference.first, behind.difference.second) == (8, 8)
    page = leaderboard_markdown(rows)
    assert "| 1 | `bbbb` | claude-code | opus | 9 | 8 | 0.88 (0.53 to 0.98) |" in page
    for words in ("the best of those compared", "): not told from the best", "): behind the best"):
        assert words in page


def test_hard_work_that_others_do_not_do_costs_no_rank() -> None:
    easy = world(("aaaa", "vvvvv"), ("bbbb", "vvvvvvv"))
    hard = world(("bbbb", "nnnnnnnnnn"), work={"growth": 900}, name="hard-")
    rows = leaderboard(*together(easy, hard))
    (other,) = [row for row in rows if row.standing == "level"]
    assert other.compared == "+0.00 (+0.00 to +0.00): not told from the best"
    assert {row.prompt_fingerprint: row.done for row in rows} == {
        "aaaa": share_of(5, 5), "bbbb": share_of(7, 17),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("other", "standing"),
    [
        (world(("bbbb", "vvvvv"), metadata={"repository": "till"}), "other_work"),
        (world(("bbbb", "vvvvv"), scores={"kind": "service"}), "other_work"),
        (world(("bbbb", "vvvvv"), work={"growth": 100}), "other_work"),
        (world(("bbbb", "vvvv")), "too_few"),
        (world(("bbbb", "?????")), "no_verdict"),
    ],
    ids=["another repository", "another kind", "another size", "few", "nothing told"],
)
def test_what_is_not_alike_has_no_rank_and_the_page_says_why(
    other: World, standing: Standing
) -> None:
    rows = leaderboard(*together(world(("aaaa", "vvnnn"), ("cccc", "vvvvn")), other))
    assert stands(rows) == [
        (1, "cccc", "best"), (1, "aaaa", "level"), (None, "bbbb", standing),
    ]  # fmt: skip
    page = leaderboard_markdown(rows)
    assert "| – | `bbbb` |" in page
    assert STANDINGS[standing] in page
    assert STANDINGS[standing].startswith("not comparable: ")


def test_the_same_task_is_compared_whatever_the_repository() -> None:
    task = {"work": {"task": "fix-git", "growth": 900}}
    one = world(("aaaa", "vvvvv"), metadata={"repository": "shop"}, **task)
    other = world(("bbbb", "vvnnn"), metadata={"repository": ""}, **task)
    assert stands(leaderboard(*together(one, other))) == [
        (1, "aaaa", "best"), (2, "bbbb", "behind"),
    ]  # fmt: skip


def test_alone_or_with_nothing_alike_no_row_has_a_rank() -> None:
    assert stands(leaderboard(*world(("aaaa", "vvvvv")))) == [(None, "aaaa", "alone")]
    apart = world(("bbbb", "vvvvvv"), metadata={"repository": "till"})
    assert stands(leaderboard(*together(world(("aaaa", "vvvvv")), apart))) == [
        (None, "bbbb", "other_work"), (None, "aaaa", "other_work"),
    ]  # fmt: skip


ROWS = st.lists(
    st.tuples(st.sampled_from("abcdefg"), st.text("vn", min_size=1, max_size=12), st.booleans()),
    min_size=1,
    max_size=7,
    unique_by=lambda row: row[0],
)


@given(ROWS)
@settings(deadline=None, max_examples=20)
def test_no_rank_is_skipped_and_every_row_without_one_says_why(
    drawn: list[tuple[str, str, bool]],
) -> None:
    parts = [
        world((f"{name}0000000", verdicts), metadata={"repository": "shop" if here else "till"})
        for name, verdicts, here in drawn
    ]
    rows = leaderboard(*together(*parts))
    ranks = [row.rank for row in rows if row.rank is not None]
    assert sorted({*ranks}) == list(range(1, len({*ranks}) + 1))
    assert len(ranks) != 1
    assert len(rows) == len(drawn)
    for row in rows:
        assert (row.rank is None) == (row.standing not in ("best", "level", "behind"))
        assert (row.rank == 1) == (row.standing in ("best", "level"))
        assert row.compared


@pytest.mark.parametrize(
    "other",
    [{"judgement": {"eval_fingerprint": "00000000"}}, {"scores": {"scoring_fingerprint": "0"}}],
    ids=["other judges", "another scorer"],
)
def test_what_was_not_judged_alike_is_not_ranked_together(other: dict[str, Any]) -> None:
    pair = ("aaaa", "vvvvv"), ("cccc", "vvvvn")
    again = ("bbbb", "vvvvv"), ("dddd", "vvvvn")
    rows = leaderboard(*together(world(*pair), world(*again, **other)))
    assert [row.standing for row in rows] == ["best", "level"] * 2
    assert len({row.group for row in rows}) == 2
    assert leaderboard_markdown(rows).count("### Eval fingerprint") == 2


def test_a_session_that_failed_or_is_not_known_is_not_counted() -> None:
    made_scores, made_metadata, judged, work = world(("aaaa", "vvn"))
    made_scores[0] = replace(made_scores[0], status="failed")
    found = leaderboard(made_scores, made_metadata[:2], judged, work)
    assert [(row.sessions, row.with_verdict) for row in found] == [(1, 1)]
    (row,) = leaderboard(made_scores, made_metadata[:2])
    assert row.eval_fingerprint == "unknown", "nobody judged it"
    nothing = leaderboard(*world(("aaaa", "??")))
    assert "| 2 | 0 | – | nothing to compare it with |" in leaderboard_markdown(nothing)


def test_what_a_lakes_sessions_worked_on_is_read_from_them_and_from_labels(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    made = [
        session("s1", task="shop", lines_added=3, lines_removed=4),
        session("s2", task="plan-7"),
        session("s3", task="shop"),
    ]
    lake.write("raw_sessions", f"{MONDAY:%Y-%m-%d}", made, Session)
    label = Label(session_id="s3", name="success", value="1", source="csv", task="fix-git")
    put_labels(lake, Labels(labels=(label,)))
    assert work_of(lake) == {
        "s1": WorkedOn(growth=7), "s2": WorkedOn(task="plan-7"), "s3": WorkedOn(task="fix-git"),
    }  # fmt: skip
    lake.write("fingerprint_leaderboard", "all", leaderboard(*world(("a", "vn?"))), LeaderboardRow)
    (row,) = lake.read("fingerprint_leaderboard", "all", LeaderboardRow)
    assert (row.done, row.rank, row.standing) == (share_of(1, 2), None, "alone")


def test_each_judge_has_an_interval_of_its_own_over_what_it_did_not_fail_on() -> None:
    made_scores, made_metadata, judged, work = world(("aaaa", "vv"), ("bbbb", "v"))
    judged[0] = replace(judged[0], score=0.4)
    judged[1] = replace(judged[1], score=0.6)
    judged.append(judgement(session("aaaa-0"), "plan", None))
    judged.append(judgement(session("aaaa-1"), "plan", 0.9))
    rows = leaderboard(made_scores, made_metadata, judged, work)
    (first,) = [row for row in rows if row.prompt_fingerprint == "aaaa"]
    assert first.judges.count == 1
    assert first.judges.mean == pytest.approx(0.75)
    found = {estimate.judge: estimate.score for estimate in first.by_judge}
    assert found == {"plan": mean_of([0.9], 1.0), "reuse": mean_of([0.4, 0.6], 1.0)}
    page = leaderboard_markdown(rows)
    assert "| # | prompts | tool | model | plan | reuse |" in page
    assert "| `bbbb` | claude-code | opus | – | 0.50 |" in page
    page = leaderboard_markdown(rows, {"bbbb": "Shop", "aaaa": "Shop · aaaa"})
    assert "| Shop `bbbb` | claude-code | opus | – | 0.50 |" in page
    assert "| Shop · aaaa | claude-code |" in page


def test_a_models_scores_speak_where_a_session_has_them_with_its_judges_beside() -> None:
    offline = world(("aaaa", "v"))
    model = {"model": "m"}
    asked = world(
        ("aaaa", "v"),
        scores={**model, "scoring_fingerprint": "0"},
        judgement={**model, "eval_fingerprint": "00000000", "score": 0.8},
    )
    for rows in (together(offline, asked), together(asked, offline)):
        (found,) = leaderboard(*rows)
        assert (found.group, found.judges.mean) == (("00000000", "0"), 0.8)
    (alone,) = leaderboard(*offline)
    assert (alone.group, alone.judges.mean) == (("a3f8b2c1", "5c0e1d2a"), 0.5)


def test_the_interval_is_student_s_and_one_session_has_none() -> None:
    found = mean_of([0.4, 0.5, 0.6])
    reach = 4.302653 * 0.1 / 3**0.5
    assert (found.mean, found.low, found.high) == pytest.approx((0.5, 0.5 - reach, 0.5 + reach))
    alone = mean_of([0.4])
    assert (alone.mean, alone.low, alone.high) == (0.4, None, None)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_every_interval_holds_its_mean_and_stays_in_range(values: list[float]) -> None:
    found = mean_of(values, 1.0)
    assert found.mean is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.mean + 1e-12
    assert found.mean - 1e-12 <= found.high <= 1 + 1e-12


def many(count: int) -> list[LeaderboardRow]:
    candidates = [(f"{number:08x}", "v" * number + "n" * 5) for number in range(count)]
    return leaderboard(*world(*candidates))


def words_of(plot: bytes) -> list[str]:
    """Return the texts of a plot, which is a whole SVG document."""
    return [text for text in ElementTree.fromstring(plot).itertext() if text.strip()]


def dots_of(plot: bytes) -> list[ElementTree.Element]:
    return ElementTree.fromstring(plot).findall(".//{*}circle")


def height_of(plot: bytes) -> float:
    return float(ElementTree.fromstring(plot).attrib["height"])


def test_plots_grow_up_to_twenty_rows_and_are_the_same_bytes_for_the_same_numbers() -> None:
    small, twenty, more = (leaderboard_plot(many(count)) for count in (2, 20, 21))
    assert height_of(small) < height_of(twenty) == height_of(more)
    # Each row takes as much of the height as it stands below the one before it.
    first, second = (float(dot.attrib["cy"]) for dot in dots_of(small))
    assert height_of(twenty) - height_of(small) == 18 * (second - first)
    assert any("(20 of 21 rows)" in text for text in words_of(more))
    assert leaderboard_plot(many(2)) == small
    qualities = enumerate((0.2, 0.4, 0.9, 0.3))
    made_scores = [scores(session(f"s{number}"), value) for number, value in qualities]
    assert scores_over_weeks_plot(made_scores) == scores_over_weeks_plot(made_scores[::-1])
    assert "n = 4" in words_of(scores_over_weeks_plot(made_scores))


def test_the_scorers_of_a_week_stand_side_by_side() -> None:
    ours = [scores(session(f"s{number}"), number / 10) for number in range(8)]
    plot = scores_over_weeks_plot([*ours, *(replace(row, model="other") for row in ours)])
    places: dict[str, list[float]] = {}
    for dot in dots_of(plot):
        places.setdefault(dot.attrib["fill"], []).append(float(dot.attrib["cx"]))
    left, right = places.values()
    assert len(left) == len(right) == 9, "a session each, and the mean"
    assert len(set(left)) >= 8
    assert max(left) < min(right)


def test_a_plot_shows_names_as_they_are() -> None:
    name = '<script>alert("1")</script> & co'
    row = replace(many(2)[0], scoring_model=name)
    assert any(name[:20] in text for text in words_of(leaderboard_plot([row])))
    assert b"<script" not in leaderboard_plot([row])
    row = replace(many(2)[0], scoring_model="a\x07b\x1b[0m\x00")
    assert any("scored by" in text for text in words_of(leaderboard_plot([row])))


def test_plots_of_nothing_say_so() -> None:
    assert "No scored session yet" in words_of(leaderboard_plot([]))
    assert "No scored session yet" in words_of(scores_over_weeks_plot([]))
    assert "No scored session" in leaderboard_markdown([])


Weeks = tuple[list[SessionScores], list[SessionMetadataRow]]


def add(weeks: Weeks, week: int, quality: float, count: int = 1, **levels: Any) -> None:
    scorer = levels.pop("scoring_fingerprint", "5c0e1d2a")
    for _ in range(count):
        of = session(f"s{len(weeks[0]):04d}", started=MONDAY + timedelta(weeks=week))
        weeks[0].append(scores(of, quality, scoring_fingerprint=scorer))
        weeks[1].append(metadata(of, **levels))


def part(move: WeeklyMove, factor: Factor) -> float:
    return next(effect.value for effect in move.parts if effect.factor == factor)


@pytest.mark.parametrize(
    ("factor", "field"),
    [("tasks", "task"), ("prompts", "prompt_fingerprint"), ("model", "model"), ("judges", "scoring_fingerprint")],
)  # fmt: skip
def test_a_move_that_came_with_one_factor_is_put_down_to_it(factor: Factor, field: str) -> None:
    weeks: Weeks = ([], [])
    for week, good in ((0, 10), (1, 30)):
        add(weeks, week, 0.8, good, **{field: "good"})
        add(weeks, week, 0.4, 40 - good, **{field: "bad"})
    (move,) = weekly_moves(*weeks)
    assert move.moved == pytest.approx(0.2)
    assert part(move, factor) == pytest.approx(0.2, abs=0.03)
    assert move.rest == pytest.approx(0.0, abs=0.03)
    levels = {
        level.name.split()[-1]: level
        for effect in move.parts
        for level in effect.levels
        if effect.factor == factor
    }
    assert (levels["good"].share_before, levels["good"].share) == (0.25, 0.75)
    assert levels["good"].value + levels["bad"].value == pytest.approx(part(move, factor))
    assert re.search(r"\([a-z0-9 -]*(good 25% → 75%|bad 75% → 25%)", moves_markdown([move]))
    if factor == "prompts":
        assert "Shop 25% → 75%" in moves_markdown([move], {"good": "Shop"})
    assert sum(abs(effect.value) for effect in move.parts) == pytest.approx(
        abs(part(move, factor)), abs=0.01
    )


def test_a_move_with_nothing_changed_is_how_the_sessions_went() -> None:
    weeks: Weeks = ([], [])
    add(weeks, 0, 0.5, 10)
    add(weeks, 1, 0.7, 10)
    (move,) = weekly_moves(*weeks)
    assert move.rest == pytest.approx(0.2)
    assert [effect.value for effect in move.parts] == pytest.approx([0, 0, 0, 0])


def test_two_factors_that_changed_apart_are_told_apart() -> None:
    weeks: Weeks = ([], [])
    for week, (prompt, model) in enumerate([("old", "small"), ("new", "small"), ("new", "large")]):
        add(weeks, week, 0.4 + 0.3 * (prompt == "new") - 0.1 * (model == "large"), 40,
            prompt_fingerprint=prompt, model=model)  # fmt: skip
    first, second = weekly_moves(*weeks)
    assert part(first, "prompts") == pytest.approx(0.3, abs=0.03)
    assert part(second, "model") == pytest.approx(-0.1, abs=0.03)
    assert (first.together, second.together) == ((), ())


def test_two_that_changed_together_are_said_to_have() -> None:
    weeks: Weeks = ([], [])
    add(weeks, 0, 0.4, 10, prompt_fingerprint="old", model="small")
    add(weeks, 1, 0.8, 10, prompt_fingerprint="new", model="large")
    moves = weekly_moves(*weeks)
    assert moves[0].together == ("prompts and model",)
    assert "not to be told apart: 2026-01-12: prompts and model" in moves_markdown(moves)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4), st.floats(0, 1), st.sampled_from("ab"), st.sampled_from("xyz")
        ),
        max_size=40,
    )
)
def test_the_parts_always_add_up(drawn: list[tuple[int, float, str, str]]) -> None:
    weeks: Weeks = ([], [])
    for week, quality, prompt, task in drawn:
        add(weeks, week, quality, prompt_fingerprint=prompt, task=task)
    moves = weekly_moves(*weeks)
    assert len(moves) == max(0, len({week for week, *_ in drawn}) - 1)
    for move in moves:
        total = sum(effect.value for effect in move.parts) + move.rest
        assert total == pytest.approx(move.moved)
        assert all(effect.low <= effect.value <= effect.high for effect in move.parts)


def test_the_table_of_moves_is_narrow_however_much_changed() -> None:
    weeks: Weeks = ([], [])
    add(weeks, 0, 0.4, 10, prompt_fingerprint="old", model="small", task="one")
    add(weeks, 2, 0.8, 10, prompt_fingerprint="new", model="large", task="two")
    add(weeks, 3, 0.7, 10, prompt_fingerprint="new", model="small", task="one")
    told = moves_markdown(weekly_moves(*weeks)).replace("\u00a0", " ")
    head, _, newest, oldest, *_ = told.splitlines()
    assert head == "| week | n | mean | moved | with |"
    assert newest.startswith("| 2026-01-26 | 10 | 0.70 | **-0.10** | ")
    assert oldest.startswith("| 2026-01-19 | 10 | 0.80 | **+0.40** | ")
    for factor in ("tasks +0.", "prompts +0.", "model +0.", "the sessions themselves +0."):
        assert factor in oldest
    assert "judges" not in oldest, "nothing is said of what did nothing"
    assert "of 2026-01-05, was 0.40 over 10 sessions" in told
    assert "lie between: 2026-01-19 after 2026-01-05." in told


def test_few_weeks_are_told_and_drawn_too() -> None:
    assert "nothing can have moved" in moves_markdown([])
    assert "No two weeks with scored sessions yet" in words_of(moves_plot([]))
    weeks: Weeks = ([], [])
    for week in range(12):
        add(weeks, week, week / 40, 2, prompt_fingerprint=str(week // 5))
    moves = weekly_moves(*weeks)
    assert moves_plot(moves) == moves_plot(moves)
    assert f"{moves[-1].week}  n = 2" in words_of(moves_plot(moves))


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_a_move_of_any_size_is_drawn_between_lines(first: float, rest: float) -> None:
    values = {"tasks": first}
    move = WeeklyMove(
        week="2026-01-12",
        before="2026-01-05",
        sessions=2,
        sessions_before=2,
        mean=0.5,
        mean_before=0.5,
        parts=tuple(
            FactorEffect(factor=name, value=values.get(name, 0.0), low=0.0, high=0.0)
            for name in FACTORS
        ),
        rest=rest,
    )
    lines = [text for text in words_of(moves_plot([move])) if re.fullmatch(r"[-+]\d\.\d\d|0", text)]
    assert 5 <= len(lines) <= 9
