"""The line that stops a trouble: one sentence for CLAUDE.md or AGENTS.md, from its evidence alone.

A line names *that* command, file or sentence: what failed, what then worked, the file that edits
missed, the words of the correction. Where the evidence shows no remedy there is no line.

The evidence is text of strangers. It is quoted, on one line, and never shown where it hides
characters, speaks to whoever reads it, holds a secret, names a folder of somebody's machine, or
would destroy something: what once worked (``git push --force``) is not always what should be done.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from debrief.markdown import counted, shorten
from debrief.models.fencing import injection_signs, make_visible
from debrief.sessions.model import ToolCall, Usage
from debrief.signals.risky_commands import hazards_of
from debrief.signals.shell import check_of, commands_in
from debrief.troubles.looking import DOCUMENT
from debrief.troubles.model import Trouble, TroubleEvent
from debrief.troubles.naming import is_plain, listed, name_of
from debrief.troubles.what_worked import can_stand_for, is_version_of

_LONGEST_CODE, _LONGEST_QUOTE = 120, 200
_INTO_FOLDER = re.compile(r"\Acd\s+(?:/|~)\S*\s*(?:&&|;)\s*")
_OUTPUT_ALONE = re.compile(r"\s*(?:2>&1|\d?>\s*/dev/null|\|\s*(?:tail|head|cat)\b[^|;&]*)\s*\Z")
_OF_A_MACHINE = re.compile(
    r"(?:^|[\s='\":])(?:/(?:home|Users|root|private|tmp|var|mnt)/|~/|[A-Z]:\\)"
)
_PLACES = re.compile(r"\S*[/.]\S*|\b\d+")
"""Paths and numbers, which two runs of one command may differ in."""


def line_for(trouble: Trouble) -> str | None:
    """Return the line that stops a trouble, without line end; None where no remedy is known.

    It says how often nothing happened, so that the same trouble has the same line tomorrow.
    """
    if not trouble.examples:
        return None
    line = _remedy(trouble)
    is_plain = line.isprintable() and make_visible(line) == line
    return line if line and is_plain and not injection_signs([line]) else None


def evidence_shown(trouble: Trouble) -> str:
    """Return how often it happened and what it cost, in a few words."""
    happened = f"{counted(trouble.count, 'time')} in {counted(len(trouble.sessions), 'session')}"
    took = cost_shown(trouble.usage, trouble.cost_usd, trouble.unpriced, trouble.minutes)
    return ", ".join([happened, *took, f"last on {trouble.last_seen:%Y-%m-%d}"])


def cost_shown(
    usage: Usage, cost_usd: float | None, unpriced: int, minutes: float | None
) -> list[str]:
    """Return what is known of tokens without cache reads, money and minutes, in a few words each.

    Args:
        unpriced: how many times have no price.
    """
    parts = []
    if tokens := usage.input + usage.cache_write + usage.output:
        parts.append(f"{tokens:,} tokens")
    if cost_usd is not None:
        parts.append(f"{'at least ' * bool(unpriced)}${cost_usd:.2f}")
    if minutes is not None and round(minutes):
        parts.append(counted(round(minutes), "minute"))
    return parts


def code(command: str) -> str:
    """Return a command as a line may name it; empty where no line may.

    The way into a folder of the machine is taken off, and what only shortens the output.

    >>> code("cd /home/sam/shop && pnpm test 2>&1 | tail -20")
    'pnpm test'
    """
    text = _INTO_FOLDER.sub("", command.strip())
    while (shorter := _OUTPUT_ALONE.sub("", text)) != text:
        text = shorter
    if not _can_be_quoted(text) or hazards_of(_as_call(text)):
        return ""
    return text


def named_file(path: str) -> str:
    """Return a file of the repository as a line may name it; empty where no line may."""
    return path if _can_be_quoted(path) and not path.startswith("/") else ""


def stands_in(name: str, text: str) -> bool:
    """Return whether a command, a file or a name stands in a text, and not within a longer one.

    >>> stands_in("npm test", "Run `pnpm test`.")
    False
    """
    found = re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-])", " ".join(text.split()))
    return found is not None


def _remedy(trouble: Trouble) -> str:
    command, worked = _tried_and_worked(trouble)
    named = _common_command(trouble)
    file = named_file(_same(example.file for example in trouble.examples))
    if " " not in worked and is_version_of(worked, program := command.split(" ")[0]):
        command = program
    if trouble.reason == "program":
        command, worked = _called_by(command, worked)
    is_other = _is_other(command, worked)
    match trouble.kind:
        case "failing_command" if (options := _left_out(command, worked)) and all(
            options in example.evidence.quote for example in trouble.examples
        ):
            return f"Leave `{options}` out of `{name_of(worked.split())}`, which fails with it."
        case "failing_command" if file and trouble.reason == "too_large":
            return f"Read `{file}` in parts: it is too large to be read whole."
        case "failing_command" if is_other and _is_check(command):
            return f"Run `{worked}` before `{command}`: it mends what that finds."
        case "failing_command" if is_other and not _is_instead(worked, command):
            return f"Run `{worked}` before `{command}`, which fails here without it."
        case "failing_command" if is_other:
            return f"Run `{worked}`, not `{command}`, which fails here."
        case "missing_tool" if is_other and _is_named(trouble, command):
            return f"Run `{worked}`, not `{command}`, which fails here."
        case "missing_tool" if is_other and trouble.reason == "python_module":
            return f"Run `{worked}`: `{command}` lacks a module."
        case "missing_tool" if trouble.reason == "python_module" and code(trouble.name):
            return f"The Python module `{trouble.name}` is not there: install it, or do without it."
        case "missing_tool" if named and trouble.reason == "program" and _is_named(trouble, named):
            return f"`{named}` is not on the PATH: do without it, or call it by its path."
        case "missing_tool" if named and _is_named(trouble, named):
            return f"`{named}` is not there: do without it, or name the way to it."
        case "wrong_folder" if command and worked and command != worked:
            return f"Run `{worked}`: `{command}` fails from another folder."
        case "refused_permission" if named and _was_refused_in_words(trouble):
            return f"Do not run `{named}` unasked: it was refused."
        case "refused_permission" if file:
            return f"Say what you will change in `{file}` before you edit it: edits were refused."
        case "correction":
            return _quoted(trouble.examples)
        case "repeated_read" if file and trouble.count > len(trouble.sessions):
            return f"Read `{file}` once, and again only when it changed: it stayed the same."
        case "polling" if (slow := [code(name) for name in trouble.names if name]) and all(slow):
            names = " and ".join(f"`{name}`" for name in slow[:2])
            return f"Wait for {names} in one long look: every look costs the whole context again."
        case "blind_check" if file and is_other:
            return f"Check changes of `{file}` by `{worked}`: `{command}` does not test them."
        case "blind_check" if file and named and not DOCUMENT.search(file):
            return f"`{named}` does not test changes of `{file}`: name what does, or say so."
        case "long_output" if is_other:
            return f"Run `{worked}` instead of `{command}`, which prints too much."
        case "long_output" if named and not _shows_what_is_asked(named):
            return f"Cut what `{named}` prints before you read it: it fills the context."
        case "long_output" if file:
            return f"Read `{file}` in parts: as a whole it fills the context."
        case "same_start" if file:
            return f"Begin with `{file}`: sessions look for it first."
    return ""


def _tried_and_worked(trouble: Trouble) -> tuple[str, str]:
    """Return a command, and what did it after that one failed; what worked most often if seen."""
    seen = [example for example in trouble.examples if example.worked] if trouble.worked else []
    seen.sort(key=lambda event: event.worked != trouble.worked)
    return (code(seen[0].command), code(seen[0].worked)) if seen else ("", "")


def _common_command(trouble: Trouble) -> str:
    """Return the command of all examples; where they differ, the program and subcommand that the
    trouble is called by, if each example ran them."""
    name = trouble.name
    is_named = all(stands_in(name, example.command) for example in trouble.examples)
    if trouble.reason in ("program", "subcommand") and is_named:
        return code(name)  # whatever it was to do
    if same := _same(example.command for example in trouble.examples):
        return code(same)
    return code(name) if is_named else ""


def _was_refused_in_words(trouble: Trouble) -> bool:
    """Return whether a person said why, and never granted it: settings refuse what they do not
    list, and nobody has decided on it."""
    examples = trouble.examples
    return all(example.words for example in examples) and not any(
        example.worked for example in examples
    )


def _called_by(command: str, worked: str) -> tuple[str, str]:
    """Return a program, and how it is called where it then worked: ``vp`` and ``pnpm exec vp`` of
    ``vp fmt`` and ``pnpm exec vp fmt``; both commands as they are where more differs."""
    program, _, arguments = command.partition(" ")
    called = worked.removesuffix(arguments).rstrip()
    is_same = worked.endswith(command) and called.endswith(program) and called != program
    return (program, called) if is_same else (command, worked)


def _left_out(command: str, worked: str) -> str:
    """Return the options without which a command went well; empty where more differs."""
    tried, went = command.split(), worked.split()
    options = [word for word in tried if word not in went]
    is_less = bool(went) and [word for word in tried if word in went] == went
    return " ".join(options) if is_less and all(word.startswith("-") for word in options) else ""


def _is_instead(worked: str, command: str) -> bool:
    """Return whether one command stands for the other, and was not run before it."""
    return can_stand_for(worked.split(), command.split())


def _is_named(trouble: Trouble, command: str) -> bool:
    """Return whether a command names what is not there: a program that it runs may lack another."""
    return stands_in(trouble.name.rpartition(" ")[2], command)


def _shows_what_is_asked(command: str) -> bool:
    """Return whether a command prints what it was asked for, such as a part of a file: whoever cut
    that would not see it."""
    words = tuple(command.split())
    names = {words[0], " ".join(words[:2])}
    return is_plain(words) or not listed("looks").isdisjoint(names)


def _is_check(command: str) -> bool:
    return any(check_of(each.words) for each in commands_in(command))


def _quoted(examples: tuple[TroubleEvent, ...]) -> str:
    """Return a correction in the person's own words: the shortest is most to the point."""
    said = [words for example in examples if (words := " ".join(example.words.split()))]
    words = min(said, key=len, default="")
    quoted = f"“{shorten(words, _LONGEST_QUOTE)}”"
    return words and f"Said more than once, so see to it before you are done: {quoted}"


def _same(texts: Iterable[str]) -> str:
    """Return what is the same in all of them; empty where they differ."""
    found = set(texts)
    return found.pop() if len(found) == 1 else ""


def _is_other(command: str, worked: str) -> bool:
    """Return whether what worked is another command, and not the same one of other files."""
    return bool(command and worked) and _PLACES.sub("", command) != _PLACES.sub("", worked)


def _can_be_quoted(text: str) -> bool:
    return (
        0 < len(text) <= _LONGEST_CODE
        and "\n" not in text
        and "`" not in text
        and not _OF_A_MACHINE.search(text)
    )


def _as_call(command: str) -> ToolCall:
    return ToolCall(id="", name="", input="", action="run", command=command)
