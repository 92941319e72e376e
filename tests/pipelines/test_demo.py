"""What a newcomer sees: ``debrief demo``, a real run of the whole graph, typed twice."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from debrief.execution.model import Execution
from debrief.execution.sandbox import why_unavailable
from debrief.execution.store import EXECUTIONS
from debrief.friction.schema import LineEffect
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Row
from debrief.langfuse.outgoing import ScoreReceipt
from debrief.models.recorded import recorded_answers
from debrief.outcomes.verdicts import verdicts_in
from debrief.redaction import contains_secret
from debrief.rubrics.model import ALL, SEARCHES, Rubric, RubricEvaluation, RubricSearch
from debrief.samples import REVIEWER, SCORE_NAMES, folder
from debrief.scoring.model import Facet, SessionScores
from debrief.sessions.model import Session, UnreadTranscript
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.summary import content_of
from debrief.tables import TABLES
from debrief.training.formats import validate_line
from debrief.training.leaderboard import LeaderboardRow
from debrief.training.manifest import stored_sets
from debrief.training.model import training_path
from debrief.training.selection import observed_pairs
from tests.forgetting.searching import found_in, letters, sentences
from tests.frames import assert_is_frame_of
from tests.pipelines.conftest import Demo, Home, history_of, only_line
from tools.samples.material import SECRETS

WEEKS = ["2026-10-05", "2026-10-12", "2026-10-19", "2026-10-26", "2026-11-02"]
CHECKS = (
    ("raw_sessions", "unique_sessions"),
    ("raw_sessions", "no_lost_sessions"),
    ("raw_sessions", "tokens_as_reported"),
    ("judge_evaluations", "judge_scores_within_range"),
    ("session_scores", "session_scores_within_range"),
    ("rubric_evaluations", "rubric_scores_within_range"),
    ("training_sets", "training_lines_valid"),
    ("training_sets", "no_secret_in_training_sets"),
)


def rows_of(demo: Demo, table: str, row_type: type[Row]) -> list[Row]:
    return [row for week in WEEKS for row in demo.lake.read(table, week, row_type)]


def log_of(demo: Demo) -> str:
    return (demo.home.path / ".debrief/logs/runs.log").read_text()


def test_it_succeeds_and_says_in_a_screen_what_a_person_wants_to_know(demo: Demo) -> None:
    assert demo.first.code == 0, demo.first.err
    lines = demo.first.out.strip().splitlines()
    assert len(lines) <= 24
    assert lines[1] == "Spent: $0.00 (229 calls, 0 tokens)"
    assert lines[2].startswith("36 sessions in 5 weeks")
    assert lines[3].startswith(f"33 reviewed by {REVIEWER}: 17 complete, verified; ")
    assert lines[3].endswith("3 told by checks rerun: 3 complete, verified.")
    assert lines[4] == "11 sessions to look at:"
    assert "  806c62a7  Labels, then caching, then something el…  (failed)" in lines
    assert any("corrected 3 times (turns 3, 5: “leave settle alone" in line for line in lines)
    again = [line.split()[2] for line in lines if line.startswith("  comes again")]
    assert again == ["parcel-api", "harbour-ui"]
    assert any("rubrics: on unseen sessions, nothing distinguishes" in line for line in lines)
    assert any(
        "26 samples in 9 sets, from 26 of 36 sessions; left out 10:" in line for line in lines
    )
    assert "invented" in lines[-1]
    assert f"recorded once ({REVIEWER})" in lines[-1]


def test_it_ends_with_tests_before_and_after_or_says_why_none_were_run(demo: Demo) -> None:
    *lines, _ = demo.first.out.strip().splitlines()
    assert lines[-4:] == demo.second.out.strip().splitlines()[-5:-1]
    if why := why_unavailable():
        assert lines[-1] == f"No session's tests were run again: there is no sandbox: {why}."
        return
    assert lines[-4] == "3 sessions run again in a sandbox, before and after the change:"
    assert "  Read gzip deliveries: 4 of 5 tests passed, then 5" in lines[-3:]
    rows = rows_of(demo, EXECUTIONS, Execution)
    assert {row.value for row in rows} == {"yes"}
    verdicts = verdicts_in(demo.lake)
    said = [verdicts[row.session_id] for row in rows]
    assert {(verdict.verdict, verdict.basis, verdict.source) for verdict in said} == {
        ("complete_verified", "outcome", "execution")
    }


def test_its_last_lines_name_the_log_and_a_command_that_can_be_pasted(demo: Demo) -> None:
    command = re.findall(r"^Look at it: (.+)$", demo.first.out, re.MULTILINE)
    assert len(command) == 1
    program, *arguments = shlex.split(command[0])
    assert arguments == ["view", "--demo"]
    assert shutil.which(Path(__file__).parents[2] / program)
    assert str(demo.home.path / ".debrief/logs/runs.log") in demo.first.out


def test_where_no_line_can_move_each_stage_says_one_and_the_log_has_all(demo: Demo) -> None:
    said = [line.split()[0] for line in demo.first.err.splitlines()]
    assert said.count("raw_sessions") == 1
    assert len(said) < 25
    assert all(f"raw_sessions {week}" in log_of(demo) for week in WEEKS)


def test_every_sample_session_is_read_judged_scored_and_exported(demo: Demo) -> None:
    content = content_of(demo.lake, WEEKS)
    assert len(content.heads) == 36
    assert dict(content.by_tool) == {"claude-code": 27, "droid": 9}
    for rows in (content.judged, content.scored):
        assert len({row.session_id for row in rows if row.status != "failed"}) == 36
        assert {row.model for row in rows} == {REVIEWER}
    assert (content.cost_usd, content.failures) == (0.0, ())
    assert "26 samples" in demo.first.out


def test_what_was_passed_over_is_told_with_file_line_and_reason(demo: Demo) -> None:
    told = {(Path(f.culprit).name, f.reason) for f in content_of(demo.lake, WEEKS).passed_over}
    assert any(name.endswith(":35") and "cut short" in reason for name, reason in told)
    assert any("not UTF-8" in reason for _, reason in told)
    assert any("no prompt and no answer" in reason for _, reason in told)
    assert "cut short" in log_of(demo)
    unread = rows_of(demo, "unread_transcripts", UnreadTranscript)
    assert unread
    assert all(transcript.expected and transcript.reason for transcript in unread)


def test_three_prompts_were_captured_and_two_sessions_have_none(demo: Demo) -> None:
    rows = rows_of(demo, "prompt_snapshots", PromptSnapshotRow)
    recorded = {row.prompt_fingerprint for row in rows if row.origin == "recorded"}
    assert len(recorded) == 3
    assert [row.origin for row in rows].count("unknown") == 2
    metadata = rows_of(demo, "session_metadata", SessionMetadataRow)
    assert {row.task for row in metadata} == {
        "carrier-retries",
        "keyboard-navigation",
        "late-readings",
    }


def test_reviews_say_what_was_asked_and_where_it_is_seen(demo: Demo) -> None:
    judged = rows_of(demo, "judge_evaluations", JudgeEvaluation)
    scored = rows_of(demo, "session_scores", SessionScores)
    assert {row.judge for row in judged} == {"code-reuse", "plan-compliance"}
    assert all(score.rationale for row in scored for score in row.dimension_scores)
    reviews = [row.review for row in scored if row.review is not None]
    assert len(reviews) == 36
    assert all(review.requests for review in reviews)
    assert all(review.proofs for review in reviews if review.verdict == "complete_verified")
    overall = [row.overall_quality for row in scored if row.overall_quality is not None]
    assert max(overall) - min(overall) > 0.4


def test_each_recorded_answer_is_used_and_fits_its_form_at_once(demo: Demo) -> None:
    answers = recorded_answers(REVIEWER)
    assert {(row.by, row.on) for row in answers} == {("claude", "2026-11-29")}
    asked = re.search(r"^Spent: \$0\.00 \((\d+) calls", demo.first.out, re.MULTILINE)
    assert asked is not None
    assert len(answers) == len({row.about for row in answers})
    questions = [row for row in answers if row.about.startswith("question ")]
    assert int(asked[1]) == len(answers) - len(questions)
    assert {row.status for row in rows_of(demo, "facets", Facet)} == {"ok"}
    assert len({row.session_id for row in rows_of(demo, "facets", Facet)}) == len(questions) - 1


def test_a_friction_ends_after_its_line(demo: Demo) -> None:
    (effect,) = demo.lake.read("line_effects", ALL, LineEffect)
    assert effect.line == "Reproduce a defect with a failing test first."
    assert (effect.affected_before, effect.affected_after, effect.sessions_after) == (2, 0, 3)
    assert effect.outcome == "too_early"


def test_rubrics_say_what_unseen_sessions_say_and_every_session_is_judged_on_them(
    demo: Demo,
) -> None:
    searches = {row.score_name: row for row in demo.lake.read(SEARCHES, ALL, RubricSearch)}
    for name in SCORE_NAMES:
        rubrics = list(demo.lake.read("rubrics", name, Rubric))
        confirmed = [rubric for rubric in rubrics if rubric.finding == "tells"]
        assert len(confirmed) == searches[name].confirmed
        assert all((r.held_out_low or 0) > 0 and (r.corrected_p or 0) <= 0.05 for r in confirmed)
        assert [rubric.id for rubric in rubrics] == [
            f"rubric_{n:03}" for n in range(1, len(rubrics) + 1)
        ]
        assert all(rubric.sources and rubric.sessions for rubric in rubrics)
    rows = rows_of(demo, "rubric_evaluations", RubricEvaluation)
    assert {row.status for row in rows} == {"ok"}
    assert {row.score for row in rows} == {1, 2, 3, 4, 5}
    assert all("turn" in row.reasoning.casefold() for row in rows)


def test_prompts_and_models_are_compared_or_it_is_said_what_is_missing(demo: Demo) -> None:
    board = list(demo.lake.read("fingerprint_leaderboard", "all", LeaderboardRow))
    assert len({row.prompt_fingerprint for row in board}) == 4
    page = demo.before["reports/fingerprint_leaderboard.md"].decode()
    assert "Sonnet and gpt-codex cannot be told apart: 16 of 24 against 6 of 8" in page


def test_a_training_set_stands_for_each_observed_pair_and_none_besides(demo: Demo) -> None:
    names = {name for name in demo.before if name.endswith(".jsonl")}
    sets = stored_sets(demo.lake).sets
    assert {(row.task, row.fingerprint) for row in sets} == observed_pairs(demo.lake).keys()
    assert names == {training_path(row.task, row.fingerprint) for row in sets if row.samples}
    for name in names:
        card = demo.before[f"{name.removesuffix('.jsonl')}.card.md"].decode()
        lines = demo.before[name].splitlines()
        assert lines
        assert card.startswith("# Training set")
        for line in lines:
            assert validate_line(line) == []
            assert set(json.loads(line)) == {"messages", "tools", "metadata"}


def test_no_planted_secret_is_in_any_file_of_the_lake(demo: Demo) -> None:
    texts = [data for name, data in demo.before.items() if name.endswith((".jsonl", ".md"))]
    rows = rows_of(demo, "raw_sessions", Session)
    texts += [repr(row).encode() for row in rows]
    for kind, secret in SECRETS.items():
        assert not any(secret.encode() in text for text in texts), kind
    assert sum(row.redactions for row in rows) >= len(SECRETS)
    for name, data in demo.before.items():
        if name.endswith(".jsonl"):
            assert not contains_secret(data)


def test_without_a_server_langfuse_scores_writes_nothing_and_says_so(demo: Demo) -> None:
    assert "no server configured" in demo.first.err
    assert all(not list(demo.lake.read("langfuse_scores", w, ScoreReceipt)) for w in WEEKS)


def test_the_second_time_nothing_is_done_again_and_no_byte_changes(demo: Demo) -> None:
    assert demo.second.code == 0, demo.second.err
    assert demo.after == demo.before
    (found,) = demo.second.err.splitlines()
    assert found.split()[0] == "found", "no stage had anything to say"
    with history_of(demo.home.path / ".debrief/demo") as instance:
        runs = instance.get_runs(dg.RunsFilter(job_name="whole_graph"))
    assert len(runs) == 1, "nothing was launched the second time"


def test_the_runs_are_real_runs_of_dagster_with_partitions_and_passed_checks(
    demo: Demo,
) -> None:
    with history_of(demo.home.path / ".debrief/demo") as instance:
        runs = instance.get_runs()
        assert {run.job_name for run in runs} == {"whole_graph", "training_sets_job"}
        assert all(run.is_success for run in runs)
        assert instance.get_materialized_partitions(dg.AssetKey("session_scores")) == set(WEEKS)
        pairs = instance.get_materialized_partitions(dg.AssetKey("training_sets"))
        assert len(pairs) == len(observed_pairs(demo.lake))
        checks = instance.event_log_storage.get_latest_asset_check_execution_by_key(
            [dg.AssetCheckKey(dg.AssetKey(asset), check) for asset, check in CHECKS]
        )
        assert len(checks) == len(CHECKS)
        assert {record.status.value for record in checks.values()} == {"SUCCEEDED"}


def test_each_week_has_a_page_in_the_lake(demo: Demo) -> None:
    pages = {name for name in demo.before if name.startswith("reports/2026-")}
    assert pages == {f"reports/{week}.md" for week in WEEKS}
    last = demo.before["reports/2026-11-02.md"].decode()
    assert "| session_scores | 6 | 6 | 0 | 6 |" in last
    assert f"6 reviewed by {REVIEWER}" in last


def test_duckdb_answers_the_query_of_the_documentation_as_is_written_there(demo: Demo) -> None:
    page = (Path(__file__).parents[2] / "docs/architecture.md").read_text()
    found = re.search(r"```sql\n(.*?)```\n\n(.*?)\n\n", page, re.DOTALL)
    assert found is not None
    with duckdb.connect() as database:
        asked = database.sql(found[1].replace("~/.debrief/demo", demo.lake.url))
        table = [asked.columns, ["---"] * len(asked.columns), *asked.fetchall()]
    shown = ["|".join(map(str, row)) for row in table]
    assert shown == [line.strip("|").replace(" | ", "|").strip() for line in found[2].splitlines()]


def test_the_notebook_shows_what_the_documentation_says(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(demo.home.path))
    page = (Path(__file__).parents[2] / "docs/notebook.md").read_text()
    cells = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
    assert len(cells) == page.count("```python")
    names: dict[str, object] = {}
    for code, shown in cells:
        *statements, last = ast.parse(code).body
        assert isinstance(last, ast.Expr)
        exec(compile(ast.Module(statements, []), "notebook.md", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "notebook.md", "eval"), names)
        assert [line.rstrip() for line in str(value).splitlines()] == shown.splitlines()


def test_every_table_of_the_demo_is_a_frame_of_its_rows(demo: Demo) -> None:
    assert set(demo.lake.tables()) <= TABLES.keys()
    for name, table in TABLES.items():
        frame = demo.lake.frame(name)
        keys, rows = [], []
        for key in demo.lake.partitions(name):
            stored = list(demo.lake.read(name, key, table.rows))
            rows += stored
            keys += [key] * len(stored)
        assert list(frame["week" if table.weekly else "partition"]) == keys, name
        assert list(frame.columns) == list(demo.lake.frame(name).head(0).columns)
        assert_is_frame_of(frame, rows)
        assert (name in demo.lake.tables()) == bool(demo.lake.partitions(name))


@pytest.mark.parametrize("table", ["session_scores", "scan"])
def test_a_damaged_table_is_named_with_the_next_move(
    demo: Demo, home: Home, tmp_path: Path, table: str
) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(demo.lake.path("raw_sessions").removesuffix("/raw_sessions"), lake)
    damaged = sorted((lake / table).glob("*.zst"))[-1]
    damaged.write_bytes(b"hello")
    arguments = ("run", "--no-model", "--sessions", str(folder()), "--week", "2026-11-02")
    line = only_line(home.typed(*arguments, "--lake", str(lake)))
    assert str(damaged) in line
    assert "Remove the file; the next run makes it again" in line


def test_partitions_begin_at_the_first_week_of_the_lake_whoever_loads_the_code(demo: Demo) -> None:
    listed = subprocess.run(
        [sys.executable, "-c", "from assets.partitions import WEEKS; print(WEEKS.get_first_partition_key())"],
        env=demo.home.environment(DEBRIEF_LAKE=demo.lake.url),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert listed.stdout.strip() == "2026-10-05"


def test_dagster_shows_counts_and_stores_no_word_of_a_session(demo: Demo) -> None:
    storage = demo.home.path / ".debrief/demo/.dagster"
    with history_of(storage.parent) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey("session_scores"))
    assert event is not None
    assert event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    assert "overall_quality" in str(metadata["scores"].value)
    assert "shown_at" not in metadata, "a command knows of no address of pages"
    sessions = rows_of(demo, "raw_sessions", Session)
    needles = {needle for session in sessions for needle in sentences(session)}
    assert len(needles) > 500
    assert found_in([storage], needles) == {}
    titles = {letters(session.title) for session in sessions if len(letters(session.title)) > 20}
    assert found_in([storage], titles) == {}


def test_a_run_over_one_task_takes_its_pairs_only(demo: Demo) -> None:
    said = demo.home.typed(
        "run", "--select", "training_sets", "--where", "task=late-readings", "--no-model",
        "--lake", str(demo.home.path / ".debrief/demo"),
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "training_sets late-readings" in said.err
    assert "carrier-retries" not in said.err


def test_trials_that_were_asked_for_by_name_are_begun(demo: Demo) -> None:
    named = ("run", "--select", "prompt_candidates", "--no-model", "--lake", demo.lake.url)
    assert "needs a language model" in only_line(demo.home.typed(*named))
