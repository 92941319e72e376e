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

from debrief.lake import Lake
from debrief.outcomes.store import LABELS, Label
from debrief.sessions.model import Message, Turn
from debrief.training.decomposition import FactorEffect, LevelEffect, WeeklyMove
from tests.view.every_kind import fill_every_kind
from tests.view.shown import MONDAY, fill, served, session_of, settings_of

LAST_WEEK = MONDAY - timedelta(weeks=1)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    settings = settings_of(tmp_path_factory.mktemp("lists"))
    lake = Lake(settings.lake)
    quiet = Turn(number=1, prompt="Say nothing.", messages=(Message(id="m", model="haiku"),))
    fill(
        lake,
        [
            (session_of("cart", "Fix the cart's total."), 0.3),
            (
                session_of("tax", "Add a tax to the invoice: invoice by invoice.", task="billing"),
                0.9,
            ),
            (session_of("old", "Rename the invoice.", started=LAST_WEEK, tool="codex"), 0.6),
            (session_of("quiet", turns=(quiet,), models=()), None),
        ],
    )
    labels = [
        Label(session_id="cart", name="success", value="bad", source="person", rater="ada"),
        Label(session_id="tax", name="needs a look", value="yes", source="person", rater="ada"),
    ]
    lake.write(LABELS, "person", labels, Label)
    ci = Label(session_id="tax", name="success", value="yes", source="ci")
    lake.write(LABELS, "ci", [ci], Label)
    prompts = FactorEffect(
        factor="prompts", value=0.1, low=0.02, high=0.18,
        levels=(LevelEffect("0aaad855", 0.25, 0.75, 0.1),),
    )  # fmt: skip
    move = WeeklyMove(
        week="2026-11-02", before="2026-10-26", sessions=2, sessions_before=1,
        mean=0.6, mean_before=0.6, parts=(prompts,), rest=-0.1,
    )  # fmt: skip
    lake.write("weekly_moves", "all", [move], WeeklyMove)
    with served(settings) as found:
        yield found


def listed(client: httpx.Client, query: str) -> list[str]:
    """The ids of a list, in its order."""
    text = client.get(f"/sessions?{query}").text
    return re.findall(r'class="title" href="/sessions/([^"#]+)"', text)


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("", ["cart", "old", "tax", "quiet"]),
        ("sort=-quality", ["tax", "old", "cart", "quiet"]),
        ("sort=-started", ["cart", "quiet", "tax", "old"]),
        ("sort=title", ["tax", "cart", "old", "quiet"]),
        ("sort=started;DROP TABLE sessions", ["cart", "old", "tax", "quiet"]),
        ("q=invoice", ["old", "tax"]),
        ("q=invoices renaming", ["old"]),
        ("q=invoi", []),
        ('q="tax to the"', ["tax"]),
        ('q="to tax the"', []),
        ("q=shop/cart.py", ["cart", "old", "tax"]),
        ("q=adds+up", ["cart", "old", "tax"]),
        ("q=invoice&sort=match", ["tax", "old"]),
        ('q="', ["cart", "old", "tax", "quiet"]),
        ("q=NOT AND * ^ NEAR( :", []),
        ("task=billing", ["tax"]),
        ("tool=codex", ["old"]),
        ("model=opus&week=2026-11-02", ["cart", "tax", "quiet"]),
        ("week=2026-10-26", ["old"]),
        ("fingerprint=0aaad855", ["cart", "old", "tax", "quiet"]),
        ("quality_min=0.5&quality_max=0.8", ["old"]),
        ("tool_mastery_max=0.3", ["cart"]),
        ("quality_min=nan&quality_max=x", ["cart", "old", "tax", "quiet"]),
        ("outcome=yes", ["tax"]),
        ("outcome=none", ["cart", "old", "quiet"]),
        ("label=bad", ["cart"]),
        ("label=needs a look", ["tax"]),
        ("label=none", ["old", "quiet"]),
        ("failed=1", []),
        ("page=7", ["cart", "old", "tax", "quiet"]),
        ("page=-1", ["cart", "old", "tax", "quiet"]),
    ],
)
def test_an_address_is_a_list(client: httpx.Client, query: str, ids: list[str]) -> None:
    assert listed(client, query) == ids


def test_a_row_says_why_and_leads_to_the_turn(client: httpx.Client) -> None:
    text = client.get("/sessions?q=cart&task=shop").text
    assert 'href="/sessions/cart#turn-1">The last check failed (turn 1: “1 failed”).' in text
    assert "<mark>cart</mark>" in text
    assert 'href="/sessions?q=cart"' in text, "the task can be taken away again"


def test_many_sessions_are_on_pages(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    many = [(session_of(f"s{number:03}"), number / 200) for number in range(120)]
    fill(Lake(settings.lake), many)
    with served(settings) as client:
        pages = [listed(client, f"page={number}") for number in (1, 2, 3)]
        assert [len(page) for page in pages] == [50, 50, 20]
        assert functools.reduce(operator.iadd, pages, []) == [
            f"s{number:03}" for number in range(120)
        ]
        assert "51–100 of 120" in client.get("/sessions?page=2").text


def test_home_names_what_moved_the_week(client: httpx.Client) -> None:
    text = " ".join(client.get("/").text.split())
    assert "2 – 8 Nov 2026" in text
    assert "against 26 Oct – 1 Nov 2026" in text
    assert '<a href="/prompts/0aaad855">How we work</a> <small>25% → 75%' in text
    assert text.index("Fix the cart") < text.index("Best sessions") < text.index("Add a tax")
    week = client.get("/weeks/2026-11-02").text
    assert "0aaad855" in week
    assert 'href="/weeks/2026-10-26"' in week


def test_pages_follow_the_lake(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    lake = Lake(settings.lake)
    session = session_of("one")
    fill(lake, [(session, 0.3)])
    with served(settings) as client:
        assert "0.30" in client.get("/sessions").text
        fill(lake, [(session, 0.8), (session_of("two", started=LAST_WEEK), 0.5)])
        assert _later(client, "two") == ["two", "one"]
        (Path(settings.lake) / "raw_sessions" / "2026-10-26.parquet").unlink()
        assert _later(client, "one") == ["one"]


def _later(client: httpx.Client, first: str) -> list[str]:
    """The list, once it has followed: the lake is looked at once a second at most."""
    limit = datetime.now(UTC) + timedelta(seconds=60)
    while (found := listed(client, ""))[:1] != [first] or len(found) != 1 + (first == "two"):
        assert datetime.now(UTC) < limit
    return found


def test_a_row_says_that_its_session_holds_words_for_a_judge(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill_every_kind(Lake(settings.lake))
    with served(settings) as client:
        assert "it holds words that look made for a judge" in client.get("/sessions").text
