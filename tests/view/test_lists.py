"""Lists of sessions and weeks: what a search, a filter, a sort order and a page of them show."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from debrief.certification import REQUIRED, certificates_in
from debrief.lake import Lake
from debrief.outcomes.store import LABELS, Label
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Message, Turn
from tests.view.every_kind import fill_every_kind
from tests.view.shown import (
    MONDAY,
    event_of,
    fill,
    scores_of,
    served,
    session_of,
    settings_of,
    signals_of,
    words,
)
from tests.waiting import wait_until

LAST_WEEK = MONDAY - timedelta(weeks=1)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    settings = settings_of(tmp_path_factory.mktemp("lists"))
    lake = Lake(settings.lake)
    quiet = Turn(number=1, prompt="Say nothing.", messages=(Message(id="m", model="haiku"),))
    silent = Turn(number=1, prompt=" ", messages=(Message(id="m", model="haiku"),))
    cart = session_of("cart", "Fix the cart's total.")
    old = session_of("old", "Rename the invoice.", started=LAST_WEEK, tool="codex")
    events = {
        "cart": signals_of(cart, event_of("correction", 2)),
        "old": signals_of(
            old, event_of("foreign_files"), event_of("open_request"), work="operations"
        ),
    }
    fill(
        lake,
        [
            (cart, 0.3),
            (
                session_of("tax", "Add a tax to the invoice: invoice by invoice.", task="billing"),
                0.9,
            ),
            (old, 0.6),
            (session_of("quiet", turns=(quiet,), models=()), None),
            (session_of("stub", turns=(silent,), models=()), None),
        ],
        events,
    )
    labels = [
        Label(session_id="cart", name="success", value="bad", source="person", rater="ada"),
        Label(session_id="tax", name="needs a look", value="yes", source="person", rater="ada"),
    ]
    lake.write(LABELS, "person", labels, Label)
    ci = Label(session_id="tax", name="success", value="yes", source="ci")
    lake.write(LABELS, "ci", [ci], Label)
    with served(settings) as found:
        yield found


def listed(client: httpx.Client, query: str) -> list[str]:
    """The ids of a list, in its order."""
    text = client.get(f"/sessions?{query}").text
    return re.findall(r'class="title" href="/sessions/([^"#]+)"', text)


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("", ["old", "cart", "quiet", "tax"]),
        ("sort=-started", ["cart", "quiet", "tax", "old"]),
        ("sort=title", ["tax", "cart", "old", "quiet"]),
        ("verdict=failed", ["cart"]),
        ("verdict=complete_verified", ["tax"]),
        ("verdict=none", ["quiet"]),
        ("basis=review", ["old"]),
        ("basis=person&reviewer=ada", ["cart"]),
        ("basis=outcome&reviewer=ci", ["tax"]),
        ("reviewer=claude-code", ["old"]),
        ("event=any", ["old", "cart"]),
        ("event=open_request", ["old"]),
        ("event=failed_check", []),
        ("work=operations", ["old"]),
        ("since=2026-11-01", ["cart", "quiet", "tax"]),
        ("q=invoice", ["old", "tax"]),
        ("q=invoices renaming", ["old"]),
        ("q=invoi", []),
        ('q="tax to the"', ["tax"]),
        ('q="to tax the"', []),
        ("q=shop/cart.py", ["old", "cart", "tax"]),
        ("q=adds+up", ["old", "cart", "tax"]),
        ("q=invoice&sort=match", ["tax", "old"]),
        ('q="', ["old", "cart", "quiet", "tax"]),
        ("q=NOT AND * ^ NEAR( :", []),
        ("task=billing", ["tax"]),
        ("tool=codex", ["old"]),
        ("model=opus&week=2026-11-02", ["cart", "quiet", "tax"]),
        ("week=2026-10-26", ["old"]),
        ("fingerprint=0aaad855", ["old", "cart", "quiet", "tax"]),
        ("turns_min=1&turns_max=1&tool=codex", ["old"]),
        ("label=bad", ["cart"]),
        ("label=needs a look", ["tax"]),
        ("label=none", ["old", "quiet"]),
        ("failed=1", []),
        ("stubs=1", ["stub"]),
        ("page=7", ["old", "cart", "quiet", "tax"]),
    ],
)
def test_an_address_is_a_list(client: httpx.Client, query: str, ids: list[str]) -> None:
    assert listed(client, query) == ids


def test_a_row_says_what_happened_and_who_gave_its_verdict(client: httpx.Client) -> None:
    text = client.get("/sessions?q=cart&task=shop").text
    assert "failed you said so" in words(text)
    why = "Corrected twice (turns 1, 2: “no, the tax”)"
    assert f'href="/sessions/cart#turn-1">{why}' in text
    assert "<mark>cart</mark>" in text
    assert 'href="/sessions?q=cart"' in text, "the task can be taken away again"
    rows = words(client.get("/sessions").text)
    assert "complete, not verified reviewed by claude-code" in rows
    assert "CI passed Add a tax to the invoice" in rows
    assert "not reviewed Say nothing." in rows


def test_stubs_are_one_line(client: httpx.Client) -> None:
    text = client.get("/sessions").text
    assert "5 sessions" in words(text)
    assert '<a href="/sessions?stubs=1">1 stub</a>' in text
    assert "(no words)" not in text


def test_what_a_review_says_is_open_stands_in_the_row(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill(Lake(settings.lake), [(session_of("one"), 0.3)])
    with served(settings) as client:
        assert "failed reviewed by claude-code" in words(client.get("/sessions").text)
        assert "Not done: fix the cart" in words(client.get("/sessions").text)


def test_nothing_is_ranked_by_a_reviewer_that_is_not_certified(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    lake = Lake(settings.lake)
    sessions = [(session_of(f"s{n:02}", f"Job {n}."), n / 60) for n in range(60)]
    fill(lake, sessions)
    ids = [session.id for session, _ in sessions]
    with served(settings) as client:
        page = client.get("/sessions")
        assert "claude-code: not certified: " in words(page.text)
        assert "by review" not in page.text
        assert client.get("/sessions?sort=-quality").status_code == 400
        labels = [
            Label(
                session_id=session.id,
                name="success",
                value="good" if quality >= 0.5 else "bad",
                source="view",
                rater="ada",
                blind=True,
            )
            for session, quality in sessions
        ]
        lake.write(LABELS, "view/ada", labels, Label)
        (certificate,) = certificates_in(lake).values()
        assert certificate.is_certified, REQUIRED
        wait_until(lambda: "not certified" not in client.get("/sessions").text)
        assert listed(client, "sort=-quality")[:3] == ids[:-4:-1]
        week = f"{MONDAY:%Y-%m-%d}"
        before = lake.read("session_scores", week, SessionScores)
        rows = [scores_of(sessions[0][0], 0.99, "someone-else"), *before]
        lake.write("session_scores", week, rows, SessionScores)
        wait_until(lambda: "someone-else: not certified" in words(client.get("/sessions").text))
        assert listed(client, "sort=-quality")[0] == ids[-1], "who is not certified ranks nothing"


def test_many_sessions_are_on_pages(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    many = [session_of(f"s{number:03}") for number in range(120)]
    told = {
        one.id: signals_of(one, event_of("correction", 120 - place))
        for place, one in enumerate(many)
    }
    fill(Lake(settings.lake), [(one, None) for one in many], told)
    with served(settings) as client:
        pages = [listed(client, f"page={number}") for number in (1, 2, 3)]
        assert [len(page) for page in pages] == [50, 50, 20]
        assert functools.reduce(operator.iadd, pages, []) == [
            f"s{number:03}" for number in range(120)
        ]
        assert "120 sessions, 51–100 shown" in client.get("/sessions?page=2").text


def test_a_week_says_who_gave_which_verdict_and_what_to_look_at(client: httpx.Client) -> None:
    page = client.get("/weeks/2026-11-02").text
    text = words(page)
    assert "1 labelled by ada : 1 failed" in text
    assert "2 not reviewed" in text
    looked_at = text.partition("To look at")[2].partition("The report")[0]
    assert "Fix the cart" in looked_at
    assert "Add a tax" not in looked_at
    for word in ("Best", "mean", "moved", "percent"):
        assert word not in text.partition("The report")[0]
    assert 'href="/weeks/2026-10-26"' in page
    weeks = words(client.get("/weeks").text)
    assert "26 Oct – 1 Nov 2026 1 0 1" in weeks


def test_home_looks_back_to_where_there_are_sessions(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    old, new = datetime(2025, 3, 3, tzinfo=UTC), datetime(2025, 5, 5, tzinfo=UTC)
    sessions = [(session_of(f"old-{n}", f"Job {n}.", started=old), 0.9) for n in range(6)]
    fill(Lake(settings.lake), [*sessions, (session_of("new", "Hello.", started=new), None)])
    with served(settings) as client:
        text = words(client.get("/").text)
    assert "Since 3 Mar 2025" in text
    assert "6 reviewed by claude-code : 6 complete, verified 1 not reviewed" in text


def test_pages_follow_the_lake(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    lake = Lake(settings.lake)
    session = session_of("one")
    fill(lake, [(session, None)])
    with served(settings) as client:
        assert "not reviewed" in client.get("/sessions").text
        fill(lake, [(session, 0.8), (session_of("two", started=LAST_WEEK), 0.5)])
        # The list follows: the lake is looked at once a second at most.
        wait_until(lambda: listed(client, "") == ["one", "two"])
        assert "not reviewed" not in words(client.get("/sessions").text.partition("<tbody>")[2])
        label = Label(session_id="one", name="success", value="bad", source="person", rater="bo")
        lake.write(LABELS, "person", [label], Label)
        wait_until(lambda: listed(client, "reviewer=bo") == ["one"])
        lake.write(LABELS, "person", [], Label)
        wait_until(lambda: listed(client, "reviewer=claude-code") == ["one", "two"])
        (Path(settings.lake) / "raw_sessions" / "2026-10-26.jsonl.zst").unlink()
        wait_until(lambda: listed(client, "") == ["one"])


def test_a_row_says_that_its_session_holds_words_for_a_judge(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill_every_kind(Lake(settings.lake))
    with served(settings) as client:
        assert "it holds words that look made for a judge" in client.get("/sessions").text
