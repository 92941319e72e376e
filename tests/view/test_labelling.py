"""Labelling in the pages: one post each, who and when, and the session whose label teaches most."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from debrief.lake import Lake
from debrief.outcomes.giving import given_labels
from debrief.outcomes.labels import labels_from_csv
from debrief.outcomes.store import own_table
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import SessionVerdict
from debrief.settings import Settings
from tests.view.shown import (
    MONDAY,
    OWN,
    fill,
    placed_lake,
    scores_of,
    served,
    session_of,
    settings_of,
    verdict_of,
)
from tests.waiting import wait_until

PART = {**OWN, "X-Part": "labels"}
HOSTILE = "</textarea><script>alert(1)</script>\x1b[31m"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Four sessions: one that is done and checked, one that nothing tells of, one that nothing
    checked, and one that could not be scored."""
    settings = settings_of(tmp_path, DEBRIEF_RATER="ada")
    lake = Lake(settings.lake)
    names = ("clear", "open", "failed", "middling")
    sessions = [session_of(name, f"Fix the {name} cart.") for name in names]
    fill(lake, [(session, 0.9) for session in sessions])
    untold = SessionVerdict(verdict="undetermined", basis="no_change")
    verdicts = {"clear": verdict_of(0.9), "middling": verdict_of(0.6)}
    rows = [
        replace(
            scores_of(session, 0.5),
            verdict=verdicts.get(session.id, untold),
            status="failed" if session.id == "failed" else "ok",
            failure="no answer" if session.id == "failed" else "",
        )
        for session in sessions
    ]
    lake.write("session_scores", f"{MONDAY:%Y-%m-%d}", rows, SessionScores)
    return settings


def post(
    client: httpx.Client, session: str, headers: dict[str, str] = OWN, **form: str
) -> httpx.Response:
    return client.post(f"/sessions/{session}/labels", data=form, headers=headers)


def offered(client: httpx.Client, skip: int = 0) -> str:
    text = client.get(f"/labels/next?skip={skip}").text
    found = re.search(r'<h1><a href="/sessions/(\w+)\?then=next">', text)
    return found[1] if found else re.findall("<h1>(.*)</h1>", text)[0]


def test_label_next_goes_from_the_hardest_session_on_until_none_is_left(settings: Settings) -> None:
    with served(settings) as client:
        text = client.get("/labels/next").text
        assert "Nothing tells whether it was done. Nothing was changed" in text
        assert "<b>Cannot tell:</b> Nothing was changed" in text
        assert [offered(client, skip) for skip in range(3)] == ["open", "middling", "clear"]
        assert offered(client, 3) == "Nothing more to label"
        for session, said, after in (
            ("open", "good", "middling"),
            ("middling", "unsure", "clear"),
            ("clear", "bad", "Nothing more to label"),
        ):
            answer = post(client, session, say=said, then="next")
            assert (answer.status_code, answer.headers["location"]) == (303, "/labels/next")
            assert offered(client) == after
        text = client.get("/labels/next").text
        assert "<b>3</b> labels given here: 1 good, 1 bad, 1 unsure, 0 by another name" in text
        # The index, which counts all outcomes, may be a moment behind the label.
        wait_until(lambda: "needs 20 of a kind, 17 more" in client.get("/labels/next").text)


def test_a_label_says_who_and_when_and_can_be_replaced_and_taken_back(settings: Settings) -> None:
    with served(settings) as client:
        assert (
            post(client, "open", say="good", note="It runs.").headers["location"]
            == "/sessions/open"
        )
        bar = post(client, "open", PART, say="bad", note="It\nbroke & burnt.").text
        assert (
            'value="bad" class="bad" data-label-key="b" aria-keyshortcuts="b" aria-pressed="true"'
            in bar
        )
        assert re.search(r"ada · <time>20\d\d-\d\d-\d\d \d\d:\d\d</time>", bar)
        assert "<q>It\nbroke &amp; burnt.</q>" in bar
        bar = post(client, "open", PART, say="named", name="flaky-test").text
        assert ">flaky-test</b>" in bar
        bar = post(client, "open", PART, say="clear", name="success").text
        assert "aria-pressed" not in bar
    (left,) = given_labels(Lake(settings.lake))
    assert (left.session_id, left.name, left.value, left.rater) == (
        "open",
        "flaky-test",
        "1",
        "ada",
    )


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"say": "excellent"}, "is no label"),
        ({"say": "named", "name": " "}, "has no name"),
        ({"say": "named", "name": "task_completion"}, "needs a value, as its scores have"),
        ({"say": "named", "name": "x" * 81}, "more than 80 characters"),
        ({"say": "good", "note": "x" * 4_001}, "more than 4,000 characters"),
    ],
)
def test_what_is_no_label_is_refused_in_a_page(
    settings: Settings, form: dict[str, str], reason: str
) -> None:
    with served(settings) as client:
        answer = post(client, "open", OWN, **form)
        assert (answer.status_code, reason in answer.text) == (400, True)
        assert post(client, "nowhere", say="good").status_code == 404
    assert not list(given_labels(Lake(settings.lake)))


def test_hostile_names_and_notes_are_shown_and_not_obeyed(settings: Settings) -> None:
    token = "ghp_" + "a8Kd93jfLs02mXq7Vb5nTz1RwYc6He4GuPio"
    with served(settings) as client:
        post(client, "open", say="named", name=HOSTILE, value=HOSTILE, note=f"{HOSTILE} {token}")
        bar = post(client, "open", PART, say="bad", note=HOSTILE).text
        for text in (bar, client.get("/labels/next").text):
            assert "<script>alert" not in text
            assert "&lt;script&gt;alert(1)&lt;/script&gt;\ufffd[31m" in text
            assert token not in text


def test_the_csv_of_the_pages_is_read_as_labels(settings: Settings, tmp_path: Path) -> None:
    with served(settings) as client:
        post(client, "open", say="good", note='"Well", he said')
        post(client, "clear", say="unsure")
        text = client.get("/labels.csv").text
    path = tmp_path / "labels.csv"
    path.write_text(text, newline="")
    read = labels_from_csv(path)
    assert read.problems == ()
    assert [(row.session_id, row.value, row.rater, row.detail) for row in read.labels] == [
        ("open", "good", "ada", '"Well", he said'), ("clear", "unsure", "ada", ""),
    ]  # fmt: skip


def test_a_spreadsheet_computes_nothing_of_the_csv_and_it_is_read_back_as_it_was_said(
    settings: Settings, tmp_path: Path
) -> None:
    formulas = ("=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "'=quoted")
    with served(settings) as client:
        for formula in formulas:
            post(client, "open", say="named", name=formula, value=formula, note=formula)
        text = client.get("/labels.csv").text
    cells = [cell for row in csv.reader(text.splitlines()) for cell in row]
    assert not [cell for cell in cells if cell[0] in "=+-@"]
    (path := tmp_path / "labels.csv").write_text(text, newline="")
    said = {(row.name, row.value, row.detail) for row in labels_from_csv(path).labels}
    assert said == {(formula,) * 3 for formula in formulas}


def test_a_form_that_is_too_long_is_refused(settings: Settings) -> None:
    with served(settings) as client:
        assert post(client, "open", say="good", note="x" * 200_000).status_code == 413


def test_the_panel_beside_a_session_has_a_label_at_once(settings: Settings) -> None:
    said = '<div data-said><p class="label">success: good (view, ada)</p></div>'
    with served(settings) as client:
        assert said in post(client, "open", PART, say="good").text
        assert said in client.get("/sessions/open").text


def test_what_a_fit_would_gain_is_shown_and_not_stored(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, DEBRIEF_RATER="ada")
    first, second, *_ = placed_lake(settings)
    with served(settings) as client:
        assert "that can be compared with others has a label" in client.get("/labels/fit").text
        post(client, first, say="good")
        post(client, second, say="bad")
        text = client.get("/labels/fit").text
    assert "coding: 2 labelled sessions (2 view), 1 done. 18 more labelled sessions" in text
    assert own_table(Lake(settings.lake)) is None
