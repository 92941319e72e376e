"""Wrong values in the addresses of pages: refused on all of them, with a sentence that names them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debrief.lake import Lake
from debrief.view.app import make_app
from debrief.view.query import _FILTERS
from tests.training.lakes import TASK
from tests.training.scenario import FINGERPRINT
from tests.view.shown import fill, served, session_of, settings_of
from tests.view.test_training import corrected, fill_training

PLACES = {
    "session_id": "corrected",
    "week": "2026-11-02",
    "fingerprint": "0aaad855",
    "before": "0aaad855",
    "after": "0aaad855",
    "score_name": "excellence",
    "key": "none",
    "task": TASK,
    "pair": FINGERPRINT,
    "friction_id": "none",
}
OF_MAPPINGS = {
    "/sessions": (*_FILTERS, "sort", "page"),
    "/friction": ("repository",),
}
"""Parameters of pages that read their addresses by themselves."""
FREE = {("/sessions", "q"), ("/progress", "session"), ("/labels/next", "session")}
"""Words that are searched for, whose page is followed, and what may be labelled already: any text
will do."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    told = settings_of(tmp_path_factory.mktemp("values"))
    fill_training(Path(told.lake), corrected())
    with served(told) as found:
        yield found


def parameters(folder: Path) -> list[tuple[str, str]]:
    """Return the paths of all pages with the parameters of their addresses."""
    told = settings_of(folder)
    pages = make_app(Lake(told.lake), told).openapi()["paths"]
    found = {
        (path, each["name"])
        for path, page in pages.items()
        for each in page.get("get", {}).get("parameters", ())
        if each["in"] == "query"
    }
    of_mappings = ((path, name) for path, names in OF_MAPPINGS.items() for name in names)
    return sorted((found | {*of_mappings}) - FREE)


def said(answer: httpx.Response) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", answer.text)).split())


PLAIN = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=80)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=6)
@given(text=PLAIN)
def test_a_value_that_means_nothing_is_refused_on_every_page(
    client: httpx.Client, tmp_path: Path, text: str
) -> None:
    checked = parameters(tmp_path)
    assert len(checked) > 45
    assert {path for path, _ in checked} > {"/sessions", "/friction", "/labels/next"}
    for path, name in checked:
        place = re.sub(r"\{([^}]+)\}", lambda part: PLACES[part[1]], path)
        answer = client.get(place, params={name: f"~{text}"})
        assert answer.status_code == 400, (place, name, text)
        assert f"{name}=~{text[:40]}" in said(answer), (place, name, text)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/sessions?tokens_min=abc", "tokens_min=abc is no number"),
        ("/sessions?turns_min=nan", "turns_min=nan is no number"),
        ("/sessions?since=2026-02-30", "since=2026-02-30 is no day, such as 2026-11-16"),
        ("/sessions?verdict=foo", "verdict=foo is not known. Known: complete_verified, "),
        ("/sessions?sort=foo", "sort=foo is no column to sort by. Known: look, -started, "),
        ("/sessions?sort=-quality", "sort=-quality takes a certified reviewer. Known: look, "),
        ("/sessions?event=foo", "event=foo is not known. Known: foreign_files, "),
        ("/sessions?work=foo", "work=foo is not known. Known: code, "),
        ("/sessions?reviewer=foo", "reviewer=foo is of no session"),
        ("/sessions?week=2026-11-03", "week=2026-11-03 is no week: a week is named by its Monday"),
        ("/sessions?tool=foo", "tool=foo is of no session. Known: claude-code"),
        ("/sessions?failed=2", "failed=2 is neither set nor not. Known: 1, on, yes, 0, off, no"),
        ("/sessions?page=0", "page=0 is no whole number from 1 to 999,999"),
        ("/friction?repository=foo", "repository=foo has no recurring friction"),
        ("/labels/next?skip=-1", "skip=-1 is less than 0"),
        ("/sessions/corrected?part=x", "part=x is no whole number"),
        ("/sessions/corrected?part=7", "part=7 is no part of this session, which has 1"),
        ("/sessions/corrected?agent=1", "agent=1 is no subagent of this session, which has 0"),
        ("/sessions/corrected?at=turn-99", "at=turn-99 is no place in this session"),
        ("/sessions/corrected?save=perhaps", "save=perhaps is neither 1 nor 0"),
        ("/prompts/0aaad855/diff", "to= is missing"),
        (f"/training/{TASK}/{FINGERPRINT}?line=99", "line=99 is no line of this set, which has"),
    ],
)
def test_the_sentence_names_the_value_and_what_is_known(
    client: httpx.Client, address: str, sentence: str
) -> None:
    answer = client.get(address)
    assert answer.status_code == 400
    assert sentence in said(answer)


@pytest.mark.parametrize("query", ["verdict=&sort=&since=&tokens_min=", "failed=0", "page=7"])
def test_what_a_form_leaves_empty_is_no_value(client: httpx.Client, query: str) -> None:
    assert client.get(f"/sessions?{query}").status_code == 200


IDS = ["0f6074fc-1111-4111-8111-111111111111", "0f6074fc-2222-4222-8222-222222222222", "5a5a5a5a"]


def test_a_session_is_shown_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    told = settings_of(tmp_path)
    fill(Lake(told.lake), [(session_of(id_), 0.5) for id_ in IDS])
    with served(told) as client:
        answer = client.get("/sessions/0f6074fc-1?at=turn-1")
        assert answer.status_code == 307
        assert answer.headers["location"] == f"/sessions/{IDS[0]}?at=turn-1"
        assert client.get(answer.headers["location"]).status_code == 200
        both = client.get("/sessions/0f6074fc")
        assert both.status_code == 404
        assert all(id_ in both.text for id_ in IDS[:2])
        short = said(client.get("/sessions/0f60"))
        assert "0f60 is too short: 6 characters of a session's id are needed" in short
        assert "is no session of this lake" in said(client.get("/sessions/ffffff"))
