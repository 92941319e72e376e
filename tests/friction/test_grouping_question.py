"""What reviews noted, grouped by a model: proposed by number, checked by passage, asked again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from debrief.errors import ModelError
from debrief.friction.grouping_question import RepositoryNotes, group_notes, read_groups
from debrief.friction.schema import ALL, RECURRING, FrictionEvent, RecurringFriction
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.models.answers import Answer
from debrief.models.prompting import PromptedModel
from debrief.questions.standing import standing_questions
from debrief.scoring.llm_review import FrictionReview, SessionReview
from debrief.scoring.model import Facet, SessionScores
from debrief.sessions.model import Evidence, Session
from debrief.stages.configuration import EvaluatorChoice
from tests.assets.running import asset, resources
from tests.friction.scenario import day
from tests.friction.test_advice import MONDAY
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.signals.scenario import Story

friction_events = asset("friction_events")
recurring_friction = asset("recurring_friction")

LINE = "Run `mise run lint` before a commit."


def note(session: int, what: str = "It committed and `mise run lint` failed.") -> FrictionEvent:
    return FrictionEvent(
        session_id=f"s-{session}",
        repository="shop",
        at=MONDAY + timedelta(days=session),
        evidence=Evidence(1, "c1", "lint failed"),
        by="some/model",
        what=what,
        instead="Run `mise run lint` first.",
    )


NOTES = RepositoryNotes(
    repository="shop",
    events=(note(1), note(1, "It lost a file."), note(2), note(3)),
    prompt_file="# Shop\n\n- Lint before you commit.\n",
)


class Model:
    """Answers the two questions as it is told, and keeps what it was asked."""

    def __init__(self, groups: object, checks: object = None) -> None:
        self.prompts: list[str] = []
        self._answers = [groups, checks]

    def ask(self, prompt: str) -> Answer:
        self.prompts.append(prompt)
        is_check = "passages of the sessions" in prompt
        return Answer(text=json.dumps(self._answers[is_check]))


def group(**changed: object) -> dict[str, object]:
    said = {"what": "Lint is left out", "notes": ["1.1", "2.1", "3.1"], "line": LINE}
    return {**said, **changed}


def checks(*stopped: str, existing: str = "") -> dict[str, object]:
    passages = [{"number": each, "stopped": True, "quote": "lint failed"} for each in stopped]
    return {"passages": passages, "lines": [{"number": 1, "existing": existing}]}


def grouped(
    model: Model, notes: RepositoryNotes = NOTES, known: tuple[RecurringFriction, ...] = ()
) -> list[RecurringFriction]:
    asked = PromptedModel("some/model", model.ask, b"secret" * 6)
    return group_notes(notes, asked, lambda event: "It said: lint failed.", known)


def test_a_friction_keeps_the_sessions_that_its_line_would_have_stopped() -> None:
    model = Model({"frictions": [group()]}, checks("1.1", "3.1", existing="L2"))
    (found,) = grouped(model)
    assert (found.what, found.line) == ("Lint is left out", LINE)
    assert found.sessions == ("s-3", "s-1")
    assert found.existing == "- Lint before you commit."
    assert found.by == "some/model"
    assert len(model.prompts) == 2
    assert "3.1 It committed and" in model.prompts[0]
    assert "L2 - Lint before you commit." in model.prompts[1]


def test_a_friction_with_one_session_left_falls() -> None:
    assert grouped(Model({"frictions": [group()]}, checks("1.1"))) == []
    said = {
        "passages": [{"number": n, "stopped": True, "quote": "made up"} for n in ("1.1", "2.1")]
    }
    assert grouped(Model({"frictions": [group()]}, said)) == [], "a yes needs words of its passage"


@pytest.mark.parametrize(
    "changed",
    [
        {"notes": ["1.1", "1.2"]},  # one session
        {"notes": ["1.1", "9.9"]},
        {"line": "Run `npm test` first."},
        {"line": "Be careful."},
        {"what": ""},
    ],
)
def test_a_group_that_does_not_stand_falls_alone(changed: dict[str, object]) -> None:
    wrong, right = group(**{"notes": ["1.2", "2.1"], **changed}), group(notes=["2.1", "3.1"])
    found = read_groups(json.dumps({"frictions": [wrong, right]}), NOTES)
    assert [each.notes for each in found] == [("2.1", "3.1")]


def test_ids_and_lines_stay_when_another_session_has_it() -> None:
    (first,) = grouped(Model({"frictions": [group()]}, checks("1.1", "2.1")))
    more = replace(NOTES, events=(*NOTES.events, note(4)))
    reworded = group(notes=["1.1", "2.1", "4.1"], line="Always run `mise run lint`.")
    (second,) = grouped(
        Model({"frictions": [reworded]}, checks("1.1", "2.1", "4.1")), more, (first,)
    )
    assert (second.id, second.line) == (first.id, first.line)
    assert len(second.sessions) == 3


def test_nothing_is_asked_of_one_session() -> None:
    model = Model({"frictions": []})
    assert grouped(model, replace(NOTES, events=(note(1), note(1, "Other.")))) == []
    assert model.prompts == []


numbers = st.sampled_from(["1.1", "1.2", "2.1", "3.1", "4.1", "x"])


@given(st.lists(st.fixed_dictionaries({
    "what": st.sampled_from(["Lint is left out", ""]),
    "notes": st.lists(numbers, max_size=5),
    "line": st.sampled_from([LINE, "Run `npm test`.", ""]),
}), max_size=7))  # fmt: skip
def test_every_group_that_stands_has_two_sessions_and_notes_of_its_own(
    frictions: list[dict[str, object]],
) -> None:
    try:
        found = read_groups(json.dumps({"frictions": frictions}), NOTES)
    except ModelError:
        return
    used = [number for each in found for number in each.notes]
    assert len(used) == len(set(used))
    for each in found:
        assert len({NOTES.numbered[number].session_id for number in each.notes}) > 1


def answered(call: Call) -> Reply:
    text = f"{call.system}\n{call.user}"
    if "Say which notes are the same" in text:
        return Reply(json.dumps({"frictions": [group(notes=["1.1", "2.1"])]}))
    passages = [{"number": n, "stopped": True, "quote": "lint failed"} for n in ("1.1", "2.1")]
    return Reply(json.dumps({"passages": passages, "lines": []}))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[OpenAIServer]:
    with OpenAIServer(answered) as made:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("OPENAI_API_BASE", made.url)
        monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("DEBRIEF_MODEL", "openai/gpt-4.1-nano")
        monkeypatch.setenv("DEBRIEF_NO_MODEL", "")
        yield made


def reviewed(session: Session) -> SessionScores:
    noted = FrictionReview(
        turn=1,
        quote="lint failed",
        what="It committed and `mise run lint` failed.",
        instead="Lint.",
    )
    return SessionScores(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        ended=session.ended,
        task=session.task,
        tool=session.tool,
        model="openai/gpt-4.1-nano",
        scoring_fingerprint="f",
        status="ok",
        review=SessionReview(verdict="partial", frictions=(noted,)),
    )


def test_dagster_groups_notes_once_and_asks_later_reviews_about_them(
    tmp_path: Path, server: OpenAIServer
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    story = Story().turn("Commit it").run("git commit -m x", "lint failed")
    sessions = [day(number, story) for number in (0, 1)]
    week = week_of(sessions[0].started)
    lake.write("raw_sessions", week, sessions, Session)
    lake.write("session_scores", week, list(map(reviewed, sessions)), SessionScores)

    def run() -> None:
        with dg.DagsterInstance.ephemeral() as instance:
            model = EvaluatorChoice(model="openai/gpt-4.1-nano")
            given = resources(lake, evaluator=model)
            for asset, key in ((friction_events, week), (recurring_friction, None)):
                made = dg.materialize(
                    [asset], partition_key=key, instance=instance, resources=given
                )
                assert made.success

    run()
    (friction,) = lake.read(RECURRING, ALL, RecurringFriction)
    assert friction.sessions == ("day-1", "day-0")
    assert friction.line == LINE
    assert len(server.calls) == 2
    run()
    assert len(server.calls) == 2, "what did not change is not asked again"
    later = replace(
        day(2, story), id="later", digest="later", started=sessions[1].started + timedelta(hours=9)
    )
    lake.write("raw_sessions", week, [*sessions, later], Session)
    yes = Facet(
        session_id="later",
        session_digest="later",
        question_id=friction.id,
        found=True,
        answer="It was left out again.",
        places=(Evidence(1, "", "lint failed"),),
        model="openai/gpt-4.1-nano",
        asked_on=later.started.date(),
    )
    quiet = replace(reviewed(later), review=SessionReview(verdict="partial"), facets=(yes,))
    lake.write("session_scores", week, [*map(reviewed, sessions), quiet], SessionScores)
    run()
    (more,) = lake.read(RECURRING, ALL, RecurringFriction)
    assert (more.id, more.sessions) == (friction.id, ("later", "day-1", "day-0"))
    (asked,) = standing_questions(lake)(sessions[0])
    assert asked.id == friction.id
    assert "Lint is left out" in asked.text
    assert standing_questions(lake)(replace(sessions[0], repository="other")) == []
