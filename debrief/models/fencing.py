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


class Defused(Struct, frozen=True):
    """Text that is safe to put between markers, and what had to be done to it."""

    text: str
    hidden: int
    """Invisible and control characters that were made visible."""
    marked: int
    """Lines and tokens that look like a template's or a chat protocol's own."""


def reveal(text: str) -> tuple[str, int]:
    """Make what is invisible visible, and say how much there was.

    >>> reveal("S\\u200bCORE")
    ('S⟨200B⟩CORE', 1)
    """
    if text.isascii() and text.isprintable():
        return text, 0
    return _HIDDEN.subn(_shown, _LINE_ENDS.sub("\n", text))


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else f"⟨{code:04X}⟩"


def defuse(text: str) -> Defused:
    """Make text of any origin safe: visible, and without look-alikes of ours or of a chat's."""
    text, hidden = reveal(text)
    text, tokens = _CHAT_TOKENS.subn(_marked, text)
    text, speakers = _SPEAKERS.subn(f"{BAR} ", text)
    marked = tokens + speakers
    if not text.isascii() or _PERHAPS.search(text):
        lines = text.split("\n")
        for place, line in enumerate(lines):
            if _LOOK_ALIKE.match(_plain(line[:400])):
                lines[place] = f"{BAR} {line}"
                marked += 1
        text = "\n".join(lines)
    return Defused(text, hidden, marked)


def defuse_line(text: str) -> Defused:
    """Make text safe that belongs on one line: a name, a branch, a path."""
    safe = defuse(text)
    return Defused(safe.text.replace("\n", "␤"), safe.hidden, safe.marked)


def _plain(line: str) -> str:
    if not line.isascii():
        line = unicodedata.normalize("NFKC", line)
    return " ".join(line.split())


def defuse_session(session: Session) -> tuple[Session, int]:
    """Return a session with every text that a prompt may show made safe, and how much was done.

    The structure is left alone, so a renderer's own headings are the only ones of their kind.
    What a renderer decodes itself (a call's arguments) needs ``finish`` afterwards.
    """
    done = _Doing()
    turns = tuple(done.turn(turn) for turn in session.turns)
    subagents = tuple(done.subagent(agent) for agent in session.subagents)
    safe = structs.replace(
        session,
        id=done.line(session.id),
        branch=done.line(session.branch),
        cwd=done.line(session.cwd),
        repository=done.line(session.repository),
        title=done.line(session.title),
        turns=turns,
        subagents=subagents,
    )
    return safe, done.count


def finish(rendered: str) -> str:
    """Go over a rendered session once more for what came out of escapes while rendering."""
    text, _ = reveal(rendered)
    return _CHAT_TOKENS.sub(_marked, text)


def _marked(found: re.Match[str]) -> str:
    return found[0] + BAR


class _Doing:
    """One walk over a session, counting what was changed."""

    def __init__(self) -> None:
        self.count = 0

    def text(self, text: str) -> str:
        safe = defuse(text)
        self.count += safe.hidden + safe.marked
        return safe.text

    def line(self, text: str) -> str:
        safe = defuse_line(text)
        self.count += safe.hidden + safe.marked
        return safe.text

    def call(self, call: ToolCall) -> ToolCall:
        result = None if call.result is None else self.text(call.result)
        return structs.replace(
            call,
            name=self.line(call.name),
            input=self.text(call.input),
            result=result,
            patch=self.text(call.patch),
            path=None if call.path is None else self.line(call.path),
        )

    def message(self, message: Message) -> Message:
        calls = tuple(self.call(call) for call in message.calls)
        return structs.replace(message, text=self.text(message.text), calls=calls)

    def turn(self, turn: Turn) -> Turn:
        deeds = tuple(self.deed(deed) for deed in turn.interventions)
        messages = tuple(self.message(message) for message in turn.messages)
        return structs.replace(
            turn, prompt=self.text(turn.prompt), messages=messages, interventions=deeds
        )

    def deed(self, deed: Intervention) -> Intervention:
        return structs.replace(deed, text=self.text(deed.text))

    def subagent(self, agent: Subagent) -> Subagent:
        return structs.replace(
            agent,
            type=self.line(agent.type),
            description=self.line(agent.description),
            prompt=self.text(agent.prompt),
            messages=tuple(self.message(message) for message in agent.messages),
        )


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
