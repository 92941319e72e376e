"""Exports, labels and forgetting that are killed: nothing is lost, half there, or there twice."""

from __future__ import annotations

import csv
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest

from debrief.lake import Lake
from debrief.outcomes.giving import give_label, label_of
from debrief.outcomes.store import all_labels
from debrief.sessions.model import Session
from debrief.sessions.store import sessions_of_lake
from tests.faults.killing import Commands, Ended, Moment
from tests.forgetting.searching import found_in, letters, sentences_of_some
from tests.machine import files_below
from tests.ports import free_port
from tests.training.lakes import TASK, lake_of, stored
from tests.training.scenario import MONDAY, call, says, session, text, turn
from tests.view.shown import OWN
from tests.waiting import wait_until

KILLS = 3
UNFINISHED = re.compile(r"(.*/)?\..+\.[0-9a-f]{8}")
Draw = Callable[[Ended], Moment]
"""When to kill a command, by how it ends when it is not."""


def by_change(seed: int) -> Draw:
    """Kill before one of the command's changes of the disk; at first shortly before its end."""
    chance, numbers = random.Random(seed), count()

    def draw(whole: Ended) -> Moment:
        is_first = next(numbers) == 0
        return Moment(change=whole.changes - 3 if is_first else chance.randint(1, whole.changes))

    return draw


def by_clock(seed: int) -> Draw:
    """Kill at any time."""
    chance = random.Random(seed)
    return lambda whole: Moment(seconds=chance.uniform(0.01, whole.seconds))


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    with Commands() as started:
        yield started


def made_lake(folder: Path) -> Lake:
    """A lake of six sessions in three weeks, with training sets of two tasks."""

    def made(number: int) -> Session:
        ran = call(arguments={"command": f"say {text(9)}"}, result=f"It said {text(14)}.")
        said = says(f"Done, with {text(12)}.", ran)
        return session(
            f"session-{number}",
            turn(f"Please do {text(12)}.", said, says(f"All of it: {text(12)}.")),
            started=MONDAY + timedelta(weeks=number % 3, minutes=number),
            task=TASK if number < 4 else "other",
            repository=f"shop{number % 3}",
        )

    lake = lake_of(folder, map(made, range(6)))
    for task in (TASK, "other"):
        stored(lake, task, eval_share=0.4)
    return lake


def exporting(lake: Lake, to: Path, *more: str) -> list[str]:
    return ["export", "--lake", lake.url, "--to", str(to), "--per-set", "--parquet", *more]


def finished(folder: Path) -> dict[str, bytes]:
    """The files of a folder but those that somebody had begun to write, which nobody reads."""
    files = files_below(folder)
    return {name: data for name, data in files.items() if not UNFINISHED.fullmatch(name)}


def check_exports(commands: Commands, folder: Path, kills: int, draw: Draw) -> None:
    """Kill exports to a new folder and to one that holds an older export."""
    lake = made_lake(folder / "lake")
    older = [*exporting(lake, folder / "older"), "--task", "other", "--licence", "mit"]
    assert commands.run(folder, *older).code == 0
    whole = commands.run(folder, *exporting(lake, folder / "plain"))
    assert whole.code == 0, whole.said
    plain, old = files_below(folder / "plain"), files_below(folder / "older")
    for number in range(kills):
        to = folder / f"killed-{number}"
        if number % 2:
            shutil.copytree(folder / "older", to)
        commands.run(folder, *exporting(lake, to), at=draw(whole))
        for name, data in finished(to).items():
            assert name == ".debrief.json" or data in (plain.get(name), old.get(name)), name
            if name.endswith(".jsonl"):
                assert all(map(json.loads, data.splitlines()))
            if name.endswith(".parquet"):
                assert pq.read_table(to / name).num_rows
        again = commands.run(folder, *exporting(lake, to))
        assert again.code == 0, again.said
        assert finished(to) == plain


def test_a_killed_export_is_whole_or_not_there_and_the_next_one_ends_it(
    commands: Commands, tmp_path: Path
) -> None:
    check_exports(commands, tmp_path, KILLS, by_change(1))


def check_forgetting(commands: Commands, folder: Path, kills: int, draw: Draw) -> None:
    """Kill the forgetting of sessions that are in sets, labels, exports and what a killed export
    had begun to write."""
    machine, kept = folder / "machine", folder / "kept"
    home = machine / ".debrief"
    lake = made_lake(machine / "lake")
    sessions = list(sessions_of_lake(lake))
    forgotten = ("session-1", "session-4", "session-5")  # one of four, and all of the other set
    needles = sentences_of_some(sessions, forgotten) | set(map(letters, forgotten))
    words = next(one for one in sessions if one.id in forgotten).turns[0].prompt
    whole = commands.run(machine, *exporting(lake, machine / "whole"))
    commands.run(machine, *exporting(lake, machine / "one-task"), "--task", TASK)
    for number in (whole.changes // 3, whole.changes - 4):
        half = exporting(lake, machine / f"half-{number}")
        commands.run(machine, *half, at=Moment(change=number))
    notes = {"session-1": f"It was asked: {words}", "session-2": "Nothing of the other."}
    for name in notes:
        give_label(lake, home, label_of(name, "success", "good", notes[name], "ann"))
    machine.rename(kept)
    forgetting = ("forget", *forgotten, "--yes", "--lake", lake.url)

    def forget(at: Moment | None = None) -> dict[str, bytes]:
        shutil.rmtree(machine, ignore_errors=True)
        shutil.copytree(kept, machine, symlinks=True)
        assert len(found_in([machine], needles)) > 10
        if at is not None:
            commands.run(machine, *forgetting, at=at)
        ended.append(commands.run(machine, *forgetting))
        assert ended[-1].code == 0, ended[-1].said
        assert found_in([machine], needles) == {}
        assert {one.id for one in sessions_of_lake(lake)} == ids.difference(forgotten)
        return {
            name: data
            for name, data in files_below(machine).items()
            if not name.startswith((".debrief", "lake/forgotten"))
        }

    ended, ids = list[Ended](), {one.id for one in sessions}
    plain = forget()
    for _ in range(kills):
        left = forget(draw(ended[0]))
        assert {name for name in {*left, *plain} if left.get(name) != plain.get(name)} == set()


def test_a_killed_forgetting_is_ended_by_the_next_one_and_takes_nothing_else(
    commands: Commands,
    tmp_path: Path,
) -> None:
    check_forgetting(commands, tmp_path, KILLS, by_change(7))


def check_labels(commands: Commands, folder: Path, kills: int, draw: Draw) -> None:
    """Kill the reading of a CSV file, again and again, beside labels that are there."""
    lake = made_lake(folder / "lake")
    given = label_of("session-0", "success", "bad", "It was not.", "ann")
    give_label(lake, folder / ".debrief", given)
    path = folder / "labels.csv"
    reading = ("outcomes", "--lake", lake.url, "--labels", str(path))

    def written(values: str) -> set[tuple[str, str]]:
        rows = [(f"session-{number}", value) for number, value in enumerate(values)]
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([("session_id", "success"), *rows])
        return {*rows, ("session-0", "bad")}

    def labels() -> list[tuple[str, str]]:
        return [(row.session_id, row.value) for row in all_labels(lake, ("csv", "view"))]

    old = written("101010")
    whole = commands.run(folder, *reading)
    assert whole.code == 0, whole.said
    for number in range(kills):
        new = written(f"{number + 1:06b}")
        commands.run(folder, *reading, at=draw(whole))
        assert set(labels()) in (old, new)
        assert commands.run(folder, *reading).code == 0
        assert sorted(labels()) == sorted(new)
        old = new


def test_a_killed_reading_of_labels_leaves_the_old_or_the_new_ones(
    commands: Commands, tmp_path: Path
) -> None:
    check_labels(commands, tmp_path, KILLS, by_change(3))


def check_pages(commands: Commands, folder: Path, kills: int, seed: int) -> None:
    """Kill the pages while somebody labels one session after the other."""
    lake, chance = made_lake(folder / "lake"), random.Random(seed)
    for _ in range(kills):
        before, given, port = values_of(lake), Given(), free_port()
        ended = commands.run(
            folder,
            *("view", "--lake", lake.url, "--port", str(port)),
            at=Moment(change=chance.randint(30, 60)),
            meanwhile=partial(given.until_it_ends, port),
        )
        assert ended.was_killed, ended.said
        assert given.answered
        assert values_of(lake) in (before | dict(given.answered), before | dict(given.said))


class Given:
    """Labels that somebody gives on pages."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []
        self.answered: list[tuple[str, str]] = []

    def until_it_ends(self, port: int) -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=OWN) as client:
            wait_until(lambda: is_up(client))
            with suppress(httpx.TransportError):
                for number in count():
                    said = f"session-{number % 6}", ("good", "bad", "unsure")[number % 5 % 3]
                    self.said.append(said)
                    client.post(f"/sessions/{said[0]}/labels", data={"say": said[1]})
                    self.answered.append(said)


def is_up(client: httpx.Client) -> bool:
    try:
        return client.get("/labels/next").status_code == 200
    except httpx.TransportError:
        return False


def values_of(lake: Lake) -> dict[str, str]:
    """The labels given on pages, each session's one."""
    rows = list(all_labels(lake, ("view",)))
    values = {row.session_id: row.value for row in rows}
    assert len(values) == len(rows)
    return values


def test_what_pages_have_answered_is_there_once_when_they_are_killed(
    commands: Commands, tmp_path: Path
) -> None:
    check_pages(commands, tmp_path, KILLS, seed=4)
