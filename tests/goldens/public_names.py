"""Collects the names that others rely on, as they are now.

``python -m tests.goldens.public_names`` writes them to ``public_names.json``. A name may go only
in a commit that says why.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any, cast

import click
import typer

HERE = Path(__file__).parent
COMMITTED = HERE / "public_names.json"
DOCS = HERE.parents[1] / "docs"
IMPORTABLE = (
    "debrief.langfuse.fetcher.SessionFetcher",
    "debrief.langfuse.session_scorer.SessionScorer",
    "debrief.rubrics.parsing.parse_judgement",
    "debrief.rubrics.parsing.parse_rubric_set",
    "debrief.rubrics.parsing.parse_rubrics",
    "debrief.scoring.calculate_overall_quality",
    "debrief.scoring.chunking.chunk_by_tokens",
    "debrief.snapshots.fingerprint.compute_eval_fingerprint",
    "debrief.snapshots.fingerprint.compute_prompt_fingerprint",
    "debrief.snapshots.model.PromptSnapshot",
    "debrief.snapshots.model.SessionMetadata",
    "debrief.training.model.TrainingSample",
)


def public_names() -> dict[str, Any]:
    """Return assets, commands, settings, endpoints, record schemas and importable functions."""
    return {
        "assets": _assets(),
        "commands": _commands(),
        "settings": sorted(
            set(re.findall(r"\b(?:DEBRIEF|DAGSTER|LANGFUSE)_[A-Z_]*[A-Z]\b", _settings_page()))
        ),
        "endpoints": _endpoints(),
        "schemas": _schemas(),
        "importable": {name: _parameters(name) for name in IMPORTABLE},
    }


def _assets() -> list[str]:
    from pipelines.definitions import defs

    graph = defs.resolve_asset_graph()
    return sorted(key.to_user_string() for key in graph.materializable_asset_keys)


def _commands() -> dict[str, list[str]]:
    import pipelines.command  # noqa: F401  adds its commands
    from debrief.cli.app import app

    found: dict[str, list[str]] = {}

    def visit(command: click.Command, name: str) -> None:
        if not command.hidden:
            found[name] = sorted(o for p in command.params for o in (*p.opts, *p.secondary_opts))
        for each, inner in getattr(command, "commands", {}).items():
            visit(inner, f"{name} {each}")

    visit(cast(click.Command, typer.main.get_command(app)), "debrief")
    return found


def _settings_page() -> str:
    return (DOCS / "settings.md").read_text()


def _endpoints() -> list[str]:
    from debrief.recorder.service.app import create_app

    paths = create_app(cast(Any, None)).openapi()["paths"]
    return sorted(
        f"{method.upper()} {path}" for path, methods in paths.items() for method in methods
    )


def _schemas() -> dict[str, str]:
    import debrief.recorder

    folder = Path(debrief.recorder.__file__).parent / "schemas"
    return {path.name: _digest(path.read_bytes()) for path in sorted(folder.glob("*.json"))}


def _digest(schema: bytes) -> str:
    return hashlib.sha256(json.dumps(json.loads(schema), sort_keys=True).encode()).hexdigest()


def _parameters(name: str) -> list[str]:
    module, _, member = name.rpartition(".")
    return list(inspect.signature(getattr(importlib.import_module(module), member)).parameters)


if __name__ == "__main__":
    COMMITTED.write_text(json.dumps(public_names(), indent=1, sort_keys=True) + "\n")
