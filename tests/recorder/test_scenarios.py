"""What a person does, and the record of it: one file a story.

A file has a sentence, what is done (a line each: ``start``, ``write``, ``delete``, ``link``, ``mode``,
``git``, ``run``, ``stop``), a line ``---``, and the record as it is to be read. Texts are indented,
or follow `` = `` as JSON. Where the end is missing it is written: delete it to have it written anew, and look at it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from debrief.recorder.checks import problems_of
from debrief.recorder.contracts import AssistantMessage, ToolMessage
from debrief.recorder.encoding import decode_record, encode_record
from debrief.recorder.local_session import StopOptions
from debrief.recorder.stopping import Stopped
from debrief.recorder.verification import verify
from debrief.sessions.readers.recorder import session_of as read_session
from tests.machine import files_below
from tests.recorder.repositories import tree_of_folder, trees_of
from tests.recorder.session_scenario import REDACTOR, Shop
from tests.snapshots.scenario import git, write

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
SEPARATOR = "\n---\n"
INDENT = "    "


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.stem)
def test_what_is_done_is_recorded_as_the_file_says(
    shop: Shop, file: Path, tmp_path: Path, scenario: Path
) -> None:
    story, _, expected = scenario.read_text().partition(SEPARATOR)
    before = files_below(shop.folder / ".git")
    done = play(shop, file, story.split("\n\n", 1)[1])
    assert "\ngit " in story or files_below(shop.folder / ".git") == before
    record = decode_record(encode_record(done.record))
    assert not read_session(encode_record(record), scenario.name).problems
    assert record.meta.verified
    assert (problems_of(record), verify(shop.folder, record, REDACTOR)) == ([], [])
    if not record.meta.redactions.count:
        trees = trees_of(record, shop.folder, tmp_path / "there")
        assert trees[-1] == record.meta.final_tree
        if not record.meta.skipped:
            assert record.meta.final_tree == tree_of_folder(shop.folder)
    made = "\n".join(lines_of(done)) + "\n"
    if not expected:
        scenario.write_text(f"{story}{SEPARATOR}{made}")
        pytest.fail(f"the record was missing in {scenario} and is written now: look at it")
    assert made == expected


def play(shop: Shop, file: Path, story: str) -> Stopped:
    """Do what a story says, line by line; return what its stop gave."""
    for line, text in instructions(story):
        before, _, escaped = line.partition(" = ")
        verb, *words = shlex.split(before)
        place = shop.folder / (words[0] if words else "")
        match verb:
            case "start":
                shop.start(ignore=tuple(words))
            case "write":
                write(shop.folder, {words[0]: json.loads(escaped) if escaped else text})
            case "delete":
                place.unlink()
            case "link":
                place.symlink_to(words[1])
            case "mode":
                place.chmod(int(words[1], 8))
            case "git":
                git(shop.folder, *words)
            case "run":
                shop.run(*words)
            case "stop":
                return shop.stop(file, StopOptions(ignore=tuple(words)))
            case _:
                raise ValueError(line)
    raise ValueError("a story ends with stop")


def instructions(story: str) -> Iterator[tuple[str, str]]:
    """Yield each line that is not indented, and the text that is indented below it."""
    line, text = "", ""
    for each in story.splitlines():
        if each.startswith(INDENT):
            text += f"{each.removeprefix(INDENT)}\n"
            continue
        if line:
            yield line, text
        line, text = each, ""
    yield line, text


def lines_of(done: Stopped) -> Iterator[str]:
    """Write a record down as a person reads it, and what it lacks to be ready."""
    record, meta = done.record, done.record.meta
    codes = {command.call_id: command.exit_code for command in meta.commands or ()}
    results = {m.tool_call_id: m.content for m in record.messages if isinstance(m, ToolMessage)}
    for message in record.messages:
        if not isinstance(message, AssistantMessage):
            continue
        for call in message.tool_calls or []:
            arguments = json.loads(call.function.arguments)
            if call.id in codes:
                line = shlex.join([arguments["cmd"], *arguments["args"]])
                yield f"run {line}: exit code {codes[call.id]}"
                yield from indented(results[call.id])
            elif "path" in arguments:
                yield f"read {arguments['path']}"
                yield from indented(results[call.id])
            for operation in arguments.get("ops", ()):
                mode = f", mode {operation['mode']}" if "mode" in operation else ""
                yield f"{operation['type'].replace('_file', '')} {operation['path']}{mode}"
                yield from indented(operation.get("diff", ""))
        if message.content:
            yield f"say {message.content}"
    yield from (f"left out {item.path}: {item.reason}" for item in meta.skipped)
    yield from (f"secrets replaced: {kind}" for kind in meta.redactions.kinds)
    yield from (f"warning: {warning}" for warning in meta.warnings)
    yield from (f"not ready: {reason}" for reason in done.not_ready)


def indented(text: str) -> Iterator[str]:
    """Yield a text's lines, those that a person could not read as JSON has them."""
    for line in text.removesuffix("\n").split("\n") if text else ():
        is_plain = line.isprintable() and line == line.rstrip()
        yield f"{INDENT}{line if is_plain else json.dumps(line)}".rstrip()
