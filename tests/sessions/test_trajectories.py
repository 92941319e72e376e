"""A session exported as a trajectory in ATIF is the same session when it is read again."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.keys import digest_of
from debrief.sessions.actions import with_actions
from debrief.sessions.atif import as_trajectory
from debrief.sessions.model import (
    ContextText,
    DeclaredTool,
    Instructions,
    Intervention,
    Message,
    Session,
    Subagent,
    ToolCall,
    Turn,
    Usage,
)
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import Transcript
from debrief.sessions.readers.documents import mend
from debrief.sessions.readers.values import arguments_text
from debrief.sessions.sources import read_week, scan
from tests.sessions.readers.test_any_reader import places
from tests.training.scenario import MONDAY
from tests.training.strategies import JSON, sessions

SHARED = Path(__file__).parents[2] / "../shared/sessions"


def at(minute: int) -> Any:
    return MONDAY + timedelta(minutes=minute)


EDIT = ToolCall(
    id="c2",
    name="Edit",
    input='{"file_path":"/app/a.py"}',
    result="Edited.",
    status="ok",
    at=at(3),
    path="/app/a.py",
    added=2,
    removed=1,
    patch="@@ -1,1 +1,2 @@\n-a\n+b\n+c",
)
FAILED = ToolCall(
    id="c2",
    name="Bash",
    input='{"command":"pytest","n":123456789012345678901234567890}',
    result="1 failed",
    status="failed",
    exit_code=1,
    at=at(2),
)
REFUSED = ToolCall(
    id="c3", name="Bash", input="{}", result="The user said: no", status="rejected", at=None
)
ASKED = ToolCall(id="", name="AskUserQuestion", input="{}", result="Blue", status="ok", at=at(2))
TASK = ToolCall(
    id="c4", name="Task", input='{"prompt":"Look."}', at=at(2), late_result="It failed."
)
EVERYTHING = Session(
    id="0a1b2c3d-0000-4000-8000-000000000001",
    source="atif",
    tool="claude-code",
    tool_version="2.1.330",
    models=("opus", "haiku"),
    task="retries",
    repository="shop",
    branch="main",
    cwd="/app/shop/.debrief/worktrees/retries",
    started=at(0),
    ended=at(30),
    title="Retries",
    relative_of="0a1b2c3d-0000-4000-8000-000000000002",
    turns=(
        Turn(number=0, prompt="", origin="preamble", at=at(0), ended=at(0), compacted=True),
        Turn(
            number=1,
            prompt="/fix 12",
            at=at(1),
            ended=at(4),
            images=2,
            expansion="Fix issue 12.",
            messages=(
                Message(
                    id="m1",
                    model="opus",
                    at=at(2),
                    thinking="Where is it?",
                    text="I look.",
                    calls=(FAILED, EDIT, REFUSED, ASKED, TASK),
                    usage=Usage(10, 20, 30, 40),
                    summary="Before.",
                ),
                Message(
                    id="m2",
                    model="",
                    at=None,
                    text="Well.",
                    context=(
                        ContextText(said_by="task", text="It failed.", at=at(3), call_id="c4"),
                        ContextText(said_by="hook", text=""),
                    ),
                ),
            ),
            interventions=(
                Intervention(kind="rejection", text="no", at=at(2)),
                Intervention(kind="slash_command", text="/x", expansion="Do x.", at=None),
            ),
        ),
        Turn(number=2, prompt="Go on.", origin="queued", at=at(5), ended=at(5), rewound=True),
    ),
    subagents=(
        Subagent(
            id="a1",
            type="explorer",
            description="A look",
            prompt="Look.",
            messages=(Message(id="m1", model="haiku", text="Seen.", usage=Usage(1, 2)),),
            place="progress",
            call_id="c4",
        ),
        Subagent(id="a1", place="inline"),
    ),
    usage=Usage(11, 22, 33, 44),
    api_calls=9,
    slash_commands=1,
    lines_added=2,
    lines_removed=1,
    compactions=3,
    declared_tools=(
        DeclaredTool(name="Bash", description="Run.", parameters='{"type":"object"}'),
        DeclaredTool(name="Edit"),
    ),
    base_commit="ab" * 20,
    plan="# Retries\n\nRetry three times.\n",
    plan_digest=digest_of("# Retries\n\nRetry three times.\n"),
    system_prompt="You are.\n",
    instructions=(Instructions(path="CLAUDE.md", text="Use tabs.", place="message"),),
    reported_usage=Usage(11, 22, 33, 44),
)


def again(session: Session) -> Session:
    """Return a session as it is read from the trajectory that it was exported as."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trajectory.json"
        path.write_bytes(msgspec.json.encode(as_trajectory(session)))
        return READERS["atif"].read(Transcript(source="atif", path=str(path)))


def held(session: Session) -> Session:
    """Return what a trajectory holds of a session: not its files, nor what others made of it."""
    turns = tuple(replace(turn, messages=_compact(turn.messages)) for turn in session.turns)
    agents = tuple(replace(a, messages=_compact(a.messages)) for a in session.subagents)
    beside: dict[str, Any] = {"recorded": UNSET, "status": UNSET, "digest": "", "redactions": 0}
    beside |= {"source": "atif", "transcripts": (), "problems": (), "unsure_redactions": 0}
    return with_actions(replace(session, turns=turns, subagents=agents, **beside))


def _compact(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple(
        replace(
            m, calls=tuple(replace(c, input=c.input and arguments_text(c.input)) for c in m.calls)
        )
        for m in messages
    )


def test_a_session_with_something_in_every_field_comes_back() -> None:
    plain = Session(id="", source="", tool="", task="", started=at(9), ended=at(9))
    kept_apart = {*_differing(held(plain), plain), "transcripts", "problems", "digest"}
    kept_apart |= {"redactions", "unsure_redactions", "recorded", "status"}
    assert set(_differing(EVERYTHING, plain)) | kept_apart == set(Session.__struct_fields__)
    back = again(EVERYTHING)
    assert held(back) == held(EVERYTHING)
    assert back.problems == ()


def _differing(one: Session, other: Session) -> list[str]:
    names = Session.__struct_fields__
    return [name for name in names if getattr(one, name) != getattr(other, name)]


def _readable(session: Session) -> Session:
    """Return a generated session as a reader could have made it."""
    texts = mend(json.loads(json.dumps(msgspec.to_builtins(session))))
    session = msgspec.convert(texts, Session)
    turns = tuple(
        replace(
            turn,
            origin=turn.origin if turn.number else "preamble",
            messages=tuple(
                replace(m, text=_paragraph(m.text), thinking=_paragraph(m.thinking))
                for m in turn.messages
            ),
        )
        for turn in session.turns
    )
    used = Counter(m.model for turn in turns for m in turn.messages if m.model)
    return replace(session, turns=turns, models=tuple(model for model, _ in used.most_common()))


def _paragraph(text: str) -> str:
    return text.strip("\n") if text.strip() else ""


def test_that_there_were_no_prompt_files_is_kept() -> None:
    assert again(replace(EVERYTHING, instructions=())).instructions == ()
    assert again(replace(EVERYTHING, instructions=UNSET)).instructions is UNSET


@given(sessions().filter(lambda session: session.turns))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=20, deadline=None)
def test_any_session_comes_back(session: Session) -> None:
    session = _readable(session)
    assert held(again(session)) == held(session)


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_whatever_is_put_into_an_export_a_session_or_a_reason_comes_out(
    data: st.DataObject,
) -> None:
    document = json.loads(msgspec.json.encode(as_trajectory(EVERYTHING)))
    for _ in range(data.draw(st.integers(1, 3))):
        way = data.draw(st.sampled_from(places(document)))
        target = document
        for key in way[:-1]:
            target = target[key]
        target[way[-1]] = data.draw(JSON)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trajectory.json"
        path.write_text(json.dumps(document))
        with suppress(InputError):
            session = READERS["atif"].read(Transcript(source="atif", path=str(path)))
            assert msgspec.json.decode(msgspec.json.encode(session), type=Session) == session
            assert session.started <= session.ended
            assert min(msgspec.structs.astuple(session.usage)) >= 0


def test_an_export_is_valid_by_the_formats_own_models() -> None:
    models = pytest.importorskip("atif")
    document = json.loads(msgspec.json.encode(as_trajectory(EVERYTHING)))
    trajectory = models.Trajectory.model_validate(document)
    assert trajectory.final_metrics.total_prompt_tokens == 11 + 33 + 44
    assert [each.trajectory_id for each in trajectory.subagent_trajectories] == ["a1", "a1#1"]
    (_, _, _, answer, *_) = trajectory.steps
    assert [call.tool_call_id for call in answer.tool_calls] == ["c2", "c2#1", "c3", "#3", "c4"]
    assert trajectory.agent.model_name == EVERYTHING.models[0]
    with pytest.raises(ValueError, match="session_id"):
        models.Trajectory.model_validate({**document, "session_id": 1})


def test_an_export_names_no_model_where_none_is_known() -> None:
    plain = Session(id="s", source="", tool="t", task="", started=at(9), ended=at(9))
    assert "model_name" not in as_trajectory(plain)["agent"]


@pytest.mark.shared
def test_every_shared_session_comes_back_and_is_valid() -> None:
    models = pytest.importorskip("atif")
    found = scan([SHARED])
    read = [item for week in found.weeks() for item in read_week(found, week)]
    exported = [item for item in read if isinstance(item, Session)]
    assert exported
    for session in exported:
        assert held(again(session)) == held(session), session.id
        document = json.loads(msgspec.json.encode(as_trajectory(session)))
        models.Trajectory.model_validate(document)
