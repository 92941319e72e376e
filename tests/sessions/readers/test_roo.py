"""Tasks of Roo Code and of what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.readers.cline import READER as CLINE
from debrief.sessions.readers.files import walk
from debrief.sessions.readers.roo import READER
from tests.sessions.readers.content import calls_of, prompts_of, read_all, texts_of

START = 1_772_445_600_000
PLACE = "# Current Mode\n<slug>code</slug>\n<name>Code</name>\n<model>m/one</model>\n"
AROUND = f"<environment_details>\n{PLACE}\n</environment_details>"


def user(second: int, *blocks: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": each} if type(each) is str else each for each in blocks]
    around = {"type": "text", "text": AROUND}
    return {"role": "user", "content": [*content, around], "ts": START + 1000 * second}


def answer(second: int, *blocks: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": each} if type(each) is str else each for each in blocks]
    return {"role": "assistant", "content": content, "ts": START + 1000 * second}


def sent(second: int, protocol: str, *counts: int) -> dict[str, Any]:
    names = ("tokensIn", "tokensOut", "cacheWrites", "cacheReads")
    told: dict[str, Any] = {"apiProtocol": protocol, **dict(zip(names, counts, strict=False))}
    text = json.dumps(told)
    return {"ts": START + 1000 * second, "type": "say", "say": "api_req_started", "text": text}


def write(folder: Path, *messages: Any, **beside: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "api_conversation_history.json").write_text(json.dumps(messages))
    for name, content in beside.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def test_tokens_are_those_of_the_requests_before_an_answer_and_cached_ones_count_once(
    tmp_path: Path,
) -> None:
    shown = [sent(0, "openai", 100, 5, 60, 30), sent(2, "anthropic", 4, 6, 70), sent(3, "openai")]
    shown += [sent(4, "anthropic", 200, 7, 10, 90)]  # the one before it failed
    write(tmp_path / "t", user(1, "<task>go</task>"), answer(1, "a"), user(2), answer(3, "b"),
          user(4), answer(5, "c"), ui_messages=shown)  # fmt: skip
    (session,) = read_all(READER, tmp_path)
    spent = [each.usage for turn in session.turns for each in turn.messages]
    assert spent == [Usage(10, 5, 60, 30), Usage(4, 6, 70, 0), Usage(100, 7, 10, 90)]
    assert (session.id, session.models, session.problems) == ("t", ("m/one",), ())


def test_a_task_within_a_task_is_its_subagent(tmp_path: Path) -> None:
    given = {"mode": "code", "message": "count them"}
    made = {"type": "tool_use", "id": "n", "name": "new_task", "input": given}
    asked = user(1, "<user_message>\nwork\n</user_message>")
    history = {"id": "p", "workspace": "/home/u/shop", "task": "work", "tokensIn": 1}
    write(tmp_path / "p", asked, answer(2, made), history_item=history)
    asked = user(3, "<user_message>\ncount them\n</user_message>")
    history = {"id": "q", "parentTaskId": "p", "workspace": "/home/u/shop", "task": "count them"}
    write(tmp_path / "q", asked, answer(4, "three"), history_item=history)
    (session,) = read_all(READER, tmp_path)
    (subagent,) = session.subagents
    assert (session.id, session.cwd, session.title) == ("p", "/home/u/shop", "work")
    assert (subagent.id, subagent.call_id, subagent.prompt) == ("q", "n", "count them")


def test_older_tasks_call_in_elements_and_edit_several_files_at_once(tmp_path: Path) -> None:
    diff = "<<<<<<< SEARCH\n:start_line:3\n-------\nold\n=======\nnew\nmore\n>>>>>>> REPLACE"
    files = "".join(
        f"<file><path>{name}</path><diff><content>\n{diff}\n</content></diff></file>"
        for name in ("a.py", "b.py")
    )
    write(
        tmp_path / "t",
        user(1, "<task>go</task>"),
        answer(2, f"So.\n<apply_diff>\n<args>{files}</args>\n</apply_diff>"),
        user(3, "[apply_diff for 'a.py'] Result:", "both changed"),
        answer(4, "<search_and_replace><path>a.py</path><search>p</search><replace>q</replace>"
               "</search_and_replace>"),
        user(5, "[search_and_replace for 'a.py'] Result:", "The user denied this operation."),
    )  # fmt: skip
    (session,) = read_all(READER, tmp_path)
    first, second = calls_of(session)
    assert (first.name, first.status, first.added, first.removed) == ("apply_diff", "ok", 4, 2)
    assert (second.name, second.status, second.added) == ("search_and_replace", "rejected", 0)
    assert texts_of(session)[0] == "So."


def test_who_wrote_a_task_is_seen_by_its_folder(tmp_path: Path) -> None:
    old = {"role": "user", "content": [{"type": "text", "text": "<task>go</task>"}], "ts": START}
    for extension in ("kilocode.kilo-code", "saoudrizwan.claude-dev"):
        folder = tmp_path / "globalStorage" / extension / "tasks" / extension[:4]
        write(folder, old, answer(2, "done"))
    (kilo,) = read_all(READER, tmp_path)
    (cline,) = [CLINE.read(each) for each in CLINE.find(walk(tmp_path))]
    assert (kilo.tool, cline.tool) == ("kilo-code", "cline-vscode")
    assert prompts_of(kilo) == ["go"]
