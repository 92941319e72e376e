"""Secrets in headers, cookies, URLs and files of one line a password."""

from __future__ import annotations

import re
from collections.abc import Iterator

from debrief.redaction.assignments import is_basic
from debrief.redaction.plausibility import (
    is_password,
    is_placeholder,
    is_random,
    is_weak,
    wordiness,
)
from debrief.redaction.spans import Span

_BEARER = re.compile(
    r"(?:bearer|ssws)[ \t=:]{1,3}(?P<v>[A-Za-z0-9_~+/.\-=|:]{12,2048})", re.IGNORECASE
)
_AUTHORIZATION = re.compile(
    r"""authorization["'\\\])]{0,5}\s{0,3}(?P<op>[:=,]|=>)\s{0,3}["'\\`]{0,4}
    (?P<scheme>(?:bearer|token|basic|digest|apikey|api-key|key|ssws|negotiate|bot)[ =]{1,2})?
    (?P<v>[A-Za-z0-9_~+/.\-=|:]{8,2048})""",
    re.IGNORECASE | re.VERBOSE,
)
_BASIC = re.compile(r"basic[ ]{1,2}(?P<v>[A-Za-z0-9+/]{8,512}={0,2})", re.IGNORECASE)


def bearer(text: str, at: int, since: int) -> Iterator[Span]:
    """Read an opaque bearer token."""
    found = _BEARER.match(text, at)
    if found and is_random(found["v"].rstrip(".")):
        yield Span(found.start("v"), found.start("v") + len(found["v"].rstrip(".")), "bearer-token")


def authorization(text: str, at: int, since: int) -> Iterator[Span]:
    """Read an Authorization header of any scheme."""
    found = _AUTHORIZATION.match(text, at)
    if found is None or (found["op"] == "," and not found["scheme"]):
        return
    if is_basic(found["v"]) or is_random(found["v"]):
        yield Span(found.start("v"), found.end("v"), "authorization")


def basic(text: str, at: int, since: int) -> Iterator[Span]:
    """Read the base64 of a basic Authorization header."""
    found = _BASIC.match(text, at)
    if found and is_basic(found["v"]):
        yield Span(found.start("v"), found.end("v"), "basic-auth")


_COOKIES = re.compile(
    r"cookies?[\"'\\]{0,3}\s{0,2}[:=]\s{0,2}[\"'\\]{0,3}(?P<rest>[^\n\"']{8,4096})", re.IGNORECASE
)
_PAIR = re.compile(r"(?P<name>[\w.\-]{1,64})=(?P<v>[^\s;,\"'\\]{16,2048})")
_TRACKING = re.compile(r"_{0,2}(?:ga|gid|fbp|utm|gcl|hj|cf_bm|cfduid|cfruid)", re.IGNORECASE)


def cookies(text: str, at: int, since: int) -> Iterator[Span]:
    """Read the session cookies of a header; those that only track are left."""
    header = _COOKIES.match(text, at)
    if header is None:
        return
    for pair in _PAIR.finditer(text, header.start("rest"), header.end("rest")):
        value = pair["v"]
        if not _TRACKING.match(pair["name"]) and (is_random(value) or is_random(value[:64])):
            yield Span(pair.start("v"), pair.end("v"), "cookie")


_URL = re.compile(r"://(?P<user>[^\s/@:\"'<>`]{0,64}):(?P<v>[^\s\"'<>`/]{2,200})@(?=[\w\[.\-])")


def url(text: str, end: int, since: int) -> Iterator[Span]:
    """Read the password, or the token, before the host of a URL; ``end`` is behind an ``@``."""
    at = text.rfind("://", max(0, end - 220), end)
    found = _URL.match(text, at) if at >= 0 else None
    if found is None:
        return
    user, password = found["user"], found["v"]
    if is_random(user, 20):
        yield Span(found.start("user"), found.end("user"), "token")
    if password == user or is_weak(password) or is_placeholder(password):
        return
    if password.isdigit() and len(password) < 6:
        return
    if is_password(password, 6) or is_random(password):
        yield Span(found.start("v"), found.end("v"), "url-password")
    elif len(password) >= 6 and wordiness(password) < 0.5:
        yield Span(found.start("v"), found.end("v"), "url-password", sure=False)


_PGPASS = re.compile(
    r"[\w.*\-]{1,80}:(?:\d{2,5}|\*):[\w*\-]{1,63}:[\w*\-]{1,63}:(?P<v>\S{6,128})[ \t\r]*\Z"
)


def pgpass(text: str, at: int, since: int) -> Iterator[Span]:
    """Read a line of a PostgreSQL password file."""
    low = max(0, at - 100)
    start = max(low, text.rfind("\n", low, at) + 1)
    end = text.find("\n", at, at + 400)
    found = _PGPASS.match(text, start, end if end >= 0 else min(len(text), at + 400))
    if found and is_password(found["v"]):
        yield Span(found.start("v"), found.end("v"), "password")


_IDENTIFIED = re.compile(
    r"identified\s+(?:with\s+\S{1,40}\s+)?by\s+(?:password\s+)?(?P<q>\\*[\"'])(?P<v>[^\n\"'\\]{6,128})",
    re.IGNORECASE,
)


def identified(text: str, at: int, since: int) -> Iterator[Span]:
    """Read the password of an SQL statement such as ``CREATE USER … IDENTIFIED BY '…'``."""
    found = _IDENTIFIED.match(text, at)
    if found and is_password(found["v"], 6):
        yield Span(found.start("v"), found.end("v"), "password")


FOREIGN = (
    "пароль|Пароль|密码|密碼|密钥|口令|パスワード|비밀번호|contraseña|Contraseña|ot de passe|"
    "hasło|şifre"
)
"""The word for password where it is not spelt in ASCII, or in several words."""
_FOREIGN = re.compile(
    rf"(?:{FOREIGN})[\"'`]?[ ]{{0,2}}(?:[:=：]|は|是|为|es|est|это)?[ ]{{0,2}}[\"'`「]?"
    r"(?P<v>[!-~]{6,128})"
)


def foreign(text: str, at: int, since: int) -> Iterator[Span]:
    """Read a password that a word of another language introduces."""
    found = _FOREIGN.match(text, at)
    value = found["v"].rstrip("\"'`,;.") if found else ""
    if found and is_password(value, strict=True):
        yield Span(found.start("v"), found.start("v") + len(value), "password")


_ORACLE = re.compile(r"thin:[\w$#]{1,64}/\\?[\"']?(?P<v>[^\s@/\"'\\]{4,128})[\"']?@")


def oracle(text: str, at: int, since: int) -> Iterator[Span]:
    """Read the password of ``jdbc:oracle:thin:user/…@host``."""
    found = _ORACLE.match(text, at)
    if found and is_password(found["v"], 6):
        yield Span(found.start("v"), found.end("v"), "url-password")


_PHRASE = re.compile(
    r"(?:mnemonic|(?:seed|recovery|secret)[ _-]?phrase)[\w\"'\\]{0,12}\s{0,3}(?:is|[:=])?\s{0,3}"
    r"[\"'`\\]{0,3}(?P<v>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})(?![ ,]{0,2}[a-z])",
    re.IGNORECASE,
)


def seed_phrase(text: str, at: int, since: int) -> Iterator[Span]:
    """Read the 12 to 24 words that restore a wallet."""
    found = _PHRASE.match(text, at)
    if found and found["v"].islower() and len(found["v"].split()) in (12, 15, 18, 21, 24):
        yield Span(found.start("v"), found.end("v"), "seed-phrase")
