"""People behind a login proxy: who they are, what they may do, and what is written down of it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from debrief.lake import Lake
from debrief.outcomes.giving import given_labels
from debrief.settings import Settings
from debrief.state import open_state
from tests.door.attacks import let_in
from tests.view.shown import OWN, fill, served, session_of, settings_of, words

HEADER = "X-Auth-Request-Email"
ROLES = "ada@example.org=run,*@example.org=label,guest@*=read"


def team(folder: Path, **more: str) -> Settings:
    settings = settings_of(
        folder,
        DEBRIEF_VIEW_URL="https://debrief.example.org",
        DEBRIEF_IDENTITY_HEADER=HEADER,
        DEBRIEF_ROLES=ROLES,
        **{"DEBRIEF_TRUSTED_PROXIES": "10.9.0.0/16,127.0.0.1", **more},
    )
    fill(Lake(settings.lake), [(session_of("one"), 0.3)])
    return settings


def by(name: str, host: str = "debrief.example.org") -> dict[str, str]:
    return {HEADER: name, "Host": host, "Origin": f"https://{host}"}


def say(client: httpx.Client, name: str, value: str) -> httpx.Response:
    return client.post("/sessions/one/labels", data={"say": value}, headers=by(name))


def test_two_people_label_one_session_differently_and_both_labels_are_there(
    tmp_path: Path,
) -> None:
    settings = team(tmp_path)
    with served(settings) as client:
        assert say(client, "ben@example.org", "good").status_code == 303
        assert say(client, "cleo@example.org", "bad").status_code == 303
        assert say(client, "ben@example.org", "perhaps").status_code == 400
        assert say(client, "ben@example.org", "unsure").status_code == 303
        page = words(client.get("/sessions/one", headers=by("cleo@example.org")).text)
    given = {label.rater: label.value for label in given_labels(Lake(settings.lake))}
    assert given == {"ben@example.org": "unsure", "cleo@example.org": "bad"}
    assert "as cleo@example.org" in page
    changes = open_state(settings).changes()
    assert [(change.person, change.role, change.change) for change in changes] == [
        ("ben@example.org", "label", "label of one: success=good"),
        ("cleo@example.org", "label", "label of one: success=bad"),
        ("ben@example.org", "label", "label of one: success=unsure"),
    ]


@pytest.mark.parametrize(("name", "status"), [("ben@example.org", 403), ("ada@example.org", 400)])
def test_only_who_may_run_releases_what_is_held_back(
    tmp_path: Path, name: str, status: int
) -> None:
    form = {"digest": "0", "verdict": "released"}
    with served(team(tmp_path)) as client:
        assert client.post("/held", data=form, headers=by(name)).status_code == status


@pytest.mark.parametrize(
    ("headers", "status", "setting"),
    [
        ({"Host": "debrief.example.org"}, 401, "DEBRIEF_IDENTITY_HEADER"),
        ({"Host": "debrief.example.org", HEADER: ""}, 401, "DEBRIEF_IDENTITY_HEADER"),
        ({"Host": "debrief.example.org", HEADER: "a" * 300}, 401, "DEBRIEF_IDENTITY_HEADER"),
        (by("mallory@elsewhere.org"), 403, "DEBRIEF_ROLES"),
        (by("ada@example.org", "evil.example"), 421, "DEBRIEF_HOSTS"),
        ({}, 401, "DEBRIEF_IDENTITY_HEADER"),
    ],
)
def test_who_is_nobody_known_reads_nothing(
    tmp_path: Path, headers: dict[str, str], status: int, setting: str
) -> None:
    with served(team(tmp_path)) as client:
        answer = client.get("/sessions/one", headers=headers)
        assert client.get("/health").text == "ok\n"
    assert answer.status_code == status
    assert setting in answer.text
    assert "cart" not in answer.text


def test_two_headers_name_nobody(tmp_path: Path) -> None:
    twice = [("Host", "debrief.example.org"), (HEADER, "ada@example.org"), (HEADER, "eve@x.org")]
    with served(team(tmp_path)) as client:
        assert client.get("/", headers=twice).status_code == 401


def test_the_header_of_anybody_but_the_proxy_is_not_believed(tmp_path: Path) -> None:
    settings = team(tmp_path, DEBRIEF_TRUSTED_PROXIES="10.9.0.0/16")
    with served(settings) as client:
        answer = client.get("/", headers=by("ada@example.org"))
    assert (answer.status_code, "DEBRIEF_TRUSTED_PROXIES" in answer.text) == (403, True)


def test_who_may_only_read_sees_the_page_without_the_means_to_label(tmp_path: Path) -> None:
    with served(team(tmp_path)) as client:
        page = client.get("/sessions/one", headers=by("guest@example.net"))
        refused = say(client, "guest@example.net", "good")
    assert page.status_code == 200
    assert '<form method="post"' not in page.text
    assert (refused.status_code, "DEBRIEF_ROLES" in refused.text) == (403, True)


def test_who_comes_through_a_proxy_that_names_nobody_may_read_and_change_nothing(
    tmp_path: Path,
) -> None:
    settings = settings_of(tmp_path)
    fill(Lake(settings.lake), [(session_of("one"), 0.3)])
    with served(settings) as client:
        through = {"X-Forwarded-For": "203.0.113.7"}
        assert client.get("/sessions/one", headers=through).status_code == 200
        answer = client.post(
            "/sessions/one/labels", data={"say": "bad"}, headers={**OWN, **through}
        )
        here = client.post("/sessions/one/labels", data={"say": "bad"}, headers=OWN)
    assert (answer.status_code, "DEBRIEF_IDENTITY_HEADER" in answer.text) == (403, True)
    assert here.status_code == 303


def test_a_page_of_another_site_gets_nothing_of_the_pages(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill(Lake(settings.lake), [(session_of("one"), 0.3)])
    with served(settings) as client:
        assert let_in(str(client.base_url).rstrip("/")) == []
        followed = {
            "Sec-Fetch-Site": "cross-site",
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Dest": "document",
        }
        assert client.get("/sessions/one", headers=followed).status_code == 200, "a link to a page"
