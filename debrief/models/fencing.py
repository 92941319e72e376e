"""Put session text into a prompt safely: fence it, and detect text that addresses the judge.

Three things are done so that it arrives as data and as nothing else. What cannot be seen is made
visible; lines and tokens that a prompt template or a chat protocol uses themselves are marked, so
that they are no longer what they look like; and the whole stands between two lines with a marker
that nobody could know beforehand.

Nothing is decided by a sign of words made for a judge: fenced text is data either way. It marks a
score, so that a person looks before the session trains a model. An answer that stands in what was
judged is refused: whoever gave it judged nothing.
"""

from __future__ import annotations

import hmac
import re
import secrets
import unicodedata
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources

import msgspec
from msgspec import Struct

from debrief.models.answers import answer_text, json_values, refuse
from debrief.redaction.spans import Prefilter, once
from debrief.remembering import by_digest
from debrief.sessions.model import (
    Intervention,
    Message,
    Session,
    Subagent,
    ToolCall,
    Turn,
    texts_of,
)
from debrief.sessions.redaction import Fields, Item, rebuilt
from debrief.snapshots.fingerprint import framed

BAR = "¦"
"""Stands where a look-alike was marked."""

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e01ef]"
)
_LINE_ENDS = re.compile(r"\r\n?")
_TAGS = (
    "<SYS>>|</SYS>>|/?s>|/?(?:start_of_turn|end_of_turn|bos|eos|sop|turn|think|thinking|thought"
    r"|scratchpad|answer|tool_call|tool_response|system|human|user|assistant|developer)\|?>"
    r"|(?:unused|extra_id_|reserved_)\d{1,5}>"
)
_BRACKETED = "/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|gMASK|BOS|EOS|SYS)]|\\|[a-z]{1,20}\\|]"
_CHAT_TOKENS = re.compile(
    r"[<\[](?=(?<=<)(?:\|(?:[^|\n]{1,60}\|>|[a-z_]{1,20}>)|｜[^｜\n]{1,60}｜>"
    rf"|(?=[/a-z<])(?:{_TAGS}))|(?<=\[)(?=[/a-z|])(?:{_BRACKETED}))",
    re.IGNORECASE,
)
_ROLES = ("Human", "Assistant", "System", "User", "Developer")
_WIDE = {code: f"[{chr(code)}{chr(code + 0xFEE0)}]" for code in range(ord("A"), ord("z") + 1)}
"""A letter as an expression for it and for its full-width form."""
_ROLE = "|".join(form.translate(_WIDE) for role in _ROLES for form in (role, role.upper()))
_SPEAKERS = re.compile(
    rf"^[ \t>*_#`~|+-]*+(?=(?:{_ROLE})[*_`]{{0,3}}[ \t]{{0,8}}[:：])", re.MULTILINE
)


def _behind(sign: str) -> str:
    """Return an expression for a place with a sign before it, and up to three spaces between."""
    return "(?:" + "|".join(rf"(?<={sign}[ \t]{{{spaces}}})" for spaces in range(4)) + ")"


_HEADINGS = (
    "chat session|chat session to evaluate|evaluation rubric|scoring scale|evaluation instructions"
    "|required output format|output format|task|extracted rubrics from all sessions"
    "|what the task is|what the person said|repeated for context|to be scored|signals"
    "|the person's last words|instruction|response|human|assistant|system|user"
)
_ALIKE = re.compile(
    r"^([ \t>#*_`~+•|-]*+)(?:"
    r"={2,}[ \t]*(?:chat|end)[ \t]+session|total[ \t]+turns[ \t]*:|turn[ \t]+\d+[ \t]*-{2,}"
    rf"|{_behind('--')}turn[ \t]+\d"
    r"|\[(?:user|assistant|tool[_ ]calls|tool[_ ]results|system|subagents)\]"
    r"|(?:(?:final|overall)[ \t]+)?score[*_` \t]*[:=]|reasoning[*_` \t]*[:=]|\[\[[ \t]*##"
    r"|now evaluate the session above"
    rf"|{_behind('#')}(?:{_HEADINGS})[ \t]*:?[ \t]*$"
    r"|<{2,}(?:data|end of data)|</?(?:session|transcript|chat|recording)[-_ ]?(?:data)?>"
    r")",
    re.IGNORECASE | re.MULTILINE,
)
"""A line like one of ours, from what leads it (group 1) on."""
_WIDE_LINE = re.compile(r"^[\x00-\x09\x0b-\x7f]*+[^\x00-\x7f].*$", re.MULTILINE)
_TRACES = re.compile("⟨[0-9A-F]{4,6}⟩")


def make_visible(text: str) -> str:
    """Show invisible and control characters.

    >>> make_visible("S\\u200bCORE")
    'S⟨200B⟩CORE'
    """
    if text.isascii() and text.isprintable():
        return text
    text = _LINE_ENDS.sub("\n", text)
    return text.translate(_shown()) if _HIDDEN.search(text) else text


@cache
def _shown() -> dict[int, str]:
    """Return the sign of each hidden character."""
    places = "".join(map(chr, (*range(0x10000), *range(0xE0000, 0xE01F0))))
    codes = map(ord, _HIDDEN.findall(places))
    return {code: chr(0x2400 + code) if code < 0x20 else f"⟨{code:04X}⟩" for code in codes}


def defuse(text: str) -> str:
    """Make text of any origin safe: visible, and without look-alikes of ours or of a chat's."""
    text = _ALIKE.sub(rf"{BAR} \g<0>", finish(text))
    return text if text.isascii() else _WIDE_LINE.sub(_marked, text)


def _marked(line: re.Match[str]) -> str:
    return f"{BAR} {line[0]}" if _ALIKE.match(_narrow(line[0])) else line[0]


def _narrow(line: str) -> str:
    """Return how a line begins, in narrow letters and with nothing hidden in it."""
    begin = _TRACES.sub("", line.lstrip()[:400])
    return " ".join(unicodedata.normalize("NFKC", begin).split())


def defuse_line(text: str) -> str:
    """Make text safe that belongs on one line: a name, a branch, a path."""
    return defuse(text).replace("\n", "␤")


_FIELDS: Fields = {
    Session: {
        **dict.fromkeys(("id", "branch", "cwd", "repository", "title"), "line"),
        **dict.fromkeys(("turns", "subagents")),
    },
    Turn: {"prompt": "text", "messages": None, "interventions": None},
    Subagent: {"type": "line", "description": "line", "prompt": "text", "messages": None},
    Message: {"text": "text", "calls": None},
    ToolCall: {
        **dict.fromkeys(("name", "path"), "line"),
        **dict.fromkeys(("input", "result", "patch"), "text"),
    },
    Intervention: {"text": "text"},
}


def defuse_session(part: Item) -> Item:
    """Return a session, or a part of one, with every text that a prompt may show made safe.

    The structure is left alone, so a renderer's own headings are the only ones of their kind.
    What a renderer decodes itself (a call's arguments) needs ``finish`` afterwards.
    """
    make_safe = {"line": defuse_line, "text": defuse}
    return rebuilt(part, _FIELDS, lambda text, form: make_safe[form](text))


def finish(rendered: str) -> str:
    """Go over a rendered session once more for what came out of escapes while rendering."""
    return _SPEAKERS.sub(rf"\g<0>{BAR} ", _CHAT_TOKENS.sub(rf"\g<0>{BAR}", make_visible(rendered)))


def new_marker() -> str:
    """Return 128 random bits as hex digits."""
    return secrets.token_hex(16)


def marker_of(secret: bytes, *parts: str) -> str:
    """Return 128 bits that only the holder of ``secret`` can tell, the same for the same parts.

    For prompts that are cached by their text: a random marker would make each one new.
    """
    return hmac.digest(secret, framed(parts), "sha256").hex()[:32]


def fence(text: str, marker: str | None = None) -> str:
    """Put text that was made safe between two lines with a marker that it does not contain.

    What was put together of safe parts is gone over once more: a label may stand where none did.
    """
    text, marker = finish(text), marker or new_marker()
    while marker in text:
        marker = new_marker()
    return f"<<<data {marker}>>>\n{text.rstrip()}\n<<<end of data {marker}>>>"


class _Plain(dict[int, str]):
    """What is left of a character: its letter in small and without accents, or nothing."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if " " <= character <= "~" or character == "\t":
            return self.setdefault(code, character)
        if character in _BREAKS:
            return self.setdefault(code, "\n")
        parts = unicodedata.normalize("NFKD", character).casefold()
        shown = "".join(p for p in parts if unicodedata.category(p) not in _UNSEEN)
        return self.setdefault(code, unicodedata.normalize("NFC", shown).replace("ı", "i"))


_BREAKS = "\n\x00\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029"
_UNSEEN = ("Mn", "Me", "Cc", "Cf", "Cs")
_PLAIN = _Plain()
_BIDI_OR_TAGS = re.compile("[\u202a-\u202e\u2066-\u2069\U000e0020-\U000e007f]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f](?:(?<=\x1b)\[[0-9;?]*[@-~])?")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_ORDINARY = re.compile(
    rf"(?:{_HEADINGS})\s*:?\s*\Z"
    rf"|\[?(?:{_ROLE}|subagents)(?:\]|\W{{0,4}}[:：])"
    r"|(?:(?:final|overall) )?score(?!\W{0,4}:\W{0,4}[1-5](?!\w|[.:]\w|,\Z))|reasoning"
    r"|\[\[ ?## ?+(?!(?:score|reasoning|feedback|answers|completed)\b)",
    re.IGNORECASE,
)
"""What is marked and yet no sign, as code and documents have it too: headings; a label that begins
a line; a score without a mark of the scale; a field of another form."""
_TOKEN = (
    r"(?:<\|[^|\n]{1,60}\|>|<\|[a-z_]{1,20}>|<[a-z_]{1,20}\|>|<｜[^｜\n]{1,60}｜>|</?s>|<</?SYS>>"
    r"|<(?:start_of_turn|end_of_turn|bos|eos|sop|extra_id_\d{1,5})>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|gMASK)]|\[\|[a-z]{1,20}\|])"
)
_SPEAKER = r"(?:system|user|assistant|developer|human|model|tool)\b"
_TURN = re.compile(
    rf"(?:{_TOKEN}\s{{0,3}}){{0,4}}"
    rf"(?:<\|(?:[^|\n]{{1,60}}\|>|[a-z_]{{1,20}}>)\s?{_SPEAKER}|<(?:start_of_turn|extra_id_0)>{_SPEAKER}"
    rf"|<\|{_SPEAKER}(?:_token)?\|?>|<｜{_SPEAKER}｜>|\[\|{_SPEAKER}\|]"
    r"|<\|(?:system|user|chatbot)_token\|>"
    r"|<\|(?:channel|message)\|>(?:final|analysis|commentary)?|\[INST]|\[SYSTEM_PROMPT]|<<SYS>>)"
    rf"(?:(?:\s|\\n){{0,3}}{_TOKEN}){{0,4}}",
    re.IGNORECASE,
)
"""Tokens that say whose turn begins."""
_LONGEST_TURN = 200
_BLOCKS = (
    re.compile(r"^[ \t>]*(?:```|~~~)", re.MULTILINE),
    re.compile(r'"""'),
    re.compile(r"\'\'\'"),
)
"""What encloses code in a document, and lines of text in code."""
_GOING_ON = tuple(">{([=,;+\"'`\\")
"""What a line of code ends with whose text goes on in the next one."""
_UNQUOTED = re.compile(r"[^\"'`]*")
_OF_JUDGING = re.compile(
    r"\b(?:scor(?:e|es|ed|ing)|grad(?:e|es|ed|ing)|rat(?:e|ed|ings?)|judg(?:e|es|ed|ing|e?ment)"
    r"|evaluat(?:e|es|ed|ing|ion|or)|verdicts?|rubrics?|lenient|flawless|full marks"
    r"|complete_verified|task_completion)\b",
    re.IGNORECASE,
)
_LONGEST_SIGN = 80
LOOK_FIRST = "The session holds words that look made for a judge: look before relying on this."
"""Said wherever a score of a session with such signs is shown."""


def injection_signs(texts: Iterable[str]) -> list[str]:
    """Return the passages, shortened, that look made for a judge; ordinary text has none.

    They are what the fence marks, unless ordinary work has it too, characters that hide or turn
    words, and words to whoever judges.
    """
    return list(dict.fromkeys(sign for text in texts for sign in _signs(text)))


def is_suspected(session: Session) -> bool:
    """Return whether a text of a session has such a sign.

    Judges, scores and rubrics ask it of the same texts one after the other, so the answer is kept
    by a digest of the texts. The session's own digest would not do: it need not change with them.
    """
    return _is_any_suspected(list(texts_of(session)))


@by_digest
def _is_any_suspected(texts: list[str]) -> bool:
    return any(True for text in set(texts) for _ in _signs(text))


def _signs(text: str) -> Iterator[str]:
    shown = plain = _CONTROL.sub("\n", text)
    if not text.isascii():
        if hidden := _BIDI_OR_TAGS.search(text):
            yield f"hidden character U+{ord(hidden[0]):04X}"
        shown = make_visible(shown)
        plain = _NOT_ASCII.sub(lambda found: found[0].translate(_PLAIN), plain)
    for mark in _marks(shown):
        if not _ORDINARY.match(mark):
            yield " ".join(mark[:_LONGEST_SIGN].split())
    for turn in _forged_turns(shown):
        yield " ".join(turn[:_LONGEST_SIGN].split())
    data = plain.encode("utf-8")
    for _, end, _ in _orders().scan(data):
        yield " ".join(data[max(0, end - _LONGEST_SIGN) : end].decode("utf-8", "ignore").split())


def _marks(text: str) -> Iterator[str]:
    """Yield what the fence marks in a visible text, from there on; a dialogue as a whole."""
    labels = [text[at.end() : at.end() + _LONGEST_SIGN] for at in _SPEAKERS.finditer(text)]
    begins = {unicodedata.normalize("NFKC", label[0]).upper() for label in labels}
    if "A" in begins and begins & {"H", "U"}:
        yield f"dialogue: {labels[0]}"
    wide = "\n".join(_narrow(line) for line in text.split("\n") if not line.isascii())
    for lines in (text, wide):
        ends = (at.end(1) for at in _ALIKE.finditer(lines))
        yield from (lines[end : end + _LONGEST_SIGN].partition("\n")[0] for end in ends)


def _forged_turns(text: str) -> Iterator[str]:
    """Yield where a chat's own tokens make a turn of what they stand in.

    Who writes a chat template names the same tokens, in quotes, between lines of code, or alone
    on a page. A turn is one that begins a line of plain text and goes on in words; anywhere else,
    one that speaks of judging.
    """
    if not _CHAT_TOKENS.search(text):
        return
    blocks = [[at.start() for at in block.finditer(text)] for block in _BLOCKS]
    for turn in _TURN.finditer(text):
        before = text[max(0, turn.start() - _LONGEST_TURN) : turn.start()]
        begins = not before.rpartition("\n")[2].strip()
        is_code = any(bisect(block, turn.start()) % 2 for block in blocks)
        is_code = is_code or before.rstrip().endswith(_GOING_ON)
        said = text[turn.end() : turn.end() + _LONGEST_TURN]
        words = said.lstrip()
        if (begins and not is_code and words[:1].isalnum()) or _OF_JUDGING.search(
            _UNQUOTED.match(said)[0]  # type: ignore[index]
        ):
            yield turn[0] + said


class _Signs(Struct, frozen=True):
    """The file beside this module."""

    patterns: tuple[str, ...]
    words: dict[str, str]


@once
def _orders() -> Prefilter:
    """Return what finds words to whoever judges."""
    import hyperscan as hs

    text = (resources.files("debrief.models") / "injection.toml").read_bytes()
    signs = msgspec.toml.decode(text, type=_Signs)
    whole = [_WORD.sub(lambda name: signs.words[name[1]], pattern) for pattern in signs.patterns]
    plain = [each.translate(_PLAIN) for each in whole]
    flags = hs.HS_FLAG_CASELESS | hs.HS_FLAG_MULTILINE | hs.HS_FLAG_SINGLEMATCH
    return Prefilter(plain, untracked=range(len(plain)), flags=flags, is_kept=True)


_WORD = re.compile("«([a-z_]+)»")

_ESCAPED_SPACES = re.compile(r"(?<!\\)\\+[nrt]")
_NO_LETTERS = re.compile(r"[\W_]+")
_NO_ACCIDENT, _TELLING = 30, 12


def bare_words(text: str) -> str:
    """Fold away case, accents, all but letters and digits, and every trace of a text's having
    been defused or put into JSON.

    An answer that holds nothing but words of what it was to judge has judged nothing.
    """
    plain = _TRACES.sub("", _ESCAPED_SPACES.sub(" ", text)).translate(_PLAIN)
    return _NO_LETTERS.sub("", plain.casefold())


def refuse_lifted(answer: str, reasons: Sequence[str], shown: str, question: str = "") -> None:
    """Refuse an answer that only repeats what it was shown: then nobody judged anything.

    One reason of 30 letters, or all of 12 together, do not stand in the material by chance.
    Shorter ones may, so the whole answer, and each object in it, is compared.

    Args:
        answer: whole, as it was sent.
        reasons: read out of it, one at least.
        shown: the bare words of all that was shown.
        question: what was asked, where it holds an example.

    Raises:
        AnswerError: the answer is lifted.
    """
    said = [bare_words(reason) for reason in reasons]
    lifted = [each for each in said if each in shown]
    by_all = len(lifted) == len(said) and len("".join(lifted)) >= _TELLING
    if not (by_all or any(len(each) >= _NO_ACCIDENT for each in lifted)):
        text = answer_text(answer)
        parts = [
            text,
            *(text[json_value.start : json_value.end] for json_value in json_values(text)),
        ]
        wholes = [bare_words(part) for part in parts] if len(lifted) == len(said) else []
        asked = bare_words(question)
        if not any(whole in shown for whole in wholes) and bare_words(answer) not in asked:
            return
    refuse("it repeats words of the recording and judges nothing")
