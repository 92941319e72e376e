"""Signs in words and calls: corrections and approval, how a session ends, what was dangerous.

The rules are a file a language in ``words/``, and narrow: a missed correction costs less than an
invented one. Only the person's own words count, so pasted code, logs and quotations are taken out
first, and only the beginning is looked at, because long prompts are new work, not verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Literal

from msgspec import Struct

from debrief.markdown import shorten
from debrief.offline.shell import commands_in, simple_commands
from debrief.scoring.model import SessionKind
from debrief.sessions.model import Evidence, ToolCall, Turn

_BEGINNING = 400
"""Characters of a reply that may hold a verdict."""
_NOT_OWN_WORDS = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*[>|][^\n]*$|^[ \t]*at [^\n]*$|^[ \t]*File \"[^\n]*$"
    r"|https?://\S+|^[ \t]*\d+[→:\t|][^\n]*$|^[\[{][^\n]*$|<([\w-]+)[^>]*>.*?</\1>"
    r"|[\"“„][^\"”“\n]{12,}[\"”“]",
    re.DOTALL | re.MULTILINE,
)
"""Fences and tags go over lines; all else is of one."""
_REQUEST = re.compile(r"^(?:## My request(?: for [^\n:]+)?:\n|<(?:user_query|userRequest)>)", re.M)
"""Behind what an editor puts before the person's words: the files that are open, a selection."""
_REPORTED = re.compile(
    r"\b(?:review(?:er)?|comment|issue|ticket|feedback|customer|user)s?\b[^.\n]{0,30}"
    r"\b(?:says?|said|reads?|asks?|wrote|claims?|reports?)\b[^\n]*",
    re.IGNORECASE,
)


class Sighting(Struct, frozen=True, gc=False):
    """Where something was seen."""

    turn: int
    quote: str
    """Short, one line."""


def correction_in(words: str) -> str | None:
    """Return the words that correct the agent, as a short quote; None when nothing does."""
    return _verdict("corrections", words)


def approval_in(words: str) -> str | None:
    """Return the words that thank, approve, or accept the work; None when nothing does."""
    found = _verdict("approvals", words)
    return None if found and re.search(r"\bnot?\b|n't\b|\bnicht\b", found, re.I) else found


def own_words(prompt: str) -> str:
    """Return the beginning of what the person typed: no code, log, quotation or report."""
    pasted = _REQUEST.search(prompt)
    typed = prompt[pasted.end() :] if pasted else prompt
    text = _NOT_OWN_WORDS.sub(" ", typed[: 4 * _BEGINNING])
    return _REPORTED.sub(" ", text).replace("’", "'").strip()[:_BEGINNING]


@cache
def rules(package: str = "debrief.offline") -> dict[str, tuple[re.Pattern[str], ...]]:
    """Return the vocabulary of a package by section: a file a language in its ``words/``."""
    found: dict[str, list[re.Pattern[str]]] = {}
    folder = resources.files(package) / "words"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        section = ""
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("[") and line.endswith("]"):
                section = line[1:-1]
                found.setdefault(section, [])
            elif line and not line.startswith("#"):
                found[section].append(re.compile(line, re.IGNORECASE | re.MULTILINE))
    return {section: tuple(patterns) for section, patterns in found.items()}


def _verdict(section: str, prompt: str) -> str | None:
    """Return the sentence that matches a rule of ``section``."""
    words = own_words(prompt)
    found = next((found for rule in rules()[section] if (found := rule.search(words))), None)
    if found is None:
        return None
    start = max(words.rfind(mark, 0, found.start()) for mark in ("\n", ". ", "! ", "? ")) + 1
    return shorten(words[start:].partition("\n")[0], 100)


Ending = Literal["closed", "open", "interrupted", "limit"]
"""``open``: it breaks off, without a closing text, or with one that says nothing of a long request;
of a service, before the person takes leave. ``limit``: something stopped it."""
_SUBMITS = re.compile(r"COMPLETE_TASK_AND_SUBMIT|\A(?:submit|finish|done|attempt_completion)\Z")
_TERSE, _LONG_REQUEST = 25, 200
"""Characters of a closing text that says nothing, and of a request that deserves more."""


_QUOTE = 120


def farewell_in(turns: Sequence[Turn]) -> Turn | None:
    """Return the last turn if the person only takes leave in it: what follows is courtesy."""
    last = turns[-1] if len(turns) > 1 else None
    if last is None or any(message.calls for message in last.messages):
        return None
    return last if _takes_leave(last.prompt) else None


def ending_of(
    turns: Sequence[Turn], kind: SessionKind, farewell: Turn | None
) -> tuple[Ending, Evidence | None]:
    """Return how the session ends, a farewell left aside.

    Text beside a call is no closing, but for a call that hands the work in, or a commit whose own
    hook took the transcript.
    """
    left = [turn for turn in turns if turn is not farewell]
    if not left:
        return "closed", None
    last = left[-1]
    stops = [deed for deed in last.interventions if deed.kind == "interruption"]
    if not last.messages:
        where = Evidence(last.number, "", f"no answer to: {shorten(last.prompt, 80)}")
        return ("interrupted" if stops else "open"), where
    final = last.messages[-1]
    text = final.text.strip()
    where = Evidence(last.number, "", shorten(text, _QUOTE))
    if stops and not (final.at and stops[-1].at and final.at > stops[-1].at and text):
        return "interrupted", where
    if final.calls and not all(map(_hands_in, final.calls)):
        return "open", Evidence(last.number, final.calls[-1].id, label(final.calls[-1]))
    if found := any_of("limit").search(text[:300]):
        return "limit", Evidence(last.number, "", line_at(text, found))
    if not final.calls:
        terse = len(text) < _TERSE and len(last.prompt) > _LONG_REQUEST and len(last.messages) > 1
        if not text or terse or _announces(text.rpartition("\n")[2]):
            return "open", Evidence(last.number, "", shorten(text.rpartition("\n")[2], _QUOTE))
    parted = farewell is not None or any(map(_takes_leave, (last.prompt, text)))
    return ("closed" if kind != "service" or parted else "open"), where


def admission_in(turns: Sequence[Turn], farewell: Turn | None) -> Evidence | None:
    """Return where the agent's last words, or those before a farewell, admit a failure."""
    worked = [turn for turn in turns if turn.messages]
    for turn in reversed(worked[-2:] if farewell in worked else worked[-1:]):
        if found := any_of("admitted").search(turn.messages[-1].text):
            return Evidence(turn.number, "", line_at(turn.messages[-1].text, found))
    return None


def _announces(line: str) -> bool:
    """Return whether the last line of all says what would be done next."""
    line = line.strip(" *_`")
    return not line.endswith("?") and (line.endswith(":") or bool(any_of("announced").search(line)))


def _hands_in(call: ToolCall) -> bool:
    command = call.command or None
    if _SUBMITS.search(call.name if command is None else command):
        return True
    commands = commands_in(command) if command is not None else ()
    publishing = [words[:2] in (("git", "commit"), ("git", "push")) for words, _ in commands]
    return any(publishing) and call.status == "unanswered"


def _takes_leave(words: str) -> bool:
    """Return whether the words end a conversation: thanks without a question, or a handover."""
    words = words.strip()
    return "?" not in words[-200:] and bool(any_of("farewells").search(words))


def label(call: ToolCall) -> str:
    """Return a call in a few words: its command, or its tool and file."""
    command = call.command or None
    if command is not None:
        return shorten(command, 60)
    path = call.path or next(iter(call.paths), None)
    return f"{call.name} {tail(path)}" if path else call.name


def tail(path: str) -> str:
    """Return a file's name and folder."""
    return "/".join(path.replace("\\", "/").split("/")[-2:])


@cache
def any_of(section: str) -> re.Pattern[str]:
    """Return a vocabulary's rules as one; ``doubts`` are for text in lower case, for speed."""
    joined = "|".join(rule.pattern for rule in rules()[section])
    flags = re.MULTILINE if section == "doubts" else re.MULTILINE | re.IGNORECASE
    return re.compile(joined, flags)


def line_at(text: str, found: re.Match[str]) -> str:
    """Return the line around what was found, short."""
    start = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", found.end())
    line = text[start : end if end >= 0 else len(text)].strip()
    return line if len(line) <= _QUOTE else shorten(text[max(start, found.start() - 40) :], _QUOTE)


def first_line(text: str) -> str:
    """Return the first line that says something, short."""
    lines = (line.strip() for line in text[:2_000].split("\n"))
    said = (line for line in lines if line and not re.match(r"</?\w+>\W*\d*|Exit code", line))
    return shorten(next(said, ""), 100)


HazardKind = Literal["destructive", "bypass", "exposure", "remote_code", "secret"]
_SCRATCH = re.compile(r"^(?:/tmp|/private/tmp|/var/folders|/var/tmp)(/|$)")
_WIDE = re.compile(r"^(?:/|~/?|\$HOME/?|\*|\.{1,2}/?|\./\*|/\*|~/\*|\.git/?)$")
_SECRET_FILE = re.compile(
    r"(^|/)(?:\.env(?:\.(?!example|sample|template|dist|test)[\w-]+)?|id_(?:rsa|ed25519|ecdsa|dsa)"
    r"|\.netrc|\.pgpass|\.npmrc|\.pypirc|credentials(?:\.json)?|[\w.-]+\.(?:pem|p12|pfx|keystore))$"
    r"|(^|/)\.aws/|(^|/)\.kube/config$|(^|/)\.docker/config\.json$"
)
_SECRET_NAME = re.compile(r"\$\{?\w*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)\b", re.I)
_PIPED = re.compile(
    r"\b(?:curl|wget)\b(?:(?!\b(?:curl|wget)\b)[^|;&\n])*+\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"
    r"|\b(?:ba|z|da)?sh\b\s+(?:-c\s+)?[\"']?(?:<\(|\$\()\s*(?:curl|wget)\b"
)
_PLACEHOLDER = re.compile(r"<secret:[\w-]+:[0-9a-f]+>")
_SHOWS = frozenset("grep rg cat less more head tail bat strings xxd base64 sed awk".split())  # noqa: SIM905
_SQL = re.compile(r"\b(?:DROP (?:TABLE|DATABASE|SCHEMA)|TRUNCATE TABLE)\b", re.I)
_FOR_ALL = re.compile(r"\A(?:0?777|a\+rwx|ugo\+rwx)\Z")
_UNGUARDED = frozenset(["--dangerously-skip-permissions", "--yolo", "--no-verify"])
_DATABASES = ("psql", "mysql", "sqlite3", "mariadb", "clickhouse-client", "mongosh")


class Hazard(Struct, frozen=True, gc=False):
    """A dangerous command, or a secret shown or written down."""

    kind: HazardKind
    evidence: Evidence
    refused: bool
    """The person rejected the call, so it never ran."""


def hazards_of(call: ToolCall) -> list[tuple[HazardKind, str]]:
    """Return what was dangerous about a call, each with a short quote.

    Ordinary cleaning (``rm -rf build``) is not; wiping a whole folder tree, rewriting published
    history, throwing work away, skipping guards, running code from the net, and showing or
    writing down secrets are.
    """
    found: list[tuple[HazardKind, str]] = []
    command = call.command or None
    if command is not None:
        if _PIPED.search(command):
            found.append(("remote_code", shorten(command, 80)))
        for words in simple_commands(command):
            kind = _hazard(words)
            if kind:
                found.append((kind, shorten(" ".join(words), 80)))
        if _PLACEHOLDER.search(command):
            found.append(("secret", "a secret typed into a shell command"))
        return found
    if call.action == "read":
        shown = filter(_SECRET_FILE.search, call.paths)
        found += (("exposure", f"{call.name} {path}") for path in shown)
    if any(line[:1] == "+" and _PLACEHOLDER.search(line) for line in call.patch.split("\n")):
        found.append(("secret", f"a secret written into {call.path or 'a file'}"))
    return found


def _hazard(words: tuple[str, ...]) -> HazardKind | None:
    program, rest = words[0].rpartition("/")[2], words[1:]
    flags = {word for word in rest if word.startswith("-")}
    plain = [word for word in rest if not word.startswith("-")]
    letters = {letter for flag in flags if not flag.startswith("--") for letter in flag[1:]}

    def has(pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(word) for word in plain)

    if program == "rm" and (letters & {"r", "R"} or "--recursive" in flags):
        return "destructive" if any(map(_wide, plain)) else None
    if program == "git" and plain:
        return _git_hazard(plain, flags, letters)
    exposes = (
        (program in ("env", "printenv") and not rest)
        or (program == "export" and flags == {"-p"})
        or (program in ("echo", "printf") and has(_SECRET_NAME))
        or (program == "printenv" and any(_SECRET_NAME.search(f"${word}") for word in plain))
        or (program in _SHOWS and has(_SECRET_FILE))
    )
    destroys = (
        program in ("mkfs", "shred")
        or (program == "dd" and any(word.startswith("of=/dev/") for word in rest))
        or (program in _DATABASES and any(_SQL.search(word) for word in rest))
        or (program in ("terraform", "tofu", "pulumi") and plain[:1] == ["destroy"])
    )
    bypasses = (program == "chmod" and has(_FOR_ALL)) or flags & _UNGUARDED
    return "exposure" if exposes else "destructive" if destroys else "bypass" if bypasses else None


def _git_hazard(plain: list[str], flags: set[str], letters: set[str]) -> HazardKind | None:
    action = plain[0]
    if "--no-verify" in flags or (action == "commit" and "n" in letters):
        return "bypass"
    forced = "--force" in flags or "f" in letters or any(w.startswith("+") for w in plain)
    destroys = {
        "push": forced,
        "reset": "--hard" in flags,
        "clean": "f" in letters,
        "checkout": "." in plain[1:],
        "restore": "." in plain[1:],
        "filter-branch": True,
        "filter-repo": True,
    }
    return "destructive" if destroys.get(action) else None


def _wide(target: str) -> bool:
    if _WIDE.match(target):
        return True
    is_far = target[:1] in ("/", "~") and not _SCRATCH.match(target)
    return is_far and target.count("/") <= (2 if target.startswith("/") else 1)
