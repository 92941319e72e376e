"""Plan compliance, measured: does what was changed and checked meet what was asked for?

What a prompt or plan asks for is read as far as its words tell: files, names, items, kinds of work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from debrief.markdown import shorten
from debrief.offline.calls import Activity, tail
from debrief.offline.commands import arguments, shell_command
from debrief.offline.dimensions import Setting, Weighing, some, weigh_completion, weigh_last_checks
from debrief.offline.signals import Signals, counted, turns_of

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
_ENDINGS = ["ations", "ation", "ings", "ing", "ers", "ies", "es", "ed", "er", "en", "s", "e"]
_CALLS_READ = 4_000
_ITEM_COVERED = 0.5
_NAMED = 3


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
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def _unique(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))[:_MOST]


def weigh_compliance(request: RequestFeatures, activity: Activity, signals: Signals) -> Weighing:
    """Weigh how far the work covers the plan: named files, names, list items, words, and the
    kinds of work that it asks for; what the user had to correct; how checks stood at the end."""
    if not signals.messages:
        return weigh_completion(signals, Setting(asked_for_change=request.change))
    weighing = Weighing(0.2)
    traces = _Traces(activity, signals)
    _weigh_files(weighing, request, traces)
    _weigh_names(weighing, request, traces)
    _weigh_items(weighing, request, traces)
    _weigh_words(weighing, request, traces)
    _weigh_kinds(weighing, request, signals, traces)
    _weigh_scope(weighing, request, traces)
    weigh_last_checks(weighing, signals)
    share = min(1.0, 2 * len(signals.corrections) / max(signals.turns, 1))
    weight = -(0.5 + 0.9 * share)
    weighing.cite(weight, 0.7, "correction{s} by the user", signals.corrections)
    if signals.ended_interrupted:
        weighing.add(-0.9, "the last turn was interrupted")
    elif not signals.ended_answered:
        weighing.add(-0.6, "the last turn has no closing answer")
    return weighing


class _Traces:
    """What the work left behind, in the plan's own coin."""

    def __init__(self, activity: Activity, signals: Signals) -> None:
        self.changed = list(dict.fromkeys(edit.path for edit in signals.edits))
        self.created = {edit.path for edit in signals.edits if edit.created}
        written: list[str] = []
        touched: list[str] = []
        for _, _, call in activity.calls:
            if call.status != "ok":
                continue
            if call.path and call.patch:
                written += [line[1:] for line in call.patch.split("\n") if line[:1] in "+-"]
                continue
            command = shell_command(call)
            values = [command] if command is not None else arguments(call).values()
            touched += [value[:_CALLS_READ] for value in values if isinstance(value, str)]
        self.written = "\n".join(written)
        self.touched = "\n".join(touched)
        self.said = "\n".join(message.text for message in activity.messages if message.text)
        self.hard_stems = stems_of("\n".join([*self.changed, self.written, self.touched]))
        self.stems = self.hard_stems | stems_of(self.said)


def _weigh_files(weighing: Weighing, request: RequestFeatures, traces: _Traces) -> None:
    if not request.files:
        return
    changed = [name for name in request.files if _among(name, traces.changed)]
    others = [name for name in request.files if name not in changed]
    seen = [name for name in others if name in traces.touched or name in request.attached]
    share = (len(changed) + (0.4 if request.change else 1) * len(seen)) / len(request.files)
    said = f"{len(changed)} of {counted(len(request.files), 'file{s}')} named in the plan changed"
    if seen:
        said += f", {len(seen)} looked at"
    missing = [name for name in others if name not in seen]
    if missing and share < 1:
        said += f" (not touched: {', '.join(missing[:_NAMED])})"
    weighing.add(2.0 * (share - 0.4) * some(len(request.files), 1), said)


def _weigh_names(weighing: Weighing, request: RequestFeatures, traces: _Traces) -> None:
    if not request.names:
        return
    hard = [name for name in request.names if name in traces.written or name in traces.touched]
    soft = [name for name in request.names if name not in hard and name in traces.said]
    share = (len(hard) + 0.5 * len(soft)) / len(request.names)
    missing = [name for name in request.names if name not in hard and name not in soft]
    said = f"{len(hard)} of {counted(len(request.names), 'name{s}')} of the plan found in the work"
    if missing and share < 1:
        said += f" (not {', '.join(missing[:_NAMED])})"
    weighing.add(1.7 * (share - 0.4) * some(len(request.names), 2), said)


def _weigh_items(weighing: Weighing, request: RequestFeatures, traces: _Traces) -> None:
    stems = traces.hard_stems if request.change else traces.stems
    measured = [(item, stems_of(item)) for item in request.items]
    measured = [(item, words) for item, words in measured if len(words) >= 2]
    if len(measured) < 2:
        return
    missing = [item for item, words in measured if len(words & stems) < _ITEM_COVERED * len(words)]
    share = 1 - len(missing) / len(measured)
    said = f"{len(measured) - len(missing)} of {len(measured)} listed items left a trace"
    if missing:
        said += f" (none of “{shorten(missing[0], 60)}”)"
    weighing.add(2.2 * (share - 0.5) * some(len(measured), 2), said)


def _weigh_words(weighing: Weighing, request: RequestFeatures, traces: _Traces) -> None:
    if len(request.words) < 3:
        return
    share = len(request.words & traces.stems) / len(request.words)
    alone = not (request.files or request.names or request.items)
    weight = (2.4 if alone else 1.2) * (share - 0.5) * some(len(request.words), 4)
    weighing.add(weight, f"{share:.0%} of the plan's telling words come back in the work")


def _weigh_kinds(
    weighing: Weighing, request: RequestFeatures, signals: Signals, traces: _Traces
) -> None:
    if request.change and not signals.edits:
        weighing.add(-1.5, "a change was asked for, and no editing tool changed anything")
    elif request.change:
        files = counted(len(traces.changed), "file{s}")
        weighing.add(0.3, f"{files} changed, as a change was asked")
    if request.tests:
        tests = [run for run in signals.checks if run.kind == "test"]
        wrote = any("test" in path.lower() or "spec" in path.lower() for path in traces.changed)
        if tests or wrote:
            where = f" (turn {tests[-1].turn})" if tests else ""
            did = "run" if tests else "written"
            weighing.add(0.5, f"tests were asked for, and {did}{where}")
        elif request.change:
            weighing.add(-0.7, "tests were asked for, and none was written or run")
    if request.commit:
        if signals.commits:
            weighing.add(0.5, f"committed as asked ({turns_of(signals.commits)})")
        else:
            weighing.add(-0.5, "a commit or pull request was asked for, and none was made")
    if request.docs and request.change and signals.edits:
        wrote = any(path.lower().endswith((".md", ".mdx", ".rst")) for path in traces.changed)
        said = "documentation was asked for, and " + ("written" if wrote else "none was written")
        weighing.add(0.25 if wrote else -0.4, said)


def _weigh_scope(weighing: Weighing, request: RequestFeatures, traces: _Traces) -> None:
    """Look for new files that nothing in the plan speaks of."""
    if len(request.words) < 6 or not traces.created:
        return
    unnamed = (p for p in sorted(traces.created) if not any(_among(n, [p]) for n in request.files))
    strange = [path for path in unnamed if not (stems_of(tail(path)) & request.words)]
    if strange:
        weight = -0.7 * some(len(strange), 2)
        names = ", ".join(path.rpartition("/")[2] for path in strange[:_NAMED])
        new = counted(len(strange), "new file{s}")
        weighing.add(weight, f"{new} that the plan does not speak of ({names})")


def _among(name: str, paths: list[str]) -> bool:
    return any(path == name or path.endswith("/" + name.lstrip("./@~")) for path in paths)
