"""The redactor: texts in, texts with placeholders out; and the last gate."""

from __future__ import annotations

import hmac
import re
import secrets
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, structs

from debrief.errors import ConfigurationError, InputError
from debrief.files import atomic, make_folder
from debrief.git import git
from debrief.redaction.finder import (
    RULES,
    SHORTEST,
    VERSION,
    SearchBudget,
    find,
    find_at,
    may_hold_secret,
    prefilter,
)
from debrief.redaction.plausibility import class_of
from debrief.redaction.spans import WITHHELD, SecretSpan
from debrief.redaction.strings import decode, encode, strings_in, visit_strings
from debrief.settings import Settings

WITHHELD_MARK = "<withheld: would take too long to search for secrets>"
"""The mark of a stretch of a text that could not be searched in time."""
_LONG_STRING = 4096
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"(\s*:)?')
_NO_JSON_MARK = "<withheld: is no JSON without its secrets>"
_KEY_BYTES = 32
Find = Callable[[str, str, SearchBudget], list[SecretSpan]]
"""Takes a text, the name that it is the value of, and what the search may take; returns the secrets
in it."""


class Finding(Struct, frozen=True, kw_only=True, gc=False):
    """A secret that was replaced. It does not hold the secret, so that it can be logged."""

    kind: str
    start: int
    """Where it was in the text, in characters; of JSON, in the string at ``path``."""
    end: int
    sure: bool
    """False: a person should look before the text trains a model."""
    placeholder: str = ""
    path: str = ""
    """In JSON, the way to the string: ``messages.0.content``."""


class Redacted(Struct, frozen=True):
    """A text without its secrets."""

    text: str
    """The very object that was handed in when nothing was found in it."""
    findings: tuple[Finding, ...] = ()

    @property
    def unsure(self) -> int:
        """How many findings a person should look at."""
        return sum(not finding.sure for finding in self.findings)


class Redactor:
    """Replaces secrets by stable typed placeholders such as ``<secret:github-token:3f9a1c>``.

    The last part is the beginning of an HMAC-SHA256 under a key that stays on the machine: the
    same secret gives the same placeholder in every text, and nobody can try secrets against a
    placeholder without the key.
    """

    def __init__(self, key: bytes, people: Collection[str] | None = None) -> None:
        if len(key) < 16:
            raise ConfigurationError("redaction key", "has less than 16 bytes", "Remove the file.")
        self._key = key
        self.people = people
        """Names that go with the personal data of sessions; None when that stays."""

    @property
    def identity(self) -> str:
        """What a redacted text depends on besides the text: this key and these rules."""
        people = () if self.people is None else ("people", *sorted(self.people))
        return self._digest("\0".join((VERSION, *(rule[1] for rule in RULES), *people))).hex()

    def placeholder(self, kind: str, secret: str) -> str:
        """Return the placeholder of a secret."""
        return f"<secret:{kind}:{self._digest(secret).hex()[:6]}>"

    def keyed_digest(self, text: str) -> str:
        """Return the HMAC-SHA256 of a text, in hex: who has no key cannot try texts against it."""
        return self._digest(text).hex()

    def stand(self, kind: str, value: str) -> str:
        """Return six hex digits that stand for a piece of personal data."""
        return self._digest(f"{kind}\0{value}").hex()[:6]

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")

    def redact(
        self, text: str, field_name: str = "", budget: SearchBudget | None = None
    ) -> Redacted:
        """Replace the secrets in a text.

        Never adds or removes a line, leaves placeholders alone, and does nothing to its own
        output.

        Args:
            text: any text.
            field_name: the name that the whole text is the value of, such as a JSON key.
            budget: of all that is searched together; None for a text by itself.
        """
        return self.replace(text, field_name, find, budget or SearchBudget(len(text)))

    def redact_json(self, json_text: str) -> Redacted:
        """Replace the secrets in the strings of a JSON text, whose keys tell more about them.

        Returns compact JSON, or the very text that was handed in when it holds no secret. What
        is no JSON (or nested too deep) is taken as plain text.
        """
        if not may_hold_secret(json_text):
            return Redacted(json_text)
        return self.replace_in_json(json_text, find, SearchBudget(len(json_text)))

    def replace_in_json(self, json_text: str, find: Find, budget: SearchBudget) -> Redacted:
        """Replace what ``find`` finds in the strings of a JSON text, then in the text itself.

        The second look sees what lies between the short strings: ``["--password", "…"]``. Where
        there is no time for it, they are withheld.
        """
        findings: list[Finding] = []

        def visit(text: str, name: str, path: str) -> str:
            result = self.replace(text, name, find, budget)
            findings.extend(structs.replace(found, path=path) for found in result.findings)
            return result.text

        try:
            value = visit_strings(decode(json_text), visit)
            inner = encode(value) if findings else json_text
        except (ValueError, RecursionError):
            return self.replace(json_text, "", find, budget)

        def find_between(text: str, name: str, budget: SearchBudget) -> list[SecretSpan]:
            return find(_without_long_strings(text), name, budget)

        outer = self.replace(inner, "", find_between, budget)
        if any(found.kind == WITHHELD for found in outer.findings):
            outer = _without_short_strings(inner, outer.findings)
        elif outer.findings:
            try:
                decode(outer.text)
            except (ValueError, RecursionError):
                found = Finding(kind=WITHHELD, start=0, end=len(inner), sure=False)
                found = structs.replace(found, placeholder=_NO_JSON_MARK)
                outer = Redacted(encode({WITHHELD: _NO_JSON_MARK}), (found,))
        return Redacted(outer.text, (*findings, *outer.findings))

    def replace(self, text: str, field_name: str, find: Find, budget: SearchBudget) -> Redacted:
        """Replace what ``find`` finds in a text, until it finds nothing more."""
        findings: list[Finding] = []
        passes: list[_Moves] = []
        while spans := find(text, field_name, budget):
            if passes:  # all of it has been searched once
                spans = [span for span in spans if span.kind != WITHHELD]
                if not spans:
                    break
            pieces: list[str] = []
            last = shift = 0
            moves = _Moves([0], [0])
            for span in spans:
                hidden = text[span.start : span.end]
                if span.kind == WITHHELD:
                    placeholder = WITHHELD_MARK + "\n" * hidden.count("\n")
                else:
                    placeholder = self.placeholder(span.kind, span.value or hidden)
                start, end = _original(passes, span.start), _original(passes, span.end)
                findings.append(
                    Finding(
                        kind=span.kind,
                        start=start,
                        end=end,
                        sure=span.sure,
                        placeholder=placeholder.rstrip("\n"),
                    )
                )
                pieces += (text[last : span.start], placeholder)
                shift += len(placeholder) - len(hidden)
                last = span.end
                moves.ends.append(last + shift)
                moves.shifts.append(shift)
            passes.append(moves)
            text = "".join([*pieces, text[last:]])
        return Redacted(text, tuple(sorted(findings, key=lambda finding: finding.start)))


def _without_long_strings(json_text: str) -> str:
    """Blank the long strings of a JSON text, which have been searched by themselves."""
    if len(json_text) < _LONG_STRING:
        return json_text

    def blank(string: re.Match[str]) -> str:
        if string[2] is not None or len(string[1]) < _LONG_STRING:
            return string[0]
        return f'"{" " * len(string[1])}"'

    return _STRING.sub(blank, json_text)


def _without_short_strings(json_text: str, findings: Sequence[Finding]) -> Redacted:
    """Withhold the short strings of a JSON text in which something was found."""
    found = next(found for found in findings if found.kind == WITHHELD)
    starts = [finding.start for finding in findings]

    def mark(string: re.Match[str]) -> str:
        before = findings[max(0, bisect_right(starts, string.end()) - 1)]
        is_there = before.start < string.end() and before.end > string.start()
        is_short = len(string[1]) < _LONG_STRING or before.kind != WITHHELD
        is_value = string[2] is None
        return encode(WITHHELD_MARK) if is_there and is_short and is_value else string[0]

    return Redacted(_STRING.sub(mark, json_text), (found,))


def load_key(home: Path, hex_digits: str = "") -> bytes:
    """Return the redaction key: the one that is given, else this machine's, made when missing.

    Two processes at once get the same key: the file appears whole, and only once. Machines that
    work on one lake need one key (``DEBRIEF_REDACTION_KEY``), since a secret's placeholder, and
    with it a session's digest, depends on it.

    Args:
        home: the folder that holds ``redaction.key``; made with mode 700 when it is not there.
        hex_digits: 64 of them; empty for the file's.

    Raises:
        ConfigurationError: the key that is given is none, or the file cannot be made or read, or
            is damaged.
    """
    if hex_digits:
        with suppress(ValueError):
            if len(key := bytes.fromhex(hex_digits)) == _KEY_BYTES:
                return key
        raise ConfigurationError(
            "DEBRIEF_REDACTION_KEY",
            f"is not {2 * _KEY_BYTES} hex digits",
            "Make one with: openssl rand -hex 32; to keep the placeholders of a machine's lake, "
            "xxd -p -c 64 redaction.key.",
        )
    make_folder(home)
    path = home / "redaction.key"
    try:
        if not path.exists():
            with suppress(FileExistsError), atomic(path, replace=False) as file:
                file.write(secrets.token_bytes(_KEY_BYTES))  # unless another process was faster
        key = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            str(path), f"cannot be made or read ({error.strerror})", "Check the folder's owner."
        ) from error
    if len(key) != _KEY_BYTES:
        reason = f"holds {len(key)} bytes instead of {_KEY_BYTES}"
        raise ConfigurationError(str(path), reason, "Restore it; without it, placeholders change.")
    return key


def key_of(settings: Settings) -> bytes:
    """Return the redaction key that ``settings`` mean; see ``load_key``."""
    return load_key(settings.home, settings.redaction_key)


def redactor_of(settings: Settings) -> Redactor:
    """Return the redactor that ``settings`` mean: its key, and whether personal data goes.

    Raises:
        ConfigurationError: as of ``load_key``.
    """
    if settings.personal_data == "keep":
        return Redactor(key_of(settings))
    with suppress(InputError):  # no name is set, or there is no git
        name = git(Path("/"), "config", "--global", "user.name").decode("utf-8", "replace").strip()
        return Redactor(key_of(settings), {name} - {""})
    return Redactor(key_of(settings), ())


class _Moves(Struct):
    """How placeholders moved what is behind them: where each ends, and by how much."""

    ends: list[int]
    shifts: list[int]


def _original(passes: Sequence[_Moves], at: int) -> int:
    """Return where a place was before the placeholders of all passes moved it."""
    for moves in reversed(passes):
        at -= moves.shifts[bisect_right(moves.ends, at) - 1]
    return at


def contains_secret(data: bytes) -> list[Finding]:
    """Return the secrets in the final bytes of a file; empty when it may leave the machine.

    Lines that are JSON are searched string by string, with the keys' names beside them, and so
    is JSON inside a string; other lines as text. Placeholders are no secrets. The path of a
    finding begins with the number of its line, from 1; start and end count within the string; in a
    line of text, from the beginning of the file with its JSON lines emptied.
    """
    found: list[Finding] = []
    plain: list[str] = []
    for number, encoded in enumerate(data.split(b"\n"), 1):
        line = encoded.decode("utf-8", "replace")
        if line.lstrip()[:1] in ("{", "[", '"'):
            if may_hold_secret(line):
                found.extend(_in_json(line, str(number)))
            line = ""
        plain.append(line)
    if any(plain):
        text = "\n".join(plain)
        for finding in _findings(find(text), ""):
            number = text.count("\n", 0, finding.start) + 1
            found.append(structs.replace(finding, path=str(number)))
    return found


def refuse_secrets(name: str, data: bytes) -> None:
    """Refuse a file that is about to leave.

    Raises:
        InputError: it holds a secret; names file, line and kind.
    """
    for found in contains_secret(data):
        line = found.path.partition(".")[0]
        raise InputError(f"{name}, line {line}", f"holds a secret ({found.kind})", "Look at it.")


def _in_json(text: str, path: str) -> Iterator[Finding]:
    try:
        leaves = strings_in(text)
    except (ValueError, RecursionError):
        yield from _findings(find(text), path)
        return
    hits = prefilter().hits_in_each(
        leaf for leaf, name, _ in leaves if name or len(leaf) >= SHORTEST
    )
    for leaf, name, way in leaves:
        if leaf in hits or class_of(name):
            yield from _findings(find_at(leaf, hits.get(leaf, ()), name), f"{path}.{way}")
        if leaf[:1] in ("{", "[") and may_hold_secret(leaf):
            yield from _in_json(leaf, f"{path}.{way}")


def _findings(spans: Iterable[SecretSpan], path: str) -> Iterator[Finding]:
    for span in spans:
        yield Finding(kind=span.kind, start=span.start, end=span.end, sure=span.sure, path=path)
