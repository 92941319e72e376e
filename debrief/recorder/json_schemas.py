"""The contract as JSON Schemas, for recorders and readers in other languages.

``schemas/`` holds them written out. ``python -m debrief.recorder.json_schemas`` writes them anew
after a change of the contract.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from debrief.recorder.contracts import (
    ApplyPatch,
    NewTask,
    ReadFile,
    Record,
    RunCommand,
    StoredSession,
    Task,
    Upload,
)
from debrief.recorder.tools import TOOLS

FOLDER = Path(__file__).parent / "schemas"

_MODELS = (Record, Upload, NewTask, Task, StoredSession, ReadFile, ApplyPatch, RunCommand)


def schemas() -> dict[str, str]:
    """Return the text of each schema's file by its name.

    ``tools.json`` among them is no schema: it is the value of every record's ``tools``.
    """
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    texts: dict[str, object] = {
        f"{_file_name(model.__name__)}.json": dialect | model.model_json_schema(by_alias=True)
        for model in _MODELS
    }
    texts["tools.json"] = [tool.model_dump(mode="json") for tool in TOOLS]
    return {
        name: json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        for name, content in texts.items()
    }


def _file_name(name: str) -> str:
    return re.sub("(?<!^)(?=[A-Z])", "-", name).lower()


def write_schemas(folder: Path = FOLDER) -> list[Path]:
    """Write the schemas into ``folder`` and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = schemas()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return [folder / name for name in texts]


if __name__ == "__main__":
    write_schemas()
