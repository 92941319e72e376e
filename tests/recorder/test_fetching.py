"""Records from a server: each page complete, or fetched again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import httpx
import orjson
import pytest
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.recorder.client import RecorderAwayError, RecorderClient, RecorderRefusedError
from debrief.recorder.storage.rows import SessionFilter, StoredRecord
from debrief.recorder.storage.store import RecordStore
from debrief.retry import RetryPolicy
from tests.http_server import LoopbackServer, Reply, Request
from tests.recorder.service.helpers import (
    NO_TLS,
    Api,
    ensure_task,
    new_record,
    running,
    stored,
    upload,
)

SOON = RetryPolicy(attempts=3, first_wait=0.01, longest_wait=0.02)


@pytest.fixture
def own(record_store: RecordStore) -> Iterator[Api]:
    ensure_task(record_store)
    ensure_task(record_store, "forms")
    with running(record_store) as api:
        yield api


def fetched(api: Api, filters: SessionFilter | None = None, url: str = "") -> list[StoredRecord]:
    with RecorderClient(url or api.url, api.tokens["export"], SOON) as client:
        return list(client.records(filters or SessionFilter(), {}))


class Proxy(LoopbackServer):
    """Stands between a client and a server, and spoils some of the answers."""

    def __init__(self, target: str, spoil: Callable[[int, bytes], bytes | None]) -> None:
        self.asked: list[str] = []

        def answer(request: Request) -> Reply:
            self.asked.append(request.path)
            told = {"Authorization": request.headers["Authorization"]}
            content = httpx.get(f"{target}{request.path}", headers=told, verify=NO_TLS).content
            body = spoil(len(self.asked), content)
            if body is None:
                length = {"Content-Length": str(len(content))}
                return Reply(200, content[: len(content) // 2], length)
            return Reply(200, body)

        super().__init__(answer)


def test_all_records_come_with_their_status_or_only_selected_ones(own: Api) -> None:
    with own.client() as client:
        draft, ready = stored(client), stored(client, task_id="forms")
        client.patch(f"/sessions/{ready}", json={"status": "ready"}).raise_for_status()
    records = fetched(own)
    assert {record.id: record.status for record in records} == {draft: "draft", ready: "ready"}
    assert all(orjson.loads(record.text)["meta"] for record in records)
    assert [record.id for record in fetched(own, SessionFilter(task_id="forms"))] == [ready]
    assert fetched(own, SessionFilter(task_id="forms", status="draft")) == []
    assert fetched(own, SessionFilter(since=datetime(2099, 1, 1, tzinfo=UTC))) == []


def many(api: Api, count: int) -> set[UUID]:
    with api.client() as client:
        return {stored(client) for _ in range(count)}


def test_a_page_that_breaks_off_is_fetched_again(own: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("debrief.recorder.client.PAGE_SIZE", 2)
    ids = many(own, 5)
    with Proxy(own.url, lambda number, body: None if number == 2 else body) as proxy:
        records = fetched(own, SessionFilter(status="draft"), proxy.url)
    assert sorted(record.id for record in records) == sorted(ids)
    assert proxy.asked[1] == proxy.asked[2]
    assert "cursor=" in proxy.asked[1]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body[: body.rindex(b"\n", 0, -1) + 1],
        lambda body: b"\n".join(body.split(b"\n")[1:]),
        lambda body: b"",
    ],
    ids=["no count", "a line is missing", "nothing"],
)
def test_a_short_answer_is_never_taken_for_a_whole_one(
    own: Api, spoil: Callable[[bytes], bytes]
) -> None:
    many(own, 2)
    with (
        Proxy(own.url, lambda number, body: spoil(body)) as proxy,
        pytest.raises(RecorderAwayError, match="no whole page"),
    ):
        fetched(own, SessionFilter(status="draft"), proxy.url)
    assert len(proxy.asked) == SOON.attempts


def test_a_wrong_token_is_reported_at_once(own: Api) -> None:
    lines: list[str] = []
    client = RecorderClient(own.url, own.tokens["read"], SOON, report=lines.append)
    with client, pytest.raises(RecorderRefusedError, match="no export scope") as caught:
        list(client.records(SessionFilter(), {}))
    assert "scope export" in caught.value.next_move
    assert lines == []


def exported(environ: dict[str, str], *arguments: str) -> str:
    done = CliRunner().invoke(app, ["export", "--from-recorder", *arguments], env=environ)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_command_gives_the_same_from_the_api_and_from_the_database(
    own: Api, tmp_path: Path
) -> None:
    with own.client() as client:
        upload(client, new_record()).raise_for_status()
    environ = {"DEBRIEF_HOME": str(tmp_path / "home"), "DEBRIEF_LAKE": str(tmp_path / "lake")}
    api = {"DEBRIEF_RECORDER_URL": own.url, "DEBRIEF_RECORDER_TOKEN": own.tokens["export"]}
    said = exported({**environ, **api}, "--to", str(tmp_path / "api"), "--form", "trl")
    assert "Load it" in said
    database = own.store._engine.url.render_as_string(hide_password=False)
    exported(environ, "--to", str(tmp_path / "db"), "--form", "trl", "--database", database)
    trees = [
        {p.relative_to(top): p.read_bytes() for p in top.rglob("*") if p.is_file()}
        for top in (tmp_path / "api", tmp_path / "db")
    ]
    assert trees[0] == trees[1]
    assert any(path.suffix == ".jsonl" for path in trees[0])
    said = exported(
        environ, "--to", str(tmp_path / "raw"), "--form", "record", "--database", database
    )
    assert "cart.record.jsonl  1 record" in said
    assert (tmp_path / "raw" / "cart.record.jsonl").read_bytes().count(b"\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from-recorder", "--side", "half"], "both, train, eval"),
        (["--from-recorder", "--status", "done"], "any, ready, draft"),
        (["--from-recorder", "--since", "soon"], "is neither a day"),
        (["--from-recorder", "--eval-share", "2"], "eval_share"),
        (["--from-recorder", "--lake", "x"], "--lake"),
        (["--from-recorder", "--parquet"], "--parquet"),
        (["--side", "eval"], "Add --from-recorder"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    environ = {"DEBRIEF_HOME": str(tmp_path), "DEBRIEF_LAKE": str(tmp_path / "lake")}
    done = CliRunner().invoke(
        app, ["export", "--to", str(tmp_path / "out"), *arguments], env=environ
    )
    assert done.exit_code != 0
    assert words in done.output
