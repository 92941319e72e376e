"""Personal data, where a setting asks for it: home folders, addresses, numbers, names.

Stand-ins have the form of what they stand for, as far as programs read it: a path stays a path.
They are made with the redaction key, so that one person is one stand-in everywhere, and a patch
applies to the file that got the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

_FOLDERS = r"(?:/home|/Users|[A-Za-z]:[\\/]{1,4}Users)"
_HOME = re.compile(
    rf"(?P<before>{_FOLDERS}[\\/]{{1,4}}|(?<![\w\-])-(?:home|Users)-)"
    r"(?P<name>[A-Za-z][\w.]{0,40}(?:(?<=\w)-[a-z]\w*)?)(?![\w.])"
)
_NOBODYS = frozenset(
    ["runner", "user", "users", "ubuntu", "node", "app", "vscode", "shared", "public"]
)
"""Folders of machines, not of people."""
_MAIL = re.compile(
    r"(?<![\w.+%\-/:@])[A-Za-z0-9][\w.+\-]{0,63}@[A-Za-z0-9][A-Za-z0-9\-]{0,62}"
    r"(?:\.[A-Za-z0-9\-]{1,62}){0,4}\.[A-Za-z]{2,12}(?![\w@:/])"
)
_OURS = "person.invalid"
_NOBODY = re.compile(
    r"(?:git|noreply|no-reply)@|@(?:example\.|.*\.example\b|.*\.invalid\b|localhost)"
)
_PHONE = re.compile(
    r"(?<![\w.+\-/\n])(?<!\A)(?:(?:\+|00)[1-9]\d{0,2}[ .\-/]\(?\d{1,5}\)?(?:[ .\-/]?\d{1,5}){1,5}"
    r"|\+[1-9]\d{9,14})(?![\w.\-]*\d)"
)
"""With the code of a country; one that begins a line may be a patch's."""
_SIGNED = re.compile(
    r"(?:^|[\n:\"]|\\n)[ \t]*(?:Author: |Co-authored-by: |Signed-off-by: )?"
    r"(?P<name>[^\W\d_][\w.'’\-]*(?: [^\W\d_][\w.'’\-]*){1,3}) <(?=[\w.+\-]+@)"
)
_FEWEST_DIGITS = 9
Stand = Callable[[str, str], str]
"""Takes the kind and what is replaced; returns six hex digits that stand for it."""


def names_in(texts: Iterable[str]) -> set[str]:
    """Return people's names as commits and mails sign them: ``Ann Example <ann@…>``."""
    return {found["name"] for text in texts if "@" in text for found in _SIGNED.finditer(text)}


def without_personal_data(text: str, names: Iterable[str], stand: Stand) -> str:
    """Replace home folders' names, mail addresses, phone numbers and some people's names.

    Never adds or removes a line, and does nothing to its own output.

    Args:
        text: any text.
        names: of people.
        stand: makes the digits of a stand-in.
    """

    for rule in _RULES:
        text = rule.apply(text, stand)
    for name in sorted(names, key=len, reverse=True):
        if name in text:
            text = re.sub(rf"\b{re.escape(name)}\b", f"person-{stand('name', name)}", text)
    return text


def holds_personal_data(text: str) -> bool:
    """Return whether something in a text would be replaced, names aside."""
    return any(
        rule.replaced(found, lambda kind, value: "000000") != found[0]
        for rule in _RULES
        for found in rule.find(text)
    )


def _home(found: re.Match[str], stand: Stand) -> str:
    whole = found["name"]
    name = whole.partition("-")[0] if found["before"].endswith("-") else whole
    rest = whole[len(name) :]
    if name.lower() in _NOBODYS or name.startswith("user_"):
        return found[0]
    return f"{found['before']}user_{stand('home', name)}{rest}"


def _mail(found: re.Match[str], stand: Stand) -> str:
    if _NOBODY.search(found[0]):
        return found[0]
    return f"mail-{stand('mail', found[0].lower())}@{_OURS}"


def _phone(found: re.Match[str], stand: Stand) -> str:
    digits = re.sub(r"\D", "", found[0])
    return found[0] if len(digits) < _FEWEST_DIGITS else f"phone-{stand('phone', digits)}"


class _Rule(NamedTuple):
    signs: tuple[str, ...]
    """A text without any of these need not be searched."""
    form: re.Pattern[str]
    replaced: Callable[[re.Match[str], Stand], str]

    def find(self, text: str) -> Iterator[re.Match[str]]:
        if any(sign in text for sign in self.signs):
            yield from self.form.finditer(text)

    def apply(self, text: str, stand: Stand) -> str:
        if not any(sign in text for sign in self.signs):
            return text
        return self.form.sub(lambda found: self.replaced(found, stand), text)


_RULES = (
    _Rule(("home", "sers"), _HOME, _home),
    _Rule(("@",), _MAIL, _mail),
    _Rule(("+", "00"), _PHONE, _phone),
)
