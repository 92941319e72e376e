"""Records on their way in: what is stored, what is refused, and what a retry does."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from debrief.recorder.checks import ReadyRule, problems_of
from debrief.recorder.encoding import decode_record, encode_record, upload_body
from debrief.recorder.storage.store import RecordStore
from tests.recorder.records import AFTER, BEFORE, FORMER, as_json, build
from tests.recorder.service.helpers import (
    JSON,
    Api,
    assert_problem,
    body_of,
    ensure_task,
    new_record,
    running,
    stored,
    upload,
)

SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


def test_a_record_is_stored_in_one_form_however_it_was_written(client: httpx.Client) -> None:
    record = new_record()
    values = as_json(record)
    for call in (call for value in values["messages"] for call in value.get("tool_calls", ())):
        arguments = json.dumps(json.loads(call["function"]["arguments"]), indent=1)
        call["function"]["arguments"] = arguments.replace('{\n "path"', '{"path": "x", "path"', 1)
    text = json.dumps(values, indent=2, ensure_ascii=True).encode()
    twice = b'{"messages": [], ' + text.lstrip()[1:]

    answer = client.post("/sessions", content=body_of(record, twice), headers=JSON)

    assert answer.status_code == 201, answer.text
    session = answer.json()
    assert session["status"] == "draft"
    assert session["notReady"] == []
    assert (session["files"], session["validated"], session["verified"]) == (4, True, True)
    assert (session.pop("sessionId"), session.pop("missing")) == (session["id"], [])
    assert client.get(answer.headers["location"]).json() == session
    kept = client.get(f"/sessions/{record.meta.session_id}/record").content
    assert kept == encode_record(record)
    assert session["sha256"] == hashlib.sha256(kept).hexdigest()
    assert upload(client, record).json()["sha256"] == session["sha256"]


@pytest.mark.parametrize("former", FORMER, ids=lambda path: path.name)
def test_a_record_of_an_earlier_recorder_keeps_its_bytes(
    client: httpx.Client, former: Path
) -> None:
    text = former.read_bytes()
    record = decode_record(text)

    answer = client.post("/sessions", content=upload_body(text, record.meta), headers=JSON)

    assert answer.status_code == 201, answer.text
    session = answer.json()
    assert session["sha256"] == hashlib.sha256(text).hexdigest()
    assert (session["files"], session["validated"]) == (3, True)
    assert client.get(f"/sessions/{record.meta.session_id}/record").content == text


def test_ten_retries_at_once_make_one_row_and_other_bytes_are_a_conflict(api: Api) -> None:
    record = new_record(repo_name="ten-at-once")
    with ThreadPoolExecutor(10) as pool, api.client() as client:
        answers = list(pool.map(lambda _: upload(client, record), range(10)))

        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.text for answer in answers}) == 1
        found = client.get("/sessions", params={"repoName": "ten-at-once"}).json()
        other = new_record(session_id=record.meta.session_id, recorder="debrief 0.2.0")
        assert_problem(upload(client, other), 409, "new id")
        kept = client.get(f"/sessions/{record.meta.session_id}/record").content
    assert kept == encode_record(record)
    assert [session["id"] for session in found["sessions"]] == [str(record.meta.session_id)]


def test_a_secret_that_a_recorder_let_through_is_replaced_on_both_sides(
    client: httpx.Client,
) -> None:
    before = {**BEFORE, "README.md": f"# Shop\n\nToken {SECRET} here.\nEnd.\n"}
    after = {**AFTER, "README.md": f"# Shop\n\nToken {SECRET} here.\nThe end.\n"}
    record = build(before, after, session_id=uuid4())

    answer = upload(client, record)

    assert answer.status_code == 201, answer.text
    session = answer.json()
    assert session["status"] == "draft"
    assert session["redactions"] > 0
    assert session["verified"] is False
    assert any("the service replaced secrets" in reason for reason in session["notReady"])
    assert session["sha256"] == hashlib.sha256(encode_record(record)).hexdigest()
    text = client.get(f"/sessions/{record.meta.session_id}/record").content
    assert SECRET.encode() not in text
    kept = decode_record(text)
    assert problems_of(kept) == []
    assert kept.meta.redactions.kinds
    refusal = client.patch(f"/sessions/{record.meta.session_id}", json={"status": "ready"})
    assert_problem(refusal, 409, "replaced secrets")
    assert upload(client, record).json() == session


def test_a_secret_in_a_path_is_replaced_wherever_the_path_stands(client: httpx.Client) -> None:
    record = build({}, {f"src/{SECRET}.ts": "export {};\n"}, session_id=uuid4())

    answer = upload(client, record)

    assert answer.status_code == 201, answer.text
    kept = client.get(f"/sessions/{record.meta.session_id}/record").content
    assert SECRET.encode() not in kept
    assert problems_of(decode_record(kept)) == []


def test_a_record_whose_patch_would_break_without_its_secret_is_not_stored(
    client: httpx.Client,
) -> None:
    lines = [base64.b64encode(hashlib.sha512(bytes([n])).digest()[:48]).decode() for n in range(24)]
    key = ["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----", ""]
    changed = [*key[:12], key[13], key[12], *key[14:]]
    record = build({"id": "\n".join(key)}, {"id": "\n".join(changed)}, session_id=uuid4())

    answer = upload(client, record)

    assert_problem(answer, 422, "cannot be replaced")
    assert lines[11] not in answer.text
    assert client.get(f"/sessions/{record.meta.session_id}").status_code == 404


def test_a_record_that_contradicts_itself_is_refused_with_reasons(client: httpx.Client) -> None:
    record = new_record()
    values = as_json(record)
    values["meta"]["commands"] = []
    values["meta"]["changes"] = values["meta"]["steps"] = []
    values["meta"]["stoppedAt"] = values["meta"]["startedAt"].replace("09", "08")

    answer = client.post(
        "/sessions", content=body_of(record, json.dumps(values).encode()), headers=JSON
    )

    assert len(assert_problem(answer, 422)["reasons"]) == 5
    assert client.get(f"/sessions/{record.meta.session_id}").status_code == 404


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "3f1c8a52-6d0e-4b7f-9a25-70c1f4e2b9d3"),
        ("taskId", "other"),
        ("repoName", "other"),
        ("repoRemote", None),
        ("branch", "other"),
        ("baseRef", "3" * 40),
        ("createdAt", "2026-11-02T09:43:00Z"),
    ],
)
def test_what_is_said_twice_has_to_agree(client: httpx.Client, field: str, value: Any) -> None:
    body = json.loads(body_of(new_record()))
    body[field] = value

    answer = client.post("/sessions", content=json.dumps(body), headers=JSON)

    reasons = assert_problem(answer, 422)["reasons"]
    assert any(reason.startswith(f"{field}: ") for reason in reasons)


def _in_record(place: bytes) -> bytes:
    return body_of(new_record()).replace(b"Work carefully.", place, 1)


BAD_BODIES: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", 422),
    "cut short": (body_of(build())[:-5], 422),
    "NaN": (b'{"id":NaN}', 422),
    "latin-1": (_in_record("Grüße".encode("latin-1")), 400),
    "deep lists": (b'{"record":' + b"[" * 200_000 + b"]" * 200_000 + b"}", 400),
    "half of a pair": (_in_record(b"\\ud83d"), 422),
    "NUL": (_in_record(b"\\u0000"), 422),
    "a long string": (_in_record(b"x" * 1_100_000), 422),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_body_that_cannot_be_read_or_stored_is_refused(client: httpx.Client, name: str) -> None:
    body, status = BAD_BODIES[name]
    assert_problem(client.post("/sessions", content=body, headers=JSON), status)


@pytest.mark.parametrize(
    "body",
    [b"[]", b"null", b'"text"', b"1", b"{}", b'{"id":[]}', b'{"id":"x","more":1}'],
    ids=lambda body: body.decode(),
)
def test_a_body_of_another_kind_is_told_what_it_lacks(client: httpx.Client, body: bytes) -> None:
    assert assert_problem(client.post("/sessions", content=body, headers=JSON), 422)["reasons"]


@pytest.mark.parametrize("name", [b"baseRef", b"sessionId", b"exitCode"])
def test_a_name_in_snake_case_is_taken_and_stored_in_camel_case(
    client: httpx.Client, name: bytes
) -> None:
    snake = re.sub(b"[A-Z]", lambda found: b"_" + found[0].lower(), name)
    record = new_record()
    body = body_of(record).replace(name, snake)

    answer = client.post("/sessions", content=body, headers=JSON)

    assert answer.status_code == 201, answer.text
    kept = client.get(f"/sessions/{record.meta.session_id}/record").content
    assert kept == encode_record(record)


@pytest.mark.parametrize(
    "headers",
    [{**JSON, "Content-Encoding": "gzip"}, {"Content-Type": "text/plain"}, {}],
    ids=["compressed", "of another type", "of no type"],
)
def test_a_body_that_is_not_said_to_be_json_is_not_unfolded(
    client: httpx.Client, headers: dict[str, str]
) -> None:
    bomb = gzip.compress(bytes(30_000_000))

    assert client.post("/sessions", content=bomb, headers=headers).status_code in (400, 422)


@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "in chunks"])
@pytest.mark.parametrize("size", [8_000_001, 200_000_000])
def test_a_body_that_is_too_long_is_refused_before_it_is_read(
    api: Api, size: int, chunked: bool
) -> None:
    piece = bytes(1_000_000)

    def pieces() -> Any:
        left = size
        while left:
            yield piece[:left]
            left -= min(left, len(piece))

    headers = JSON if chunked else {**JSON, "Content-Length": str(size)}
    with api.client() as client:
        answer = client.post("/sessions", content=pieces(), headers=headers)

        assert answer.status_code == 413


def test_a_session_is_ready_only_when_the_rule_holds(client: httpx.Client) -> None:
    good = stored(client)
    bad = upload(client, new_record(verified=False)).json()["id"]

    ready = client.patch(f"/sessions/{good}", json={"status": "ready"})

    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    refusal = client.patch(f"/sessions/{bad}", json={"status": "ready"})
    assert "not verified" in assert_problem(refusal, 409)["reasons"][0]
    assert client.get(f"/sessions/{bad}").json()["status"] == "draft"
    back = client.patch(f"/sessions/{good}", json={"status": "draft"})
    assert back.json()["status"] == "draft"
    assert_problem(client.patch(f"/sessions/{good}", json={"status": "done"}), 422)
    assert_problem(client.patch(f"/sessions/{uuid4()}", json={"status": "ready"}), 404)


def test_the_ready_rule_is_the_services_own(record_store: RecordStore) -> None:
    ensure_task(record_store)
    record = build(final=(), session_id=uuid4())
    strict = ReadyRule(passed=True, on_final_tree=True)
    with running(record_store, rule=strict) as api, api.client() as client:
        session = upload(client, record).json()

        assert session["notReady"] == ["no validation command ran on the final tree"]
