"""Golden exports: the sets of a golden run in every form, as ``debrief export`` writes them.

``python -m tests.goldens.exports LAKE`` prints the digests of the files; with ``--write`` they
become the committed ones: do so only in a commit that says why they change.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from typer.testing import CliRunner

from tests.benchmarks.measuring import options

COMMITTED = Path(__file__).parent / "exports.json"
FORMS = (
    *("messages", "trl", "axolotl", "swift", "sharegpt", "openai", "mistral"),
    *("preference", "kto", "rl"),
)
EXPORTS = {
    **dict.fromkeys(FORMS, ()),
    "trl single-calls": ("--single-calls",),
    "trl ready": ("--status", "ready", "--verdicts", "complete_verified"),
    "trl one file": ("--one-file", "--max-tokens", "2048", "--licence", "mit"),
    "messages parquet": ("--parquet",),
    "rl parquet": ("--parquet",),
    "sharegpt of one task": ("--task", "late-readings"),
}
"""Options of each export by its name, which begins with its form."""


def digests_of_exports(lake: Path) -> dict[str, dict[str, str]]:
    """Export the sets of a lake in every form and return the files' digests by export."""
    found = {}
    for name in EXPORTS:
        with tempfile.TemporaryDirectory() as folder:
            export(lake, name, Path(folder))
            found[name] = {
                str(path.relative_to(folder)): _digest(path)
                for path in sorted(Path(folder).rglob("*"))
                if path.is_file()
            }
    return found


def export(lake: Path, name: str, folder: Path) -> None:
    """Write one of the exports to a folder."""
    from debrief.cli.app import app

    form, options = name.split()[0], EXPORTS[name]
    command = ["export", "--to", str(folder), "--lake", str(lake), "--form", form, *options]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output


def _digest(path: Path) -> str:
    content = path.read_bytes()
    if path.suffix == ".parquet":
        content = json.dumps(pq.read_table(path).to_pylist(), sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()


def main() -> None:
    """Print or write the digests of the exports of a lake."""
    chosen = options(__doc__, "lake", write=False)
    text = json.dumps(digests_of_exports(Path(chosen.lake)), indent=1, sort_keys=True) + "\n"
    if chosen.write:
        COMMITTED.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
