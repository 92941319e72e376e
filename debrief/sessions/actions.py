"""What a tool call is: one of ten actions, the shell command that it runs, the files that it names.

Readers say which of their agent's tools does what (``ToolNames``); tools of servers (MCP) and those
that no reader knows go by names that mean the same everywhere. It is worked out of the redacted
arguments, for every session alike, before the session's digest is taken.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from debrief.sessions.model import Action, Message, Session, ToolCall
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import ToolNames, actions_by_name
from debrief.sessions.readers.edit_arguments import PATHS
from debrief.sessions.readers.values import decoded_arguments

_EVERYWHERE = actions_by_name(
    ToolNames(
        run="bash shell terminal run_command run_terminal_command run_shell_command execute_command"
        " bash_command local_shell_call powershell",
        read="read_file read_text_file read_multiple_files view_file open_file get_file_contents",
        search="grep glob search_files find_files list_files list_directory directory_tree"
        " search_code",
        edit="write_file create_file edit_file delete_file move_file str_replace apply_patch"
        " str_replace_editor str_replace_based_edit_tool create_or_update_file push_files",
        wait="wait sleep command_status get_command_status read_terminal get_terminal_output",
        plan="todo_write write_todos update_todos update_plan",
        delegate="spawn_agent run_agent delegate delegate_task",
        ask="ask_user ask_human ask_followup_question",
        web="web_search search_web google_search web_fetch fetch fetch_url fetch_webpage open_url"
        " browser_navigate browser_click browser_type browser_snapshot browser_take_screenshot"
        " browser_evaluate browser_wait_for browser_console_messages",
    )
)
"""Names that say what a tool does, whoever offers it."""
_SCRIPTS = frozenset({"exec", "execute_program"})
"""Tools that run a script, which calls the other tools."""
_IN_A_SCRIPT = re.compile(
    r"""\b(?:cmd|command)["']?\s*:\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)""",
    re.DOTALL,
)
_CALLED = re.compile(r"\btools\.(\w+)\(")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}
_LISTS = ("paths", "file_paths", "filePaths", "files", "edits", "replacements", "operations", "ops")
"""Arguments that are a list of paths, or of objects with one each."""
_PATCHES = ("input", "patch", "patchText")
_IN_A_PATCH = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)


def with_actions(session: Session) -> Session:
    """Return a session whose calls all say what they are; see ``described``."""

    def in_messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return tuple(
            replace(message, calls=tuple(map(described, message.calls)))
            if message.calls
            else message
            for message in messages
        )

    return replace(
        session,
        turns=tuple(replace(turn, messages=in_messages(turn.messages)) for turn in session.turns),
        subagents=tuple(
            replace(subagent, messages=in_messages(subagent.messages))
            for subagent in session.subagents
        ),
    )


def described(call: ToolCall) -> ToolCall:
    """Return a call with its action, its command and its paths, by its tool's name and arguments.

    A call of a shell whose arguments hold no command is a ``run`` with an empty one. Input to a
    process that runs is ``other``, and a ``wait`` when it is empty. What edited a file is an
    ``edit``, whatever its name.
    """
    given = decoded_arguments(call.input)
    action, command = action_of(call.name), ""
    if action == "run":
        script = next((given[key] for key in ("input", "code", "source") if key in given), None)
        if _bare(call.name) in _SCRIPTS and isinstance(script, str):
            command = "\n".join(map(_literal, _IN_A_SCRIPT.findall(script)))
            action = "run" if command else _of_script(script, given)
        elif isinstance(keys := given.get("keystrokes"), str):  # typed into a terminal
            command = keys.rstrip("\n") if keys.endswith("\n") else ""
            action = "run" if command.strip() else "other" if keys.strip() else "wait"
        else:
            command = _command(given)
    elif action == "wait" and given.get("chars"):
        action = "other"
    if action == "other" and call.path:
        action = "edit"
    paths: tuple[str, ...] = ()
    if action in ("read", "search", "edit", "other"):
        paths = tuple(dict.fromkeys(_paths(given)))
        paths = paths or ((call.path,) if call.path else ())
    return replace(call, action=action, command=command, paths=paths)


def action_of(tool: str) -> Action:
    """Return what a tool's calls do; ``other`` for a tool that is not known.

    >>> action_of("Bash"), action_of("mcp__files__read_file"), action_of("mcp__linear__get_issue")
    ('run', 'read', 'other')
    """
    name = _bare(tool)
    known = READERS.actions.get(name)
    return known or _EVERYWHERE.get(name.rpartition("__")[2].replace("-", "_"), "other")


def _bare(tool: str) -> str:
    return tool.lower().removeprefix("functions.")


def _of_script(script: str, given: Mapping[str, Any]) -> Action:
    """Return what a script without shell commands does, where all that it calls does the same."""
    called = set(_CALLED.findall(script))
    if called == {"write_stdin"}:
        return "wait" if re.search(r"\bchars[\"']?\s*:\s*(\"\"|''|``)", script) else "other"
    actions = {action_of(name) for name in called}
    return actions.pop() if len(actions) == 1 and "run" not in actions else "other"


def _command(given: Mapping[str, Any]) -> str:
    command = next((given[key] for key in ("command", "cmd", "script") if given.get(key)), None)
    commands = given.get("commands")
    if command is None and isinstance(commands, list):
        return "\n".join(map(str, commands))
    if isinstance(command, str) and isinstance(given.get("args"), list):
        command = [command, *given["args"]]
    if isinstance(command, list):
        parts = [str(word) for word in command]
        if len(parts) >= 3 and parts[1] in ("-c", "-lc", "-ic"):
            return parts[2]
        return shlex.join(parts)
    return command if isinstance(command, str) else ""


def _literal(quoted: str) -> str:
    return _ESCAPED.sub(lambda found: _LETTERS.get(found[1], found[1]), quoted[1:-1])


def _paths(given: Mapping[str, Any]) -> Iterator[str]:
    yield from _path_in(given)
    for key in _LISTS:
        for item in given[key] if isinstance(given.get(key), list) else ():
            if isinstance(item, str):
                yield item
            elif isinstance(item, dict):
                yield from _path_in(item)
    for key in _PATCHES:
        if isinstance(text := given.get(key), str):
            yield from _IN_A_PATCH.findall(text)


def _path_in(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the path that an object holds; addresses of anything but files are none."""
    named = (given.get(key) for key in PATHS)
    path = next((path for path in named if isinstance(path, str) and path.strip()), "")
    path = path.removeprefix("file://")
    if path and "://" not in path:
        yield path
