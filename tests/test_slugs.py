from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.keys import SLUG, slugify


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
