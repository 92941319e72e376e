"""How likely a value is a secret, from the value and from what its name says.

Formats that announce themselves need little of this; a value that only its name gives away
(``password = …``) needs all of it. Everything here is linear in the value.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from math import log2
from typing import Literal

WORDS = {
    name: frozenset(words.split())
    for name, words in tomllib.loads((files(__package__) / "words.toml").read_text("utf-8")).items()
}
"""Lists of words by name; ``words.toml`` says what each is for."""
_STOCK = re.compile("|".join(map(re.escape, WORDS["stock"])))
_STOCK_IN_FORMAT = re.compile(
    "example|placeholder|redacted|changeme|your[_-]|yourkey|yourtoken|x{6}|[*]{6}|[.]{3}|…"
)
"""Runs of the alphabet or of digits are not here: a token that somebody made up has the form of
one that works, and who reads it cannot tell."""
_STUTTER = re.compile(r"(.)\1{5}")
_LONG_STUTTER = re.compile(r"(.)\1{7}")
_VARIABLE = re.compile(
    r"^\$[A-Za-z_]|\$[{(]|\{\{|\}\}|%\(|^%\w+%$"
    r"|<[A-Za-z_][^<>]*>|\[[A-Za-z_ -]+\]|\{[\w.:!\[\]'\"-]*\}|#\{|@\{|\[\^|\\[wWdDsS][+*]"
    r"|\[[^\]]*-[^\]]*\]|\{\d+,\d*\}|^#[0-9a-fA-F]{3,8}$"
)
_OF_VARIABLES = re.compile(r"[$%<\[{}#@\\]")
_ENOUGH = 512
"""How many characters of a value its randomness is measured on."""
_WEIGHTS = [0.0, *(n * log2(n) for n in range(1, _ENOUGH + 1))]
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]+\Z")
_DOTTED = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)+\Z")
_CALL = re.compile(r"[&*!]?[A-Za-z_$][\w$.:]*[(\[{]")
_PATH = re.compile(r"/[\w.@%+-]+(?:/|\Z)|\w+/\w+\.\w+\Z")
_PLACE = re.compile(
    r"@?[\w./-]+\.(?:txt|pem|key|json|env|ya?ml|zip|7z|sql|md|log)\Z|(?:vault|file|env|op|arn|ssm):|[A-Z]+(?:_[A-Z0-9]{1,20})+\Z|"
    r"/(?:usr|srv|home|etc|var|opt|tmp|run|mnt|app|root|Users|private)/|(?:~|\.{1,2})/|[A-Za-z]:[\\/]|[a-z][a-z0-9+.-]*://"
)
_TIME = re.compile(
    r"\[?[0-9a-fA-F:]*::|\d{4}-\d\d-\d\d|\d{1,2}:\d\d(?::\d\d)?\Z|[\d.,:+-]+[A-Za-z]{0,3}\Z|v?\d+(?:\.\d+)+[\w.+-]*\Z"
)
_QUERY = re.compile(r"&[A-Za-z_][\w.\-\[\];]*=")
_CHUNK = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_STEP = (
    *("012", "123", "234", "345", "456", "567", "678", "789", "890"),
    *("abc", "bcd", "cde", "def", "xyz", "qwe", "asd", "zxc"),
)
_STEPS = re.compile(rf"(?:{'|'.join(_STEP)}){{1,8}}\d?", re.IGNORECASE)
_REPEATS = re.compile(r"(.)\1{2,}")
_KINDS = tuple(re.compile(kind) for kind in ("[a-z]", "[A-Z]", "[0-9]", r"[^\w\-.]"))
_DIGIT, _LETTER, _SPACE = re.compile("[0-9]"), re.compile("[A-Za-z]"), re.compile(r"[\s\x00-\x1f]")
_TOKEN = re.compile(r"[A-Za-z0-9_\-+/=.~:|!@#$%^&*]+\Z")
_NO_LETTERS = bytes(code for code in range(256) if not 97 <= code <= 122)
_LEET = bytes.maketrans(b"0134578@$!", b"oleastbasi")
_WEAK = frozenset(word.encode() for word in WORDS["weak"])


def entropy(value: str) -> float:
    """Return the Shannon entropy of a value's characters, in bits a character."""
    value = value[:_ENOUGH]
    total = len(value)
    if not total:
        return 0.0
    return log2(total) - sum([_WEIGHTS[value.count(char)] for char in set(value)]) / total


@lru_cache(maxsize=4096)
def is_placeholder(value: str) -> bool:
    """Return whether a value stands for a secret instead of being one: ``<your-key>``, ``xxxx``."""
    plain = value.lower().replace("_", "-")
    if plain in ("null", "none", "hidden") or _STOCK.search(plain):
        return True
    if len(value) - len(set(value)) >= 5 and _STUTTER.search(value):
        return True
    return bool(_OF_VARIABLES.search(value) and _VARIABLE.search(value))


def is_sample(secret: str) -> bool:
    """Return whether a string in a known secret format is a documentation's sample of it."""
    secret = secret[:_ENOUGH]
    if len(set(secret[-16:])) < 5 or _LONG_STUTTER.search(secret):
        return True
    return _STOCK_IN_FORMAT.search(secret.lower()) is not None


def is_uuid(value: str) -> bool:
    """Return whether a value is a UUID in its usual form."""
    return _UUID.match(value) is not None


def is_reference(value: str) -> bool:
    """Return whether a value is code, a path, a URL, a time or a version, not a literal."""
    if _TIME.match(value) or _PLACE.match(value) or _QUERY.search(value):
        return True
    call = _CALL.match(value)
    if call and wordiness(call.group()) >= 0.5:
        return True
    return bool((_PATH.match(value) or _DOTTED.match(value)) and wordiness(value) >= 0.4)


@lru_cache(maxsize=4096)
def wordiness(value: str) -> float:
    """Return the share of characters that belong to words, steps (``123``) and repeats."""
    value = value[:_ENOUGH]
    if not value:
        return 1.0
    words = {word for word in _CHUNK.findall(value) if _is_word(word.lower())}
    patterns = [_STEPS] if any(map(value.lower().__contains__, _STEP)) else []
    if len(value) - len(set(value)) >= 2:
        patterns.append(_REPEATS)
    places = [found.span() for pattern in patterns for found in pattern.finditer(value)]
    if not words and not places:
        return 0.0
    places += [chunk.span() for chunk in _CHUNK.finditer(value) if chunk[0] in words]
    boring = bytearray(len(value))
    for start, end in places:
        boring[start:end] = b"\1" * (end - start)
    silent = sum(map(value.count, "_-. "))
    return boring.count(1) / max(1, len(value) - silent)


def _is_word(word: str) -> bool:
    return word in WORDS["boring"] or (len(word) >= 4 and _sayable(word))


def _sayable(word: str) -> bool:
    known = WORDS["pairs"]
    pairs = sum([word[at : at + 2] in known for at in range(len(word) - 1)])
    return pairs * 10 >= (len(word) - 1) * 6


def classes(value: str) -> int:
    """Return how many of four kinds of characters occur: lower, upper, digit, punctuation.

    What joins the words of an identifier (``_-.``) is no punctuation.
    """
    return sum(kind.search(value) is not None for kind in _KINDS)


def is_random(value: str, least: int = 16) -> bool:
    """Return whether a value looks like a generated token or key of at least ``least`` characters.

    Digests look the same; whether the value's name speaks of a secret is for the caller.
    """
    if len(value) < least or not _LETTER.search(value):
        return False
    digits = _DIGIT.search(value) is not None
    if not digits and not (len(value) >= 24 and classes(value) >= 2):
        return False
    if not _TOKEN.match(value) or is_placeholder(value) or is_uuid(value) or is_reference(value):
        return False
    if _HEX.match(value):
        return digits and entropy(value) >= 2.8
    bar = 3.0 if len(value) < 24 else 3.4
    return entropy(value) >= bar and wordiness(value) < (0.55 if digits else 0.4)


def is_weak(value: str) -> bool:
    """Return whether a value is one of the passwords that only samples and tests use."""
    plain = value.lower().encode("utf-8", "surrogatepass")
    for form in (plain, plain.translate(_LEET)):
        if form.rstrip(_NO_LETTERS) in _WEAK or form.translate(None, _NO_LETTERS) in _WEAK:
            return True
    return len(value) <= 8 and value.isdigit()


@lru_cache(maxsize=4096)
def is_password(value: str, least: int = 8, strict: bool = False) -> bool:
    """Return whether a value looks like a password that somebody chose or generated.

    Args:
        value: the candidate, quotes taken off.
        least: how many characters it must have.
        strict: ask for three kinds of characters, as where no assignment introduces the value.
    """
    if not _may_be_password(value, least, strict):
        return False
    if is_placeholder(value) or is_weak(value) or is_uuid(value) or is_reference(value):
        return False
    return _is_unlike_words(value, strict)


def _may_be_password(value: str, least: int, strict: bool) -> bool:
    """Return whether a value has the length and the characters of a password."""
    if not least <= len(value) <= 128 or _SPACE.search(value):
        return False
    kinds = classes(value)
    digits = _DIGIT.search(value) is not None
    if kinds < 2 or (strict and kinds < 3) or not any(map(str.isalpha, value)):
        return False
    if strict and not digits and not _STRICT_SIGN.search(value):
        return False
    return digits or (kinds >= 3 and _SIGN.search(value) is not None)


def _is_unlike_words(value: str, strict: bool = False) -> bool:
    digits = _DIGIT.search(value) is not None
    bar = 0.5 if strict or not digits else 0.6 if classes(value) < 4 else 0.7
    if wordiness(value) >= bar:
        return False
    different = len(set(value))  # three in four, and eight, have 2.5 bits at least
    return (different >= 8 and 4 * different >= 3 * len(value)) or entropy(value) >= 2.5


_STRICT_SIGN, _SIGN = re.compile(r"[!#$%^*?~@]"), re.compile(r"[^\w\-./:]")
_IDENTIFIER = re.compile(r"\$?[A-Za-z_]\w*\Z")
_WORDS = re.compile(r"(?=.*[_.!?#$%^&*+~-])(?=.*\d{3})[A-Za-z][\w.!?#$%^&*+~-]*\Z")
_NUMBERED = re.compile(r"[A-Za-z]+(?:[-_./][A-Za-z]+)*[-_./]?\d{1,3}\Z")
_OF_CODE = {
    *WORDS["boring"], *WORDS["weak"], *WORDS["password"], *WORDS["secret"], *WORDS["key_of"],
    *WORDS["harmless"], *WORDS["harmless_last"], "expected", "refresh", "value",
}  # fmt: skip
_MARKUP = re.compile(r"[\s()\[\]{}<>|\\]|\.\.\.|…|%[ds]|^--?[a-z]|^[\w.-]+:\d{2,5}$")


@lru_cache(maxsize=4096)
def is_given(value: str, least: int = 6) -> bool:
    """Return whether a value is a secret where a name or a command says that there is one.

    Any is, but placeholders, samples' passwords, numbers, code and plain words.
    """
    value = value[:_ENOUGH]
    if len(value) < least or value.replace(".", "").isdigit() or is_uuid(value):
        return is_uuid(value)
    if is_placeholder(value) or is_weak(value) or len(set(value)) < 5:
        return False
    if _WORDS.match(value) and _is_phrase(value):
        return True
    if is_reference(value) or _is_numbered(value):
        return False
    if _may_be_password(value, least, strict=False) and _is_unlike_words(value):
        return True
    if is_random(value, least):
        return True
    if not _LETTER.search(value) or _MARKUP.search(value):
        return False
    if _DIGIT.search(value):
        return not _IDENTIFIER.match(value) or wordiness(value) < 0.5
    return not _IDENTIFIER.match(value) and wordiness(value) < 0.5


def _is_numbered(value: str) -> bool:
    """Return whether a value is a short name with a number: ``shop-2``, ``eu-central-1``."""
    return len(value) < 14 and _NUMBERED.match(value) is not None and wordiness(value) >= 0.65


def _is_phrase(value: str) -> bool:
    """Return whether words and a number are a password: not those of code and of samples alone."""
    words = [word.lower() for word in _CHUNK.findall(value)]
    return any(len(word) > 3 and word not in _OF_CODE for word in words)


NameClass = Literal["password", "secret", "auth", "key", ""]
"""What a value under a name may be: a password, a generated secret, base64 of ``user:password``,
or a key of which only the value itself can return whether it is secret."""

KEYWORDS = (
    r"pass(?:w|phr|code|\b)|pwd?\b|pw[_\-]|pwd|kennwort|senha|contrase|mot_?de_?passe|secret|"
    r"token(?:\b|[_\-0-9])|key(?:\b|[_\-0-9])|cred(?:s|ential|\b)|auth\b|bearer|jwt|[_\-]pat\b|"
    r"salt\b|psk\b|connection_?string"
)
"""Parts of names that may introduce a secret, as one caseless expression for the prefilter."""

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def is_harmless_name(name: str) -> bool:
    """Return whether a name says that its value is no secret: ``token_count``, ``public_key``."""
    terms = [part.lower() for part in _PART.findall(name) if not part.isdigit()]
    harmless = bool(WORDS["harmless"].intersection(terms))
    return harmless or (bool(terms) and terms[-1] in WORDS["harmless_last"])


@lru_cache(maxsize=8192)
def class_of(name: str) -> NameClass:
    """Return what the value of ``name`` may be; empty when the name speaks of no secret."""
    parts = [part.lower() for part in _PART.findall(name)]
    terms = [part for part in parts if not part.isdigit()]
    if not terms:
        return ""
    if is_harmless_name(name):
        return ""
    last = terms[-1]
    known = {*terms, "".join(terms)}
    if known & WORDS["password"] or last in ("pass", "pw", "pwd"):
        return "password"
    if known & WORDS["secret"]:
        return "secret"
    if last.endswith(("password", "passwd", "pass")) and last not in WORDS["weak_password"]:
        return "password"
    if last.endswith(("secret", "apikey", "token")) and last not in WORDS["weak_secret"]:
        return "secret"
    for before, term in pairwise(terms):
        if term in ("key", "keys") and before in WORDS["key_of"]:
            return "secret"
    if WORDS["weak_secret"].intersection(terms):
        return "secret"
    if last in ("auth", "_auth"):
        return "auth"
    return "key" if last == "key" and len(terms) > 1 else ""


@lru_cache(maxsize=2048)
def kind_of(name: str) -> str:
    """Return the kind of secret that a name promises, for the placeholder."""
    parts = {part.lower() for part in _PART.findall(name)}
    if class_of(name) == "password":
        return "password"
    if "aws" in parts and "secret" in parts:
        return "aws-secret-key"
    for part, kind in (
        ("session", "session-token"),
        ("token", "token"),
        ("private", "private-key"),
        ("key", "api-key"),
        ("apikey", "api-key"),
        ("secret", "secret"),
    ):
        if part in parts:
            return kind
    return "secret"
