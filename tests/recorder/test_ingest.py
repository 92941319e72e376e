"""A body is read once, and taken for exactly what a second reading would take it for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.recorder.checks import ReadyRule
from debrief.recorder.client import upload_body
from debrief.recorder.contracts import Upload
from debrief.recorder.encoding import encode_record, read
from debrief.recorder.ingest import Ingest, UnfitError, read_json, read_model
from debrief.redaction import Redactor
from tests.recorder.records import build

INGEST = Ingest(Redactor(b"a key of the tests, and no other's"), ReadyRule())
RECORD = build()
BODY: dict[str, Any] = json.loads(upload_body(encode_record(RECORD), RECORD.meta))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    # Texts that some readers take for something else than a text.
    | st.sampled_from(["1", "true", "", "2026-11-02T09:42:00Z", "1762076520", str(uuid4()), "cart"])
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("role"), inner, max_size=1),
    max_leaves=3,
)


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: dict[Any, Any] = {}
    if isinstance(value, dict | list):
        inner = value if isinstance(value, dict) else dict(enumerate(value))
    deeper = [place for key, item in inner.items() for place in places(item, (*way, key))]
    return [way, *deeper] if way else deeper


def refusal(work: Callable[[], object]) -> UnfitError | None:
    try:
        work()
    except UnfitError as error:
        return error
    return None


@settings(max_examples=200)
@given(way=st.sampled_from(places(BODY)), value=values, spaced=st.booleans())
def test_a_body_is_refused_for_its_shape_exactly_where_its_json_would_be(
    way: tuple[Any, ...], value: Any, spaced: bool
) -> None:
    damaged = json.loads(json.dumps(BODY))
    inner = damaged
    for key in way[:-1]:
        inner = inner[key]
    inner[way[-1]] = value
    body = json.dumps(damaged, indent=1 if spaced else None).encode()
    expected = refusal(lambda: read_model(Upload, read_json(body)))

    found = refusal(lambda: INGEST.check(body))

    if expected is None:
        assert found is None or found.culprit == "record"
    else:
        assert found is not None
        assert found.reasons == expected.reasons


@settings(max_examples=100)
@given(
    before=st.dictionaries(st.text("abc\n\"'\\ü", max_size=3), values, max_size=2),
    after=st.dictionaries(st.text("xyz\n\"'\\ü", min_size=1, max_size=3), values, max_size=2),
    member=values,
    style=st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: ")]),
    ascii=st.booleans(),
)
def test_a_members_bytes_are_those_that_stand_in_the_document(
    before: dict[str, Any],
    after: dict[str, Any],
    member: Any,
    style: tuple[str, str],
    ascii: bool,
) -> None:
    comma, colon = style

    def written(value: Any) -> str:
        return json.dumps(value, separators=style, ensure_ascii=ascii)

    members = [*before.items(), ("record", member)]
    members += [(key, value) for key, value in after.items() if key not in before]
    data = "{" + comma.join(written(k) + colon + written(v) for k, v in members) + "}"

    assert read(data, "body").member("record") == written(member).encode()


@pytest.mark.parametrize("blanks", [b"", b" "], ids=["compact", "spaced"])
def test_the_record_is_kept_as_it_stands_in_the_body(blanks: bytes) -> None:
    text = encode_record(RECORD).replace(b'"messages":', b'"messages":' + blanks)

    assert INGEST.check(upload_body(text, RECORD.meta)).text == text
