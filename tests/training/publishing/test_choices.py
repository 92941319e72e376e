"""What an export may be asked for: one file, windows, thinking, subagents."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import VerdictName
from debrief.sessions.model import Session, Turn
from debrief.signals.schema import TABLE as SIGNALS
from debrief.signals.schema import SessionSignals
from debrief.snapshots.model import SessionMetadataRow
from debrief.training.given import without_reminder
from debrief.training.manifest import write_manifest
from debrief.training.model import INDEX, LINES, LineRow, SampleLine
from debrief.training.publishing.publish import ExportOptions, publish
from debrief.training.samples import encode_line
from debrief.training.windows import ContextTable, line_row
from tests.machine import files_below
from tests.training.lakes import TASK, add, lake_of, stored
from tests.training.publishing.test_publish import COUNT, lake, own_cache, team, told
from tests.training.scenario import (
    FINGERPRINT,
    call,
    metadata,
    said,
    says,
    session,
    signals,
    turn,
)

__all__ = ["lake", "own_cache"]


def test_all_sets_are_in_one_file_with_a_column_for_each(lake: Lake, tmp_path: Path) -> None:
    from datasets import load_dataset

    both = Lake(str(shutil.copytree(lake.url, tmp_path / "lake")))
    other = "billing"
    rows = [replace(metadata(one), task=other) for one in team()]
    for week in both.partitions("session_metadata"):
        of_week = {row.id for row in both.read("raw_sessions", week, Session)}
        taken = [row for row in rows if row.session_id in of_week]
        both.write("session_metadata", week, taken, SessionMetadataRow)
    stored(both, other, eval_share=0.5, verdicts=())
    made = told(both, tmp_path / "out", form="trl", one_file=True, parquet=True)
    assert [published_set.count for published_set in made.sets] == [COUNT, COUNT]
    loaded = load_dataset(str(tmp_path / "out"))
    assert {side: loaded[side].num_rows for side in loaded} == {
        side: sum(published_set.lines[side] for published_set in made.sets)
        for side in ("train", "eval")
    }
    assert set(loaded["train"]["task"]) == {TASK, other}
    assert set(loaded["train"]["fingerprint"]) == {FINGERPRINT}
    names = {name for name in files_below(tmp_path / "out") if not name.endswith("card.md")}
    files = {f"{side}.{kind}" for side in ("train", "eval") for kind in ("jsonl", "parquet")}
    assert names == {*files, "README.md", ".debrief.json"}
    openai = told(both, tmp_path / "openai", form="openai", one_file=True)
    assert [warning.split(",")[0] for warning in openai.warnings] == ["train.jsonl: 8 lines"]
    line = json.loads((tmp_path / "openai" / "train.jsonl").read_text().splitlines()[0])
    assert set(line) == {"messages", "tools"}, "the service takes no other column"


def long_lake(folder: Path, *turns: Turn) -> Lake:
    made = lake_of(folder, [session("long", *turns)])
    stored(made, eval_share=0.0)
    return made


def windows(lake: Lake, folder: Path, tokens: int) -> list[dict[str, Any]]:
    told(lake, folder, max_tokens=tokens, one_file=True)
    return [json.loads(line) for line in (folder / "train.jsonl").open()]


def test_long_lines_are_cut_at_turns_and_what_contexts_keep_is_said_before(
    tmp_path: Path,
) -> None:
    turns = [
        turn(f"Do part {n}.", says(f"word{n} " * 300), says("Done."), number=n) for n in range(1, 9)
    ]
    lake = long_lake(tmp_path / "lake", *turns)
    seen: list[list[tuple[str, ...]]] = []

    def before(kept: ContextTable, left_out: dict[str, int]) -> None:
        assert not (tmp_path / "out").exists()
        seen.append(kept.rows())

    for tokens in (0, 2_000):
        options = ExportOptions(max_tokens=tokens)
        publish(lake, str(tmp_path / "out"), options, before)
        seen.append([])
        shutil.rmtree(tmp_path / "out")
    whole, _, cut, _ = seen
    assert [row[1] for row in whole] == ["0 of 1", "1 of 1", "1 of 1", "1 of 1"]
    assert float(whole[0][2].rstrip("%")) < 90
    assert {row[2] for row in cut} == {"100.0%"}
    lines = windows(lake, tmp_path / "out", 2_000)
    prompts = [m["content"] for line in lines for m in line["messages"] if m["role"] == "user"]
    assert [without_reminder(prompt) for prompt in prompts] == [one.prompt for one in turns]
    assert [line["metadata"]["window"] for line in lines] == list(range(1, len(lines) + 1))
    assert {line["metadata"]["windows"] for line in lines} == {len(lines)}
    page = (tmp_path / "out" / "README.md").read_text()
    assert "| 4,096 | 4 of 4 | 100.0% | 0 |" in page
    assert "| most tokens of a line | 2,000 |" in page


def test_a_window_shorter_than_one_message_cuts_the_result_and_leaves_out_what_cannot_be(
    tmp_path: Path,
) -> None:
    read = call("Read", {"file_path": "a.py"}, "x = 1\n" * 3_000)
    wrote = call("Write", {"file_path": "a.py", "content": "y = 2\n" * 3_000}, "ok")
    lake = long_lake(tmp_path / "lake", turn("Go.", says("", read), says("", wrote), says("Done.")))
    lines = windows(lake, tmp_path / "out", 1_000)
    texts = [m for line in lines for m in line["messages"]]
    assert any(m["role"] == "tool" and m["content"].endswith("(truncated)") for m in texts)
    called = [c["function"]["name"] for m in texts for c in m.get("tool_calls", ())]
    assert called == ["Read"], "arguments cannot be cut"
    assert texts[-1]["content"] == "Done."


def test_a_prompt_of_300_000_tokens_is_cut_with_a_mark_or_kept_whole(tmp_path: Path) -> None:
    prompt = "Read this: " + "lorem ipsum " * 150_000
    lake = long_lake(tmp_path / "lake", turn(prompt, says("Read it.")))
    (line,) = windows(lake, tmp_path / "cut", 4_096)
    assert line["messages"][0]["content"].endswith("(truncated)")
    assert line["messages"][1]["content"] == "Read it."
    kept = told(lake, tmp_path / "whole")
    assert kept.sets[0].size > len(prompt)
    assert "| 131,072 | 0 of 1 | 0.0% | 1 |" in (tmp_path / "whole" / "README.md").read_text()


def test_a_window_begins_with_the_sessions_own_summary_where_there_is_one(tmp_path: Path) -> None:
    summary = "The user wants parts. Part 1 is done."
    compacted = replace(says("word2 " * 300), summary=summary)
    turns = (turn("Do part 1.", says("word1 " * 300)), turn("Do part 2.", compacted, number=2))
    lines = windows(long_lake(tmp_path / "lake", *turns), tmp_path / "out", 800)
    begun = [without_reminder(line["messages"][0]["content"]) for line in lines]
    assert begun == ["Do part 1.", f"{summary}\n\nDo part 2."]


def test_thinking_and_subagents_are_told_when_asked_for(tmp_path: Path) -> None:
    lake = long_lake(tmp_path / "lake", turn("Go.", says("Gone.")))
    rows = list(lake.read(LINES, f"{TASK}/{FINGERPRINT}", LineRow))
    path = tmp_path / "lake" / f"training/{TASK}/{FINGERPRINT}.jsonl"
    own = msgspec.json.decode(path.read_bytes(), type=SampleLine)
    thought = replace(own.messages[1], reasoning_content="Where to?")
    own = replace(own, messages=(own.messages[0], thought))
    theirs = replace(own, metadata=replace(own.metadata, session_id="sub", parent_session="long"))
    lines = [encode_line(own), encode_line(theirs)]
    rows = [line_row(own, lines[0], 0), line_row(theirs, lines[1], len(lines[0]))]
    path.write_bytes(b"".join(lines))
    lake.write(LINES, f"{TASK}/{FINGERPRINT}", rows, LineRow)
    for included, count, thoughts in (({}, 1, 0), ({"reasoning": True, "subagents": True}, 2, 2)):
        place = tmp_path / str(count)
        told(lake, place, one_file=True, **included)
        text = (place / "train.jsonl").read_text()
        assert (text.count("\n"), text.count("Where to?")) == (count, thoughts)
    with pytest.raises(InputError, match="has no place for what the model thought"):
        told(lake, tmp_path / "openai", form="openai", reasoning=True)


def test_windows_in_the_lake_do_not_count_what_exports_leave_out(tmp_path: Path) -> None:
    turns = [
        turn(f"Do part {n}.", replace(says("Done."), thinking=f"word{n} " * 400), number=n)
        for n in (1, 2)
    ]
    lake = lake_of(tmp_path / "lake", [session("long", *turns)])
    assert stored(lake, eval_share=0.0, max_tokens=1_000).row.samples == 1
    (line,) = windows(lake, tmp_path / "whole", 1_000)
    assert [m["content"] for m in line["messages"] if m["role"] == "assistant"] == ["Done."] * 2
    told(lake, tmp_path / "cut", max_tokens=1_000, reasoning=True, one_file=True)
    cut = [json.loads(line) for line in (tmp_path / "cut" / "train.jsonl").open()]
    assert [line["metadata"]["window"] for line in cut] == [1, 2]


def test_labels_are_counted_on_the_page_and_one_label_alone_is_warned_of(tmp_path: Path) -> None:
    undone = turn("No, that is wrong. Undo it.", says("Undone."), number=2)
    sessions = [
        session(f"s{n}", turn("Go.", says(f"Went to {n}.")), *[undone][: n % 2]) for n in range(6)
    ]
    lake = lake_of(tmp_path / "lake", [])
    add(lake, sessions, verdict=said("complete_unverified"))
    stored(lake, eval_share=0.0, near_duplicates="keep")
    made = told(lake, tmp_path / "out", form="kto", one_file=True)
    page = (tmp_path / "out" / "README.md").read_text()
    assert "| correction | 0 | 3 |" in page
    assert "| review | 6 | 0 |" in page
    assert made.warnings == ()
    add(lake, sessions, verdict=said("undetermined"))
    stored(lake, eval_share=0.0, near_duplicates="keep", verdicts=())
    made = told(lake, tmp_path / "none", form="kto", one_file=True)
    (warning,) = made.warnings
    assert warning == "all 3 labels are undesirable: there is nothing to tell apart"


def test_what_nobody_reviewed_is_exported_on_request_marked_and_counted(tmp_path: Path) -> None:
    sessions = [session(f"s{n}", turn(f"Go {n}.", says(f"Went to {n}."))) for n in range(4)]
    lake, week = lake_of(tmp_path / "lake", sessions), week_of(sessions[0].started)
    rows = list(lake.read("session_scores", week, SessionScores))
    lake.write("session_scores", week, rows[:2], SessionScores)
    seen = [*map(signals, sessions[:3]), signals(sessions[3], "correction")]
    lake.write(SIGNALS, week, seen, SessionSignals)
    stored(lake, eval_share=0.0, near_duplicates="keep")

    def lines(name: str, **options: Any) -> dict[str, bool]:
        account = told(lake, tmp_path / name, one_file=True, **options).account
        assert account == expected[name]
        text = (tmp_path / name / "train.jsonl").read_text().splitlines()
        each = [json.loads(line) for line in text]
        return {one["session_id"]: one["reviewed"] for one in each}

    against = "not reviewed, and a signal speaks against it: correction (1)"
    expected = {
        "reviewed": "From 2 sessions; left out 2: not reviewed (2).",
        "all": f"From 3 sessions (1 of them not reviewed); left out 1: {against}.",
        "verified": f"From 3 sessions (1 of them not reviewed); left out 1: {against}.",
    }
    assert lines("reviewed", form="trl") == {"s0": True, "s1": True}
    assert lines("all", form="trl", unreviewed=True) == {"s0": True, "s1": True, "s2": False}
    named: dict[str, Any] = {"verdicts": ("complete_verified",), "unreviewed": True}
    assert lines("verified", form="axolotl", **named)["s2"] is False
    page = (tmp_path / "all" / "README.md").read_text()
    assert "| of these, not reviewed | 1 |" in page
    told(lake, tmp_path / "kto", form="kto", one_file=True, unreviewed=True)
    labelled = (tmp_path / "kto" / "train.jsonl").read_text().splitlines()
    assert [json.loads(line)["session_id"] for line in labelled] == ["s0", "s1"]


def test_only_lines_of_some_verdicts_are_told_when_asked_for(tmp_path: Path) -> None:
    sessions = [session(f"s{n}", turn(f"Go {n}.", says(f"Went to {n}."))) for n in range(3)]
    lake = lake_of(tmp_path / "lake", sessions)
    row = lake.read("session_scores", week_of(sessions[0].started), SessionScores)
    verdicts: list[VerdictName] = ["complete_verified", "partial", "failed"]
    rows = [replace(scores, verdict=said(name)) for scores, name in zip(row, verdicts, strict=True)]
    lake.write("session_scores", week_of(sessions[0].started), rows, SessionScores)
    stored(lake, eval_share=0.0, near_duplicates="keep", verdicts=())
    for named, ids in (((), "s0 s1 s2"), (("complete_verified", "failed"), "s0 s2")):
        told(lake, tmp_path / f"{len(named)}", one_file=True, verdicts=named)
        lines = (tmp_path / f"{len(named)}" / "train.jsonl").read_text().splitlines()
        assert [json.loads(line)["metadata"]["session_id"] for line in lines] == ids.split()
    page = (tmp_path / "2" / "README.md").read_text()
    assert "| verdicts | complete, verified; failed |" in page
    assert "| verdicts | any |" in (tmp_path / "0" / "README.md").read_text()


def team_with_a_failure(folder: Path, words: str = "It still fails.") -> Lake:
    done = session("done", turn("Fix the loop.", says("Fixed, and the tests pass.")))
    short = session("short", turn("Fix the loop.", says(words)))
    lake = lake_of(folder, [done, short])
    week = week_of(done.started)
    rows = [
        replace(row, verdict=said("complete_verified" if row.session_id == "done" else "failed"))
        for row in lake.read("session_scores", week, SessionScores)
    ]
    lake.write("session_scores", week, rows, SessionScores)
    assert stored(lake, eval_share=0.0).row.samples == 1
    return lake


@pytest.mark.parametrize("single_calls", [False, True])
def test_what_falls_short_is_nothing_to_imitate_and_tells_good_from_bad(
    tmp_path: Path, single_calls: bool
) -> None:
    lake = team_with_a_failure(tmp_path / "lake")
    found = {}
    for form in ("trl", "kto", "preference", "rl"):
        told(lake, tmp_path / form, form=form, one_file=True, single_calls=single_calls)
        lines = (tmp_path / form / "train.jsonl").read_text().splitlines()
        found[form] = [json.loads(line) for line in lines]
        page = (tmp_path / form / "README.md").read_text()
        assert ("## Sessions that are not complete" in page) == (form != "trl")
    assert [one["session_id"] for one in found["trl"]] == ["done"]
    assert {one["session_id"]: one["label"] for one in found["kto"]} == {
        "done": True,
        "short": False,
    }
    (pair,) = found["preference"]
    assert (pair["kind"], pair["chosen_session"], pair["rejected_session"]) == (
        "verdict",
        "done",
        "short",
    )
    assert [one["id"] for one in found["rl"]] == ["done", "short"]
    told(lake, tmp_path / "only", form="kto", one_file=True, verdicts=("complete_verified",))
    assert (tmp_path / "only" / "train.jsonl").read_text().count("\n") == 1
    assert len(list(lake.read(LINES, f"{TASK}/{FINGERPRINT}", LineRow))) == 1, "stored nowhere"


def test_windows_of_what_falls_short_are_made_of_its_own_line(tmp_path: Path) -> None:
    lake = team_with_a_failure(tmp_path / "lake", "It fails. " * 400)
    told(lake, tmp_path / "out", form="kto", one_file=True, max_tokens=700)
    lines = [json.loads(line) for line in (tmp_path / "out" / "train.jsonl").open()]
    assert {line["session_id"] for line in lines} == {"done", "short"}


def test_what_looks_made_by_chance_is_held_back_from_these_lines_too(tmp_path: Path) -> None:
    token = "q7Zr2Lx9Vw4Ty8Kb3Nf6Hd1Js5Gm0Pc"
    lake = team_with_a_failure(tmp_path / "lake", f"It fails with {token}.")
    told(lake, tmp_path / "out", form="kto", one_file=True)
    text = (tmp_path / "out" / "train.jsonl").read_text()
    assert token not in text
    assert text.count("\n") == 1


def test_an_export_without_a_pair_says_so(tmp_path: Path) -> None:
    lake = long_lake(tmp_path / "lake", turn("Go.", says("Gone.")))
    made = told(lake, tmp_path / "out", form="preference", one_file=True)
    assert any("there are no pairs" in warning for warning in made.warnings)


def test_a_set_that_has_not_passed_the_gate_as_it_is_now_is_not_exported(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("debrief.training.store.gate_digest", lambda: "another")
    with pytest.raises(InputError, match="it holds only what an earlier version made"):
        told(lake, tmp_path)
    assert files_below(tmp_path) == {}


def test_a_set_of_an_earlier_version_is_left_out_and_named_and_the_others_are_exported(
    lake: Lake, tmp_path: Path
) -> None:
    class FormerRow(msgspec.Struct):
        task: str
        lines: int

    both = Lake(str(shutil.copytree(lake.url, tmp_path / "lake")))
    both.write(INDEX, "billing/b1-e1", [FormerRow("billing", 3)], FormerRow)
    write_manifest(both, [(TASK, FINGERPRINT), ("billing", "b1-e1"), ("not-yet", "b1-e1")])
    made = told(both, tmp_path / "out")
    assert [published_set.task for published_set in made.sets] == [TASK]
    (said,) = made.warnings
    assert said == (
        "1 set that an earlier version made, left out until debrief run makes them anew: "
        "billing b1-e1"
    )
    assert said in (tmp_path / "out/README.md").read_text()
    with pytest.raises(InputError, match="it holds only what an earlier version made"):
        told(both, tmp_path / "other", task="billing")
