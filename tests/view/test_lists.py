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
from msgspec.structs import replace

from debrief.lake import Lake
from debrief.outcomes.store import LABELS, Label, store_table
from debrief.scoring.order import shipped_table
from debrief.sessions.model import Message, Turn
from debrief.training.decomposition import FactorEffect, LevelEffect, WeeklyMove
from tests.view.every_kind import fill_every_kind
from tests.view.shown import MONDAY, fill, placed_lake, served, session_of, settings_of, words
from tests.waiting import wait_until

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
        ("sort=-verdict", ["tax", "old", "cart", "quiet"]),
        ("verdict=failed", ["cart"]),
        ("verdict=complete_unverified&basis=no_check", ["old"]),
        ("verdict=complete_verified&basis=no_check", []),
        ("since=2026-11-01", ["cart", "tax", "quiet"]),
        ("first=1", []),
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
        ("outcome=yes", ["tax"]),
        ("outcome=none", ["cart", "old", "quiet"]),
        ("label=bad", ["cart"]),
        ("label=needs a look", ["tax"]),
        ("label=none", ["old", "quiet"]),
        ("failed=1", []),
        ("page=7", ["cart", "old", "tax", "quiet"]),
    ],
)
def test_an_address_is_a_list(client: httpx.Client, query: str, ids: list[str]) -> None:
    assert listed(client, query) == ids


def test_a_row_says_its_verdict_and_why_and_leads_to_the_turn(client: httpx.Client) -> None:
    text = client.get("/sessions?q=cart&task=shop").text
    assert '<span class="chip verdict bad" title="by offline">not done</span>' in text
    why = "The last check failed: pytest -q (turn 1: “1 failed”)."
    assert f'href="/sessions/cart#turn-1">{why}' in text
    assert "<mark>cart</mark>" in text
    assert 'href="/sessions?q=cart"' in text, "the task can be taken away again"


def test_verdicts_are_filtered_by_who_gave_them_and_the_judge_that_is_heard_counts(
    tmp_path: Path,
) -> None:
    settings = settings_of(tmp_path)
    fill_every_kind(Lake(settings.lake))
    with served(settings) as client:
        read = client.get("/sessions?scored_by=openai%2Freader").text
        ruled = client.get("/sessions?scored_by=offline&verdict=complete_verified").text
        judged = client.get("/sessions?judges_min=0").text
    assert 'title="by openai/reader">partly done</span>' in read
    assert "openai/reader: partly done: fix the sum of the cart" in words(read)
    assert '<option value="openai/reader" selected>openai/reader (1)</option>' in read
    assert "/sessions/later" not in read.partition("<tbody>")[2]
    assert "/sessions/later" in ruled.partition("<tbody>")[2]
    assert "/sessions/every-kind" not in ruled.partition("<tbody>")[2]
    assert "No sessions match" in judged, "the model says that nothing can be seen"


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


def test_a_week_says_its_verdicts_what_to_look_at_and_what_moved_it(client: httpx.Client) -> None:
    page = client.get("/weeks/2026-11-02").text
    text = words(page)
    assert "2 of 3 sessions have a verdict : 1 done, checked ; 1 not done" in text
    assert "1 not scored ." in text
    first, best = text.index("Not done, or partly"), text.index("Best sessions: done and checked")
    assert first < text.index("Fix the cart") < best < text.index("Add a tax")
    assert "from 20 sessions of one tool and kind of work" in text
    assert "Look first:" not in text
    assert "0.60 of 2 sessions" in text, "the mean of two is not that of all three"
    assert '<a href="/prompts/0aaad855">How we work</a> <small>25% → 75%' in " ".join(page.split())
    assert 'href="/weeks/2026-10-26"' in page


def test_home_looks_back_to_where_there_are_verdicts(tmp_path: Path) -> None:
    """The newest week of a lake of old sessions may hold two that nobody scored."""
    settings = settings_of(tmp_path)
    old, new = datetime(2025, 3, 3, tzinfo=UTC), datetime(2025, 5, 5, tzinfo=UTC)
    sessions = [(session_of(f"old-{n}", f"Job {n}.", started=old), 0.9) for n in range(6)]
    fill(Lake(settings.lake), [*sessions, (session_of("new", "Hello.", started=new), None)])
    with served(settings) as client:
        text = words(client.get("/").text)
    assert "Since 3 Mar 2025" in text
    assert "6 of 7 sessions have a verdict : 6 done, checked . 1 not scored ." in text


def test_what_to_look_at_first_is_a_fifth_of_those_that_can_be_compared(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    ids = placed_lake(settings)
    with served(settings) as client:
        assert listed(client, "first=1&sort=place") == ids[:4]
        assert listed(client, "sort=place")[-1] == "alone", "it has no place"
        text = words(client.get(f"/weeks/{MONDAY:%Y-%m-%d}").text)
        assert "20 of 21 sessions have a verdict : 20 done, checked" in text
        assert "1 cannot be told: nothing was changed (1)." in text
        first, best = text.index("Look at these first"), text.index("Best sessions")
        assert first < text.index("Job 0.") < best < text.index("Job 19.")
        assert "Look first: More corrections than 98% of 20 sessions like it." in text
        assert "More corrections than 98% of 20" in words(client.get(f"/sessions/{ids[0]}").text)
        assert "Look at it first" not in client.get("/sessions/alone").text


def test_a_table_of_the_users_own_places_sessions_anew(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    ids = placed_lake(settings)
    table = shipped_table()
    turned = replace(table.coding, weights={"corrections": 1.0}, intercept=0.0)
    turned = replace(turned, covariance=((0.1, 0.0), (0.0, 0.1)))
    with served(settings) as client:
        assert listed(client, "first=1&sort=place") == ids[:4]
        store_table(Lake(settings.lake), replace(table, coding=turned))
        wait_until(lambda: listed(client, "first=1&sort=place") == ids[:-5:-1])
        page = words(client.get(f"/sessions/{ids[0]}").text)
        assert "Probability that it was done, by your labels: 0.72" in page


def test_pages_follow_the_lake(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    lake = Lake(settings.lake)
    session = session_of("one")
    fill(lake, [(session, 0.3)])
    with served(settings) as client:
        assert "0.30" in client.get("/sessions").text
        fill(lake, [(session, 0.8), (session_of("two", started=LAST_WEEK), 0.5)])
        # The list follows: the lake is looked at once a second at most.
        wait_until(lambda: listed(client, "") == ["two", "one"])
        (Path(settings.lake) / "raw_sessions" / "2026-10-26.jsonl.zst").unlink()
        wait_until(lambda: listed(client, "") == ["one"])


def test_a_row_says_that_its_session_holds_words_for_a_judge(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill_every_kind(Lake(settings.lake))
    with served(settings) as client:
        assert "it holds words that look made for a judge" in client.get("/sessions").text
