"""The redactor: texts in, texts with placeholders out."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import uuid4

from msgspec import Struct, structs

from debrief.errors import ConfigurationError
from debrief.redaction.finder import find
from debrief.redaction.leaves import decode, encode, visit_strings
from debrief.redaction.rules import VERSION, anchors, may_hold_secret
from debrief.redaction.spans import Span
from debrief.settings import Settings

_KEY_BYTES = 32
_MOST_PASSES = 16
Find = Callable[[str, str], list[Span]]
"""Takes a text and the name that it is the value of; returns the secrets in it."""


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

    def __init__(self, key: bytes) -> None:
        if len(key) < 16:
            raise ConfigurationError("redaction key", "has less than 16 bytes", "Remove the file.")
        self._key = key

    @property
    def identity(self) -> str:
        """What a redacted text depends on besides the text: this key and these rules."""
        return self._digest("\0".join((VERSION, *anchors()))).hex()

    def placeholder(self, kind: str, secret: str) -> str:
        """Return what stands in for a secret."""
        return f"<secret:{kind}:{self._digest(secret).hex()[:6]}>"

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")

    def redact(self, text: str, field_name: str = "") -> Redacted:
        """Replace the secrets in a text.

        Never adds or removes a line, leaves placeholders alone, and does nothing to its own
        output.

        Args:
            text: any text.
            field_name: the name that the whole text is the value of, such as a JSON key.
        """
        return self.replace(text, field_name, find)

    def redact_json(self, json_text: str) -> Redacted:
        """Replace the secrets in the strings of a JSON text, whose keys tell more about them.

        Returns compact JSON, or the very text that was handed in when it holds no secret. What
        is no JSON (or nested too deep) is taken as plain text.
        """
        if not may_hold_secret(json_text):
            return Redacted(json_text)
        return self.replace_in_json(json_text, find)

    def replace_in_json(self, json_text: str, find: Find) -> Redacted:
        """Replace what ``find`` finds in the strings of a JSON text, then in the text itself.

        The second look sees what lies between the strings: ``["--password", "…"]``.
        """
        findings: list[Finding] = []

        def visit(text: str, name: str, path: str) -> str:
            result = self.replace(text, name, find)
            findings.extend(structs.replace(found, path=path) for found in result.findings)
            return result.text

        try:
            value = visit_strings(decode(json_text), visit)
            inner = encode(value) if findings else json_text
        except ValueError:
            return self.replace(json_text, "", find)
        outer = self.replace(inner, "", find)
        if outer.findings:
            try:
                decode(outer.text)
            except ValueError:
                outer = Redacted(inner)
        return Redacted(outer.text, (*findings, *outer.findings))

    def replace(self, text: str, field_name: str, find: Find) -> Redacted:
        """Replace what ``find`` finds in a text, until it finds nothing more."""
        findings: list[Finding] = []
        moved: list[list[tuple[int, int, int]]] = []
        current = text
        for _ in range(_MOST_PASSES):
            spans = find(current, field_name)
            if not spans:
                break
            current = self._write(current, spans, findings, moved)
        return Redacted(current, tuple(sorted(findings, key=lambda f: f.start)))

    def _write(
        self,
        text: str,
        spans: Sequence[Span],
        findings: list[Finding],
        moved: list[list[tuple[int, int, int]]],
    ) -> str:
        pieces: list[str] = []
        last = 0
        shift = 0
        now: list[tuple[int, int, int]] = []
        for span in spans:
            secret = span.value or text[span.start : span.end]
            placeholder = self.placeholder(span.kind, secret)
            findings.append(
                Finding(
                    kind=span.kind,
                    start=_origin(moved, span.start),
                    end=_origin(moved, span.end),
                    sure=span.sure,
                    placeholder=placeholder,
                )
            )
            pieces += (text[last : span.start], placeholder)
            now.append((span.start + shift, len(placeholder), span.end - span.start))
            shift += len(placeholder) - (span.end - span.start)
            last = span.end
        moved.append(now)
        return "".join([*pieces, text[last:]])


def load_key(home: Path, told: str = "") -> bytes:
    """Return the redaction key: the one that is told, else this machine's, made when missing.

    Two processes at once get the same key: the file appears whole, and only once. Machines that
    work on one lake are told one key (``DEBRIEF_REDACTION_KEY``), since a secret's placeholder,
    and with it a session's digest, depends on it.

    Args:
        home: the folder that holds ``redaction.key``; made with mode 700 when it is not there.
        told: 64 hex digits; empty for the file's.

    Raises:
        ConfigurationError: the key that is told is none, or the file cannot be made or read, or
            is damaged.
    """
    if told:
        return _told_key(told)
    path = home / "redaction.key"
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            near = home / f".redaction.key.{uuid4().hex}"
            handle = os.open(near, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(secrets.token_bytes(_KEY_BYTES))
                    file.flush()
                    os.fsync(file.fileno())
                _appear(near, path)
            finally:
                near.unlink(missing_ok=True)
        key = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            str(path), f"cannot be made or read ({error.strerror})", "Check the folder's owner."
        ) from error
    if len(key) != _KEY_BYTES:
        raise ConfigurationError(
            str(path),
            f"holds {len(key)} bytes instead of {_KEY_BYTES}",
            "Restore it; without it, placeholders change.",
        )
    return key


def key_of(settings: Settings) -> bytes:
    """Return the redaction key that ``settings`` mean; see ``load_key``."""
    return load_key(settings.home, settings.redaction_key)


def _told_key(told: str) -> bytes:
    try:
        key = bytes.fromhex(told)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise ConfigurationError(
            "DEBRIEF_REDACTION_KEY",
            f"is not {2 * _KEY_BYTES} hex digits",
            "Make one with: openssl rand -hex 32; to keep the placeholders of a machine's lake, "
            "xxd -p -c 64 redaction.key.",
        )
    return key


def _appear(near: Path, path: Path) -> None:
    try:
        os.link(near, path)
    except FileExistsError:
        return


def _origin(moved: Sequence[Sequence[tuple[int, int, int]]], place: int) -> int:
    """Return where a place was before the placeholders of all passes moved it."""
    for step in reversed(moved):
        back = 0
        for start, length, former in step:
            if place >= start + length:
                back += former - length
        place += back
    return place
