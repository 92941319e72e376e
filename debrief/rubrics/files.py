"""Rubrics in a JSON file of a person's or another tool's."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from debrief.errors import InputError

_LARGEST = 20_000_000


class RubricInFile(BaseModel):
    """One rubric; keys that others added are left alone."""

    model_config = ConfigDict(frozen=True)

    id: str = ""
    score_name: str = ""
    name: str = Field(min_length=1)
    description: str = ""
    scoring_criteria: str

    @field_validator("scoring_criteria", mode="before")
    @classmethod
    def _as_lines(cls, value: object) -> object:
        """Take a scale that is written as an object, text by point."""
        if isinstance(value, dict):
            return "\n".join(f"{point}: {text}" for point, text in value.items())
        return value


_RUBRICS = TypeAdapter(list[RubricInFile])


def read_text(path: Path, next_move: str = "") -> str:
    """Return a file's text.

    Raises:
        InputError: it cannot be read, is no UTF-8, or is far too large.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(str(path), f"has more than {_LARGEST} bytes")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise InputError(str(path), reason, next_move) from None
    except UnicodeDecodeError as error:
        raise InputError(str(path), f"is not UTF-8 at byte {error.start}") from None


def rubrics_in_file(path: Path) -> dict[str, list[RubricInFile]]:
    """Return the rubrics of a file, by score name, empty where none is given.

    The file is a JSON array of rubrics, or an object that holds it in ``rubrics``. A rubric
    without an id is called ``rubric_001`` and so on, by its place.

    Raises:
        InputError: the file cannot be read, or a rubric in it lacks a name or a scale.
    """
    try:
        value = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}", f"is no JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(str(path), "is nested too deeply") from None
    if isinstance(value, dict):
        value = value.get("rubrics")
    if not isinstance(value, list) or not value:
        raise InputError(str(path), "holds no array of rubrics", 'Write [{"name": …}, …].')
    try:
        found = _RUBRICS.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        reason = f"rubric {int(first['loc'][0]) + 1}: {where}: {first['msg']}"
        raise InputError(str(path), reason, f"{error.error_count()} mistakes in all.") from None
    sets: dict[str, list[RubricInFile]] = {}
    for place, rubric in enumerate(found, 1):
        named = rubric if rubric.id else rubric.model_copy(update={"id": f"rubric_{place:03}"})
        sets.setdefault(rubric.score_name, []).append(named)
    return sets
