"""The person's side of a session: what they asked, answered and stopped, ready to be measured.

Words are judged by lexical rules, a file a language in ``words/``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from debrief.offline.talk import Sighting, correction_in, rules
from debrief.sessions.model import Session, Turn

_HERE = "debrief.rubrics.habits"
_LOOKED_AT = 20_000
_QUOTE = 160
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
_FOREIGN = re.compile(
    r"```.*?(?:```|\Z)|^[ \t]*[>│][^\n]*$|^[ \t]*at [^\n]*$|^[ \t]*File \"[^\n]*$|https?://\S+"
    r"|^[ \t]*\d+[→:\t|][^\n]*$|<([\w-]+)[^>]*>.*?</\1>|^[^\n]*[;{][ \t]*$"
    r"|^[ \t]*(?:def \w+\(|class \w+[(:]|assert |func \w+\(|(?:const|let|var) \w+ =|@\w+[.(]"
    r"|\"\"\"|//|import \w+ from|from [\w.]+ import|E[ \t]{3})[^\n]*$",
    re.DOTALL | re.MULTILINE,
)
"""Fences and tags go over lines; all else is of one."""
_HEADING = re.compile(r"[ \t]*(?:#{1,6} [^\n]*|(?:\S+ ){0,5}\S+:)\s*\n\s*(?=\S)")
_SENTENCE_END = re.compile(r"[.!?;:]\s+")
_WORD = re.compile(r"[^\W\d_](?:[\w'-]*\w)?")
_FILE = (
    r"\b[\w-]+\.(?:pyi?|tsx?|jsx?|mjs|go|rs|java|kts?|rb|mdx?|jsonl?|ya?ml|toml|s?css|html?|sql|sh"
    r"|[ch](?:pp)?|cs|php|swift|exs?|lock|txt|ipynb|svelte|vue|proto|tf|cfg|ini|xml|env|lua|zig)\b"
)
_PATH = re.compile(
    rf"(?<![\w/:])@?(?:~|\.{{1,2}})?/?(?:[\w.@-]+/)+{_FILE}|(?<![\w/:])@?{_FILE}"
    r"|(?<![\w/:])(?:~|\.{1,2})?/(?:[\w.@-]+/)+[\w.@-]*|(?<![\w/:])@?(?:[\w.-]+/){2,}[\w.-]*"
    r"|(?<!\w)@[\w.-]+/[\w./-]*|\b(?:Makefile|Dockerfile|README|CHANGELOG|CLAUDE\.md|AGENTS\.md)\b"
)
_SPAN = re.compile(r"`([^`\n]{2,80})`")
_SYMBOL = re.compile(
    r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b"
    r"|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b(?:[A-Z][a-z0-9]+){2,}\b|\b\w+\(\)|(?<!\S)--[a-z][\w-]+"
)
_BRANDS = re.compile(
    r"(?:Git(?:Hub|Lab)|Java|Type|Coffee)Script\Z|Git(?:Hub|Lab)\Z|Open(?:AI|Code)|You[Tt]ube"
    r"|PostHog|LinkedIn|StackOverflow|WhatsApp|DevOps|PowerShell|ClaudeCode|VSCode"
)
_LINE = re.compile(r"\blines? \d+|:\d{1,5}\b|\bL\d+\b|#L\d+")
_LINK = re.compile(
    r"https?://\S+|(?<!\w)#\d{1,6}\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b"
)
_IDLE_WORDS = (
    "a an and any are as at be but by can could do does for from get go has have how i if in is "
    "it its just let like me my need not now of ok on one or our out please should so some that "
    "the their them then there these they this to up us use want was we were what when where "
    "which will with would yes you your all also am because been did don't i'm i'd it's let's "
    "make more no only see still sure than thanks try very while why work works working able add "
    "fix change"
)
_IDLE = frozenset(_IDLE_WORDS.split())


class HumanPrompt:
    """One prompt of the person."""

    def __init__(self, turn: Turn, text: str) -> None:
        self.turn = turn.number
        self.text = text
        self.looked_at = text[:_LOOKED_AT].replace("’", "'")

    @cached_property
    def own(self) -> str:
        """What the person typed themselves: no code block, log, quotation or link."""
        return _FOREIGN.sub(" ", self.looked_at)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The person's own words, in lower case."""
        return tuple(word.casefold() for word in _WORD.findall(self.own))

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Files and folders that are named, each once."""
        text = _LINK.sub(" ", self.looked_at)
        return tuple(dict.fromkeys(found[0] for found in _PATH.finditer(text)))

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """Functions, classes, options, commands and other code that is named, each once."""
        text = _LINK.sub(" ", self.looked_at)
        spans = [s[1].strip() for s in _SPAN.finditer(text) if not _PATH.search(s[1])]
        plain = _PATH.sub(" ", _SPAN.sub(" ", text))
        names = [s for s in spans if s] + [found[0] for found in _SYMBOL.finditer(plain)]
        return tuple(dict.fromkeys(name for name in names if not _BRANDS.match(name)))

    @cached_property
    def links(self) -> tuple[str, ...]:
        """Links, issue numbers and commits."""
        return tuple(dict.fromkeys(found[0] for found in _LINK.finditer(self.looked_at)))

    @property
    def anchors(self) -> int:
        """How many things of the code, or links to it, are named."""
        return len(self.paths) + len(self.symbols) + len(self.links)

    @property
    def names_a_line(self) -> bool:
        """A line is named beside a file."""
        return bool(self.paths) and _LINE.search(self.looked_at) is not None

    @cached_property
    def has_code(self) -> bool:
        """A block of code or a quoted literal of some length is pasted."""
        return any(len(found[0]) > 30 for found in _CODE.finditer(self.looked_at))

    @cached_property
    def listed(self) -> int:
        """Items of numbered lists."""
        return len(re.findall(r"^[ \t]*\d{1,2}[.)]\s+\S", self.looked_at, re.MULTILINE))

    def find(self, section: str, text: str | None = None) -> list[re.Match[str]]:
        """Return where the vocabulary's rules of ``section`` match the person's own words."""
        where = self.own if text is None else text
        return [found for rule in rules(_HERE)[section] if (found := rule.search(where))]

    def count(self, section: str) -> int:
        """Return how many sentences or lines match a rule of ``section``."""
        return sum(
            any(rule.search(piece) for rule in rules(_HERE)[section])
            for piece in re.split(r"(?<=[.!?;])\s+|\n+", self.own)
            if piece.strip()
        )

    def says(self, section: str) -> bool:
        """Return whether a rule of ``section`` matches."""
        return any(rule.search(self.own) for rule in rules(_HERE)[section])

    def sighting(self, section: str = "") -> Sighting:
        """Return the words that match ``section``, or the beginning, as they stand here."""
        for found in self.find(section) if section else ():
            if place := self.text.replace("’", "'").find(found[0].strip()) + 1:
                return Sighting(self.turn, quote_at(self.text, past_headings(self.text, place - 1)))
        return Sighting(self.turn, quote_at(self.text, first_significant_line(self.text)))

    def sighting_of(self, words: str) -> Sighting:
        """Return the line around ``words``, which stand in this prompt."""
        return Sighting(self.turn, quote_at(self.text, max(self.text.find(words), 0)))


class Objection(NamedTuple):
    """Where the person interrupted, refused a call, or said that something was wrong."""

    turn: int
    kind: str
    prompt: HumanPrompt
    """What they said with it."""


class Dialogue:
    """All that a person said and did in a session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.turns = tuple(t for t in session.turns if t.number > 0 and t.prompt.strip())
        self.prompts = tuple(HumanPrompt(turn, turn.prompt) for turn in self.turns)

    @property
    def first(self) -> HumanPrompt:
        """The first prompt; there is one, or nothing can be measured."""
        return self.prompts[0]

    @property
    def later(self) -> tuple[HumanPrompt, ...]:
        """All prompts but the first."""
        return self.prompts[1:]

    @cached_property
    def corrections(self) -> tuple[Objection, ...]:
        """Later prompts, and words at a refused call, that say the agent went wrong."""
        return tuple(one for one in self.objections if one.kind == "correction")

    @cached_property
    def objections(self) -> tuple[Objection, ...]:
        """Interruptions, refusals and corrections, in order."""
        return tuple(self._objections())

    def _objections(self) -> Iterator[Objection]:
        for prompt in self.later:
            if correction_in(prompt.text):
                yield Objection(prompt.turn, "correction", prompt)
        for turn in self.session.turns:
            for deed in turn.interventions:
                if deed.kind == "remark" and correction_in(deed.text):
                    said = HumanPrompt(turn, deed.text)
                    yield Objection(turn.number, "correction", said)
                if deed.kind in ("interruption", "rejection"):
                    said = HumanPrompt(turn, deed.text if deed.kind == "rejection" else "")
                    yield Objection(turn.number, deed.kind, said)

    @cached_property
    def interruptions(self) -> int:
        """How often the person stopped the agent."""
        return sum(objection.kind == "interruption" for objection in self.objections)

    @cached_property
    def replies(self) -> tuple[HumanPrompt, ...]:
        """The prompts that come right after a closing question of the agent."""
        said = ([m.text for m in turn.messages if m.text.strip()] for turn in self.turns)
        questions = (bool(texts) and texts[-1].rstrip(" *_\n").endswith("?") for texts in said)
        return tuple(itertools.compress(self.later, questions))

    @cached_property
    def answers(self) -> tuple[Sighting, ...]:
        """What the person picked or wrote in the agent's question form."""
        return tuple(
            Sighting(turn.number, deed.text)
            for turn in self.session.turns
            for deed in turn.interventions
            if deed.kind == "answer" and deed.text.strip()
        )


def is_ask(prompt: HumanPrompt) -> bool:
    """Return whether a prompt asks for work: no reply, nudge or wrapping up alone."""
    if prompt.says("wrap_ups") or prompt.says("nudges"):
        return False
    return not (prompt.says("replies") and len(prompt.words) < 6)


def content_words(text: str) -> frozenset[str]:
    """Return the words that carry a topic, plurals and endings cut off."""
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(_stem(w) for w in words if len(w) > 2 and w not in _IDLE)


def quote_at(text: str, place: int) -> str:
    """Return the words around ``place`` as they stand there: one line, at most 160 characters."""
    start = text.rfind("\n", 0, place) + 1
    stop = text.find("\n", place)
    line, offset = text[start : stop if stop >= 0 else len(text)], place - start
    if len(line.strip()) > _QUOTE:
        ends = [found.end() for found in _SENTENCE_END.finditer(line)]
        begin = max((end for end in ends if end <= offset), default=0)
        end = min((end for end in ends if end > offset), default=len(line))
        line, offset = line[begin:end], offset - begin
    if len(line) > _QUOTE:
        begin = line.rfind(" ", 0, max(offset - _QUOTE // 3, 0)) + 1
        end = line.rfind(" ", begin, begin + _QUOTE)
        line = line[begin : end if end > offset else begin + _QUOTE]
    return line.strip()


def past_headings(text: str, place: int) -> int:
    """Return ``place``, or where the text begins that a heading at ``place`` announces."""
    start = text.rfind("\n", 0, place) + 1
    while found := _HEADING.match(text, start):
        start = place = found.end()
    return place


def first_significant_line(text: str) -> int:
    """Return where the first line of some substance begins."""
    place = 0
    for line in text.split("\n")[:8]:
        if len(_WORD.findall(line)) >= 5:
            return place
        place += len(line) + 1
    return len(text) - len(text.lstrip())


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) > 3:
            return word[: -len(ending)]
    return word
