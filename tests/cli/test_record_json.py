"""``debrief record … --json`` as an editor uses it: real repositories, service and database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from debrief.recorder.storage.store import RecordStore
from tests.cli.test_record import record, shop
from tests.recorder.service.helpers import Api, running
from tests.snapshots.scenario import git, write

__all__ = ["shop"]


@pytest.fixture
def api(record_store: RecordStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    with running(record_store) as api:
        _, secret = record_store.add_token("editor", ("read", "write", "export"))
        monkeypatch.setenv("DEBRIEF_RECORDER_URL", api.url)
        monkeypatch.setenv("DEBRIEF_RECORDER_TOKEN", secret)
        yield api


def lines(*arguments: str) -> Any:
    done = record(*arguments)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def answer(*arguments: str) -> Any:
    done = record(*arguments)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refusal(*arguments: str) -> Any:
    """Return the error, which is the last line of the error output."""
    done = record(*arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    return json.loads(done.stderr.splitlines()[-1])["error"]


def begin(*more: str) -> Any:
    return answer("start", "--task", "cart", "--prompt", "Add a discount.", "--json", *more)


def test_a_session_from_its_task_to_the_exported_line(shop: Path, api: Api) -> None:
    made = answer("tasks", "create", "cart", "Cart", "--description", "Prices", "--json")
    assert made == {"id": "cart", "name": "Cart", "description": "Prices"}
    (task,) = answer("tasks", "list", "--json")["tasks"]
    assert (task["id"], task["description"]) == ("cart", "Prices")
    before = answer("status", "--json")
    assert (before["session"], before["notClean"], before["branch"]) == (None, [], "main")
    session = begin()["session"]
    assert (session["state"], session["baseRef"]) == ("recording", before["head"])
    write(shop, {"src/new.ts": "export {};\n"})
    *said, last = lines("run", "--json", "--", "pnpm", "test")
    ran = last["command"]
    assert "".join(line["output"] for line in said) == "2 passed\na warning\ndone\n"
    assert (ran["state"], ran["exitCode"], ran["isCheck"]) == ("ended", 0, True)
    now = answer("status", "--json")["session"]
    assert [change["path"] for change in now["changes"]] == ["src/new.ts"]
    assert (now["commands"], now["notReady"]) == ([ran], [])
    assert now["elapsedSeconds"] >= 0
    done = answer("stop", "--json")
    assert (done["sent"], done["status"], done["meta"]["verified"]) == (True, "draft", True)
    assert [change["path"] for change in done["meta"]["changes"]] == ["src/new.ts"]
    id = done["sessionId"]
    (entry,) = answer("history", "--json")["sessions"]
    assert (entry["sessionId"], entry["state"], entry["status"]) == (id, "sent", "draft")
    marked = answer("mark", id, "--json")
    assert marked == {"sessionId": id, "status": "ready", "notReady": []}
    assert record("mark", id, "--draft").stdout == f"{id} is draft.\n"
    assert record("mark", id).stdout == f"{id} is ready.\n"
    assert answer("history", "--json")["sessions"][0]["status"] == "ready"
    exported = answer("export", "--task", "cart", "--to", str(shop.parent / "cart.jsonl"), "--json")
    assert (exported["lines"], exported["withheld"]) == (1, {})
    (line,) = (shop.parent / "cart.jsonl").read_text().splitlines()
    assert json.loads(line)["metadata"]["session_id"] == id
    again = refusal("export", "--task", "cart", "--to", str(shop.parent / "cart.jsonl"), "--json")
    assert again["code"] == "file-exists"


def test_a_command_that_fails_is_recorded_all_the_same(shop: Path) -> None:
    begin()
    ran = lines("run", "--json", "--", "pnpm", "lint")[-1]["command"]
    assert (ran["exitCode"], ran["output"]) == (3, "src/cart.ts: 1 problem\n")


def test_the_validator_says_what_it_takes_and_why_not(shop: Path) -> None:
    known = answer("commands", "--json")
    assert known["agreed"]
    assert ["test"] in [rule["arguments"] for rule in known["commands"] if rule["isCheck"]]
    taken = answer("commands", "--json", "--", "pnpm", "add", "left-pad")["asked"]
    assert (taken["accepted"], taken["isCheck"]) == (True, False)
    refused = answer("commands", "--json", "--", "pnpm", "add", "$(reboot)")["asked"]
    assert (refused["accepted"], bool(refused["reason"])) == (False, True)
    values = ("--value", "package=left-pad", "--value", "package=@types/node", "--value", "name=$x")
    filled = {
        " ".join(rule["arguments"]): rule["filled"]
        for rule in answer("commands", "--json", *values)["commands"]
    }
    added = filled["add -D <package>+"]
    assert added["command"] == ["pnpm", "add", "-D", "left-pad", "@types/node"]
    assert (added["accepted"], filled["test"]["accepted"]) == (True, True)
    assert (filled["remove <name>+"]["accepted"], filled["--filter <selector> test"]) == (
        False,
        None,
    )


def test_what_keeps_a_session_from_starting_is_told_by_its_code(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = ("start", "--task", "cart", "--prompt", "x", "--json")
    write(shop, {"src/new.ts": "", "notes.txt": ""})
    error = refusal(*start)
    assert (error["code"], error["facts"]["paths"]) == ("not-clean", ["notes.txt", "src/new.ts"])
    assert answer("status", "--json")["notClean"] == ["notes.txt", "src/new.ts"]
    assert refusal(*start, "--repo", str(tmp_path))["code"] == "not-a-repository"
    assert refusal(*start, "--repo", str(tmp_path / "nowhere"))["code"] == "no-folder"
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    assert refusal(*start, "--repo", str(tmp_path / "empty"))["code"] == "no-commit"
    assert refusal("stop", "--local", str(tmp_path / "x"), "--json")["code"] == "no-session"
    assert refusal("tasks", "list", "--json")["code"] == "api-not-set"
    monkeypatch.setenv("DEBRIEF_RECORDER_URL", "http://127.0.0.1:9")
    assert refusal("tasks", "list", "--json")["code"] == "token-missing"


def test_a_server_that_is_away_keeps_the_record_and_a_wrong_token_is_told(
    shop: Path, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer("tasks", "create", "cart", "Cart", "--json")
    secret = "debrief_" + "x" * 43
    monkeypatch.setenv("DEBRIEF_RECORDER_TOKEN", secret)
    assert refusal("tasks", "list", "--json")["code"] == "token-wrong"
    assert begin()["warning"]["code"] == "token-wrong"
    write(shop, {"src/new.ts": "export {};\n"})
    error = refusal("stop", "--json")
    assert (error["code"], error["facts"]["kept"]) == ("token-wrong", True)
    assert secret not in json.dumps(error)
    (entry,) = answer("history", "--json")["sessions"]
    assert (entry["state"], entry["sessionId"]) == ("waiting", error["facts"]["sessionId"])
    _, secret = api.store.add_token("again", ("write",))
    monkeypatch.setenv("DEBRIEF_RECORDER_TOKEN", secret)
    sent = answer("upload", "--json")
    assert ([each["error"] for each in sent["sent"]], sent["waiting"]) == ([None], 0)
    known = answer("history", "--json")
    assert (known["error"]["code"], known["sessions"][0]["status"]) == ("token-scope", "draft")


def test_a_record_that_is_not_ready_is_told_why(shop: Path, api: Api) -> None:
    answer("tasks", "create", "cart", "Cart", "--json")
    begin()
    write(shop, {"src/new.ts": "export {};\n"})
    id = answer("stop", "--json")["sessionId"]
    error = refusal("mark", id, "--json")
    assert (error["code"], len(error["facts"]["reasons"])) == ("not-ready", 1)
    assert refusal("mark", "1" * 8, "--json")["code"] == "failed"


def test_discarding_ends_the_session(shop: Path) -> None:
    begin()
    assert refusal("start", "--task", "cart", "--prompt", "x", "--json")["code"] == "session-exists"
    assert answer("discard", "--json") == {"discarded": True}
    assert refusal("discard", "--json")["code"] == "no-session"


def test_a_repositorys_own_commands_are_shown_agreed_to_and_run(shop: Path) -> None:
    text = '[[commands]]\nprogram = "git"\narguments = ["status"]\ncheck = true\ntime_limit = 5\n'
    write(shop, {".debrief/recorder.toml": text})
    git(shop, "add", "-A", "-f")
    git(shop, "commit", "-q", "-m", "rules")
    begin()
    known = answer("commands", "--json")
    assert (known["source"], known["agreed"]) == (".debrief/recorder.toml", False)
    own = [rule for rule in known["commands"] if rule["own"]]
    assert [(rule["program"], rule["arguments"], rule["timeLimit"]) for rule in own] == [
        ("git", ["status"], 5.0)
    ]
    error = refusal("run", "--json", "--", "git", "status")
    assert (error["code"], error["facts"]["digest"]) == ("rules-not-agreed", known["digest"])
    stale = refusal("commands", "--yes", "--digest", "0" * 64, "--json")
    assert (stale["code"], stale["facts"]["digest"]) == ("rules-changed", known["digest"])
    assert "Nobody here agreed to those of .debrief" in record("commands").stdout
    assert answer("commands", "--yes", "--digest", known["digest"], "--json")["agreed"]
    shown = record("commands").stdout.splitlines()
    assert "git status  (.debrief/recorder.toml, at most 5 s, a check)" in shown
    assert "pnpm install  (built in)" in shown
    ran = lines("run", "--json", "--", "git", "status")[-1]["command"]
    assert (ran["exitCode"], ran["isCheck"]) == (0, True)
