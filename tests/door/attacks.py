"""What a page of another site can have a browser send to this machine, and how it is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

import httpx
from msgspec import Struct
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

EVIL = "http://evil.example"
START = "mutation { startSchedule(scheduleSelector: {repositoryLocationName: \"debrief\", " \
    "repositoryName: \"__repository__\", scheduleName: \"weekly\"}) { __typename } }"  # fmt: skip
READ = "{ runsOrError { __typename ... on Runs { results { runId runConfigYaml } } } }"
_GRAPHQL = "/dagster/graphql"
_FRAME = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
_IMAGE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}


class Attack(Struct, frozen=True):
    """A request of a hostile page, and the status that it deserves."""

    name: str
    method: str
    path: str
    headers: dict[str, str] = {}
    body: bytes = b""
    status: int = 403


def attacks(port: int) -> Iterator[Attack]:
    """Yield requests that browsers send for other sites, with and without a rebound name."""
    rebound = f"evil.example:{port}"
    post = json.dumps({"query": START}).encode()
    from_evil = {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"}
    for name, query in {"starts": START, "reads": READ}.items():
        address = f"{_GRAPHQL}?query={quote(query)}"
        yield Attack(f"an image that {name}", "GET", address, _IMAGE)
        yield Attack(f"a script of an old browser that {name}", "GET", address)
        yield Attack(f"a rebound page that {name}", "GET", address, {"Host": rebound}, status=421)
        link = {**_FRAME, "Sec-Fetch-Dest": "document"}
        yield Attack(f"a link that {name}", "GET", address, link)
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        yield Attack(
            f"a form of {media_type}",
            "POST",
            f"{_GRAPHQL}?query={quote(START)}",
            {**from_evil, "Content-Type": media_type},
            post,
        )
    own_form = {"Sec-Fetch-Site": "same-origin", "Content-Type": "text/plain"}
    yield Attack("no JSON, though from here", "POST", _GRAPHQL, own_form, post)
    as_json = {"Content-Type": "application/json"}
    yield Attack("JSON from elsewhere", "POST", _GRAPHQL, {**from_evil, **as_json}, post)
    yield Attack(
        "another port of this machine",
        "POST",
        _GRAPHQL,
        {**as_json, "Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"},
        post,
    )
    yield Attack("a sandboxed frame", "POST", _GRAPHQL, {**as_json, "Origin": "null"}, post)
    yield Attack("a form that says not whence", "POST", "/held", {}, b"verdict=released")
    mine = {"Host": rebound, "Origin": f"http://{rebound}", "Sec-Fetch-Site": "same-origin"}
    yield Attack("a rebound page's own", "POST", _GRAPHQL, {**mine, **as_json}, post, 421)
    event = "/dagster/report_asset_materialization/raw_sessions"
    yield Attack("an event of an asset", "POST", event, from_evil, b"{}")
    yield Attack("a frame of the UI", "GET", "/dagster/runs", _FRAME)
    yield Attack("a frame of the pages", "GET", "/sessions", _FRAME)
    yield Attack("a script of the pages", "GET", "/labels.csv", {"Sec-Fetch-Site": "same-site"})
    yield Attack("a rebound page reads the pages", "GET", "/", {"Host": rebound}, status=421)


def let_in(base: str, cookies: dict[str, str] | None = None) -> list[str]:
    """Send all of it; return what was not refused as it deserves.

    Args:
        base: where the pages are.
        cookies: of somebody who has logged in, whose browser sends them along.
    """
    port = urlsplit(base).port or 80
    found = []
    with httpx.Client(base_url=base, cookies=cookies, timeout=60) as client:
        for attack in attacks(port):
            answer = client.request(
                attack.method, attack.path, headers=attack.headers, content=attack.body
            )
            if attack.status == 421 and cookies and not answer.content:
                continue  # the proxy has no site of that name, and says nothing
            names_a_setting = "DEBRIEF_HOSTS" in answer.text and answer.text.count("\n") == 1
            if answer.status_code != attack.status or not names_a_setting:
                found.append(f"{attack.name}: {answer.status_code} {answer.text[:200]}")
    for name, headers in {
        "a WebSocket from elsewhere": {"Origin": EVIL},
        "a WebSocket that says not whence": {},
        "a rebound WebSocket": {"Origin": f"http://evil.example:{port}"},
    }.items():
        sent = "; ".join(f"{key}={value}" for key, value in (cookies or {}).items())
        try:
            with connect(
                f"ws://127.0.0.1:{port}{_GRAPHQL}",
                additional_headers={**headers, **({"Cookie": sent} if sent else {})},
                subprotocols=["graphql-ws"],  # type: ignore[list-item]
            ):
                found.append(f"{name}: opened")
        except InvalidStatus as refused:
            if refused.response.status_code != 403:
                found.append(f"{name}: {refused.response.status_code}")
    return found


def graphql(client: httpx.Client, query: str, **headers: str) -> dict[str, object]:
    """Ask Dagster as its own pages do; return the data."""
    own = {"Origin": str(client.base_url).rstrip("/"), **headers}
    answer = client.post(_GRAPHQL, json={"query": query}, headers=own)
    assert answer.status_code == 200, answer.text
    data: dict[str, object] = answer.json()["data"]
    return data
