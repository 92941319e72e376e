"""A conversation's folder, as OpenHands writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from debrief.sessions.actions import with_actions
from debrief.sessions.model import Session
from debrief.sessions.readers.openhands import READER
from tests.sessions.readers.content import calls_of, prompts_of, read_all, texts_of, told_in

ID = "c0cc8871-bc59-445d-a3e2-c0e6af18ee80"


class Conversation:
    """A folder with a state and events."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / ID.replace("-", "")
        (self.folder / "events").mkdir(parents=True)
        self.count = 0
        self.requests: list[dict[str, Any]] = []

    def add(self, kind: str, source: str = "agent", **fields: Any) -> str:
        id = f"e{self.count}"
        event = {"id": id, "timestamp": f"2026-03-02T10:00:{self.count:02d}.5", "source": source}
        if self.count:
            event["parent_id"] = f"e{self.count - 1}"
        path = self.folder / "events" / f"event-{self.count:05d}-{id}.json"
        path.write_text(json.dumps({**event, **fields, "kind": kind}))
        self.count += 1
        return id

    def say(self, text: str, **more: Any) -> str:
        said = {"role": "user", "content": parts(text), "thinking_blocks": []}
        return self.add("MessageEvent", "user", llm_message=said, **more)

    def act(self, request: str, id: str, name: str, text: str = "", **given: Any) -> None:
        if all(each["response_id"] != request for each in self.requests):
            counts = {"prompt_tokens": 50, "completion_tokens": 5, "cache_read_tokens": 20}
            self.requests.append({"response_id": request, "model": "m/one", **counts})
        call = {"id": id, "name": name, "arguments": json.dumps(given)}
        names = {"tool_name": name, "tool_call_id": id, "llm_response_id": request}
        self.add("ActionEvent", thought=parts(text), tool_call=call, **names)

    def end(self, id: str, text: str, **seen: Any) -> None:
        seen = {"content": parts(text), "is_error": False, **seen}
        self.add("ObservationEvent", "environment", tool_call_id=id, observation=seen)

    def read(self, leaf: str) -> Session:
        total = {
            name: sum(each[name] for each in self.requests)
            for name in ("prompt_tokens", "completion_tokens", "cache_read_tokens")
        }
        metrics = {"accumulated_token_usage": total, "token_usages": self.requests}
        state = {
            "id": ID,
            "agent": {"llm": {"model": "m/one"}},
            "workspace": {"working_dir": "/home/u/shop"},
            "leaf_event_id": leaf,
            "stats": {"usage_to_metrics": {"agent": metrics}},
        }
        (self.folder / "base_state.json").write_text(json.dumps(state))
        (session,) = read_all(READER, self.folder.parent)
        return with_actions(session)


def parts(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def test_a_conversation_is_read_with_its_edits_refusals_summaries_and_tokens(
    tmp_path: Path,
) -> None:
    talk = Conversation(tmp_path)
    tools = [{"title": "terminal", "description": "Runs."}]
    talk.add("SystemPromptEvent", system_prompt=parts("You are it.")[0], tools=tools)
    talk.say("Change a.", extended_content=parts("A skill."))
    talk.act("r1", "c1", "terminal", "I look.", command="pytest -q")
    talk.act("r1", "c2", "file_editor", command="str_replace", path="/home/u/shop/a.py")
    ran = {"exit_code": 1, "working_dir": "/home/u/shop", "prefix": "", "suffix": "\n[end]"}
    talk.end("c1", "1 failed", kind="TerminalObservation", exit_code=1, metadata=ran)
    talk.end("c2", "edited", path="/home/u/shop/a.py", old_content="x\n", new_content="y\nz\n")
    talk.act("r2", "c3", "terminal", command="rm -r .")
    talk.add("UserRejectObservation", tool_call_id="c3", rejection_reason="Never.")
    talk.add("Condensation", "environment", summary="All so far.", forgotten_event_ids=[])
    talk.act("r3", "c4", "browse", url="x")
    talk.add("AgentErrorEvent", tool_call_id="c4", error="Tool 'browse' not found.")
    talk.act("r4", "c5", "terminal", command="sleep 9")
    talk.add("PauseEvent", "user")
    last = talk.say("Is it well?")
    said = {"role": "assistant", "content": parts("It is well."), "reasoning_content": "Yes."}
    last = talk.add("MessageEvent", llm_message=said, llm_response_id="r5")
    session = talk.read(last)
    assert (session.id, session.cwd, session.problems) == (ID, "/home/u/shop", ())
    assert (session.system_prompt, session.models) == ("You are it.", ("m/one",))
    assert prompts_of(session) == ["Change a.", "Is it well?"]
    assert texts_of(session) == ["I look.", "", "", "", "It is well."]
    assert told_in(session) == [("program", "A skill.")]
    test, edit, refused, unknown, stopped = calls_of(session)
    shown = "1 failed\n[end]\n[Current working directory: /home/u/shop]"
    assert test.result == f"{shown}\n[Command finished with exit code 1]"
    assert (test.status, test.exit_code, edit.added, edit.removed) == ("failed", 1, 2, 1)
    assert [each.status for each in (refused, unknown, stopped)] == [
        "rejected",
        "failed",
        "unanswered",
    ]
    deeds = [(deed.kind, deed.text) for deed in session.turns[0].interventions]
    assert deeds == [("rejection", "Never."), ("interruption", "")]
    assert (session.compactions, session.turns[0].messages[2].summary) == (1, "All so far.")
    assert (session.usage.input, session.usage.cache_read) == (120, 80)
    assert session.turns[1].messages[0].thinking == "Yes."


def test_what_the_conversation_went_back_over_is_marked(tmp_path: Path) -> None:
    talk = Conversation(tmp_path)
    talk.say("One.")
    talk.act("r1", "c1", "terminal", command="ls")
    talk.end("c1", "a.py")
    talk.say("Two.")
    talk.act("r2", "c2", "terminal", command="ls")
    session = talk.read("e2")
    assert [turn.rewound for turn in session.turns] == [False, True]
