"""Redact a whole session: all its texts, the same secret by the same placeholder.

A secret that one place gives away (``password = …`` in a file) is replaced in all other places
of the session as well, where nothing around it does. That is also why a patch still applies: its
lines get the placeholders that the file's lines got.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from operator import is_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from debrief.keys import place_of, slugify
from debrief.redaction.finder import (
    SHORTEST,
    SearchBudget,
    find,
    find_at,
    may_hold_secrets,
    placeholders,
    prefilter,
)
from debrief.redaction.personal import names_in, without_personal_data
from debrief.redaction.printed import command_in, printed
from debrief.redaction.redactor import Find, Redacted, Redactor
from debrief.redaction.spans import WITHHELD, Hit, Prefilter, SecretSpan, union, without
from debrief.redaction.strings import strings_in
from debrief.sessions.model import OURS, Session, calls_of

_Form = Literal["text", "name", "json", "patch", "copy"]
Item = TypeVar("Item", bound=msgspec.Struct)
Fields = Mapping[type[msgspec.Struct], Mapping[str, str | None]]
_WITHOUT_TEXT = (bool, int, float, datetime, NoneType, msgspec.UnsetType)
_SIGNS = "-_."
_SHORTEST_LITERAL = 6
_ANYWHERE = 16


def redact_session(session: Session, redactor: Redactor) -> Session:
    """Return the session without secrets, the replacements counted; and without personal data,
    where the redactor takes that out.

    Texts keep their number of lines. A session without either is returned as the very object
    that was handed in; its texts were then read by the prefilter alone.
    """
    clean = _without_secrets(session, redactor)
    if redactor.people is None:
        return clean
    texts: list[str] = []
    fields = fields_of(Session)

    def collect(text: str, form: _Form) -> str:
        texts.append(text)
        return text

    rebuilt(clean, fields, collect)
    names = names_in(texts).union(redactor.people)

    def replace(text: str, form: _Form) -> str:
        if form != "patch":
            return without_personal_data(text, names, redactor.stand)
        lines = [(line[: _marker(line)], line[_marker(line) :]) for line in text.split("\n")]
        plain = "\n".join(line for _, line in lines)
        new = without_personal_data(plain, names, redactor.stand).split("\n")
        return "\n".join(mark + line for (mark, _), line in zip(lines, new, strict=True))

    found = rebuilt(clean, fields, replace)
    return msgspec.structs.replace(found, task=_task_of(clean, found)) if found != clean else clean


def _without_secrets(session: Session, redactor: Redactor) -> Session:
    texts: dict[tuple[str, _Form], None] = {}

    def collect(text: str, form: _Form) -> str:
        texts[text, form] = None
        return text

    fields = fields_of(Session)
    rebuilt(session, fields, collect)
    hits = prefilter().hits_in_each(text for text, _ in texts)
    # A secret after a line break is not seen in JSON, where the break is written as two signs.
    escaped = (text for text, form in texts if form == "json" and "\\" in text and text not in hits)
    hits |= dict.fromkeys(may_hold_secrets(escaped), ())
    # Texts with most hits come last: what they take is not taken from the others.
    searched = sorted((part for part in texts if part[0] in hits), key=lambda p: len(hits[p[0]]))
    inner = {part: list(_parts(*part)) for part in searched}
    leaves = (
        leaf
        for pairs in inner.values()
        for leaf, _ in pairs
        if leaf not in hits and len(leaf) >= SHORTEST
    )
    hits |= prefilter().hits_in_each(leaves)
    known = _Known(SearchBudget(sum(len(text) for text, _ in texts)))
    suspects = _suspects(text for text, form in texts if form == "name")
    held = {part for part in texts if part[1] == "name" and part[0] in suspects}
    held |= {part for part in searched if known.learn(inner[part], hits)}
    for call in calls_of(session):
        if call.result and (command := command_in(call.input)):
            known.learn_printed(command, call.result)
    if not held and not known.kinds:
        return session
    literals = known.prefilter()
    same = literals.hits_in_each(text for text, _ in texts) if literals else ()
    held |= {part for part in texts if part[0] in same}
    results = {part: known.redact(*part, redactor) for part in texts if part in held}
    replaced = {part: result for part, result in results.items() if result.findings}
    if not replaced:
        return session
    found: list[Redacted] = []

    def replace(text: str, form: _Form) -> str:
        result = replaced.get((text, form))
        if result is None:
            return text
        if form != "copy":
            found.append(result)
        return result.text

    clean = rebuilt(session, fields, replace)
    return msgspec.structs.replace(
        clean,
        task=_task_of(session, clean),
        redactions=session.redactions + sum(len(redacted.findings) for redacted in found),
        unsure_redactions=session.unsure_redactions + sum(redacted.unsure for redacted in found),
    )


def redact_rows(rows: Sequence[Item], redactor: Redactor) -> list[Item]:
    """Return structs of one type without secrets, each text taken by itself."""
    texts: dict[str, str] = {}

    def collect(text: str, form: str) -> str:
        texts[text] = form
        return text

    def clean(text: str, form: str) -> str:
        if text not in suspects:
            return text
        is_name = form == "name"
        return (
            redact_name(text, redactor, budget) if is_name else redactor.redact(text, "", budget)
        ).text

    def replace(text: str, form: str) -> str:
        return without_personal_data(text, redactor.people or (), redactor.stand)

    fields = fields_of(type(rows[0])) if rows else {}
    for row in rows:
        rebuilt(row, fields, collect)
    budget = SearchBudget(sum(map(len, texts)))
    suspects = _suspects(texts)
    found = [rebuilt(row, fields, clean) for row in rows]
    return found if redactor.people is None else [rebuilt(row, fields, replace) for row in found]


def redact_name(name: str, redactor: Redactor, budget: SearchBudget | None = None) -> Redacted:
    """Replace the secrets in a path or an id, whichever of its signs became hyphens.

    Agents name a project's folder after the working folder, with a hyphen for each sign that is
    no letter or digit.
    """

    def found(text: str, field: str, budget: SearchBudget) -> list[SecretSpan]:
        spans = (
            secret_span
            for sign in _SIGNS
            for secret_span in find(text.replace("-", sign), field, budget)
        )
        return without(union(spans), placeholders(text))

    return redactor.replace(name, "", found, budget or SearchBudget(len(name)))


def _suspects(names: Iterable[str]) -> set[str]:
    """Return the names that may hold a secret, by one pass over all of them."""
    names = set(names)
    hits = prefilter().hits_in_each(name.replace("-", sign) for sign in _SIGNS for name in names)
    return {name for name in names if any(name.replace("-", sign) in hits for sign in _SIGNS)}


def _task_of(session: Session, clean: Session) -> str:
    """Return the task as it is called after redaction: made again of the place's clean names."""
    if session.task == place_of(session.cwd, session.repository).task:
        return place_of(clean.cwd, clean.repository).task
    return clean.task if clean.task == session.task else slugify(clean.task)


class _Known:
    """The secrets that were met in a session so far."""

    def __init__(self, budget: SearchBudget) -> None:
        self.kinds: dict[str, tuple[bool, str]] = {}
        self._budget = budget
        self._found: dict[tuple[str, str], list[SecretSpan]] = {}
        """What was found by text and name: all texts with hits are here before one is replaced."""
        self._literals: Prefilter | None = None

    def learn(self, parts: list[tuple[str, str]], hits: Mapping[str, Sequence[Hit]]) -> bool:
        """Remember the secrets that the parts of a text give away by name or hit, if any."""
        learnt = False
        for part, name in parts:
            found = hits.get(part, ())
            is_searched = name or (found and (len(parts) == 1 or len(part) >= SHORTEST))
            spans = find_at(part, found, name, self._budget) if is_searched else []
            self._found[part, name] = spans
            for span in spans:
                learnt = True
                if span.kind == WITHHELD:
                    continue
                self._remember(part[span.start : span.end], span)
                if span.value:
                    self._remember(span.value, span)
        return learnt

    def learn_printed(self, command: str, result: str) -> None:
        """Remember the secrets in a result that its command says are there."""
        for span in printed(command, result):
            self._remember(result[span.start : span.end], span)

    def prefilter(self) -> Prefilter | None:
        """Return a prefilter for the secrets themselves, as they are and as JSON spells them."""
        values = [value for value in self.kinds if len(value) >= _SHORTEST_LITERAL]
        if not values:
            return None
        self._literals = Prefilter(sorted(values), literal=True)
        spelled = (json.dumps(value, ensure_ascii=False)[1:-1] for value in values)
        return Prefilter(sorted({*values, *spelled}), literal=True)

    def redact(self, text: str, form: _Form, redactor: Redactor) -> Redacted:
        """Replace every secret in a text, known ones wherever they stand."""
        if form == "name":
            return redact_name(text, redactor, self._budget)
        if form == "patch":
            return _replace_in_patch(text, redactor, self._find, self._budget)
        if form == "json":
            return redactor.replace_in_json(text, self._find, self._budget)
        return redactor.replace(text, "", self._find, self._budget)

    def _find(self, text: str, name: str, budget: SearchBudget) -> list[SecretSpan]:
        spans = self._found.get((text, name))
        if spans is None:
            spans = [] if budget.is_spent() else find(text, name, budget)
        if self._literals is not None:
            spans = union([*spans, *self._occurrences(text)])
        return [self._named(text, span) for span in spans]

    def _occurrences(self, text: str) -> list[SecretSpan]:
        assert self._literals is not None
        found: list[SecretSpan] = []
        for hit in self._literals.hits(text):
            value = text[hit.start : hit.end]
            beside = (text[max(0, hit.start - 1) : hit.start], text[hit.end : hit.end + 1])
            if len(value) >= _ANYWHERE or not any(map(str.isalnum, beside)):
                sure, kind = self.kinds[value]
                found.append(SecretSpan(hit.start, hit.end, kind, sure))
        return without(found, placeholders(text))

    def _named(self, text: str, span: SecretSpan) -> SecretSpan:
        if span.kind == WITHHELD:
            return span
        value = span.value or text[span.start : span.end]
        sure, kind = self.kinds.get(value, (span.sure, span.kind))
        return SecretSpan(span.start, span.end, kind, sure, span.value)

    def _remember(self, value: str, span: SecretSpan) -> None:
        self.kinds[value] = max(self.kinds.get(value, (False, "")), (span.sure, span.kind))


def _parts(text: str, form: _Form) -> Iterator[tuple[str, str]]:
    """Yield what is read as one text, with the name of which it is the value."""
    if form == "patch":
        yield _without_markers(text), ""
        return
    yield text, ""
    if form == "json":
        with suppress(ValueError, RecursionError):
            yield from ((leaf, name) for leaf, name, _ in strings_in(text))


def _without_markers(patch: str) -> str:
    return "\n".join(line[_marker(line) :] for line in patch.split("\n"))


def _marker(line: str) -> int:
    return int(line[:1] in ("+", "-", " ", "\\"))


def _replace_in_patch(patch: str, redactor: Redactor, find: Find, budget: SearchBudget) -> Redacted:
    result = redactor.replace(_without_markers(patch), "", find, budget)
    if not result.findings:
        return Redacted(patch)
    lines = zip(patch.split("\n"), result.text.split("\n"), strict=True)
    return Redacted("\n".join(old[: _marker(old)] + new for old, new in lines), result.findings)


@cache
def fields_of(kind: type[msgspec.Struct]) -> Fields:
    """Return the fields of a struct, and of those in it, that hold text: all but ``OURS``.

    Raises:
        TypeError: a field has a type of which it is not known whether it holds text.
    """
    own: dict[str, str | None] = {}
    found: dict[type[msgspec.Struct], Mapping[str, str | None]] = {kind: own}
    for field in msgspec.structs.fields(kind):
        for type_ in _types_in(field.type):
            if get_origin(type_) is Annotated:
                form = type_.__metadata__[0]
                own |= {field.name: form} if form != OURS else {}
            elif type_ is str:
                own[field.name] = "text"
            elif issubclass(type_, msgspec.Struct):
                inner = fields_of(type_)
                if inner[type_]:
                    own[field.name] = None
                    found |= inner
            elif type_ not in _WITHOUT_TEXT:
                raise TypeError(f"{kind.__name__}.{field.name}: text or not?")
    return found


def _types_in(hint: Any) -> Iterator[Any]:
    origin = get_origin(hint)
    if origin in (Union, UnionType, tuple):
        for part in get_args(hint):
            if part is not Ellipsis:
                yield from _types_in(part)
    elif origin is not Literal:
        yield hint


def rebuilt(item: Item, fields: Fields, visit: Callable[[str, Any], str]) -> Item:
    """Return a struct with each of its texts visited; the same object if none changed.

    Args:
        item: a session, or a part of one.
        fields: by struct, its texts with their form; None for fields that hold other structs.
        visit: takes a text and its form; returns its replacement.
    """
    changes: dict[str, Any] = {}
    for name, form in fields[type(item)].items():
        old = new = getattr(item, name)
        if isinstance(old, str):
            new = visit(old, form)
        elif isinstance(old, tuple):
            items = [
                rebuilt(each, fields, visit) if form is None else visit(each, form) for each in old
            ]
            new = old if all(map(is_, old, items)) else tuple(items)
        elif type(old) in fields:
            new = rebuilt(old, fields, visit)
        if new is not old:
            changes[name] = new
    return msgspec.structs.replace(item, **changes) if changes else item
