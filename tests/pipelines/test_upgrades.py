"""Lakes that earlier versions made, taken over by this one."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from debrief.content import folder
from debrief.conversion import convert_lake
from debrief.lake import Lake
from debrief.tables import TABLES
from debrief.training.manifest import FORMER, stored_sets
from pipelines.metrics import LakeMetrics
from tests.pipelines.conftest import Home, Said, only_line

LAKES = sorted(Path(__file__).with_name("lakes").glob("*.zip"))
"""Made by ``make former-lake COMMIT=…``: a machine with the lake of three sessions, one of a task.

Since 3f546f1 the judges have other words; 3936920 is the last that was released, and the last whose
tables are Parquet.
"""
LAST = next(path for path in LAKES if path.stem == "3936920")


@pytest.fixture(params=LAKES, ids=lambda path: path.stem)
def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """A machine on which an earlier version has run."""
    with zipfile.ZipFile(request.param) as packed:
        packed.extractall(tmp_path)
    return Home(tmp_path)


def lake_of(home: Home) -> Lake:
    return Lake(str(home.path / "lake"))


def run(home: Home, **environment: str) -> Said:
    """Run over the machine's sessions; a person calls each of them a success."""
    labels = home.path / "labels.csv"
    labels.write_text("\n".join(["session_id,success", *(f"{id},yes" for id in transcripts(home))]))
    places = ("--lake", str(home.path / "lake"), "--sessions", str(home.path / "sessions"))
    environment = {"DEBRIEF_LABELS": str(labels), **environment}
    done = home.typed("run", "--no-model", *places, **environment)
    assert done.code == 0, done.err
    return done


def export(home: Home) -> Said:
    return home.typed("export", "--lake", str(home.path / "lake"), "--to", str(home.path / "sets"))


def counted(files: Path, pattern: str) -> Counter[str]:
    """Return how many lines each session has in some files."""
    lines = [line for path in files.glob(pattern) for line in path.read_text().splitlines()]
    return Counter(json.loads(line)["metadata"]["session_id"] for line in lines)


def transcripts(home: Home) -> Counter[str]:
    return Counter(path.stem for path in home.path.glob("sessions/projects/*/*.jsonl"))


def test_each_session_is_exported_once_and_counted_once_everywhere(upgraded: Home) -> None:
    lake = lake_of(upgraded)
    before = lake.names("training", ".jsonl")
    said = run(upgraded)
    sets = stored_sets(lake).sets
    lines, filled = sum(row.samples for row in sets), [row for row in sets if row.samples]
    assert f"Training sets: {lines} samples in {len(filled)} sets" in said.out
    exported = export(upgraded)
    assert exported.code == 0, exported.err
    assert "earlier version" not in exported.all
    left_out = Counter(
        session for row in sets for group in row.left_out for session in group.sessions
    )
    for of_lines in (
        counted(upgraded.path / "sets", "*.jsonl"),
        counted(upgraded.path / "lake/training", "*/*.jsonl"),
    ):
        assert len(of_lines) == lines > 1
        assert of_lines + left_out == transcripts(upgraded)
    metrics = dict(LakeMetrics(lake).collect())
    assert metrics["debrief_training_sets",] == len(filled)
    assert metrics["debrief_training_samples",] == lines
    made = {f"training/{row.task}/{row.fingerprint}.jsonl" for row in sets}
    former = {f"training/{name.split('/', 3)[3]}" for name in lake.names(FORMER, ".jsonl")}
    assert former == {name for name in before if name not in made}


@pytest.mark.parametrize(
    "upgraded", [path for path in LAKES if path != LAST], ids=lambda path: path.stem, indirect=True
)
def test_before_the_first_run_an_export_says_who_made_the_sets(upgraded: Home) -> None:
    line = only_line(export(upgraded))
    assert "it holds only what an earlier version made. debrief run makes training sets" in line
    assert not (upgraded.path / "sets").exists()


@pytest.mark.parametrize("command", ["leaderboard", "rubrics show", "outcomes", "judges certify"])
def test_a_command_reads_a_lake_of_before_without_a_run(upgraded: Home, command: str) -> None:
    said = upgraded.typed(*command.split(), "--lake", str(upgraded.path / "lake"))
    assert said.code == 0 or only_line(said).startswith(f"debrief: {upgraded.path / 'lake'}: ")


def test_a_session_of_before_is_shown_without_a_run(upgraded: Home) -> None:
    (name, *_) = transcripts(upgraded)
    said = upgraded.typed("show", name, "--lake", str(upgraded.path / "lake"))
    assert said.code == 0, said.err
    assert name in said.out


@pytest.mark.parametrize("upgraded", [LAST], ids=lambda path: path.stem, indirect=True)
def test_under_other_judges_the_sets_of_the_former_ones_are_put_away(upgraded: Home) -> None:
    lake, judges = lake_of(upgraded), upgraded.path / "judges"
    before = lake.names("training", ".jsonl")
    shutil.copytree(folder("judges"), judges)
    for path in judges.glob("*.md"):
        path.write_text(f"{path.read_text()}\nBe strict.\n")
    run(upgraded, DEBRIEF_JUDGES=str(judges))
    assert counted(upgraded.path / "lake/training", "*/*.jsonl") == transcripts(upgraded)
    assert export(upgraded).code == 0
    assert counted(upgraded.path / "sets", "*.jsonl") == transcripts(upgraded)
    former = [f"training/{name.split('/', 3)[3]}" for name in lake.names(FORMER, ".jsonl")]
    assert former == before


def test_a_lake_of_parquet_is_read_as_it_is_and_written_anew_partition_by_partition(
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(LAST) as packed:
        packed.extractall(tmp_path)
    former, files = Lake(str(tmp_path / "lake")), tmp_path / "lake"
    convert_lake(former)
    tables = {path.relative_to(files).parts[0] for path in files.rglob("*.parquet")}
    assert {"raw_sessions", "session_metadata"} <= tables
    for table in tables:
        assert former.versions(table).keys() == {*former.partitions(table)} != set()
        for key in former.partitions(table):
            row_type, stamp = TABLES[table].rows, former.stamp(table, key)
            rows = list(former.read(table, key, row_type))
            assert stamp is not None
            assert len(rows) == stamp.rows
            former.write(table, key, rows, row_type, partial(str, stamp.inputs))
            lake = Lake(former.url)
            assert list(lake.read(table, key, row_type)) == rows
            assert lake.partitions(table) == former.partitions(table)
            now = lake.stamp(table, key)
            assert now is not None
            assert (now.inputs, now.rows) == (stamp.inputs, stamp.rows)
    assert not [*files.rglob("*.parquet")]
