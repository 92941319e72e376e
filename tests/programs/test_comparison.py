"""The comparison of what was read with what happened: right readings pass, each wrong one shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.sessions.model import (
    ContextText,
    DeclaredTool,
    Instructions,
    Message,
    Session,
    Subagent,
    ToolCall,
    Turn,
    UnreadTranscript,
    Usage,
)
from tools.programs.__main__ import main
from tools.programs.comparison import ABSENT, OK, SESSIONS, WRONG, compare, misfiled, report
from tools.programs.definitions import load
from tools.programs.fields import FIELDS
from tools.programs.protocols import Request, Said
from tools.programs.running import BRANCH, Run, Truth, install
from tools.programs.server import Exchange, ScriptedModel

KNOWN = load()
START = datetime(2026, 3, 2, 9, tzinfo=UTC)
OFFERED = [
    DeclaredTool(name=name)
    for name in dict.fromkeys(tool.tool for tool in KNOWN.programs["claude"].tools.values())
]


def _clock(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def _exchanges(script: str, minute: int, model: ScriptedModel) -> list[Exchange]:
    """Go through a script, a second a step."""
    request = Request(model="m", tools=OFFERED, system=["Be brief. (claude-md)"])
    if before := KNOWN.scripts[script].resumes:
        request.say("user", KNOWN.scripts[before].prompt)
    request.say("user", KNOWN.scripts[script].prompt)
    first = len(model.exchanges)
    for _ in KNOWN.scripts[script].steps:
        answer = model.answer(request)
        request.say("assistant", answer.text)
        for call in answer.calls:
            request.bring(call.id, f"of {call.id}")
    made = model.exchanges[first:]
    return [
        replace(exchange, at=_clock(minute) + timedelta(seconds=step))
        for step, exchange in enumerate(made)
    ]


def _messages(exchanges: list[Exchange]) -> tuple[Message, ...]:
    messages = []
    for place, sent in enumerate(exchanges):
        deeds = KNOWN.scripts[sent.script].steps[place].calls
        calls = tuple(
            ToolCall(
                id=call.id,
                name=call.name,
                input=json.dumps(call.input),
                result=f"of {call.id}",
                status=deed.status,
                exit_code=deed.exit,
            )
            for call, deed in zip(sent.calls, deeds, strict=True)
        )
        messages.append(
            Message(
                id=f"m{place}",
                model=sent.model,
                at=sent.at,
                text=sent.text,
                calls=calls,
                usage=sent.usage,
            )
        )
    return tuple(messages)


def _turn(number: int, exchanges: list[Exchange]) -> Turn:
    prompt = KNOWN.scripts[exchanges[0].script].prompt
    at = exchanges[0].at
    return Turn(number=number, prompt=prompt, at=at, messages=_messages(exchanges))


def _sum(exchanges: Sequence[Exchange]) -> Usage:
    total = Usage()
    for exchange in exchanges:
        total += exchange.usage
    return total


@pytest.fixture
def happened(tmp_path: Path) -> tuple[Truth, Session, Session]:
    """What happened, and a right reading of it: one session with a resume, one with a subagent."""
    model = ScriptedModel(KNOWN.programs["claude"], KNOWN.scripts, tmp_path)
    fix, again = _exchanges("fix", 0, model), _exchanges("again", 10, model)
    agent, helper = _exchanges("agent", 20, model), _exchanges("helper", 20, model)
    names = ("fix", "again", "agent")
    truth = Truth(
        program="claude",
        version="1.2.3",
        repository=str(tmp_path),
        growth=(6, 1),
        runs=tuple(
            Run(name, _clock(10 * place), _clock(10 * place + 1), 0)
            for place, name in enumerate(names)
        ),
        exchanges=(*fix, *again, *agent, *helper),
    )
    first = Session(
        id="s1",
        source="claude-code",
        tool="claude-code",
        tool_version="1.2.3",
        task="t",
        branch=BRANCH,
        cwd=str(tmp_path),
        started=fix[0].at,
        ended=again[-1].at,
        turns=(_turn(1, fix), _turn(2, again)),
        usage=_sum(fix + again),
        lines_added=6,
        lines_removed=1,
        system_prompt="Be brief. (claude-md)\n",
        declared_tools=tuple(OFFERED),
        instructions=(Instructions(path="CLAUDE.md", text="(claude-md)", place="system"),),
    )
    help_of = Subagent(
        id="a1",
        prompt=KNOWN.scripts["helper"].prompt,
        messages=_messages(helper),
        call_id=agent[0].calls[0].id,
    )
    second = replace(
        first,
        id="s2",
        started=agent[0].at,
        ended=agent[-1].at,
        turns=(_turn(1, agent),),
        subagents=(help_of,),
        usage=_sum(agent + helper),
        lines_added=0,
        lines_removed=0,
    )
    return truth, first, second


def _with_first(session: Session, change: Callable[[Message], Message]) -> Session:
    turn = session.turns[0]
    messages = (change(turn.messages[0]), *turn.messages[1:])
    return replace(session, turns=(replace(turn, messages=messages), *session.turns[1:]))


def _with_call(session: Session, **changes: object) -> Session:
    def change(message: Message) -> Message:
        return replace(message, calls=(replace(message.calls[0], **changes), *message.calls[1:]))

    return _with_first(session, change)


def test_a_right_reading_differs_nowhere(happened: tuple[Truth, Session, Session]) -> None:
    truth, first, second = happened
    result = compare(truth, KNOWN.scripts, [second, first])
    assert {field: result.differences[field] for field in (SESSIONS, *FIELDS)} == {
        field: [] for field in (SESSIONS, *FIELDS)
    }
    assert not result.is_wrong
    assert "| growth | ok |" in report([result], date(2026, 3, 2))


UNSEEN = Turn(number=1, prompt=KNOWN.scripts["fork"].prompt, at=START)
WRONG_READINGS: dict[str, tuple[set[str], Callable[[Session], Session]]] = {
    "a prompt with words of the program": (
        {"prompts", "history"},
        lambda s: replace(s, turns=(replace(s.turns[0], prompt="<env> Mend it."), *s.turns[1:])),
    ),
    "the resumed turn is lost": (
        {"prompts", "history", "messages"},
        lambda s: replace(s, turns=s.turns[:1]),
    ),
    "a fork's turn that the model never saw": (
        {"prompts", "history"},
        lambda s: replace(s, turns=(UNSEEN, *s.turns)),
    ),
    "another text": ({"messages"}, lambda s: _with_first(s, lambda m: replace(m, text="No."))),
    "another argument": ({"messages"}, lambda s: _with_call(s, input="{}")),
    "another result": ({"results"}, lambda s: _with_call(s, result="of another")),
    "a status turned round": ({"status"}, lambda s: _with_call(s, status="failed")),
    "a cache read as input": (
        {"tokens"},
        lambda s: _with_first(s, lambda m: replace(m, usage=Usage(m.usage.input + 1))),
    ),
    "tokens counted twice": ({"tokens in all"}, lambda s: replace(s, usage=s.usage + s.usage)),
    "another model": ({"model"}, lambda s: _with_first(s, lambda m: replace(m, model="n"))),
    "unchanged lines of a patch counted": (
        {"growth"},
        lambda s: replace(s, lines_added=7, lines_removed=2),
    ),
    "no folder, branch or version": (
        {"folder", "branch", "version"},
        lambda s: replace(s, cwd="", branch="", tool_version=""),
    ),
    "begun at the resume": ({"times"}, lambda s: replace(s, started=s.turns[1].at or s.ended)),
    "a subagent that was not": (
        {"subagent"},
        lambda s: replace(s, subagents=(Subagent(id="a"),)),
    ),
    "no system prompt": ({"system prompt"}, lambda s: replace(s, system_prompt="")),
    "a tool too few": ({"tools"}, lambda s: replace(s, declared_tools=tuple(OFFERED[1:]))),
    "a prompt file elsewhere": (
        {"prompt files"},
        lambda s: replace(
            s, instructions=(Instructions(path="CLAUDE.md", text="(claude-md)", place="message"),)
        ),
    ),
    "a compaction that was not": ({"compaction"}, lambda s: replace(s, compactions=1)),
}


@pytest.mark.parametrize("case", WRONG_READINGS)
def test_a_wrong_reading_is_told(case: str, happened: tuple[Truth, Session, Session]) -> None:
    fields, change = WRONG_READINGS[case]
    truth, first, second = happened
    result = compare(truth, KNOWN.scripts, [change(first), second])
    assert {field for field in FIELDS if result.cell(field) == WRONG} == fields
    assert result.is_wrong
    for field in fields:
        assert f"claude, **{field}**: " in report([result], date(2026, 3, 2))


def test_a_subagent_s_wrong_tokens_are_told(happened: tuple[Truth, Session, Session]) -> None:
    truth, first, second = happened
    helper = second.subagents[0]
    message = replace(helper.messages[0], usage=Usage(1))
    wrong = replace(second, subagents=(replace(helper, messages=(message, *helper.messages[1:])),))
    assert compare(truth, KNOWN.scripts, [first, wrong]).differences["subagent"] == ["its tokens"]


def test_what_the_model_was_given_for_a_command_and_a_compaction_is_asked_for(
    happened: tuple[Truth, Session, Session], tmp_path: Path
) -> None:
    truth, first, _ = happened
    fix, again = truth.exchanges[:7], truth.exchanges[7:10]
    model = ScriptedModel(KNOWN.programs["claude"], KNOWN.scripts, tmp_path)
    summary = replace(again[-1], at=_clock(15), usage=Usage(5, 5, 5, 5))
    after, greet = _exchanges("after", 20, model), _exchanges("greet", 30, model)
    names = {"fix": 0, "again": 10, "compact": 15, "after": 20, "greet": 30}
    truth = replace(
        truth,
        runs=tuple(Run(name, _clock(at), _clock(at + 1), 0) for name, at in names.items()),
        exchanges=(*fix, *again, summary, *after, *greet),
    )
    (told,) = _messages(after)
    told = replace(told, summary=f"It was so: {summary.text}")
    compacted = replace(
        first,
        turns=(*first.turns, replace(_turn(3, after), messages=(told,))),
        ended=after[-1].at,
        compactions=1,
        usage=_sum([*fix, *again, summary, *after]),
    )
    script = KNOWN.scripts["greet"]
    turn = replace(_turn(1, greet), prompt=script.typed, expansion=f"{script.prompt}\n")
    greeted = replace(
        first,
        id="s2",
        turns=(turn,),
        started=greet[0].at,
        ended=greet[0].at,
        usage=_sum(greet),
        lines_added=0,
        lines_removed=0,
    )
    assert not compare(truth, KNOWN.scripts, [compacted, greeted]).is_wrong
    bare = replace(greeted, turns=(replace(turn, expansion=""),))
    untold = replace(
        compacted,
        turns=(*first.turns, _turn(3, after)),
        usage=_sum([*fix, *again, *after]),
    )
    result = compare(truth, KNOWN.scripts, [untold, bare])
    wrong = {field for field in FIELDS if result.cell(field) == WRONG}
    assert wrong == {"slash command", "history", "compaction", "tokens in all"}


def test_what_no_person_wrote_is_asked_for_in_the_session_and_in_its_line(
    happened: tuple[Truth, Session, Session], tmp_path: Path
) -> None:
    truth, first, _ = happened
    script = KNOWN.scripts["shell"]
    printed = f"{script.prompt}\n{script.told[1]}</bash-stdout>"
    request = Request(model="m", tools=OFFERED, system=["Be brief. (claude-md)"])
    request.say("user", printed)
    model = ScriptedModel(KNOWN.programs["claude"], KNOWN.scripts, tmp_path)
    model.answer(request)
    sent = replace(model.exchanges[0], at=_clock(1))
    truth = replace(truth, runs=(Run("shell", _clock(1), _clock(2), 0),), exchanges=(sent,))
    (message,) = _messages([sent])
    heard = replace(message, context=(ContextText(said_by="command", text=printed),))

    def reading(one: Message) -> Session:
        turn = Turn(number=0, prompt="", at=sent.at, messages=(one,), origin="preamble")
        usage = sent.usage
        bare = replace(first, lines_added=0, lines_removed=0, usage=usage, turns=(turn,))
        return replace(bare, started=_clock(1), ended=_clock(2))

    assert not compare(truth, KNOWN.scripts, [reading(heard)]).is_wrong
    result = compare(truth, KNOWN.scripts, [reading(message)])
    wrong = {field for field in FIELDS if result.cell(field) == WRONG}
    assert wrong == {"history", "context"}
    assert f"{script.told[1]!r} is not read" in result.differences["context"]


def test_lost_and_surplus_sessions_are_told(happened: tuple[Truth, Session, Session]) -> None:
    truth, first, second = happened
    other = replace(first, id="s3", turns=())
    unread = UnreadTranscript(
        path="a.jsonl", source="pi", week="", line=1, reason="newer than known", expected=False
    )
    kept_apart = replace(unread, path="b.json", expected=True)
    result = compare(truth, KNOWN.scripts, [first, other, unread, kept_apart])
    assert result.differences[SESSIONS] == [
        "a.jsonl: newer than known",
        "agent: no session",
        "session s3 is of nothing that was run",
    ]
    # Nobody asks the model anything in a script without steps: a session of it is one too many.
    asked_nothing = replace(truth, runs=(*truth.runs, Run("alone", _clock(30), _clock(31), 0)))
    assert not compare(asked_nothing, KNOWN.scripts, [first, second]).differences[SESSIONS]
    failed = replace(truth, runs=(replace(truth.runs[0], code=1), *truth.runs[1:]))
    assert compare(failed, KNOWN.scripts, [first, second]).differences[SESSIONS] == [
        "fix: exit code 1"
    ]


def test_what_no_file_holds_is_not_asked_for(happened: tuple[Truth, Session, Session]) -> None:
    truth, first, second = happened
    unknown = {"branch": "no file of it has the branch"}
    bare = [replace(session, branch="") for session in (first, second)]
    result = compare(truth, KNOWN.scripts, bare, unknown)
    assert (result.cell("branch"), result.cell("folder"), result.is_wrong) == (ABSENT, OK, False)
    assert "claude, branch: no file of it has the branch" in report([result], date(2026, 3, 2))


def test_a_program_that_cannot_be_installed_is_told_apart_from_one_that_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="npm: not found"):
        install(tmp_path, "node", "1")
    monkeypatch.setattr("sys.argv", ["programs", str(tmp_path), "--programs", "pi"])
    assert main() == 2
    assert "pi: not installed: npm: not found" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["programs", str(tmp_path), "--programs", "pi", "--read"])
    assert main() == 1


def test_every_program_has_a_tool_for_each_deed_of_its_scripts() -> None:
    for name, program in KNOWN.programs.items():
        scripts = [KNOWN.scripts[script] for script in program.scripts]
        helpers = [KNOWN.scripts[script.helper] for script in scripts if script.helper]
        deeds = {
            call.do for script in scripts + helpers for step in script.steps for call in step.calls
        }
        assert deeds <= program.tools.keys(), name
        assert bool(program.resume) or not any(script.resumes for script in scripts), name
        assert program.unknown.keys() <= {SESSIONS, *FIELDS}, name
    prompts = [script.prompt for script in KNOWN.scripts.values() if script.prompt]
    assert not any(a in b for a in prompts for b in prompts if a is not b)


def test_a_message_s_words_are_kept_apart_by_who_said_them() -> None:
    request = Request(model="m")
    for role, text in (("developer", "Rules."), ("user", "Do it."), ("assistant", "One,")):
        request.say(role, text)
    request.say("assistant", "two.")
    request.bring("c", "done")
    request.say("assistant", "Three.")
    assert request.system == ["Rules."]
    assert request.said == [
        Said("user", "Do it."),
        Said("assistant", "One,\ntwo."),
        Said("tool", "done"),
        Said("assistant", "Three."),
    ]


def test_a_session_that_a_scan_filed_under_another_week_is_named() -> None:
    session = Session(id="s1", source="cline", tool="cline", task="t", started=START, ended=START)
    assert list(misfiled({"2026-03-02": [session]})) == []
    (found,) = misfiled({"2022-01-03": [session]})
    assert found == "session s1 of the week 2026-03-02 is filed under 2022-01-03"
