"""The shared state: the same in a file and in Postgres."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.errors import ConfigurationError
from debrief.retry import RetryPolicy
from debrief.settings import load_settings
from debrief.state import Size, State, open_state, prune_daily, state_url
from tests.postgres import in_dagster_schema

Opened = Callable[[], State]
EVERYTHING = 1 << 40


def test_what_one_keeps_another_gets(opened: Opened) -> None:
    opened().put("k", b"an answer, with \x00 and \xff in it")
    assert opened().get("k") == b"an answer, with \x00 and \xff in it"
    assert opened().get("other") is None
    opened().put("k", b"a better answer")
    assert opened().get("k") == b"a better answer"


def test_the_tables_are_made_once_by_whoever_comes_first(opened: Opened) -> None:
    with ThreadPoolExecutor(8) as pool:
        states = list(pool.map(lambda _: opened(), range(8)))
    states[0].put("k", b"v")
    assert [state.get("k") for state in states] == [b"v"] * 8


def test_all_who_share_a_budget_together_keep_within_it(opened: Opened) -> None:
    states = [opened() for _ in range(4)]

    def reserve(number: int) -> bool:
        return states[number % 4].reserve("run", 0.1, max_calls=None, max_usd=1.05)

    with ThreadPoolExecutor(8) as pool:
        granted = list(pool.map(reserve, range(40)))
    assert granted.count(True) == 10
    states[0].settle("run", -0.1)
    assert states[1].reserve("run", 0.1, max_calls=None, max_usd=1.05)
    assert not states[2].reserve("run", 0.0, max_calls=11, max_usd=None)
    calls, usd = states[3].spent("run")
    assert calls == 11
    assert usd == pytest.approx(1.0)
    assert states[3].spent("another run") == (0, 0.0)


def test_a_chore_falls_to_one_alone_and_again_when_its_time_came(opened: Opened) -> None:
    states = [opened() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda state: state.is_due("prune", 60.0), states))
    assert told.count(True) == 1
    assert not states[0].is_due("prune", 60.0)
    time.sleep(0.02)
    assert states[0].is_due("prune", 0.01)


def test_the_oldest_answers_go_when_there_are_too_many(state: State) -> None:
    for number in range(5):
        state.put(f"k{number}", b"x" * 100)
        time.sleep(0.002)
    assert state.prune(days=1, size=250) == Size(3, 300)
    assert [state.get(f"k{number}") is not None for number in range(5)] == [False] * 3 + [True] * 2
    assert state.prune(days=1, size=250) == Size(0, 0)


def test_answers_go_when_they_are_old_and_so_does_what_runs_spent(state: State) -> None:
    state.put("k", b"x")
    state.reserve("run", 1.0, max_calls=None, max_usd=None)
    time.sleep(0.01)
    assert state.prune(days=1, size=EVERYTHING) == Size(0, 0)
    assert state.prune(days=0, size=EVERYTHING) == Size(1, 1)
    assert state.get("k") is None
    assert state.spent("run") == (0, 0.0)


def test_a_file_of_the_version_before_is_taken_over_with_its_answers(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    with sqlite3.connect(path) as old:
        old.execute(
            "CREATE TABLE answers (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
        )
        old.execute(
            "CREATE TABLE spending (run TEXT PRIMARY KEY, calls INTEGER NOT NULL, "
            "usd REAL NOT NULL) WITHOUT ROWID"
        )
        old.execute("INSERT INTO answers VALUES ('k', '{}')")
        old.execute("INSERT INTO spending VALUES ('run', 3, 0.5)")
    old.close()
    state = State(path)
    assert state.prune(days=1, size=EVERYTHING) == Size(0, 0)
    assert state.get("k") == b"{}"
    assert state.spent("run") == (3, 0.5)


def test_pruning_gives_the_room_back_to_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    state = State(path)
    for number in range(100):
        state.put(str(number), b"x" * 10_000)
    state.prune(days=1, size=0)
    state.compact()
    assert path.stat().st_size < 100_000


def test_the_settings_say_where_the_state_is(tmp_path: Path, postgres_url: str) -> None:
    home = {"DEBRIEF_HOME": str(tmp_path)}
    own = open_state(load_settings(home))
    assert own.location == str(tmp_path / "cache" / "answers.sqlite")
    assert open_state(load_settings(home)) is own
    team = open_state(load_settings({**home, "DEBRIEF_STATE_URL": postgres_url}))
    team.put("k", b"of the team")
    assert own.get("k") is None
    assert open_state(load_settings({**home, "DEBRIEF_STATE_URL": postgres_url})) is team
    team.close()


OF_TEAM = "postgresql://me@team/d"
OF_DAGSTER = f"{OF_TEAM}?options=-csearch_path%3Ddagster"


@pytest.mark.parametrize(
    ("told", "url"),
    [
        pytest.param({}, "", id="one machine"),
        pytest.param({"DATABASE_URL": OF_TEAM}, "", id="a database of something else"),
        pytest.param({"DAGSTER_DATABASE_URL": OF_DAGSTER}, "", id="the embedded server"),
        pytest.param(
            {"DATABASE_URL": OF_TEAM, "DAGSTER_DATABASE_URL": OF_DAGSTER},
            OF_DAGSTER,
            id="all on a team's server",
        ),
        pytest.param(
            {"DEBRIEF_BROKER": "redis://b", "DAGSTER_DATABASE_URL": OF_DAGSTER},
            OF_DAGSTER,
            id="a worker",
        ),
        pytest.param(
            {"DEBRIEF_BROKER": "redis://b", "DAGSTER_DATABASE_URL": OF_DAGSTER}
            | {"DEBRIEF_STATE_URL": OF_TEAM},
            OF_TEAM,
            id="told",
        ),
        pytest.param(
            {"DATABASE_URL": OF_TEAM, "DAGSTER_DATABASE_URL": OF_DAGSTER}
            | {"DEBRIEF_STATE_URL": "here"},
            "",
            id="told to be here",
        ),
    ],
)
def test_the_state_is_where_the_runs_of_a_team_are(told: dict[str, str], url: str) -> None:
    assert state_url(load_settings({"DEBRIEF_HOME": "/nowhere", **told})) == url


def test_a_state_beside_the_tables_of_dagster_has_a_schema_of_its_own(
    tmp_path: Path, postgres_url: str
) -> None:
    told = {"DATABASE_URL": postgres_url, "DAGSTER_DATABASE_URL": in_dagster_schema(postgres_url)}
    state = open_state(load_settings({"DEBRIEF_HOME": str(tmp_path), **told}))
    state.put("k", b"v")
    same = State(postgres_url)
    assert same.get("k") == b"v"
    for each in (state, same):
        each.close()


def test_a_machines_answers_come_along_to_the_database_of_its_team(
    tmp_path: Path, postgres_url: str
) -> None:
    told = {"DEBRIEF_HOME": str(tmp_path), "DEBRIEF_STATE_URL": ""}
    own = open_state(load_settings(told))
    for number in range(450):
        own.put(f"k{number:03}", bytes([number % 256]))
    team = State(postgres_url)
    team.put("k007", b"of the team")
    for new in (449, 0):
        said = CliRunner().invoke(app, ["cache", "share", "--to", postgres_url], env=told)
        assert said.exit_code == 0, said.output
        assert said.output.startswith(f"{new} of 450 answers are new in postgresql://")
    assert team.size().answers == 450
    assert (team.get("k007"), team.get("k449")) == (b"of the team", bytes([449 % 256]))
    team.close()


def test_answers_are_shared_with_nobody_when_nobody_is_named(tmp_path: Path) -> None:
    told = {"DEBRIEF_HOME": str(tmp_path), "DEBRIEF_STATE_URL": "here", "DATABASE_URL": ""}
    said = CliRunner().invoke(app, ["cache", "share"], env=told)
    assert said.exit_code == 1
    assert "names no database" in said.output + said.stderr


def test_a_file_that_was_removed_is_made_again_and_not_written_to_in_secret(tmp_path: Path) -> None:
    settings = load_settings({"DEBRIEF_HOME": str(tmp_path)})
    open_state(settings).put("k", b"v")
    for file in (tmp_path / "cache").iterdir():
        file.unlink()
    assert open_state(settings).get("k") is None


@pytest.mark.parametrize("url", ["mysql://host/x", "not an address", "/a/file"])
def test_an_address_of_something_else_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"DEBRIEF_STATE_URL.*postgresql://"):
        State(url)


def test_a_database_that_is_away_is_named_without_its_password() -> None:
    with pytest.raises(ConfigurationError) as told:
        State("postgresql://me:hunter22@127.0.0.1:9/nothing", RetryPolicy(seconds=0.1))
    assert "me:***@127.0.0.1" in str(told.value)
    assert "hunter22" not in str(told.value)


def test_a_file_that_is_no_database_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    path.write_bytes(b"something else entirely")
    State(path).put("k", b"v")
    assert path.with_suffix(".broken").read_bytes() == b"something else entirely"


def test_a_run_prunes_once_a_day_and_a_person_when_told_to(home: Path) -> None:
    settings = load_settings({"DEBRIEF_HOME": str(home), "DEBRIEF_CACHE_DAYS": "0"})
    state = open_state(settings)
    state.put("old", b"x")
    time.sleep(0.01)
    prune_daily(state, settings)
    assert state.get("old") is None
    state.put("new", b"x" * 1000)
    time.sleep(0.01)
    prune_daily(state, settings)
    assert state.get("new") is not None
    said = CliRunner(env={"DEBRIEF_HOME": str(home)}).invoke(app, ["cache", "prune", "--mb", "0"])
    assert said.exit_code == 0
    assert said.output.startswith("Dropped 1 answers (0.0 MB); 0 are left (0.0 MB) in ")
    assert state.get("new") is None


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def test_answers_about_a_session_are_found_and_leave_nothing_behind(
    opened: Opened, place: str
) -> None:
    state = opened()
    state.put("own", b"what was said of it", about=["one"])
    state.put("of both", b"how they differ", about=["one", "two"])
    state.put("other", b"of another", about=["two"])
    state.put("old", b"of nobody knows whom")
    assert state.about({"one"}) == {"own", "of both"}
    assert [key for key, _ in state.unattributed()] == ["old"]
    state.remove(state.about({"one"}))
    assert state.about({"one"}) == set()
    assert state.about({"two"}) == {"other"}
    assert state.get("own") is None
    if "://" not in place:
        for path in Path(place).parent.iterdir():
            assert b"what was said" not in path.read_bytes()


def test_what_answers_are_about_is_copied_and_pruned_with_them(opened: Opened) -> None:
    state, other = opened(), State(None)
    state.put("k", b"an answer", about=["one"])
    assert other.copy_from(state) == 1
    assert other.about({"one"}) == {"k"}
    state.prune(days=0, size=0)
    assert state.about({"one"}) == set()
