from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from debrief.errors import InputError
from debrief.recorder.commands import table
from debrief.recorder.contracts import (
    MAX_STRING,
    ApplyPatch,
    CreateFile,
    DeleteFile,
    ReadFile,
    Record,
    RunCommand,
    UpdateFile,
    UserMessage,
)
from debrief.recorder.encoding import (
    FOLDER,
    MAX_BYTES,
    TOOLS,
    canonical,
    decode,
    decode_record,
    encode_arguments,
    encode_record,
    schemas,
)
from tests.recorder.records import GONE, Damage, as_json, build, damaged, put

RECORD = build()


def with_content(text: str) -> Record:
    messages = [RECORD.messages[0], UserMessage(content=text), *RECORD.messages[2:]]
    return RECORD.model_copy(update={"messages": messages})


def refusal(data: bytes) -> str:
    with pytest.raises(InputError) as caught:
        decode_record(data)
    return str(caught.value)


def test_what_is_not_there_is_left_out_and_content_is_never_null() -> None:
    data = encode_record(RECORD)
    assert b'"tool_calls":null' not in data
    assert b'"mode":null' not in data
    assert b'"content":null' not in data
    assert b'"exitCode":1' in data


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(texts)
def test_every_text_survives_as_content_and_as_an_argument(text: str) -> None:
    record = with_content(text)
    data = encode_record(record)
    assert decode_record(data) == record
    assert encode_record(decode_record(data)) == data
    arguments = ApplyPatch(ops=[CreateFile(path="a", diff=text)])
    assert decode(ApplyPatch, encode_arguments(arguments), "arguments") == arguments


@pytest.mark.parametrize(
    "data",
    [
        *(b'["\xff"]', b'["\xed\xa0\xbd"]', b'["\xc0\x80"]', b"\xfe\xff", b'["\\ud83d"]', b"[NaN]"),
        *(b"", b'{"a":"b', b'{"a":1,}', b"{}\n{}", b'["\x01"]', b"[" * 100_000),
    ],
)
def test_what_is_not_json_in_utf_8_is_refused(data: bytes) -> None:
    assert "not JSON" in refusal(data)


def test_a_text_that_utf_8_or_the_database_cannot_hold_is_none() -> None:
    for text in ("\ud83d", "a\0b"):
        with pytest.raises(ValueError, match=r"String should|unicode string"):
            UserMessage(content=text)


@pytest.mark.parametrize("nul", ["messages.1.content", "meta.repoName", "meta.recorder"])
def test_nul_is_refused_where_it_is(nul: str) -> None:
    place = nul.replace(".1.", "[1].").replace(".0.", "[0].")
    assert f"{place}: String should match" in refusal(damaged(put(nul, "a\0b")))


def test_arguments_are_stored_as_we_write_them_and_own_ones_stay_what_they_are() -> None:
    assert canonical(RECORD) == RECORD
    spaced = '{"path": "x", "path" :  "README.md"}'
    data = damaged(put("messages.2.tool_calls.0.function.arguments", spaced))
    assert encode_record(canonical(decode_record(data))) == encode_record(RECORD)


def test_a_document_over_eight_million_bytes_is_refused_unread() -> None:
    assert "over 8,000,000 bytes" in refusal(b" " * (MAX_BYTES + 1))


def test_a_string_of_a_million_characters_passes_and_a_longer_one_names_its_place() -> None:
    assert decode_record(encode_record(with_content("é" * MAX_STRING)))
    reason = refusal(damaged(put("messages.1.content", "é" * (MAX_STRING + 1))))
    assert "messages[1].content: String should have at most 1000000" in reason


def test_arguments_are_held_to_the_limit_string_by_string() -> None:
    half = "x" * (MAX_STRING - 10)
    patch = ApplyPatch(ops=[CreateFile(path=name, diff=half) for name in "ab"])
    arguments = encode_arguments(patch)
    assert decode_record(damaged(put("messages.10.tool_calls.0.function.arguments", arguments)))
    assert decode(ApplyPatch, arguments, "arguments") == patch
    longer = arguments.replace(half, "x" * (MAX_STRING + 1), 1)
    with pytest.raises(InputError, match=r"ops\[0\].diff: String should have at most"):
        decode(ApplyPatch, longer, "arguments")


def test_over_five_thousand_messages_are_refused() -> None:
    many = put("messages", [as_json(RECORD)["messages"][1]] * 5_001)
    assert "messages: List should have at most 5000 items" in refusal(damaged(many))


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        (put("more", 1), "more: Extra inputs"),
        (put("meta.more", 1), "meta.more: Extra inputs"),
        (put("messages.1.name", "x"), "messages[1].name: Extra inputs"),
        (put("meta.session_id", "x"), "meta.session_id: Extra inputs"),
        (put("messages.1.content", None), "messages[1].content: Input should be a valid string"),
        (put("messages.1.content", ["x"]), "messages[1].content: Input should be"),
        (put("messages.0.role", "developer"), "messages[0]: Input tag 'developer'"),
        (put("messages.2.tool_calls", []), "messages[2].tool_calls: List should have"),
        (put("messages.2.tool_calls.0.id", "call1"), "messages[2].tool_calls[0].id:"),
        (put("messages.2.tool_calls.0.id", "call00001\n"), "tool_calls[0].id:"),
        (put("messages.2.tool_calls.0.function.name", "rm"), "function.name: Input"),
        (put("messages.2.tool_calls.0.function.arguments", {}), "arguments: Input"),
        (put("meta.version", 4), "meta.version: should be 1 or 2 or 3"),
        (put("meta.version", True), "meta.version:"),
        (put("meta.version", 1.0), "meta.version:"),
        (put("meta.parallelToolCalls", 0), "meta.parallelToolCalls:"),
        (put("meta.verified", "yes"), "meta.verified: Input should be a valid boolean"),
        (put("meta.verified", 1), "meta.verified: Input should be a valid boolean"),
        (put("meta.taskId", "Über uns"), "meta.taskId: String should match"),
        (put("meta.taskId", "cart\n"), "meta.taskId: String should match"),
        (put("meta.sessionId", "7f2c1a5290c64d0e9f610c3f5f4c8a11"), "meta.sessionId:"),
        (put("meta.baseRef", "main"), "meta.baseRef: String should match"),
        (put("meta.baseRef", "1" * 39 + "G"), "meta.baseRef: String should match"),
        (put("meta.repoName", ""), "meta.repoName: String should have at least 1"),
        (put("meta.startedAt", "2026-11-02T09:00:00"), "meta.startedAt:"),
        (put("meta.startedAt", "1700000000"), "meta.startedAt:"),
        (put("meta.startedAt", 1700000000), "meta.startedAt:"),
        (put("meta.startedAt", "0001-01-01T00:00:00+14:00"), "meta.startedAt:"),
        (put("meta.startedAt", "2026-02-30T00:00:00Z"), "meta.startedAt:"),
        (put("meta.commands.0.durationMs", -1), "meta.commands[0].durationMs: Input"),
        (put("meta.commands.0.durationMs", 1.5), "meta.commands[0].durationMs: Input"),
        (put("meta.commands.0.exitCode", "0"), "meta.commands[0].exitCode: Input"),
        (put("meta.commands.0.exitCode", GONE), "meta.commands[0].exitCode: Field required"),
        (put("meta", GONE), "meta: Field required"),
        (put("messages.3.tool_call_id", GONE), "messages[3].tool_call_id: Field required"),
        (put("messages", {}), "messages: Input should be a valid"),
    ],
)
def test_a_document_that_is_not_of_the_contract_is_refused_with_its_place(
    damage: Damage, place: str
) -> None:
    assert place in refusal(damaged(damage))


@pytest.mark.parametrize("document", ["null", "[]", '"record"', "1", "true"])
def test_a_document_that_is_no_record_is_refused(document: str) -> None:
    assert "at the top" in refusal(document.encode())


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=FormatChecker())


def test_the_written_schemas_are_those_of_the_models() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    assert written == schemas(), "run debrief record schemas --to recorder/debrief/recorder/schemas"


def test_a_record_of_ours_is_one_by_the_schema_that_others_follow() -> None:
    assert list(validator("record.json").iter_errors(as_json(build()))) == []


@pytest.mark.parametrize(
    "damage",
    [
        put("meta.startedAt", "1700000000"),
        put("meta.version", 4),
        put("meta.session_id", "x"),
        put("messages.1.content", None),
        put("messages.2.tool_calls", []),
        put("tools", {}),
    ],
)
def test_what_decoding_refuses_the_schema_refuses_too(damage: Damage) -> None:
    assert list(validator("record.json").iter_errors(json.loads(damaged(damage))))


@pytest.mark.parametrize(
    ("tool", "arguments", "schema"),
    [
        (0, ReadFile(path="a"), "read-file.json"),
        (
            1,
            ApplyPatch(ops=[DeleteFile(path="a"), UpdateFile(path="b", diff="", mode="100755")]),
            "apply-patch.json",
        ),
        (2, RunCommand(cmd="pnpm", args=["test"], cwd="."), "run-command.json"),
    ],
)
def test_arguments_fit_the_definition_that_a_model_is_given(
    tool: int, arguments: ReadFile | ApplyPatch | RunCommand, schema: str
) -> None:
    value = json.loads(encode_arguments(arguments))
    parameters: Any = TOOLS[tool].function["parameters"]
    Draft202012Validator.check_schema(parameters)
    assert list(Draft202012Validator(parameters).iter_errors(value)) == []
    assert list(validator(schema).iter_errors(value)) == []


def test_the_tools_of_a_record_name_the_program_of_the_allowlist() -> None:
    parameters: Any = TOOLS[2].function["parameters"]
    assert parameters["properties"]["cmd"]["enum"] == [table().program]
