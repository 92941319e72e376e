from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.errors import InputError
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from debrief.training.publishing.folder import Published
from debrief.training.publishing.forms import FORMS
from debrief.training.publishing.publish import ExportOptions, publish
from tests.machine import files_below
from tests.object_store import Bucket, bucket, object_store_server
from tests.training.lakes import TASK, lake_of, stored
from tests.training.publishing.readers import problems
from tests.training.scenario import (
    FINGERPRINT,
    MONDAY,
    call,
    said,
    says,
    scores,
    session,
    turn,
)

__all__ = ["bucket", "object_store_server"]
COUNT = 12


def team() -> list[Session]:
    made = []
    for n in range(COUNT):
        used = call("Bash", {"command": f"rg word{n}"}) if n % 2 else call("TodoRead", {})
        words = f"part {n} of the work, with words{n} of its own{n}"
        asked = f"Do part {n % 6},\n then  tell." if n < 6 else f"Do part {n % 6}, then tell."
        made.append(
            session(
                f"s{n:02d}",
                turn(asked, says("", used), says(f"Did {words}, and tested {n}.")),
                started=MONDAY + timedelta(weeks=n % 6),
                repository=f"repo{n % 6}",
                lines_added=n,
            )
        )
    return made


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    quality = {f"s{n:02d}": n / COUNT for n in range(COUNT)}
    made = lake_of(tmp_path_factory.mktemp("lake"), team(), quality)
    for week in made.partitions("session_scores"):
        rows = made.read("session_scores", week, SessionScores)
        short = [
            replace(row, verdict=said("partial")) if row.session_id < "s06" else row for row in rows
        ]
        made.write("session_scores", week, short, SessionScores)
    row = stored(made, eval_share=0.5, verdicts=()).row
    assert min(row.train, row.eval) > 2
    return made


def told(lake: Lake, folder: Path, **wanted: Any) -> Published:
    return publish(lake, str(folder), ExportOptions(**wanted))


def test_the_stored_lines_are_published_by_side_and_none_is_lost(
    lake: Lake, tmp_path: Path
) -> None:
    made = told(lake, tmp_path)
    place = tmp_path / TASK / FINGERPRINT
    published = [
        line for side in ("train", "eval") for line in (place / f"{side}.jsonl").open("rb")
    ]
    standing = (lake.read_bytes(f"training/{TASK}/{FINGERPRINT}.jsonl") or b"").splitlines(True)
    assert sorted(published) == sorted(standing)
    assert sum(made.sets[0].lines.values()) == COUNT
    assert all(
        json.loads(line)["metadata"]["split"] == "eval" for line in (place / "eval.jsonl").open()
    )


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import datasets

    datasets.disable_progress_bars()
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.mark.parametrize("form", list(FORMS))
def test_the_folder_loads_as_splits_of_one_schema_and_parquet_is_the_same(
    lake: Lake, tmp_path: Path, form: str
) -> None:
    from datasets import load_dataset

    made = told(lake, tmp_path / "out", form=form, parquet=True)
    splits = load_dataset(str(tmp_path / "out"))
    lines = {side: count for side, count in made.sets[0].lines.items() if count}
    assert {name: len(split) for name, split in splits.items()} == lines
    assert list(splits["train"].features) == list(FORMS[form].columns)
    assert splits["train"].features == splits["eval"].features
    one = load_dataset(str(tmp_path / "out"), f"{TASK}.{FINGERPRINT}")
    assert one["train"][0] == splits["train"][0]
    if form == "trl":  # messages without calls have no empty keys
        assert set(one["train"][0]["prompt"][0]) == {"role", "content"}
    parquet = load_dataset(
        "parquet",
        data_files=str(tmp_path / "out" / TASK / FINGERPRINT / "train.parquet"),
        split="train",
    )
    assert parquet.features == splits["train"].features
    # The loader of JSON reads ten digits of a number.
    assert _rounded(parquet[0]) == _rounded(splits["train"][0])


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def test_publishing_again_changes_nothing(lake: Lake, tmp_path: Path) -> None:
    assert told(lake, tmp_path, form="trl", parquet=True).changed
    before = files_below(tmp_path)
    assert not told(lake, tmp_path, form="trl", parquet=True).changed
    assert files_below(tmp_path) == before
    assert told(lake, tmp_path, form="trl").changed, "what is no longer asked for is taken away"
    assert not [name for name in files_below(tmp_path) if name.endswith(".parquet")]


def test_a_set_without_a_line_is_said_and_nothing_is_written(lake: Lake, tmp_path: Path) -> None:
    ready = told(lake, tmp_path, status="ready", form="kto")
    assert ready.warnings == ("no line as kto: nothing was written",)
    assert files_below(tmp_path) == {}


def test_openai_wants_more_lines_and_llama_factory_a_file(lake: Lake, tmp_path: Path) -> None:
    made = told(lake, tmp_path / "openai", form="openai")
    assert any("asks for 10" in warning for warning in made.warnings)
    told(lake, tmp_path, form="sharegpt")
    info = json.loads((tmp_path / "dataset_info.json").read_text())
    entry = info[f"{TASK}.{FINGERPRINT}.train"]
    assert (tmp_path / entry["file_name"]).is_file()
    assert entry["formatting"] == "sharegpt"


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"task": "other"}, "holds no training set of other"),
        ({"fingerprint": "other"}, "any task, other"),
    ],
)
def test_what_is_not_there_is_told(
    lake: Lake, tmp_path: Path, wanted: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        told(lake, tmp_path, **wanted)


def test_a_folder_is_for_one_format(lake: Lake, tmp_path: Path) -> None:
    told(lake, tmp_path)
    with pytest.raises(InputError, match="as messages"):
        told(lake, tmp_path, form="trl")


def test_somebody_s_readme_is_not_written_over(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("Mine.")
    with pytest.raises(InputError, match="not ours"):
        told(lake, tmp_path)
    assert files_below(tmp_path) == {"README.md": b"Mine."}


@pytest.mark.parametrize("form", ["trl", "preference"])
@pytest.mark.parametrize("left", [0, 700, None], ids=["empty", "cut short", "changed"])
def test_a_stored_file_that_was_damaged_is_not_published(
    lake: Lake, tmp_path: Path, form: str, left: int | None
) -> None:
    copy = Lake(str(shutil.copytree(lake.url, tmp_path / "lake")))
    path = tmp_path / "lake" / f"training/{TASK}/{FINGERPRINT}.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Did part", b"Hid part")[:left])
    with pytest.raises(InputError, match="is not what was written"):
        told(copy, tmp_path / "out", form=form)
    assert not list((tmp_path / "out").rglob("*.jsonl"))


def test_sets_are_published_to_an_object_store_with_splits_and_parquet(
    lake: Lake, bucket: Bucket, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"form": "trl", "parquet": True}
    (made,) = publish(lake, bucket.url("sets"), ExportOptions(**options)).sets
    assert sum(made.lines.values()) == COUNT
    there = Lake(bucket.url("sets"))
    told(lake, tmp_path, **options)
    assert {name: there.read_bytes(name) for name in files_below(tmp_path)} == files_below(tmp_path)
    assert not publish(lake, there.url, ExportOptions(**options)).changed
    publish(lake, there.url, ExportOptions(form="trl"))
    assert not there.names(TASK, ".parquet")


def test_the_command_says_what_came_of_it(lake: Lake, tmp_path: Path) -> None:
    arguments = ["export", "--lake", lake.url, "--to", str(tmp_path / "out"), "--form", "trl"]
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, outcome.output
    for word in ("train.jsonl", "eval.jsonl", "load_dataset"):
        assert word in outcome.output
    again = CliRunner().invoke(app, arguments)
    assert "nothing had changed" in again.output.replace("\n", " ")
    arguments[4] = str(tmp_path / "sets")
    of_sets = CliRunner().invoke(app, [*arguments, "--per-set"])
    for word in (TASK, FINGERPRINT):
        assert word in of_sets.output
    assert (tmp_path / "sets" / TASK / FINGERPRINT / "train.jsonl").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--form", "alpaca"], "There are: messages, trl, axolotl"),
        (["--status", "done"], "Known: any, ready, draft"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(
    lake: Lake, tmp_path: Path, arguments: list[str], said: str
) -> None:
    outcome = CliRunner().invoke(
        app, ["export", "--lake", lake.url, "--to", str(tmp_path), *arguments]
    )
    assert outcome.exit_code == 1
    assert said in outcome.output


def test_the_lines_of_a_published_card_load_the_set(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (published_set,) = told(lake, tmp_path / "out", form="trl").sets
    stored_card = (lake.read_bytes(f"training/{TASK}/{FINGERPRINT}.card.md") or b"").decode()
    card = (tmp_path / "out" / TASK / FINGERPRINT / "card.md").read_text()
    assert (
        f"As `trl`: {published_set.lines['train']} train and {published_set.lines['eval']} eval lines. "
        in card
    )
    assert f'data_files="{FINGERPRINT}.jsonl"' not in card
    assert card.startswith(stored_card.partition("## How to load it")[0])
    monkeypatch.chdir(tmp_path / "out" / TASK / FINGERPRINT)
    names: dict[str, Any] = {}
    exec(card.split("```python\n")[1].split("```")[0], names)
    assert {side: len(rows) for side, rows in names["samples"].items()} == published_set.lines


def test_a_published_card_says_which_lines_were_taken(lake: Lake, tmp_path: Path) -> None:
    made = told(lake, tmp_path, form="openai", min_overall_quality=0.6, status="draft")
    assert sum(made.sets[0].lines.values()) == 4
    card = (tmp_path / TASK / FINGERPRINT / "card.md").read_text()
    assert "eval lines, those of at least 0.6 overall quality and that are `draft` alone." in card


TWO_AT_ONCE = session(
    "busy",
    turn(
        "Fix it.",
        says("Both at once.", call("Bash", {"command": "ls"}, "a.py"), call("Read", {}, "x = 1")),
        says("Done."),
    ),
)


@pytest.mark.parametrize("form", ["messages", "trl", "openai", "preference"])
def test_single_calls_are_published_one_a_message(tmp_path: Path, form: str) -> None:
    twin = session("twin", *TWO_AT_ONCE.turns, turn("Why?", says("Because."), number=2))
    lake = lake_of(tmp_path / "lake", [TWO_AT_ONCE, twin])
    rows = [scores(TWO_AT_ONCE, 0.9), scores(twin, 0.2, verdict=said("partial"))]
    lake.write("session_scores", week_of(MONDAY), rows, SessionScores)
    stored(lake, eval_share=0.0, near_duplicates="keep", verdicts=())
    command = ["export", "--per-set", "--lake", lake.url, "--form", form, "--to"]
    calls = {}
    for name, options in (("plain", []), ("single", ["--single-calls"])):
        assert CliRunner().invoke(app, [*command, str(tmp_path / name), *options]).exit_code == 0
        first = (tmp_path / name / TASK / FINGERPRINT / "train.jsonl").read_text().splitlines()[0]
        assert problems(form, f"{first}\n".encode()) == []
        line = json.loads(first)
        calls[name] = [
            (m["content"], len(m.get("tool_calls", ())))
            for m in line.get("messages") or line.get("completion") or line["chosen"]
            if m["role"] == "assistant"
        ]
    assert calls["plain"][:2] == [("Both at once.", 2), ("Done.", 0)]
    assert calls["single"][:3] == [("Both at once.", 1), ("", 1), ("Done.", 0)]
    assert "one after the other" in (tmp_path / "single" / "README.md").read_text()
