"""What Claude Code's attachments told the model, in the words of its requests.

An attachment's record holds the parts of a text, and the program sends it in a sentence of its
own; those here are the sentences of 2.1.197, read off its requests. Other versions put some of
them otherwise. Attachments that hold no text, such as the reminders of a plan mode or of a list of
tasks, were sent as texts that the file does not have: they are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from debrief.sessions.model import ContextSource
from debrief.sessions.readers.claude_code.records import Attachment
from debrief.sessions.readers.values import mapping, mappings, string, whole_number

_HEARD_HOOKS = ("SessionStart", "UserPromptSubmit", "UserPromptExpansion")
"""Events of hooks whose plain output is sent."""
_SIGNS: Final = {"Error": "✘", "Warning": "⚠", "Info": "ℹ", "Hint": "★"}


def context_in(attachment: Attachment) -> tuple[ContextSource, str] | None:
    """Return who told the model what in an attachment; None where it told nothing that is known."""
    kind = attachment.type
    say = _SAID.get(kind) if type(kind) is str else None
    text = say(attachment) if say else ""
    if not text.strip():
        return None
    who: ContextSource = "hook" if "hook" in string(kind) else "program"
    return who, f"<system-reminder>\n{text}\n</system-reminder>"


def _strings(value: Any) -> list[str]:
    return [each for each in value if type(each) is str] if type(value) is list else [string(value)]


def _under(head: str, lines: Any, between: str = "\n") -> str:
    text = between.join(_strings(lines))
    return f"{head}\n{text}" if text else ""


def _both(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def _agents(attachment: Attachment) -> str:
    is_first = attachment.isInitial is True
    head = "Available agent types for" if is_first else "New agent types are now available for"
    gone = _under("The following agent types are no longer available:", attachment.removedTypes)
    note = is_first and attachment.showConcurrencyNote is True
    return _both(
        _under(f"{head} the Agent tool:", attachment.addedLines), gone, _AT_ONCE if note else ""
    )


_AT_ONCE = (
    "When you launch multiple agents for independent work, send them in a single message with"
    " multiple tool uses so they run concurrently."
)


def _skills(attachment: Attachment) -> str:
    head = "The following skills are available for use with the Skill tool:\n"
    return _under(head, string(attachment.content))


def _deferred_tools(attachment: Attachment) -> str:
    new = _under(
        "The following deferred tools are now available via ToolSearch:", attachment.addedLines
    )
    gone = _under("The following deferred tools are no longer available:", attachment.removedNames)
    return _both(new, gone)


def _servers(attachment: Attachment) -> str:
    head = (
        "# MCP Server Instructions\n\nThe following MCP servers have provided instructions for how"
        " to use their tools and resources:\n"
    )
    gone = _under("The following MCP servers have disconnected:", attachment.removedNames)
    return _both(_under(head, attachment.addedBlocks, "\n\n"), gone)


def _edited_file(attachment: Attachment) -> str:
    head = (
        f"Note: {string(attachment.filename)} was modified, either by the user or by a linter. This"
        " change was intentional, so make sure to take it into account as you proceed (ie. don't"
        " revert it unless the user asks you to). Don't tell the user this, since they are already"
        " aware. Here are the relevant changes (shown with line numbers):"
    )
    return _under(head, string(attachment.snippet))


def _hook_context(attachment: Attachment) -> str:
    text = "\n".join(_strings(attachment.content))
    return f"{string(attachment.hookName)} hook additional context: {text}" if text.strip() else ""


def _hook_output(attachment: Attachment) -> str:
    text = string(attachment.content)
    is_heard = text and attachment.hookEvent in _HEARD_HOOKS
    return f"{string(attachment.hookName)} hook success: {text}" if is_heard else ""


def _hook_block(attachment: Attachment) -> str:
    error = mapping(attachment.blockingError)
    command, text = string(error.get("command")), string(error.get("blockingError"))
    head = f'{string(attachment.hookName)} hook blocking error from command: "{command}"'
    return f"{head}: {text}" if text else ""


def _hook_answer(attachment: Attachment) -> str:
    answer = mapping(attachment.response)
    more = mapping(answer.get("hookSpecificOutput")).get("additionalContext")
    return _both(string(answer.get("systemMessage")), string(more))


def _date(attachment: Attachment) -> str:
    day = string(attachment.newDate)
    return f"The date has changed. Today's date is now {day}." if day else ""


def _diagnostics(attachment: Attachment) -> str:
    files = (
        _under(f"{string(file.get('uri')).rpartition('/')[2]}:", list(map(_problem, found)))
        for file in mappings(attachment.files)
        for found in [mappings(file.get("diagnostics"))]
    )
    text = _both(*files)
    head = "The following new diagnostic issues were detected:"
    return f"<new-diagnostics>{head}\n\n{text}</new-diagnostics>" if text else ""


def _problem(found: dict[str, Any]) -> str:
    start = mapping(mapping(found.get("range")).get("start"))
    line, column = (whole_number(start.get(name)) + 1 for name in ("line", "character"))
    sign = _SIGNS.get(string(found.get("severity")), "•")
    code, source = string(found.get("code")), string(found.get("source"))
    behind = f"{f' [{code}]' if code else ''}{f' ({source})' if source else ''}"
    return f"  {sign} [Line {line}:{column}] {string(found.get('message'))}{behind}"


def _file(attachment: Attachment) -> str:
    text = string(mapping(mapping(attachment.content).get("file")).get("content"))
    return _under(f"Contents of {string(attachment.filename)}:\n", text)


def _memory(attachment: Attachment) -> str:
    text = string(mapping(attachment.content).get("content"))
    return _under(f"Contents of {string(attachment.path)}:\n", text)


_SAID: Final[dict[str, Callable[[Attachment], str]]] = {
    "agent_listing_delta": _agents,
    "skill_listing": _skills,
    "deferred_tools_delta": _deferred_tools,
    "mcp_instructions_delta": _servers,
    "edited_text_file": _edited_file,
    "file": _file,
    "nested_memory": _memory,
    "diagnostics": _diagnostics,
    "date_change": _date,
    "hook_additional_context": _hook_context,
    "hook_success": _hook_output,
    "hook_blocking_error": _hook_block,
    "async_hook_response": _hook_answer,
}
