"""What a prompt or plan asks for, as far as its words tell: files, names, items, kinds of work."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

_LOOKED_AT = 40_000
_MOST = 60
_NOT_THE_ASK = re.compile(
    r"https?://\S+|<(ide_[a-z_]+|system-reminder|local-command-[a-z]+)>.*?(?:</\1>|\Z)", re.DOTALL
)
_FILE = re.compile(
    r"(?<![\w/.@-])@?((?:[\w.~-]+/)*[\w-][\w.-]*\.(?:py|pyi|ts|tsx|js|jsx|mjs|cjs|go|rs|java|kt|rb|php"
    r"|c|h|cc|cpp|hpp|cs|swift|ex|exs|erl|scala|sh|bash|sql|css|scss|html|vue|svelte|md|mdx|rst|txt"
    r"|json|jsonl|ya?ml|toml|ini|cfg|lock|proto|tf|xml|csv|ipynb|heex|astro|prisma|graphql))\b"
    r"(?![\w/])"
)
_TICKED = re.compile(r"`([^`\n]{2,80})`")
_NAME = re.compile(r"\b[A-Za-z_]\w{2,60}\b(?:\(\))?")
_HUMP = re.compile(r"[a-z0-9][A-Z]")
_ITEM = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)]|- \[[ x]\])\s+(.{8,})$", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_][\w]{3,}")
_PARTS = re.compile(r"[A-Z]?[a-zà-ÿ]+|[A-Z]+(?![a-z])|\d+")
_OUT_OF_SCOPE = re.compile(
    r"^#+\s*(?:out of scope|non-goals?|not in scope|nicht (?:ziele|teil)).*?(?=^#|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_CHANGES = re.compile(
    r"\b(?:add|implement|fix|create|write|change|refactor|update|remove|delete|rename|move|replace"
    r"|build|make|introduce|support|extend|convert|migrate|improve|bump|extract|clean|rewrite"
    r"|set up|integrate|adjust|wire|port|enable|disable|drop|ändere|füge|baue|schreib\w*"
    r"|implementier\w*|behebe?|korrigier\w*|erstell\w*|entfern\w*|lösche?|ergänz\w*|repariere?|mach\w*|ersetze?)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"\A\s*(?:what|why|how|where|when|which|who|is|are|does|do|did|can you (?:explain|tell|find"
    r"|show|check|look|see|review|summari[sz]e)|explain|describe|list|show|review|analy[sz]e|investigate"
    r"|summari[sz]e|tell me|help me understand|find|look|read|search|research|explore|check|was|wie"
    r"|warum|wo|wann|wer|welche\w*|erklär\w*|zeig\w*|prüf\w*|finde?)\b",
    re.IGNORECASE,
)
_TESTS = re.compile(r"\b(?:unit |integration )?tests?\b|\btdd\b|\bteste?n?\b", re.IGNORECASE)
_COMMIT = re.compile(
    r"(?:\A|[.,;:!\n]|\b(?:and|then|please|also|afterwards|finally))[ \t]*(?:commit|push)\b"
    r"(?!(?:s|ed|ing)\b|[ -](?:message|hash|sha|id|history|hook|graph|metadata|count)s?\b)"
    r"|\b(?:open|create|make|launch|raise|submit) (?:a|the|an) (?:\w+ )?(?:pr|pull request)\b",
    re.IGNORECASE,
)
_DOCS = re.compile(r"\b(?:readme|changelog|docs?|documentation|docstrings?|doku\w*)\b", re.I)
_STOP_WORDS = (
    "that this with from have should would could when where which what will must into then them "
    "they there their also each only some such than these those your about after before other "
    "like need needs want please make sure using used uses does done just more most very over "
    "file files code line lines here were been being because while same both between through "
    "can't don't isn't implement following plan user users example section true false none "
    "eine einen einer nicht oder aber wird werden wenn auch sich sind dass diese dieser dieses "
    "bitte noch alle kann soll über unter nach beim"
)
_STOP = frozenset(_STOP_WORDS.split())


class RequestFeatures(Struct, frozen=True, kw_only=True):
    """What is asked for."""

    files: tuple[str, ...]
    """Named files, as written."""
    attached: tuple[str, ...]
    """Of those, the ones given along with an ``@``: their content came with the prompt."""
    names: tuple[str, ...]
    """Identifiers, and what is in backticks."""
    items: tuple[str, ...]
    """List items."""
    words: frozenset[str]
    """Telling words, folded as by ``stems_of``."""
    change: bool
    """A change is asked for, not only an answer."""
    tests: bool
    commit: bool
    docs: bool


def read_request(text: str) -> RequestFeatures:
    """Read what ``text``, a prompt or plan in Markdown, asks for; sections that say what is out
    of scope are passed over."""
    text = _NOT_THE_ASK.sub(" ", _OUT_OF_SCOPE.sub("", text[:_LOOKED_AT]))
    named = list(_FILE.finditer(text))
    files = _unique(match[1] for match in named)
    ticked = (word for word in _TICKED.findall(text) if not _FILE.fullmatch(word))
    names = _unique([*ticked, *_identifiers(_FILE.sub(" ", text))])
    question = bool(_QUESTION.match(text)) or text.strip().endswith("?")
    change = bool(_CHANGES.search(text))
    return RequestFeatures(
        files=files,
        attached=_unique(match[1] for match in named if match[0].startswith("@")),
        names=names,
        items=_unique(item.strip() for item in _ITEM.findall(text)),
        words=stems_of(text),
        change=change and not (question and len(text) < 300),
        tests=bool(_TESTS.search(text)),
        commit=bool(_COMMIT.search(text)),
        docs=bool(_DOCS.search(text)),
    )


def stems_of(text: str) -> frozenset[str]:
    """Return the telling words of a text: no stop words, identifiers taken apart, folded so
    that ``parsing``, ``parser`` and ``parse_args`` meet in ``pars``."""
    found = set()
    for word in _WORD.findall(text):
        for part in _PARTS.findall(word) if not word.islower() or "_" in word else (word,):
            folded = part.lower()
            if len(folded) > 3 and folded not in _STOP:
                found.add(_stem(folded))
    return frozenset(found)


def _identifiers(text: str) -> Iterator[str]:
    """Yield what only code is called: ``snake_case``, ``camelCase``, ``call()``."""
    for word in _NAME.findall(text):
        name = word.removesuffix("()")
        if word != name or "_" in name.strip("_") or _HUMP.search(name):
            yield name


def _stem(word: str) -> str:
    for ending in (
        "ations",
        "ation",
        "ings",
        "ing",
        "ers",
        "ies",
        "es",
        "ed",
        "er",
        "en",
        "s",
        "e",
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def _unique(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))[:_MOST]
