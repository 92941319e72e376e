from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from debrief.recorder.commands import table
from debrief.recorder.contracts import ApplyPatch, DeleteFile, ReadFile, RunCommand, UpdateFile
from debrief.recorder.encoding import encode_arguments
from debrief.recorder.tools import FOLDER, TOOLS, schemas, write_schemas
from tests.recorder.records import as_json, build


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=FormatChecker())


def test_the_written_schemas_are_those_of_the_models() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    assert written == schemas(), "run python -m debrief.recorder.tools"


def test_schemas_are_written_as_they_are(tmp_path: Any) -> None:
    paths = write_schemas(tmp_path / "new")
    assert {path.name: path.read_bytes().decode() for path in paths} == schemas()


def test_a_record_of_ours_is_one_by_the_schema_that_others_follow() -> None:
    assert list(validator("record.json").iter_errors(as_json(build()))) == []


@pytest.mark.parametrize(
    ("way", "value"),
    [
        (("meta", "startedAt"), "1700000000"),
        (("meta", "version"), 2),
        (("meta", "session_id"), "x"),
        (("messages", 1, "content"), None),
        (("messages", 2, "tool_calls"), []),
        (("tools",), {}),
    ],
)
def test_what_decoding_refuses_the_schema_refuses_too(
    way: tuple[str | int, ...], value: object
) -> None:
    record = as_json(build())
    inner = record
    for step in way[:-1]:
        inner = inner[step]
    inner[way[-1]] = value
    assert list(validator("record.json").iter_errors(record))


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
