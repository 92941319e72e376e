"""Both places where a state can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from debrief.state import State


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A file, or the address of a database; nothing is in it."""
    if request.param == "sqlite":
        return str(tmp_path / "state" / "answers.sqlite")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def opened(place: str) -> Iterator[Callable[[], State]]:
    """Opens the place, as another process would, as often as it is called."""
    states: list[State] = []

    def open_again() -> State:
        states.append(state_at(place))
        return states[-1]

    yield open_again
    for state in states:
        state.close()


@pytest.fixture
def state(opened: Callable[[], State]) -> State:
    return opened()


def state_at(place: str) -> State:
    return State(place if "://" in place else Path(place))
