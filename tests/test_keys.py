from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.keys import SLUG, Place, is_week, place_of, slugify, week_of


@pytest.mark.parametrize("name", ["checkout-retries", "a", "0.1_x", "unknown", "a" * 63])
def test_a_name_that_is_a_slug_stays_as_it_is(name: str) -> None:
    assert slugify(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "fix/bug", "a|b", "a...b", "A", "../x", "über", "a" * 64, "x.", "a,b", "\ud800", "a\n"],
)
def test_any_other_name_becomes_one_that_the_ui_can_launch(name: str) -> None:
    slug = slugify(name)
    assert SLUG.match(slug)
    assert ".." not in slug
    assert slug != name


def test_names_that_look_alike_once_they_are_plain_stay_apart() -> None:
    names = ["fix/bug", "fix|bug", "Fix/Bug", "fix-bug", slugify("fix/bug")]
    assert len({slugify(name) for name in names}) == len(names)


@given(st.text(max_size=80), st.text(max_size=80))
def test_two_different_names_never_share_a_slug(one: str, other: str) -> None:
    assert (slugify(one) == slugify(other)) == (one == other)


@given(st.text(max_size=80))
def test_a_stamped_slug_is_stamped_again_rather_than_taken_for_a_name(name: str) -> None:
    slug = slugify(name)
    assert SLUG.match(slug)
    if slug != name:
        assert slugify(slug) != slug


@pytest.mark.parametrize(
    ("moment", "week"),
    [
        pytest.param(datetime(2026, 11, 16, tzinfo=UTC), "2026-11-16", id="the first instant"),
        pytest.param(
            datetime(2026, 11, 22, 23, 59, tzinfo=UTC), "2026-11-16", id="the last minute"
        ),
        pytest.param(
            datetime(2026, 1, 1, tzinfo=UTC), "2025-12-29", id="over the turn of the year"
        ),
        pytest.param(
            datetime(2026, 11, 23, 1, tzinfo=timezone(timedelta(hours=2))),
            "2026-11-16",
            id="already Monday where the person is, still Sunday in UTC",
        ),
        pytest.param(datetime(2026, 11, 16), "2026-11-16", id="a time without a zone is UTC"),
    ],
)
def test_a_session_belongs_to_the_week_of_its_monday_in_utc(moment: datetime, week: str) -> None:
    assert week_of(moment) == week


@pytest.mark.parametrize("text", ["2026-11-17", "2026-W47", "", "2026-13-01", "soon"])
def test_only_the_date_of_a_monday_is_a_week(text: str) -> None:
    assert not is_week(text)


@pytest.mark.parametrize(
    ("cwd", "task", "repository"),
    [
        ("/home/ann/shop", "shop", "shop"),
        ("/home/ann/shop/.debrief/worktrees/queue/web", "queue", "shop"),
        ("/home/ann/shop/.debrief/lake/queue/web", "web", "web"),
        ("/srv/shop/.worktrees/fix/web", "shop", "shop"),
        ("/srv/shop/.claude/worktrees/fix", "shop", "shop"),
        ("/home/ann/.tool/worktrees/shop/fix", "shop", "shop"),
        ("/home/ann/.codex/worktrees/ab12/shop", "shop", "shop"),
        ("/home/ann/shop-worktrees/fix", "shop", "shop"),
        ("/home/ann/-worktrees", "worktrees.431b933b4ad8c23a", "-worktrees"),
        (r"C:\Users\ann\.tool\worktrees\shop\fix", "shop", "shop"),
        ("C:\\", "unknown", ""),
        ("~", "unknown", ""),
        ("/", "unknown", ""),
        ("", "unknown", ""),
    ],
)
def test_a_folder_tells_the_task_and_the_repository(cwd: str, task: str, repository: str) -> None:
    assert place_of(cwd) == Place(task=task, repository=repository)
