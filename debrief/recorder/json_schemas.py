"""The contract as JSON Schemas, for recorders and readers in other languages.

``schemas/`` holds them written out. ``python -m debrief.recorder.json_schemas`` writes them anew
after a change of the contract.
"""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

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

_MODELS: dict[str, type[BaseModel]] = {
    "record": Record,
    "upload": Upload,
    "new-task": NewTask,
    "task": Task,
    "stored-session": StoredSession,
    "read-file": ReadFile,
    "apply-patch": ApplyPatch,
    "run-command": RunCommand,
}


def schemas() -> dict[str, str]:
    """Return the text of each schema's file by its name.

    ``tools.json`` among them is no schema: it is the value of every record's ``tools``.
    """
    texts: dict[str, object] = {}
    for name, model in _MODELS.items():
        head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        texts[f"{name}.json"] = head | model.model_json_schema(by_alias=True)
    texts["tools.json"] = [tool.model_dump(mode="json") for tool in TOOLS]
    return {
        name: json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        for name, content in texts.items()
    }


def write_schemas(folder: Path = FOLDER) -> list[Path]:
    """Write the schemas into ``folder`` and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in schemas().items():
        path = folder / name
        path.write_text(text, encoding="utf-8", newline="\n")
        written.append(path)
    return written


if __name__ == "__main__":
    write_schemas()
