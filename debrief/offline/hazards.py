"""Dangerous commands and careless handling of secrets, as far as a transcript shows them."""

from __future__ import annotations

import re

from debrief.offline.commands import arguments, shell_command, simple_commands
from debrief.offline.model import HazardKind
from debrief.sessions.model import ToolCall


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SCRATCH = re.compile(r"^(?:/tmp|/private/tmp|/var/folders|/var/tmp)(/|$)")
_WIDE = re.compile(r"^(?:/|~/?|\$HOME/?|\*|\.{1,2}/?|\./\*|/\*|~/\*|\.git/?)$")
_ENV_FILE = re.compile(r"(^|/)\.env(?:\.(?!example|sample|template|dist|test)[\w-]+)?$")
_KEY_FILE = re.compile(
    r"(^|/)(?:id_(?:rsa|ed25519|ecdsa|dsa)|\.netrc|\.pgpass|\.npmrc|\.pypirc|credentials(?:\.json)?"
    r"|[\w.-]+\.(?:pem|p12|pfx|keystore))$"
    r"|(^|/)\.aws/|(^|/)\.kube/config$|(^|/)\.docker/config\.json$"
)
_SECRET_NAME = re.compile(r"\$\{?\w*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)\b", re.I)
_PIPED = re.compile(
    r"\b(?:curl|wget)\b[^|;&\n]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"
    r"|\b(?:ba|z|da)?sh\b\s+(?:-c\s+)?[\"']?(?:<\(|\$\()\s*(?:curl|wget)\b"
)
_PLACEHOLDER = re.compile(r"<secret:[\w-]+:[0-9a-f]+>")
_SHOWS = _set("grep rg cat less more head tail bat strings xxd base64 sed awk")
_SQL = re.compile(r"\b(?:DROP (?:TABLE|DATABASE|SCHEMA)|TRUNCATE TABLE)\b", re.I)
_DATABASES = _set("psql mysql sqlite3 mariadb clickhouse-client mongosh")


def hazards_of(call: ToolCall) -> list[tuple[HazardKind, str]]:
    """Return what was dangerous about a call, each with a short quote.

    Ordinary cleaning (``rm -rf build``) is not; wiping a whole folder tree, rewriting published
    history, throwing work away, skipping guards, running code from the net, and showing or
    writing down secrets are.
    """
    found: list[tuple[HazardKind, str]] = []
    command = shell_command(call)
    if command is not None:
        if _PIPED.search(command):
            found.append(("remote_code", _quote(command)))
        for words in simple_commands(command):
            kind = _hazard(words)
            if kind:
                found.append((kind, _quote(" ".join(words))))
        if _PLACEHOLDER.search(command):
            found.append(("secret", "a secret typed into a shell command"))
        return found
    path = arguments(call).get("file_path") or arguments(call).get("path")
    reads = call.name.lower().startswith(("read", "view", "open"))
    if reads and isinstance(path, str) and (_ENV_FILE.search(path) or _KEY_FILE.search(path)):
        found.append(("exposure", f"{call.name} {_tail(path)}"))
    added = [line for line in call.patch.split("\n") if line.startswith("+")] if call.patch else []
    if any(_PLACEHOLDER.search(line) for line in added):
        found.append(("secret", f"a secret written into {_tail(call.path or 'a file')}"))
    return found


def _hazard(words: tuple[str, ...]) -> HazardKind | None:
    program, rest = words[0].rpartition("/")[2], words[1:]
    flags = {word for word in rest if word.startswith("-")}
    plain = [word for word in rest if not word.startswith("-")]
    letters = {letter for flag in flags if not flag.startswith("--") for letter in flag[1:]}
    if program == "rm" and ("r" in letters or "R" in letters or "--recursive" in flags):
        return "destructive" if any(_wide(target) for target in plain) else None
    if program == "git" and plain:
        return _git_hazard(plain, flags, letters)
    if program == "chmod" and any(
        re.fullmatch(r"(?:0?777|a\+rwx|ugo\+rwx)", word) for word in plain
    ):
        return "bypass"
    if program in ("env", "printenv") and not plain and not rest:
        return "exposure"
    if program == "export" and flags == {"-p"}:
        return "exposure"
    if program in ("echo", "printf", "printenv") and any(
        _SECRET_NAME.search(word if program != "printenv" else f"${word}") for word in plain
    ):
        return "exposure"
    if program in _SHOWS and any(
        _ENV_FILE.search(word) or _KEY_FILE.search(word) for word in plain
    ):
        return "exposure"
    if program in ("mkfs", "shred") or (
        program == "dd" and any(w.startswith("of=/dev/") for w in rest)
    ):
        return "destructive"
    if program in _DATABASES and any(_SQL.search(word) for word in rest):
        return "destructive"
    if program in ("terraform", "tofu", "pulumi") and plain[:1] == ["destroy"]:
        return "destructive"
    if "--dangerously-skip-permissions" in flags or "--yolo" in flags or "--no-verify" in flags:
        return "bypass"
    return None


def _git_hazard(plain: list[str], flags: set[str], letters: set[str]) -> HazardKind | None:
    action = plain[0]
    if "--no-verify" in flags or (action == "commit" and "n" in letters):
        return "bypass"
    if action == "push" and (
        "--force" in flags or "f" in letters or any(w.startswith("+") for w in plain)
    ):
        return "destructive"
    if action == "reset" and "--hard" in flags:
        return "destructive"
    if action == "clean" and "f" in letters:
        return "destructive"
    if action in ("checkout", "restore") and "." in plain[1:]:
        return "destructive"
    if action in ("filter-branch", "filter-repo"):
        return "destructive"
    return None


def _wide(target: str) -> bool:
    if _WIDE.match(target):
        return True
    if target[:1] not in ("/", "~") or _SCRATCH.match(target):
        return False
    return target.count("/") <= (2 if target.startswith("/") else 1)


def _tail(path: str) -> str:
    return "/".join(path.split("/")[-2:])


def _quote(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= 80 else line[:79] + "…"
