"""The client: patient with a busy server, plain about a refusing one."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from contextlib import nullcontext

import pytest
from msgspec.structs import replace

from debrief.errors import ConfigurationError
from debrief.langfuse.client import RETRIES, LangfuseClient, langfuse_from_settings
from debrief.langfuse.errors import LangfuseAwayError, RequestRefusedError
from debrief.settings import Settings, load_settings
from tests.langfuse.scenario import Clock, Recorder, client_of
from tests.langfuse.server import LangfuseServer, Trouble

KEYS = {"LANGFUSE_PUBLIC_KEY": "pk-test", "LANGFUSE_SECRET_KEY": "sk-test"}


def settings(**values: str) -> Settings:
    return load_settings({"DEBRIEF_HOME": "/nowhere", **values})


def test_no_setting_means_no_client() -> None:
    assert langfuse_from_settings(settings()) is None


@pytest.mark.parametrize("name", ["LANGFUSE_HOST", "LANGFUSE_BASE_URL"])
def test_the_three_settings_make_a_client(server: LangfuseServer, name: str) -> None:
    client = langfuse_from_settings(settings(**KEYS, **{name: f"{server.host}/"}))
    assert client is not None
    assert client.host == server.host
    assert client.get("/score-configs", limit=1)["data"] == []


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        (KEYS, "LANGFUSE_HOST"),
        ({"LANGFUSE_HOST": "https://x.example"}, "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"),
        ({"LANGFUSE_PUBLIC_KEY": "pk"}, "LANGFUSE_HOST and LANGFUSE_SECRET_KEY"),
        ({**KEYS, "LANGFUSE_HOST": "x.example"}, "is no URL"),
    ],
)
def test_half_a_configuration_is_an_error(values: dict[str, str], missing: str) -> None:
    with pytest.raises(ConfigurationError, match=missing):
        langfuse_from_settings(settings(**values))


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_passing_trouble_is_waited_out(server: LangfuseServer, status: int) -> None:
    clock = Clock()
    server.trouble = [Trouble(status), Trouble(status)]
    assert client_of(server, clock).get("/score-configs")["data"] == []
    assert len(clock.waits) == 2
    assert 0 <= clock.waits[0] <= 1


def test_a_lasting_trouble_is_named_after_the_last_attempt(server: LangfuseServer) -> None:
    server.trouble = [Trouble(503)] * 9
    with pytest.raises(LangfuseAwayError, match="stayed busy: 503 not now"):
        client_of(server, attempts=3).get("/score-configs")
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 422])
def test_a_refusal_is_not_repeated(server: LangfuseServer, status: int) -> None:
    server.trouble = [Trouble(status)]
    with pytest.raises(RequestRefusedError) as refused:
        client_of(server).get("/score-configs")
    assert refused.value.status == status
    assert ("LANGFUSE_SECRET_KEY" in refused.value.next_move) == (status in (401, 403))
    assert len(server.requests) == 1
    assert pickle.loads(pickle.dumps(refused.value)).status == status


def test_a_server_that_hangs_is_not_waited_for_for_ever(server: LangfuseServer) -> None:
    retries = replace(RETRIES, attempts=2, sleep=Clock().sleep)
    client = LangfuseClient(server.host, "pk-test", "sk-test", retries=retries, timeout=0.05)
    with server.frozen(), pytest.raises(LangfuseAwayError, match="Timeout"):
        client.get("/score-configs")


def test_another_program_at_the_address_is_noticed(server: LangfuseServer) -> None:
    server.page_of_text = "<html>It works!</html>"
    with pytest.raises(RequestRefusedError, match="something else than JSON"):
        client_of(server).get("/score-configs")


def test_all_pages_are_read_by_cursor_and_by_number(server: LangfuseServer) -> None:
    server.page = 3
    for number in range(10):
        at = f"2026-10-05T12:00:{number:02}.000Z"
        row = {"id": f"o{number}", "traceId": "t", "sessionId": "s", "startTime": at}
        server.observations.append(row)
        server.add_config(name=f"c{number}", dataType="NUMERIC")
    client = client_of(server)
    rows = [row["id"] for row in client.pages("/v2/observations", sessionId="s")]
    assert rows == [f"o{number}" for number in reversed(range(10))]
    assert len(list(client.pages("/score-configs", limit=4))) == 10
    assert len(server.sent("GET", "/v2/observations")) == 4


@pytest.mark.parametrize(
    ("trouble", "asked", "error", "reason"),
    [
        ([503, 503], 3, None, ""),
        ([429] * 9, 3, LangfuseAwayError, "stayed busy: 429 not now"),
        ([501], 1, RequestRefusedError, "refused GET /v3/scores: 501 not now"),
        ([401], 1, RequestRefusedError, "refused GET /v3/scores: 401 not now"),
    ],
)
def test_the_sdk_waits_and_fails_as_our_own_requests_do(
    server: LangfuseServer,
    trouble: list[int],
    asked: int,
    error: type[Exception] | None,
    reason: str,
) -> None:
    server.trouble = [Trouble(status) for status in trouble]
    clock = Clock()
    with (
        pytest.raises(error, match=reason) if error else nullcontext(),
        client_of(server, clock, attempts=3).sdk() as sdk,
    ):
        assert sdk.scores.get_many().data == []
    assert len(server.requests) == asked
    assert len(clock.waits) == asked - 1


def test_what_the_sdk_cannot_read_is_an_error_that_says_so(server: LangfuseServer) -> None:
    server.add_config(name="some", dataType="HOLOGRAM")
    client = client_of(server)
    with pytest.raises(RequestRefusedError, match=r"not known: data\.0\.data_type"):
        list(client.sdk_pages(lambda sdk, **page: sdk.score_configs.get(**page)))
    server.page_of_text = "<html>It works!</html>"
    with pytest.raises(RequestRefusedError, match="something else than JSON"), client.sdk() as sdk:
        sdk.scores.get_many()


def test_a_list_of_the_sdks_that_never_ends_is_noticed(server: LangfuseServer) -> None:
    told = {"data": [], "meta": {"limit": 1, "cursor": "again"}}
    server.page_of_text = json.dumps(told)
    pages = client_of(server).sdk_pages(lambda sdk, **page: sdk.scores.get_many(**page))
    with pytest.raises(RequestRefusedError, match="gives the same cursor for ever"):
        list(pages)


def test_the_sdk_is_not_loaded_to_read_sessions(server: LangfuseServer) -> None:
    Recorder(server).trace("t1", "Fix the cart, please.", "Fixed.")
    code = (
        "import sys, assets.evaluations, debrief.langfuse.session_scorer, debrief.outcomes.labels\n"
        "from debrief.langfuse.client import LangfuseClient\n"
        "from debrief.langfuse.fetcher import SessionFetcher\n"
        "assert 'httpx' not in sys.modules\n"
        "client = LangfuseClient(sys.argv[1], 'pk-test', 'sk-test')\n"
        "print(len(SessionFetcher(client).fetch_session('s1').turns), 'langfuse' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code, server.host]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "1 False\n", done.stderr


def test_requests_keep_the_pace_that_was_asked_for(server: LangfuseServer) -> None:
    clock = Clock()
    retries = replace(RETRIES, sleep=clock.sleep)
    client = LangfuseClient(server.host, "pk-test", "sk-test", retries=retries, requests_a_minute=3)
    for _ in range(5):
        client.get("/score-configs")
    assert len(clock.waits) == 4
    assert sum(clock.waits) == pytest.approx(20 * (1 + 2 + 3 + 4), rel=0.2)
