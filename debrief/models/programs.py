"""Coding agents that a person is logged in to, used as models: how to start them, read answers.

Each is asked without tools, hooks, servers or files of a project, in a folder that holds nothing
but what it needs for that, and keeps nothing where it can be told so. The question comes by
standard input: arguments can be seen by everybody on a machine.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from debrief.models.plan_limits import is_limit
from debrief.models.usage import ModelUsage, count_of, number_of
from debrief.sessions.readers.values import mapping

SYSTEM = "You answer one question. You have no tools: all that you need is in the question."
AT_ONCE = 2
"""Questions under way with one program, unless a setting says otherwise: a plan is for a person."""

Cause = Literal["limit", "logged out", "asks", "tool", "too long", "hung", "gone", "other"]


class ProgramError(Exception):
    """A program did not answer.

    Args:
        cause: what kept it from it.
        said: in its own words, or ours where it has none.
    """

    def __init__(self, cause: Cause, said: str) -> None:
        self.cause = cause
        self.said = said
        super().__init__(said)


class ProgramAnswer(Struct, frozen=True, kw_only=True):
    """What a program answered, and what it says that this took."""

    text: str
    usage: ModelUsage
    """Its cost is None where the program tells none."""
    cut: bool = False
    """The answer ended for its length."""


class ProgramModel(Struct, frozen=True, kw_only=True):
    """A coding agent that answers without being one."""

    name: str
    """Before the slash of a model's name."""
    title: str
    command: str
    package: str
    """Of npm."""
    provider: str
    """Whose price list its models are on."""
    arguments: tuple[str, ...]
    model_option: str
    schema_option: str = ""
    """Names a file with the JSON schema of an answer; empty where a program has no such option, or
    keeps to a schema by a tool, and an answer by a tool is refused."""
    environment: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    """What the folder holds that it is asked in."""
    login: str
    """How a person logs in."""
    read: Callable[[str, str], ProgramAnswer]
    """Reads what it wrote to standard output and error; raises a ``ProgramError``."""

    def command_for(self, model: str) -> list[str]:
        """Return what is started for a model's name; its own choice of a model without a slash."""
        chosen = model.partition("/")[2]
        option = [self.model_option, chosen] if chosen else []
        return [self.command, *self.arguments, *option]


_NESTED = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT")
"""By these a program knows that another one started it, and refuses or behaves otherwise."""


def environment_for(program: ProgramModel, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which a program is asked."""
    kept = {name: value for name, value in environ.items() if name not in _NESTED}
    return {**kept, **program.environment}


def _claude_answer(output: str, errors: str) -> ProgramAnswer:
    said = _object(output)
    if said is None or "result" not in said:
        raise _refusal(errors.strip() or output)
    words = str(said["result"])
    if said.get("is_error"):
        raise _refusal(words)
    server = mapping(mapping(said.get("usage")).get("server_tool_use"))
    turns = count_of(said.get("num_turns")) or 1
    if turns > 1 or said.get("permission_denials") or any(server.values()):
        raise ProgramError("tool", "it called a tool instead of answering")
    models = [mapping(model) for model in mapping(said.get("modelUsage")).values()]
    read = _total(models, "cacheReadInputTokens")
    written = _total(models, "cacheCreationInputTokens")
    usage = ModelUsage(
        input_tokens=_total(models, "inputTokens") + read + written,
        output_tokens=_total(models, "outputTokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
        cost_usd=number_of(said.get("total_cost_usd")),
    )
    return ProgramAnswer(text=words, usage=usage, cut=said.get("stop_reason") == "max_tokens")


_WORDS_OF_CODEX = ("agent_message", "reasoning", "error")


def _codex_answer(output: str, errors: str) -> ProgramAnswer:
    text: str | None = None
    usage = None
    failure = ""
    for line in output.splitlines():
        event = _object(line) or {}
        item = mapping(event.get("item"))
        kind = event.get("type")
        if kind == "turn.failed":
            failure = str(mapping(event.get("error")).get("message"))
        elif kind == "error":
            failure = str(event.get("message"))
        elif str(kind).startswith("item.") and item.get("type") not in _WORDS_OF_CODEX:
            raise ProgramError("tool", f"it began {item.get('type')} instead of answering")
        elif kind == "item.completed" and item.get("type") == "agent_message":
            text = str(item.get("text"))
        elif kind == "turn.completed":
            usage = mapping(event.get("usage"))
    if text is None or usage is None:
        raise _refusal(failure or errors.strip() or output)
    return ProgramAnswer(
        text=text,
        usage=ModelUsage(
            input_tokens=_total([usage], "input_tokens"),
            output_tokens=_total([usage], "output_tokens"),
            cache_read_tokens=_total([usage], "cached_input_tokens"),
            cache_write_tokens=_total([usage], "cache_write_input_tokens"),
        ),
    )


def _gemini_answer(output: str, errors: str) -> ProgramAnswer:
    said = _object(output) or _object(errors)
    failure = (said or {}).get("error")
    if said is None or failure or not isinstance(said.get("response"), str):
        words = failure.get("message") if isinstance(failure, dict) else None
        raise _refusal(str(words or errors.strip() or output))
    stats = mapping(said.get("stats"))
    if count_of(mapping(stats.get("tools")).get("totalCalls")):
        raise ProgramError("tool", "it called a tool instead of answering")
    models = mapping(stats.get("models")).values()
    tokens = [mapping(mapping(model).get("tokens")) for model in models]
    return ProgramAnswer(
        text=said["response"],
        usage=ModelUsage(
            input_tokens=_total(tokens, "prompt"),
            output_tokens=_total(tokens, "candidates") + _total(tokens, "thoughts"),
            cache_read_tokens=_total(tokens, "cached"),
        ),
    )


_CODEX_OFF = (
    *("apps", "goals", "hooks", "image_generation", "multi_agent", "multi_agent_v2", "plugins"),
    *("shell_tool", "skill_search", "tool_suggest", "unified_exec", "view_image"),
)
_GEMINI_SETTINGS = {
    "tools": {"core": ["none"]},
    "mcp": {"allowed": ["none"]},
    "hooksConfig": {"enabled": False},
    "skills": {"enabled": False},
    "experimental": {"enableAgents": False},
    "context": {"fileName": "none", "includeDirectoryTree": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "telemetry": {"enabled": False},
}

PROGRAMS: Mapping[str, ProgramModel] = {
    program.name: program
    for program in (
        ProgramModel(
            name="claude-code",
            title="Claude Code",
            command="claude",
            package="@anthropic-ai/claude-code",
            provider="anthropic",
            arguments=(
                *("-p", "--output-format", "json", "--no-session-persistence"),
                *("--tools", "", "--disable-slash-commands"),
                *("--strict-mcp-config", "--setting-sources", ""),
                *("--system-prompt", SYSTEM),
            ),
            model_option="--model",
            environment={"CLAUDE_CODE_SAFE_MODE": "1"},  # no CLAUDE.md, no hooks
            login="Run claude and log in with /login.",
            read=_claude_answer,
        ),
        ProgramModel(
            name="codex",
            title="Codex",
            command="codex",
            package="@openai/codex",
            provider="openai",
            arguments=(
                *("exec", "-", "--json", "--ephemeral", "--skip-git-repo-check"),
                *("--sandbox", "read-only", "--ignore-user-config", "--ignore-rules"),
                *("-c", 'web_search="disabled"', "-c", "project_doc_max_bytes=0"),
                *("-c", "include_environment_context=false"),
                *("-c", "include_permissions_instructions=false"),
                *("-c", "skills.include_instructions=false"),
                *(part for name in _CODEX_OFF for part in ("-c", f"features.{name}=false")),
            ),
            model_option="--model",
            schema_option="--output-schema",
            login="Run codex login.",
            read=_codex_answer,
        ),
        ProgramModel(
            name="gemini-cli",
            title="Gemini CLI",
            command="gemini",
            package="@google/gemini-cli",
            provider="gemini",
            arguments=(
                *("--output-format", "json", "--extensions", "none"),
                *("--allowed-mcp-server-names", "none", "--policy", ".gemini/policy.toml"),
            ),
            model_option="--model",
            environment={"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_SYSTEM_MD": "1"},
            files={
                ".gemini/settings.json": msgspec.json.encode(_GEMINI_SETTINGS).decode(),
                ".gemini/policy.toml": '[[rule]]\ntoolName = "*"\ndecision = "deny"\n'
                "priority = 999\n",
                ".gemini/system.md": SYSTEM,
            },
            login="Run gemini and log in.",
            read=_gemini_answer,
        ),
    )
}


def program_of(model: str) -> ProgramModel | None:
    """Return the program that a model's name names; None for a model of a provider.

    >>> program_of("claude-code/opus").command
    'claude'
    """
    return PROGRAMS.get(model.partition("/")[0])


def listed_name(model: str) -> str:
    """Return the name under which price lists have a program's model; any other as it is.

    >>> listed_name("codex/gpt-5.5")
    'openai/gpt-5.5'
    """
    program, chosen = program_of(model), model.partition("/")[2]
    return model if program is None or not chosen else f"{program.provider}/{chosen}"


def installed(path: str | None = None) -> list[ProgramModel]:
    """Return the programs that can be started, by a search path, this process's own by default."""
    return [model for model in PROGRAMS.values() if shutil.which(model.command, path=path)]


_OUT = re.compile(
    r"not logged in|log ?in again|/login|codex login|sign in|signed out|auth method|invalid api key"
    r"|authentication|unauthori[sz]ed|\b401\b|token (?:has )?(?:expired|been revoked)",
    re.IGNORECASE,
)
_DIALOGUE = re.compile(
    r"\by(?:es)?/no?\b|do you (?:want|trust)|permission|press enter|allow .{0,60}\?",
    re.IGNORECASE,
)
_LONG = re.compile(
    r"(?:prompt|input|request) is too long|context (?:window|length)|maximum .{0,20}tokens"
    r"|input token count",
    re.IGNORECASE,
)


def _refusal(words: str) -> ProgramError:
    """Return the error for words that are no answer."""
    said = words.strip() or "it said nothing"
    if is_limit(said):
        return ProgramError("limit", said)
    for cause, pattern in _CAUSES:
        if pattern.search(said):
            return ProgramError(cause, said)
    return ProgramError("other", said)


_CAUSES: tuple[tuple[Cause, re.Pattern[str]], ...] = (
    ("logged out", _OUT),
    ("too long", _LONG),
    ("asks", _DIALOGUE),
)


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, or ends with, whatever a program warned of before."""
    start = text.find("{")
    while start >= 0:
        try:
            found = json.loads(text[start:], strict=False)  # which takes half a surrogate pair
        except (ValueError, RecursionError):
            start = text.find("\n{", start)
            start = start + 1 if start >= 0 else -1
        else:
            return found if isinstance(found, dict) else None
    return None


def _total(counts: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(count_of(count.get(name)) or 0 for count in counts)
