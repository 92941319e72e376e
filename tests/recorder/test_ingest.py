"""What an upload's body contains, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.recorder.checks import ReadyRule
from debrief.recorder.client import upload_body
from debrief.recorder.encoding import encode_record, member
from debrief.recorder.service.requests import Ingest
from debrief.redaction import Redactor
from tests.recorder.records import build

INGEST = Ingest(Redactor(b"a key of the tests, and no other's"), ReadyRule())
RECORD = build()
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("role"), inner, max_size=1),
    max_leaves=3,
)


@settings(max_examples=100)
@given(
    before=st.dictionaries(st.text("abc\n\"'\\ü", max_size=3), values, max_size=2),
    after=st.dictionaries(st.text("xyz\n\"'\\ü", min_size=1, max_size=3), values, max_size=2),
    value=values,
    style=st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: ")]),
    ascii=st.booleans(),
)
def test_a_members_bytes_are_those_that_stand_in_the_document(
    before: dict[str, Any],
    after: dict[str, Any],
    value: Any,
    style: tuple[str, str],
    ascii: bool,
) -> None:
    comma, colon = style

    def written(value: Any) -> str:
        return json.dumps(value, separators=style, ensure_ascii=ascii)

    members = [*before.items(), ("record", value)]
    members += [(key, value) for key, value in after.items() if key not in before]
    data = "{" + comma.join(written(k) + colon + written(v) for k, v in members) + "}"

    assert member(data.encode(), "record") == written(value).encode()


@pytest.mark.parametrize("blanks", [b"", b" "], ids=["compact", "spaced"])
def test_the_record_is_kept_as_it_stands_in_the_body(blanks: bytes) -> None:
    text = encode_record(RECORD).replace(b'"messages":', b'"messages":' + blanks)

    assert INGEST.check(upload_body(text, RECORD.meta)).text == text
