from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.errors import InputError
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.training.model import Split, Status
from debrief.training.publishing.forms import FORMS
from debrief.training.publishing.one_set import Wanted
from debrief.training.publishing.publish import Published, publish
from debrief.training.store import LINES, PlacedLine
from tests.training.lakes import TASK, lake_of, stored
from tests.training.scenario import FINGERPRINT, MONDAY, call, says, session, turn

COUNT = 12


def team() -> list[Session]:
    made = []
    for n in range(COUNT):
        used = call("Bash", {"command": f"rg word{n}"}) if n % 2 else call("TodoRead", {})
        words = f"part {n} of the work, with words{n} of its own{n}"
        made.append(
            session(
                f"s{n:02d}",
                turn(f"Do {words}.", says("", used), says(f"Did {words}, and tested {n}.")),
                started=MONDAY + timedelta(weeks=n % 6),
                repository=f"repo{n}",
                lines_added=n,
            )
        )
    return made


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    quality = {f"s{n:02d}": n / COUNT for n in range(COUNT)}
    made = lake_of(tmp_path_factory.mktemp("lake"), team(), quality)
    row = stored(made, eval_share=0.5).row
    assert min(row.train, row.eval) > 2
    return made


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def told(lake: Lake, folder: Path, **wanted: Any) -> Published:
    return publish(lake, str(folder), Wanted(**wanted))


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
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
    assert {name: len(split) for name, split in splits.items()} == made.sets[0].lines
    assert list(splits["train"].features) == list(FORMS[form].columns)
    assert splits["train"].features == splits["eval"].features
    one = load_dataset(str(tmp_path / "out"), f"{TASK}.{FINGERPRINT}")
    assert one["train"][0] == splits["train"][0]
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


def test_messages_without_calls_have_no_empty_keys_after_loading(
    lake: Lake, tmp_path: Path
) -> None:
    from datasets import load_dataset

    told(lake, tmp_path / "out", form="trl")
    splits = load_dataset(str(tmp_path / "out"))
    assert set(splits["train"][0]["messages"][1]) == {"role", "content"}


def test_publishing_again_changes_nothing(lake: Lake, tmp_path: Path) -> None:
    assert told(lake, tmp_path, form="trl", parquet=True).changed
    before = files(tmp_path)
    assert not told(lake, tmp_path, form="trl", parquet=True).changed
    assert files(tmp_path) == before


def test_what_is_no_longer_wanted_is_taken_away(lake: Lake, tmp_path: Path) -> None:
    told(lake, tmp_path, parquet=True)
    assert told(lake, tmp_path).changed
    assert not [name for name in files(tmp_path) if name.endswith(".parquet")]


def test_only_good_or_ready_lines_when_asked_for(lake: Lake, tmp_path: Path) -> None:
    good = told(lake, tmp_path / "good", min_overall_quality=0.5)
    assert sum(good.sets[0].lines.values()) == COUNT // 2
    ready = told(lake, tmp_path / "ready", status="ready")
    assert sum(ready.sets[0].lines.values()) == 0
    assert ready.warnings == (f"{TASK}.{FINGERPRINT}: no line as messages",)
    assert "configs: []" in (tmp_path / "ready" / "README.md").read_text()


def test_a_file_that_openai_would_find_too_short_is_told(lake: Lake, tmp_path: Path) -> None:
    assert any("asks for 10" in one for one in told(lake, tmp_path, form="openai").warnings)


def test_llama_factory_finds_the_files(lake: Lake, tmp_path: Path) -> None:
    told(lake, tmp_path, form="sharegpt")
    info = json.loads((tmp_path / "dataset_info.json").read_text())
    entry = info[f"{TASK}.{FINGERPRINT}.train"]
    assert (tmp_path / entry["file_name"]).is_file()
    assert entry["formatting"] == "sharegpt"


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"form": "alpaca"}, "is not known"),
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
    assert files(tmp_path) == {"README.md": b"Mine."}


def test_a_stored_file_that_was_touched_is_not_published(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", team()[:3])
    stored(lake)
    path = tmp_path / "lake" / f"training/{TASK}/{FINGERPRINT}.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Did part", b"Hid part", 1))
    with pytest.raises(InputError, match="is not what was written"):
        told(lake, tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*.jsonl"))


@pytest.mark.parametrize("form", ["messages", "trl", "preference"])
@pytest.mark.parametrize("left", [0, 700])
def test_a_stored_file_that_was_cut_short_is_not_published(
    tmp_path: Path, form: str, left: int
) -> None:
    lake = lake_of(tmp_path / "lake", team()[:6])
    stored(lake)
    path = tmp_path / "lake" / f"training/{TASK}/{FINGERPRINT}.jsonl"
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(InputError, match="is not what was written"):
        told(lake, tmp_path / "out", form=form)
    assert not list((tmp_path / "out").rglob("*.jsonl"))


class EarlierPlacedLine(Struct, frozen=True, kw_only=True):
    """A row as it was before lines were stored with outlines."""

    session_id: str
    window: int
    split: Split
    status: Status
    quality: float
    offset: int
    size: int


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("single_calls", [False, True])
def test_a_set_that_was_stored_without_outlines_is_published_as_with_them(
    lake: Lake, tmp_path: Path, form: str, single_calls: bool
) -> None:
    wanted = {"form": form, "single_calls": single_calls}
    shutil.copytree(lake.url, tmp_path / "lake")
    earlier, name = Lake(str(tmp_path / "lake")), f"{TASK}/{FINGERPRINT}"
    rows = list(earlier.read(LINES, name, EarlierPlacedLine))
    earlier.write(LINES, name, rows, EarlierPlacedLine)
    told(earlier, tmp_path / "out", **wanted)
    told(lake, tmp_path / "expected", **wanted)
    assert files(tmp_path / "out") == files(tmp_path / "expected")


@pytest.mark.parametrize("form", ["openai", "trl", "sharegpt", "preference"])
@pytest.mark.parametrize("outline", ["another line's", "no outline"])
def test_outlines_that_are_not_of_their_lines_are_no_reason_for_nonsense(
    lake: Lake, tmp_path: Path, form: str, outline: str
) -> None:
    shutil.copytree(lake.url, tmp_path / "lake")
    broken, name = Lake(str(tmp_path / "lake")), f"{TASK}/{FINGERPRINT}"
    rows = list(broken.read(LINES, name, PlacedLine))
    others = [row.outline if outline == "another line's" else b"no" for row in rows[1:] + rows[:1]]
    mixed = [replace(row, outline=other) for row, other in zip(rows, others, strict=True)]
    broken.write(LINES, name, mixed, PlacedLine)
    with pytest.raises(InputError, match="is not what was written"):
        told(broken, tmp_path / "out", form=form)
    assert not list((tmp_path / "out").rglob("*.jsonl"))


def test_an_object_store_takes_it_too(lake: Lake) -> None:
    import fsspec

    publish(lake, "memory://bucket/sets", Wanted(parquet=True))
    memory = fsspec.filesystem("memory")
    assert memory.exists(f"/bucket/sets/{TASK}/{FINGERPRINT}/train.jsonl")
    assert not publish(lake, "memory://bucket/sets", Wanted(parquet=True)).changed


def test_the_command_says_what_came_of_it(lake: Lake, tmp_path: Path) -> None:
    arguments = ["export", "--lake", lake.url, "--to", str(tmp_path / "out"), "--format", "trl"]
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, outcome.output
    for said in (TASK, FINGERPRINT, "load_dataset"):
        assert said in outcome.output
    again = CliRunner().invoke(app, arguments)
    assert "nothing had changed" in again.output.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--format", "alpaca"], "is not known"), (["--status", "done"], "Give any, ready or draft")],
)
def test_the_command_refuses_what_makes_no_sense(
    lake: Lake, tmp_path: Path, arguments: list[str], said: str
) -> None:
    outcome = CliRunner().invoke(
        app, ["export", "--lake", lake.url, "--to", str(tmp_path), *arguments]
    )
    assert outcome.exit_code == 1
    assert said in outcome.output
