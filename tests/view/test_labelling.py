"""Labels on the pages: given blind or beside a review, certified, replaced, taken back, exported."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import httpx
import pytest

from debrief.certification import certificates_in, waiting_sessions
from debrief.lake import Lake
from debrief.outcomes.giving import given_labels
from debrief.outcomes.labels import labels_from_csv
from debrief.scoring.verdict import VERDICT_LABELS, VerdictName
from debrief.settings import Settings
from tests.certification.scenario import FINDING, REVIEWER, reviewed_lake, say
from tests.view.shown import OWN, served, settings_of, words
from tests.waiting import wait_until

PART = {**OWN, "X-Part": "labels"}
HOSTILE = "</textarea><script>alert(1)</script>\x1b[31m"
VERDICTS: dict[str, VerdictName] = {
    "red": "complete_verified",
    "green": "partial",
    "blue": "failed",
}
ASKED = re.compile(r"<h1>Fix the cart of (\w+)\.</h1>")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Three sessions with a review each."""
    settings = settings_of(tmp_path, DEBRIEF_RATER="ada")
    reviewed_lake(settings.lake, VERDICTS)
    return settings


def post(
    client: httpx.Client, session: str, headers: dict[str, str] = OWN, **form: str
) -> httpx.Response:
    return client.post(f"/sessions/{session}/labels", data=form, headers=headers)


def post_blind(client: httpx.Client, session: str, **form: str) -> httpx.Response:
    return client.post("/labels/next", data={"session": session, **form}, headers=OWN)


def offered(client: httpx.Client, skip: int = 0) -> str:
    text = client.get(f"/labels/next?skip={skip}").text
    found = ASKED.search(text)
    return found[1] if found else re.findall("<h1>(.*)</h1>", text)[0]


def main_of(page: str) -> str:
    """The page without what every page has."""
    return page.partition("<main")[2].partition("</main>")[0]


def test_the_session_to_label_is_shown_with_signals_and_without_what_was_said_of_it(
    settings: Settings,
) -> None:
    with served(settings) as client:
        for skip in range(3):
            page = client.get(f"/labels/next?skip={skip}").text
            session = offered(client, skip)
            shown = main_of(page)
            assert f"Fix the cart of {session}." in words(shown)
            assert "The cart adds up now." in words(shown)
            assert "Changed 1 file: cart.py" in words(shown)
            assert "pytest passed: 3 tests ran" in words(shown)
            assert "Drawn by chance among 3 sessions" in words(shown)
            said = {REVIEWER, FINDING, "0.43", "43%", "mark-", "reason-"}
            # The buttons name every verdict: without them none is on the page.
            unasked = re.sub(r"<button.*?</button>", "", shown)
            for secret in (*said, *VERDICT_LABELS.values(), *VERDICT_LABELS):
                assert secret not in unasked, secret
            assert f"/sessions/{session}" not in shown, "nothing there leads to its review"


def test_a_part_and_a_whole_text_of_a_blind_session_say_nothing_of_it_either(
    settings: Settings,
) -> None:
    with served(settings) as client:
        for more in ("part=0&fragment=1", "whole=turn-1-call-1"):
            text = client.get(f"/labels/next?session=red&{more}").text
            assert "pytest -q" in text
            assert FINDING not in text
        assert client.get("/labels/next?session=red&whole=turn-9").status_code == 400


def test_blind_labels_certify_and_go_on_to_the_next_until_none_is_left(settings: Settings) -> None:
    answers = {"red": "complete_unverified", "green": "bad", "blue": "good"}
    with served(settings) as client:
        order = [offered(client, skip) for skip in range(3)]
        assert order == waiting_sessions(Lake(settings.lake))
        assert offered(client, 3) == "Nothing more to label"
        for session in order:
            assert offered(client) == session
            answer = post_blind(client, session, say=answers[session], note="seen")
            assert (answer.status_code, answer.headers["location"]) == (303, "/labels/next")
        assert offered(client) == "Nothing more to label"
        page = words(main_of(client.get("/labels").text))
        assert (
            f"{REVIEWER} Not certified: 33 more labels would tell, with 0 unlabelled sessions left."
            in page
        )
        assert "Labelled blind 3 of 3 reviewed sessions" in page
        assert "Complete, and it says so 1 of 2 (50%, at least 3%)" in page
        assert "Fix the cart of blue. complete failed yes" in page
        assert "Fix the cart of red. complete, not verified complete, verified no" in page
    (found,) = certificates_in(Lake(settings.lake)).values()
    assert [(one.session_id, one.is_miss) for one in found.disagreements] == [
        ("blue", True), ("red", False),
    ]  # fmt: skip


def test_a_slip_can_be_taken_back_and_the_session_comes_again(settings: Settings) -> None:
    with served(settings) as client:
        first = offered(client)
        post_blind(client, first, say="good")
        page = client.get("/labels/next").text
        assert "You said complete of the last one. Take back" in words(page)
        back = post_blind(client, first, say="clear", skip="1")
        assert back.headers["location"] == "/labels/next?skip=1"
        assert offered(client) == first
    assert list(given_labels(Lake(settings.lake))) == []


def test_only_labels_given_without_the_review_in_sight_are_blind(settings: Settings) -> None:
    with served(settings) as client:
        post(client, "red", say="good")
        post(client, "green", say="complete_verified")
        post_blind(client, "green", say="bad")
        post_blind(client, "blue", say="unsure")
        post(client, "blue", say="failed")
    labels = sorted(
        (one.session_id, one.value, one.blind) for one in given_labels(Lake(settings.lake))
    )
    assert labels == [
        ("blue", "failed", False), ("blue", "unsure", True), ("green", "bad", False),
        ("red", "good", False),
    ]  # fmt: skip


def test_a_certified_reviewer_has_its_rate_corrected(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, DEBRIEF_RATER="ada")
    verdicts: dict[str, VerdictName] = {
        **{f"good{n}": "complete_verified" for n in range(30)},
        **{f"bad{n}": "partial" for n in range(30)},
    }
    lake = reviewed_lake(settings.lake, verdicts)
    for name in verdicts:
        say(lake, name, "bad" if name.startswith("bad") or name == "good0" else "good")
    with served(settings) as client:
        page = words(client.get("/labels").text)
        assert "Certified: it finds 100% of complete and 97% of incomplete sessions." in page
        assert "it says 50%; corrected for its mistakes 48% (" in page


def test_without_reviews_the_pages_say_what_is_needed(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    with served(settings) as client:
        assert "debrief run --model NAME" in client.get("/labels").text
        assert offered(client) == "Nothing to label yet"


def test_a_label_says_who_and_when_and_can_be_replaced_and_taken_back(settings: Settings) -> None:
    with served(settings) as client:
        answer = post(client, "red", say="good", note="It runs.")
        assert answer.headers["location"] == "/sessions/red"
        bar = post(client, "red", PART, say="partial", note="It\nbroke & burnt.").text
        assert re.search('<button name="say" value="partial"[^>]* aria-pressed="true">', bar)
        assert re.search(r"ada · <time>20\d\d-\d\d-\d\d \d\d:\d\d</time>", bar)
        assert "<q>It\nbroke &amp; burnt.</q>" in bar
        bar = post(client, "red", PART, say="named", name="flaky-test").text
        assert ">flaky-test</b>" in bar
        bar = post(client, "red", PART, say="clear", name="success").text
        assert "aria-pressed" not in bar
    (left,) = given_labels(Lake(settings.lake))
    assert (left.session_id, left.name, left.value, left.rater) == ("red", "flaky-test", "1", "ada")


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"say": "excellent"}, "is no label"),
        ({"say": "named", "name": " "}, "has no name"),
        ({"say": "named", "name": "x" * 81}, "more than 80 characters"),
        ({"say": "good", "note": "x" * 4_001}, "more than 4,000 characters"),
    ],
)
def test_what_is_no_label_is_refused_in_a_page(
    settings: Settings, form: dict[str, str], reason: str
) -> None:
    with served(settings) as client:
        answer = post(client, "red", OWN, **form)
        assert (answer.status_code, reason in answer.text) == (400, True)
        assert post(client, "nowhere", say="good").status_code == 404
        assert post_blind(client, "nowhere", say="good").status_code == 404
        assert post_blind(client, "red", say="named", name="success").status_code == 400
        crossed = client.post("/labels/next", data={"session": "red", "say": "good"})
        assert crossed.status_code == 403, "another site's form is refused"
    assert not list(given_labels(Lake(settings.lake)))


def test_hostile_names_and_notes_are_shown_and_not_obeyed(settings: Settings) -> None:
    token = "ghp_" + "a8Kd93jfLs02mXq7Vb5nTz1RwYc6He4GuPio"
    with served(settings) as client:
        post(client, "red", say="named", name=HOSTILE, value=HOSTILE, note=f"{HOSTILE} {token}")
        bar = post(client, "red", PART, say="bad", note=HOSTILE).text
        for text in (bar, client.get("/labels").text):
            assert "<script>alert" not in text
            assert "&lt;script&gt;alert(1)&lt;/script&gt;\ufffd[31m" in text
            assert token not in text


def test_the_csv_of_the_pages_is_read_as_labels(settings: Settings, tmp_path: Path) -> None:
    with served(settings) as client:
        post(client, "red", say="good", note='"Well", he said')
        post_blind(client, "green", say="unsure")
        text = client.get("/labels.csv").text
    path = tmp_path / "labels.csv"
    path.write_text(text, newline="")
    read = labels_from_csv(path)
    assert read.problems == ()
    said = [(row.session_id, row.value, row.rater, row.detail, row.blind) for row in read.labels]
    assert said == [
        ("red", "good", "ada", '"Well", he said', False), ("green", "unsure", "ada", "", True),
    ]  # fmt: skip


def test_a_spreadsheet_computes_nothing_of_the_csv_and_it_is_read_back_as_it_was_said(
    settings: Settings, tmp_path: Path
) -> None:
    formulas = ("=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "'=quoted")
    with served(settings) as client:
        for formula in formulas:
            post(client, "red", say="named", name=formula, value=formula, note=formula)
        text = client.get("/labels.csv").text
    cells = [cell for row in csv.reader(text.splitlines()) for cell in row]
    assert not [cell for cell in cells if cell and cell[0] in "=+-@"]
    (path := tmp_path / "labels.csv").write_text(text, newline="")
    said = {(row.name, row.value, row.detail) for row in labels_from_csv(path).labels}
    assert said == {(formula,) * 3 for formula in formulas}


def test_a_form_that_is_too_long_is_refused(settings: Settings) -> None:
    with served(settings) as client:
        assert post(client, "red", say="good", note="x" * 200_000).status_code == 413


def test_the_panel_beside_a_session_has_a_label_at_once(settings: Settings) -> None:
    said = '<div data-said><p class="label">success: good (view, ada)</p></div>'
    with served(settings) as client:
        assert said in post(client, "red", PART, say="good").text
        wait_until(lambda: said in client.get("/sessions/red").text)
