"""Clients that send a task, a repository, a baseline and a conversation, and no more."""

from __future__ import annotations

import json
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debrief.recorder.checks import problems_of
from debrief.recorder.encoding import decode_record
from debrief.recorder.service import draining
from debrief.recorder.service.plain import read_upload
from debrief.sessions.model import Session
from debrief.sessions.readers.recorder import session_of
from debrief.sessions.sources import read_week, scan
from tests.recorder.records import AFTER, BEFORE, as_json, build, hunks
from tests.recorder.service.helpers import JSON, Api, assert_problem, body_of, new_record
from tests.waiting import LONG

READ, RUN, PATCH = "repo.readFile", "run_cmd", "apply_patch"
SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


def call(id: str, name: str, arguments: Mapping[str, object], result: str) -> list[Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    calls = [{"id": id, "type": "function", "function": function}]
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": id, "content": result},
    ]


def conversation() -> list[Any]:
    """A session as its plan has it: commands as they were clicked, then what git tells."""
    ops = [
        {"type": "update_file", "path": "README.md", "diff": hunks(*_both("README.md"))},
        {"type": "delete_file", "path": "old.ts"},
        {"type": "create_file", "path": "src/cart.test.ts", "diff": AFTER["src/cart.test.ts"]},
    ]
    return [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": f"Do it {uuid4()}"},
        *call("call_1", RUN, {"cmd": "pnpm", "args": ["lint"], "cwd": "."}, "1 problem\n"),
        *call("call_2", READ, {"path": "README.md"}, BEFORE["README.md"]),
        *call("call_3", READ, {"path": "old.ts"}, BEFORE["old.ts"]),
        *call("call_4", PATCH, {"ops": ops}, '{"ok":true}'),
    ]


def _both(path: str) -> tuple[str, str]:
    return BEFORE[path], AFTER[path]


def plain(**more: Any) -> dict[str, Any]:
    return {
        "task_id": "cart",
        "repo_name": "shop",
        "repo_remote": None,
        "branch": "main",
        "base_ref": "3" * 40,
        "record": {"messages": conversation(), "meta": {}},
        **more,
    }


def post(client: httpx.Client, body: object) -> httpx.Response:
    return client.post("/sessions", content=json.dumps(body), headers=JSON)


def test_what_the_plan_says_is_enough_and_comes_out_again(
    client: httpx.Client, tmp_path: Path
) -> None:
    body = plain()

    answer = post(client, body)

    assert answer.status_code == 201, answer.text
    session = answer.json()
    assert (session["status"], session["files"], session["branch"]) == ("draft", 3, "main")
    assert session["missing"] == [
        *("id", "createdAt", "record.meta.sessionId", "record.meta.stoppedAt"),
        *("record.meta.startedAt", "record.meta.recorder", "record.meta.finalTree"),
        *("record.meta.verified", "record.meta.commands", "record.tools"),
    ]
    assert any("closing words" in reason for reason in session["notReady"])
    refusal = client.patch(f"/sessions/{session['sessionId']}", json={"status": "ready"})
    assert_problem(refusal, 409, "not verified")

    lines = client.get("/export.jsonl", params={"taskId": "cart"}).text.splitlines()
    [line] = [line for line in lines if session["sessionId"] in line]
    assert problems_of(decode_record(line.encode())) == []
    told = [message["content"] for message in json.loads(line)["messages"]]
    sent = [message["content"] or "" for message in body["record"]["messages"]]
    assert told == sent
    chat = {"taskId": "cart", "format": "messages"}
    assert session["sessionId"] in client.get("/export.jsonl", params=chat).text

    (tmp_path / "cart.jsonl").write_text(line + "\n")
    found = scan([tmp_path])
    [read] = [row for week in found.weeks() for row in read_week(found, week)]
    assert isinstance(read, Session)
    assert (read.id, read.task, read.repository) == (session["sessionId"], "cart", "shop")
    assert (read.status, read.recorded and read.recorded.verified) == ("draft", False)
    assert read.started == read.ended == datetime.fromisoformat(session["createdAt"])
    assert [call.status for message in read.turns[0].messages for call in message.calls] == (
        ["ok"] * 4
    )


def test_a_retry_in_other_names_or_at_another_time_is_the_same_session(
    client: httpx.Client,
) -> None:
    body = plain()
    record = body["record"]
    camel = {
        "taskId": "cart",
        "repoName": "shop",
        "branch": "main",
        "baseRef": "3" * 40,
        "repoRemote": None,
        "createdAt": "2026-11-02T09:42:00Z",
        "record": {"meta": {"task_id": "cart", "base_ref": "3" * 40}, **record},
    }

    first = post(client, body).json()

    assert post(client, body).json() == first
    again = post(client, camel).json()
    assert again["sessionId"] == first["sessionId"]
    assert again["createdAt"] == first["createdAt"]
    other = plain(branch="feature", record=record)
    assert post(client, other).json()["sessionId"] != first["sessionId"]


def test_a_retry_under_an_id_of_the_clients_own_is_the_same_session(client: httpx.Client) -> None:
    body = plain(id=str(uuid4()))

    first = post(client, body).json()

    assert first["sessionId"] == body["id"]
    assert post(client, body).json() == first
    assert_problem(post(client, {**plain(), "id": body["id"]}), 409, "new id")


TOP = ("id", "repoRemote", "branch", "createdAt")
REPEATED = ("taskId", "repoName", "baseRef")
META = (
    *("sessionId", "recorder", "finalTree", "startedAt", "stoppedAt", "verified"),
    *("repoRemote", "branch", "commands", "version", "contents", "skipped", "warnings"),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sets(st.sampled_from(TOP)),
    st.sets(st.sampled_from(META)),
    st.sets(st.sampled_from(REPEATED)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_whatever_of_a_record_is_left_out_it_is_stored_once(
    client: httpx.Client,
    top: set[str],
    meta: set[str],
    moved: set[str],
    inside: bool,
    no_tools: bool,
    no_meta: bool,
    snake: bool,
) -> None:
    body = json.loads(body_of(new_record()))
    for name in top:
        del body[name]
    record = body["record"]
    record["messages"][1]["content"] = f"Do it {uuid4()}"
    for name in meta:
        del record["meta"][name]
    for name in moved:
        del (record["meta"] if inside else body)[name]
    if no_tools:
        del record["tools"]
    no_meta = no_meta and (inside or not moved)
    if no_meta:
        record["meta"] = None
    if snake:
        body = {_snake(name): value for name, value in body.items()}
        if not no_meta:
            record["meta"] = {_snake(name): value for name, value in record["meta"].items()}

    answer = post(client, body)

    if "verified" not in meta and "finalTree" in meta and not no_meta:
        assert_problem(answer, 422, "finalTree is missing")
        return
    assert answer.status_code == 201, answer.text
    session = answer.json()
    assert session["status"] == "draft"
    assert post(client, body).json() == session
    record_id = session["sessionId"]
    kept = client.get(f"/sessions/{record_id}/record").content
    assert problems_of(decode_record(kept)) == []
    assert session_of(kept, "x").id == record_id
    left_out = {name for name in ("recorder", "finalTree") if no_meta or name in meta}
    assert {f"record.meta.{name}" for name in left_out} <= set(session["missing"])


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda found: "_" + found[0].lower(), name)


def _last_patch(body: Any) -> Any:
    return body["record"]["messages"][-2]["tool_calls"][0]["function"]


def _ops(change: Callable[[list[Any]], object]) -> Callable[[Any], object]:
    def damage(body: Any) -> None:
        function = _last_patch(body)
        arguments = json.loads(function["arguments"])
        change(arguments["ops"])
        function["arguments"] = json.dumps(arguments)

    return damage


def _command(args: list[str]) -> Callable[[Any], object]:
    def damage(body: Any) -> None:
        function = body["record"]["messages"][2]["tool_calls"][0]["function"]
        function["arguments"] = json.dumps({"cmd": "pnpm", "args": args, "cwd": "."})

    return damage


def _message(index: int, **values: Any) -> Callable[[Any], object]:
    return lambda body: body["record"]["messages"][index].update(values)


def _nested(body: Any) -> None:
    deep: list[Any] = []
    for _ in range(900):
        deep = [deep]
    body["record"]["meta"]["skipped"] = deep


GATES: dict[str, tuple[Callable[[Any], object], str]] = {
    "no task": (lambda b: b.pop("task_id"), "taskId: Field required"),
    "no repository": (lambda b: b.update(repo_name=None), "repoName: Field required"),
    "no baseline": (lambda b: b.pop("base_ref"), "baseRef: Field required"),
    "no record": (lambda b: b.pop("record"), "record: Field required"),
    "no messages": (lambda b: b["record"].pop("messages"), "record.messages: Field required"),
    "messages of another kind": (lambda b: b["record"].update(messages={}), "record.messages: "),
    "meta of another kind": (lambda b: b["record"].update(meta=[]), "record.meta: "),
    "a name that is not known": (lambda b: b.update(repo="x"), "repo: is not known"),
    "the same twice": (lambda b: b.update(taskId="cart"), "taskId is there twice"),
    "another task inside": (
        lambda b: b["record"]["meta"].update(task_id="other"),
        "taskId: is not what record.meta says",
    ),
    "calls of another kind": (_message(2, tool_calls=5), "record.messages[2]"),
    "a call of another kind": (_message(2, tool_calls=[5]), "record.messages[2]"),
    "a message of another kind": (
        lambda b: b["record"]["messages"].insert(2, 5),
        "record.messages[2]",
    ),
    "a huge number": (lambda b: b.update(id=10**30), "id: "),
    "a number of its own": (lambda b: b.update(branch=10**30), "branch: "),
    "very deep lists": (_nested, ""),
    "half of a pair": (_message(1, content="\ud83d"), ""),
    "another role": (_message(1, role="person"), "record.messages[1]"),
    "another's result": (_message(3, tool_call_id="call_9"), "the result of another call"),
    "an id twice": (
        lambda b: b["record"]["messages"].__setitem__(
            slice(4, 6), call("call_1", READ, {"path": "README.md"}, BEFORE["README.md"])
        ),
        "belongs to two calls",
    ),
    "no result": (lambda b: b["record"]["messages"].pop(), "a call without a result"),
    "a hunk without @@": (_ops(lambda ops: ops[0].update(diff="-a\n+b\n")), "@@"),
    "a hunk that does not fit": (_ops(lambda ops: ops[0].update(diff="@@ -1 +1 @@\n-a\n+b\n")), ""),
    "a new file without text": (_ops(lambda ops: ops[2].pop("diff")), "diff: Field required"),
    "a deleted file with one": (_ops(lambda ops: ops[1].update(diff="x")), "diff: Extra inputs"),
    "a way out": (_ops(lambda ops: ops[2].update(path="../x")), "../x"),
    "a file twice": (_ops(lambda ops: ops.append(ops[2])), "each once"),
    "another program": (_command(["publish"]), "no pattern of the allowlist"),
    "a shell": (_command(["test", "&&", "rm"]), "no pattern of the allowlist"),
    "too long an output": (_message(3, content="x" * 60_000), "an output of over 50,000"),
}


@pytest.mark.parametrize("name", GATES)
def test_a_plain_record_passes_the_same_gates(client: httpx.Client, name: str) -> None:
    damage, words = GATES[name]
    body = plain()
    damage(body)

    assert_problem(post(client, body), 422, words)


def test_secrets_of_a_plain_record_are_replaced(client: httpx.Client) -> None:
    body = plain()
    body["record"]["messages"][3]["content"] = f"token {SECRET}\n"

    session = post(client, body).json()

    assert session["redactions"] == 1
    kept = client.get(f"/sessions/{session['sessionId']}/record").content
    assert SECRET.encode() not in kept
    assert post(client, body).json() == session


def test_an_export_of_a_task_that_does_not_exist_is_refused(client: httpx.Client) -> None:
    answer = client.get("/export.jsonl", params={"taskId": "nobodys"})

    assert_problem(answer, 404, "POST /tasks")


@pytest.mark.parametrize(
    ("scope", "size", "status"),
    [("all", 9_000_000, 413), ("read", 3_000_000, 403), ("", 3_000_000, 401)],
)
def test_a_refusal_reaches_clients_that_send_everything_first(
    api: Api, scope: str, size: int, status: int
) -> None:
    headers = {**JSON, "Authorization": f"Bearer {api.tokens.get(scope, 'x')}"}
    for _ in range(8):
        request = urllib.request.Request(f"{api.url}/sessions", bytes(size), headers)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=LONG)
        assert refused.value.code == status


def test_a_refused_body_that_does_not_come_is_not_waited_for(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draining, "SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", api.port), timeout=LONG) as client:
        client.sendall(b"POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        answer = b""
        while part := client.recv(65_536):
            answer += part

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert answer.rstrip().endswith(b"}")


def test_the_recorders_own_upload_leaves_nothing_out(client: httpx.Client) -> None:
    record = new_record()

    answer = client.post("/sessions", content=body_of(record), headers=JSON)

    assert answer.json()["missing"] == []
    assert as_json(build())["meta"].keys() == as_json(record)["meta"].keys()


NAMES = ("record", "messages", "meta", "tools", "tool_calls", "id", "role", "commands", "rules")
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
places = st.sampled_from(
    [(), ("record",), ("record", "meta"), ("record", "messages", 2), ("record", "messages", 3)]
)


@settings(deadline=None)
@given(places, st.sampled_from([*NAMES, "tool_call_id", "content", "base_ref"]), values)
def test_whatever_stands_anywhere_it_is_taken_or_refused(
    way: tuple[str | int, ...], name: str, value: Any
) -> None:
    body = plain()
    place: Any = body
    for step in way:
        place = place[step]
    place[name] = value

    with suppress(ValueError):
        assert read_upload(body).missing
