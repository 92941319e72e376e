"""Each subagent stands in one place of its session's page, whatever the ids of calls say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.cli.shared import console
from debrief.cli.show_text import print_session
from debrief.lake import Lake
from debrief.sessions.model import Message, Session, Subagent, ToolCall, Turn
from debrief.view.assessment import Assessment
from debrief.view.session import file_of
from debrief.view.transcript import ShownAgent, ShownTranscript, Step
from tests.view.shown import fill, served, session_of, settings_of, words


def asking(*ids: str) -> tuple[Message, ...]:
    """A message with calls of these ids."""
    calls = (ToolCall(id=id, name="Task", input="{}", result="ok", status="ok") for id in ids)
    return (Message(id="m", model="m", calls=tuple(calls)),)


def agent(name: str, call_id: str, *ids: str) -> Subagent:
    """A subagent that a call started, and that made calls of these ids."""
    prompt = f"Go, {name}."
    return Subagent(id=name, type=name, prompt=prompt, call_id=call_id, messages=asking(*ids))


def with_agents(ids: tuple[str, ...], *agents: Subagent) -> Session:
    """A session whose one turn made calls of these ids."""
    turn = Turn(number=1, prompt="Go.", messages=asking(*ids))
    return session_of("one", turns=(turn,), subagents=agents)


def places_of(session: Session) -> list[str]:
    """Return every place of a subagent, as the page comes to them: by call, then the others."""
    transcript = ShownTranscript(session, Assessment())
    found: list[str] = []

    def go(steps: tuple[Step, ...], above: str) -> None:
        for step in steps:
            if step.call is not None:
                for one in transcript.agents_of(step.call):
                    stand(one, f"{above}{step.call.id} > ")

    def stand(one: ShownAgent, above: str) -> None:
        found.append(f"{above}{one.agent.id}")
        go(one.steps, f"{above}{one.agent.id} > ")

    for shown in transcript.turns:
        go(shown.steps, "")
    for one in transcript.stray_agents():
        stand(one, "")
    return found


def test_a_subagent_stands_at_the_call_that_started_it_within_another_one_too() -> None:
    session = with_agents(("a", "b"), agent("inner", "c"), agent("outer", "b", "c"))
    assert places_of(session) == ["b > outer", "b > outer > c > inner"]


def test_an_id_that_several_calls_have_is_of_none_of_them() -> None:
    masked = ("REDACTED",) * 3
    session = with_agents(
        masked, agent("x", "REDACTED", *masked), agent("y", "REDACTED", "a"), agent("z", "a")
    )
    assert places_of(session) == ["x", "y", "y > a > z"]


def test_without_an_id_a_subagent_is_of_no_call() -> None:
    assert places_of(with_agents(("", "a"), agent("x", ""), agent("y", "gone"))) == ["x", "y"]


def test_subagents_that_would_stand_within_each_other_are_shown_once() -> None:
    one = with_agents(("a",), agent("x", "b", "b"))
    assert places_of(one) == ["x"]
    two = with_agents(("a",), agent("x", "b", "c"), agent("y", "c", "b"))
    assert places_of(two) == ["x", "x > c > y"]


IDS = st.sampled_from(("", "a", "b", "c", "d"))


@given(st.lists(IDS, max_size=4), st.lists(st.tuples(IDS, st.lists(IDS, max_size=3)), max_size=5))
def test_whatever_ids_calls_have_each_subagent_has_one_place(
    ids: list[str], agents: list[tuple[str, list[str]]]
) -> None:
    made = [agent(f"agent{n}", call_id, *inner) for n, (call_id, inner) in enumerate(agents)]
    names = [place.rpartition(" ")[2] for place in places_of(with_agents(tuple(ids), *made))]
    assert sorted(names) == [each.id for each in made]


def test_with_masked_ids_the_page_and_the_terminal_show_each_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    masked = ("REDACTED",) * 30
    session = with_agents(masked, *(agent(f"one{n}", "REDACTED", *masked) for n in range(9)))
    transcript = ShownTranscript(session, Assessment())
    print_session(console(), transcript, None)
    assert capsys.readouterr().out.count("Subagent one") == 9
    page = words(file_of(transcript, None))
    assert page.count("Subagents that no call is known to have started") == 1
    assert [page.count(f"Go, one{n}.") for n in range(9)] == [1] * 9


def test_the_page_of_a_subagent_leads_on_to_those_that_it_started_by_their_own_numbers(
    tmp_path: Path,
) -> None:
    settings = settings_of(tmp_path)
    many = [f"call {n}" for n in range(200)]
    deep = agent("deep", "down", *many)
    apart = agent("apart", "elsewhere", "x")
    fill(Lake(settings.lake), [(with_agents(("a",), agent("top", "a", "down"), apart, deep), 0.3)])
    with served(settings) as client:
        page = client.get("/sessions/one?agent=1").text
        assert 'href="/sessions/one?agent=3"' in page
        assert "apart" not in words(page)
        assert "call 199" not in page
        assert len(client.get("/sessions/one?agent=3").text) > len(page)
