"""Compare what is read with an independent count, file by file.

    python -m tests.benchmarks.expected [FOLDER]

FOLDER holds ``expected_claude.tsv`` and the transcripts that it names; ``shared/sessions`` beside
the checkout by default.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from tests.sessions.readers.test_claude_code_expected import COLLECTION, differences


def main() -> None:
    """Print a line a file, and how many are equal in every field."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else COLLECTION
    with (folder / "expected_claude.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    equal = 0
    for row in rows:
        found = differences(folder / row["path"], row)
        equal += not found
        told = ", ".join(f"{name} {want} but {got}" for name, (want, got) in found.items())
        print(f"{'differs' if found else 'equal':8} {row['path']} {told}".rstrip())
    print(f"{equal} of {len(rows)} equal in every field")


if __name__ == "__main__":
    main()
