"""Find dangerous steps: commands that destroy data, bypass guards, run downloads; shown secrets."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal

from debrief.markdown import shorten
from debrief.sessions.model import ToolCall
from debrief.signals.shell import placed_commands, simple_commands

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
_FILTERED = re.compile(r"\b(?:env|printenv)\s*\|\s*(?:grep|rg|wc|awk|sed|cut)\b")
"""Part of what an environment holds, chosen by name."""
_MASKED = re.compile(r"^s(.)[^=]*=\.\*")
"""A script of ``sed`` that puts something in the place of every value."""
_SQL = re.compile(r"\b(?:DROP (?:TABLE|DATABASE|SCHEMA)|TRUNCATE TABLE)\b", re.I)
_FOR_ALL = re.compile(r"\A(?:0?777|a\+rwx|ugo\+rwx)\Z")
_UNGUARDED = frozenset(["--dangerously-skip-permissions", "--yolo", "--no-verify"])
_DATABASES = ("psql", "mysql", "sqlite3", "mariadb", "clickhouse-client", "mongosh")


def hazards_of(call: ToolCall, own: Collection[str] = ()) -> list[tuple[HazardKind, str]]:
    """Return what was dangerous about a call, each with a short quote.

    Ordinary cleaning (``rm -rf build``) is not; wiping a whole folder tree, rewriting published
    history, throwing work away, skipping guards, running code from the net, and showing or
    writing down secrets are. Git may throw away what the agent itself wrote, and all of a
    repository that lies among scratch files.

    Args:
        call: of any tool.
        own: paths of files that the agent wrote before.
    """
    found: list[tuple[HazardKind, str]] = []
    if call.action == "run":
        command = call.command
        if _PIPED.search(command):
            found.append(("remote_code", shorten(command, 80)))
        is_part = _FILTERED.search(command) is not None
        placed = list(placed_commands(command))
        folders = {words: folder for (words, _), folder in placed}
        mine = {*own, *(target for (_, targets), _ in placed for target in targets)}
        for words in simple_commands(command):
            kind = _hazard(words)
            is_git = words[:1] == ("git",)
            if is_git and (_SCRATCH.match(folders.get(words, "")) or _is_own(words, mine)):
                continue
            if kind and not (is_part and words[0] in ("env", "printenv")):
                found.append((kind, shorten(" ".join(words), 80)))
        if _PLACEHOLDER.search(command):
            found.append(("secret", "a secret typed into a shell command"))
        return found
    found += [
        ("exposure", f"{call.name} {path}")
        for path in call.paths
        if call.action == "read" and _SECRET_FILE.search(path)
    ]
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
        or (program in _SHOWS and has(_SECRET_FILE) and not has(_MASKED))
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
    action, rest = plain[0], plain[1:]
    if "--no-verify" in flags or (action == "commit" and "n" in letters):
        return "bypass"
    forced = "--force" in flags or "f" in letters
    is_dry = "--dry-run" in flags or (action == "clean" and "n" in letters)
    destroys = {
        "push": forced or "--delete" in flags or any(word[:1] in ("+", ":") for word in rest),
        "reset": "--hard" in flags,
        "clean": forced,
        "checkout": forced or _throws_away(rest, flags),
        "restore": bool(rest) and ("--staged" not in flags or "--worktree" in flags),
        "stash": rest[:1] in (["drop"], ["clear"]),
        "worktree": rest[:1] == ["remove"] and forced,
        "filter-branch": True,
        "filter-repo": True,
    }
    return "destructive" if destroys.get(action) and not is_dry else None


def _is_own(words: Sequence[str], own: Collection[str]) -> bool:
    """Return whether a command of git puts back files alone that the agent wrote itself."""
    names = [word.removeprefix("./") for word in words[2:] if not word.startswith("-")]
    return (
        words[1:2] in (("checkout",), ("restore",))
        and bool(names)
        and all(any(f"/{path}".endswith(f"/{name}") for path in own) for name in names)
    )


def _throws_away(rest: list[str], flags: set[str]) -> bool:
    """Return whether ``git checkout`` puts files back, and does not change to a branch."""
    is_file = len(rest) == 1 and re.search(r"\w\.[a-z]\w{0,4}\Z|/\Z", rest[0]) is not None
    return "." in rest or ("--" in flags and bool(rest)) or is_file


def _wide(target: str) -> bool:
    if _WIDE.match(target):
        return True
    is_far = target[:1] in ("/", "~") and not _SCRATCH.match(target)
    return is_far and target.count("/") <= (2 if target.startswith("/") else 1)
