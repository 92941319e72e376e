"""JSON as observations hold it: some of it as text, some of it binary data written as text."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from debrief.sessions.readers.files import compact_json, mend

_OPENING = ("[", "{", '"')
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)[\w.+;=-]*;base64,[A-Za-z0-9+/=_%-]*")
_MEDIA = re.compile(r"@@@langfuseMedia:type=([^|@]+)\|[^@]*@@@")


def decoded(value: object) -> Any:
    """Return what a text of a JSON list or object holds; any other value as it is.

    Servers give what was traced as text, and some keep a text of JSON as JSON once more.
    """
    if not isinstance(value, str):
        return value
    text = value.strip() if value[:1].isspace() else value
    if not text.startswith(_OPENING):
        return value
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = _leniently(text)
    if isinstance(found, str) and found.lstrip()[:1] in ("[", "{"):
        found = decoded(found)
    return found if isinstance(found, dict | list) else value


def _leniently(text: str) -> Any:
    """Decode what Python writes and JSON does not allow: ``NaN``, lone surrogates."""
    if not text.endswith(("]", "}", '"')):
        return None
    try:
        return mend(json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return None


def plain(value: object) -> str:
    """Return any value as text: a text as it is, another as JSON, nothing as an empty text."""
    if value is None:
        return ""
    return without_binaries(value if isinstance(value, str) else compact_json(value))


def without_binaries(text: str) -> str:
    """Return ``text`` with the kind of each picture or recording in place of its data.

    >>> without_binaries("see data:image/png;base64,iVBORw0KGgo= here")
    'see [image/png] here'
    """
    if ";base64," in text:
        text = _DATA.sub(r"[\1]", text)
    return _MEDIA.sub(r"[\1]", text) if "@@@langfuseMedia:" in text else text


def arguments_of(value: object) -> str:
    """Return a call's arguments as compact JSON text of an object; what is none stands under
    ``input``."""
    found = decoded(value)
    if not isinstance(found, dict):
        found = {} if found is None or found == "" else {"input": found}
    return without_binaries(compact_json(found))


def first_text(item: dict[str, Any], *keys: str) -> str:
    """Return the first of ``keys`` that holds a text with something in it; empty when none."""
    return next((found for key in keys if isinstance(found := item.get(key), str) and found), "")


def first_of(item: dict[str, Any], *keys: str) -> object:
    """Return what the first of ``keys`` that is not null holds."""
    return next((item[key] for key in keys if item.get(key) is not None), None)


def words(text: str) -> tuple[str, ...]:
    """Return the words of a vendor's vocabulary, written with blanks between."""
    return tuple(text.split())
