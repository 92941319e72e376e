"""Dagster's UI behind the door: what other sites get of it, and what people's roles let them do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import httpx
import psutil
import pytest
from dagster_graphql import DagsterGraphQLClient, ReloadRepositoryLocationStatus
from websockets.sync.client import connect

from tests.door.attacks import READ, START, graphql, let_in
from tests.pipelines.conftest import Home, only_line
from tests.pipelines.test_first_minutes import IGNORES_CTRL_C, start
from tests.ports import free_port
from tests.waiting import LONG, is_over, wait_until

HEADER = "X-Auth-Request-Email"
SWITCHED_ON = '{ schedulesOrError(repositorySelector: {repositoryLocationName: "debrief", ' \
    'repositoryName: "__repository__"}) { ... on Schedules { results { name ' \
    'scheduleState { status } } } } }'  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("door"))


class Shown(NamedTuple):
    """A `debrief ui` behind a login proxy, for which this test stands."""

    process: subprocess.Popen[str]
    address: str
    first_words: list[str]


@pytest.fixture(scope="module")
def shown(home: Home) -> Iterator[Shown]:
    address = f"http://127.0.0.1:{(port := free_port())}"
    process = start(
        home,
        *("ui", "--port", str(port)),
        through=(sys.executable, "-c", IGNORES_CTRL_C),
        DEBRIEF_IDENTITY_HEADER=HEADER,
        DEBRIEF_TRUSTED_PROXIES="127.0.0.1",
        DEBRIEF_ROLES="ada=run,ben=label,cleo=read",
        DEBRIEF_NO_MODEL="1",
        DEBRIEF_SESSIONS=str(home.path),
    )
    try:
        assert process.stdout is not None
        while "http://" not in (said := process.stdout.readline()):
            assert said, "it ended"
        yield Shown(process, address, [said, process.stdout.readline()])
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def address(shown: Shown) -> str:
    return shown.address


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=LONG) as client:
        yield client


def on(client: httpx.Client) -> set[str]:
    (found,) = graphql(client, SWITCHED_ON, **{HEADER: "cleo"}).values()
    assert isinstance(found, dict)
    return {
        each["name"] for each in found["results"] if each["scheduleState"]["status"] == "RUNNING"
    }


def test_a_page_of_another_site_starts_and_reads_nothing(client: httpx.Client) -> None:
    assert let_in(str(client.base_url).rstrip("/")) == []
    assert "weekly" not in on(client)


def test_the_ui_loads_below_its_path_and_no_other_site_frames_it(client: httpx.Client) -> None:
    page = client.get("/dagster/runs", headers={HEADER: "cleo"})
    assert page.status_code == 200
    assert '"/dagster' in page.text
    assert page.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize("name", ["cleo", "ben"])
def test_who_may_not_run_sees_the_runs_and_changes_nothing(client: httpx.Client, name: str) -> None:
    assert graphql(client, READ, **{HEADER: name}) == {
        "runsOrError": {"__typename": "Runs", "results": []}
    }
    refused = graphql(client, START, **{HEADER: name})
    assert refused == {"startSchedule": {"__typename": "UnauthorizedError"}}
    event = "/dagster/report_asset_materialization/raw_sessions"
    own = {"Origin": str(client.base_url).rstrip("/"), HEADER: name}
    assert client.post(event, json={}, headers=own).status_code == 403
    assert "weekly" not in on(client)


def test_a_program_that_is_no_browser_may_use_graphql_as_its_person_may(
    client: httpx.Client,
) -> None:
    def ask(query: str, **headers: str) -> httpx.Response:
        return client.post("/dagster/graphql", json={"query": query}, headers=headers)

    assert ask("{ version }", **{HEADER: "cleo"}).json()["data"]["version"]
    refused = ask(START, **{HEADER: "cleo"}).json()["data"]
    assert refused == {"startSchedule": {"__typename": "UnauthorizedError"}}
    assert ask("{ version }").status_code == 401
    assert "weekly" not in on(client)


@pytest.mark.parametrize(
    "path",
    [
        *("..%2f..%2fdagster.yaml", "x%2f..%2f..%2f..%2fetc%2fpasswd.out", "%00.out", "out"),
        "none%2fcompute_logs%2fstep.out",
    ],
)
def test_logs_that_dagster_does_not_give_out_are_not_found(client: httpx.Client, path: str) -> None:
    assert client.get(f"/dagster/logs/{path}", headers={HEADER: "cleo"}).status_code == 404


def test_the_events_of_a_run_that_is_not_there_are_not_found(client: httpx.Client) -> None:
    answer = client.get("/dagster/download_debug/none", headers={HEADER: "cleo"})
    assert answer.status_code == 404


def test_a_mutation_on_the_websocket_changes_nothing(client: httpx.Client) -> None:
    base = str(client.base_url).rstrip("/")
    with connect(
        f"{base.replace('http', 'ws')}/dagster/graphql",
        additional_headers={"Origin": base, HEADER: "cleo"},
        subprotocols=["graphql-ws"],  # type: ignore[list-item]
    ) as socket:
        socket.send(json.dumps({"type": "connection_init", "payload": {}}))
        assert json.loads(socket.recv(LONG))["type"] == "connection_ack"
        socket.send(json.dumps({"id": "1", "type": "start", "payload": {"query": START}}))
        assert json.loads(socket.recv(LONG))["type"] in ("error", "complete")
    assert "weekly" not in on(client)


def test_who_may_run_does_and_it_is_written_down(home: Home, client: httpx.Client) -> None:
    started = graphql(client, START, **{HEADER: "ada"})
    assert started == {"startSchedule": {"__typename": "ScheduleStateResult"}}
    assert "weekly" in on(client)
    said = home.typed("audit")
    assert said.code == 0, said.all
    (line,) = said.out.splitlines()
    assert line.endswith("  ada  run  startSchedule")


def test_dagsters_own_client_reloads_the_code(client: httpx.Client) -> None:
    place = f"{client.base_url.host}:{client.base_url.port}/dagster"
    done = DagsterGraphQLClient(place, headers={HEADER: "ada"}).reload_repository_location(
        "debrief"
    )
    assert done.status is ReloadRepositoryLocationStatus.SUCCESS


def test_it_is_the_only_one_of_its_lake_and_ends_with_all_that_it_started(
    home: Home, shown: Shown, client: httpx.Client
) -> None:
    pages, dagster = shown.first_words
    assert pages.startswith(f"{shown.address}  the pages")
    assert dagster.startswith(f"{shown.address}/dagster ")
    page = client.get("/", headers={HEADER: "cleo"}).text
    assert 'href="/dagster">Run things in Dagster' in page
    port = shown.address.rpartition(":")[2]
    taken = only_line(home.typed("ui", "--port", port))
    assert f"127.0.0.1:{port}: cannot be listened on (Address already in use)" in taken
    assert "--port" in taken
    beside = only_line(home.typed("ui", "--port", str(free_port())))
    assert f"is shown already. Look at {shown.address}" in beside
    children = psutil.Process(shown.process.pid).children(recursive=True)
    shown.process.send_signal(signal.SIGTERM)
    _, err = shown.process.communicate(timeout=LONG)
    assert err == ""
    wait_until(lambda: all(is_over(child.pid) for child in children))
    assert children
