"""Fencing: text out of a session reaches a model as data, and as nothing else.

Three things are done to it. What cannot be seen is made visible; lines and tokens that a prompt
template or a chat protocol uses themselves are marked, so that they are no longer what they look
like; and the whole stands between two lines with a marker that nobody could know beforehand.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import unicodedata
from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct, structs

from debrief.sessions.model import Intervention, Message, Session, Subagent, ToolCall, Turn

BAR = "¦"
"""Stands where a look-alike was marked."""

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e01ef]"
)
_LINE_ENDS = re.compile(r"\r\n?")
_CHAT_TOKENS = re.compile(
    rf"(?:<\|(?=[^|\n]{{1,60}}\|>)|<｜(?=[^｜\n]{{1,60}}｜>)|\[(?=/?INST\])"
    rf"|<(?=<SYS>>|</SYS>>|/?s>|/?(?:start_of_turn|end_of_turn|bos|eos)>))(?!{BAR})",
    re.IGNORECASE,
)
_SPEAKERS = re.compile(r"(?<=\n\n)(?=(?:Human|Assistant|System|User):)")
_HEADINGS = (
    "chat session|chat session to evaluate|evaluation rubric|scoring scale|evaluation instructions"
    "|required output format|output format|task|extracted rubrics from all sessions"
    "|what the task is|facts|repeated for context|to be scored"
)
_LOOK_ALIKE = re.compile(
    r"[\s>#*_`~+•|-]*(?:"
    r"={2,} ?(?:chat|end) session|total turns ?:|-{2,} ?turn \d|turn \d+ ?-{2,}"
    r"|\[(?:user|assistant|tool[_ ]calls|tool[_ ]results|system|subagents)\]"
    r"|(?:(?:final|overall) )?score[*_` ]*[:=]|reasoning[*_` ]*[:=]|\[\[ ?##"
    r"|now evaluate the session above"
    rf"|#{{1,6}} ?(?:{_HEADINGS})\s*\Z"
    r"|<{2,}(?:data|end of data)|</?(?:session|transcript|chat|recording)[-_ ]?(?:data)?>"
    r")",
    re.IGNORECASE,
)
_PERHAPS = re.compile(r"session|turn|user|assistant|tool|score|reasoning|##|system|data", re.I)


def make_visible(text: str) -> str:
    """Show invisible and control characters.

    >>> make_visible("S\\u200bCORE")
    'S⟨200B⟩CORE'
    """
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(_shown, _LINE_ENDS.sub("\n", text))


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else f"⟨{code:04X}⟩"


def defuse(text: str) -> str:
    """Make text of any origin safe: visible, and without look-alikes of ours or of a chat's."""
    text = _SPEAKERS.sub(f"{BAR} ", finish(text))
    if text.isascii() and not _PERHAPS.search(text):
        return text
    lines = text.split("\n")
    return "\n".join(
        f"{BAR} {line}" if _LOOK_ALIKE.match(_plain(line[:400])) else line for line in lines
    )


def defuse_line(text: str) -> str:
    """Make text safe that belongs on one line: a name, a branch, a path."""
    return defuse(text).replace("\n", "␤")


def _plain(line: str) -> str:
    if not line.isascii():
        line = unicodedata.normalize("NFKC", line)
    return " ".join(line.split())


_SINGLE_LINES: Mapping[type, tuple[str, ...]] = {
    Session: ("id", "branch", "cwd", "repository", "title"),
    ToolCall: ("name", "path"),
    Subagent: ("type", "description"),
}
_TEXTS: Mapping[type, tuple[str, ...]] = {
    ToolCall: ("input", "result", "patch"),
    Message: ("text",),
    Turn: ("prompt",),
    Intervention: ("text",),
    Subagent: ("prompt",),
}
_PARTS: Mapping[type, tuple[str, ...]] = {
    Session: ("turns", "subagents"),
    Turn: ("messages", "interventions"),
    Message: ("calls",),
    Subagent: ("messages",),
}
Part = TypeVar("Part", bound=Struct)


def defuse_session(part: Part) -> Part:
    """Return a session, or a part of one, with every text that a prompt may show made safe.

    The structure is left alone, so a renderer's own headings are the only ones of their kind.
    What a renderer decodes itself (a call's arguments) needs ``finish`` afterwards.
    """
    kind = type(part)
    safe: dict[str, object] = {}
    for fields, make_safe in ((_SINGLE_LINES, defuse_line), (_TEXTS, defuse)):
        for name in fields.get(kind, ()):
            if (text := getattr(part, name)) is not None:
                safe[name] = make_safe(text)
    for name in _PARTS.get(kind, ()):
        safe[name] = tuple(defuse_session(inner) for inner in getattr(part, name))
    return structs.replace(part, **safe)


def finish(rendered: str) -> str:
    """Go over a rendered session once more for what came out of escapes while rendering."""
    return _CHAT_TOKENS.sub(_marked, make_visible(rendered))


def _marked(found: re.Match[str]) -> str:
    return found[0] + BAR


def new_marker() -> str:
    """Return 128 random bits as hex digits."""
    return secrets.token_hex(16)


def marker_of(secret: bytes, *parts: str) -> str:
    """Return 128 bits that only the holder of ``secret`` can tell, the same for the same parts.

    For prompts that are cached by their text: a random marker would make each one new.
    """
    digest = hmac.new(secret, digestmod=hashlib.sha256)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()[:32]


def fence(text: str, marker: str | None = None) -> str:
    """Put text that was made safe between two lines with a marker that it does not contain."""
    marker = marker or new_marker()
    while marker in text:
        marker = new_marker()
    return f"<<<data {marker}>>>\n{text.rstrip()}\n<<<end of data {marker}>>>"
