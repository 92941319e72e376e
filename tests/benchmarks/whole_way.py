"""Whether a secret survives anywhere: ``python -m tests.benchmarks.whole_way``.

Plants thousands of secrets in transcripts of every tool, runs all stages without a model, exports
every form, lists, shows and pushes, and then looks for each secret in all files that this left:
the lake, Dagster's databases and logs, exports, what was printed. Prints a table by place; the
bar is that none is found.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from debrief.training.publishing.forms import FORMS
from tests.benchmarks.measuring import DEBRIEF, PROJECT, options, seconds, show
from tests.machine import clean_environment
from tests.planting import KINDS, Planted, Search, write_transcripts


def main() -> None:
    """Print where secrets are left, by place."""
    chosen = options(__doc__, kinds=len(KINDS), seed=1, keep="")
    with TemporaryDirectory() as scratch:
        folder = Path(chosen.keep or scratch)
        planted = Planted()
        took = seconds(
            lambda: planted.places.update(go(folder, KINDS[: chosen.kinds], chosen.seed))
        )
        found = Search(planted).below(folder / "made")
        files = sum(path.is_file() for path in (folder / "made").rglob("*"))
    show("secrets, files searched, seconds", f"{len(planted.places)}, {files}, {took:.0f}")
    by_place: dict[str, list[str]] = defaultdict(list)
    for secret, what in planted.places.items():
        by_place[what.split(", ", 1)[1]].append(secret)
    for place, secrets in sorted(by_place.items()):
        left = [secret for secret in secrets if secret in found]
        kinds = ", ".join(planted.places[secret].split(",")[0] for secret in left)
        where = f": {kinds}; such as in {found[left[0]][0]}" if left else ""
        show(place, f"{len(left)} of {len(secrets)}{where}")
    show("found, bar 0", f"{len(found)} of {len(planted.places)}")


def go(folder: Path, kinds: Sequence[str], seed: int = 1) -> dict[str, str]:
    """Plant secrets and do everything with them that the command line does; return their places.

    The transcripts are in ``given``, and all that becomes of them is in ``made``.
    """
    given, made = folder / "given", folder / "made"
    planted = write_transcripts(given, kinds, seed)
    made.mkdir()
    for words in commands(given, made):
        _debrief(made, *words)
    return planted.places


def commands(given: Path, made: Path) -> Iterator[Sequence[str]]:
    """Yield what is typed: everything that reads transcripts, or writes what came of them."""
    path = sorted(given.rglob("claude-code/*/*/*.jsonl"))[0]
    yield from [("run", "--sessions", str(given), "--no-model")] * 2
    for form in FORMS:
        if form != "record":
            yield "export", "--to", str(made / "exports" / form), "--format", form
    yield "sources", str(given)
    yield "sources", str(given), "--read", "--json"
    yield "show", str(path)
    yield "show", str(path.with_name("none.jsonl"))
    yield "push", "--to", (made / "store").as_uri(), "--sessions", str(given), "--as", "kim"


def _debrief(made: Path, *words: str) -> None:
    variables = {"HOME": str(made), "DEBRIEF_HOME": str(made / "home"), "DEBRIEF_LANGFUSE": "off"}
    number = len(list(made.glob("printed-*")))
    with (made / f"printed-{number}-{words[0]}.txt").open("wb") as output:
        done = subprocess.run(
            [*DEBRIEF, *words],
            cwd=PROJECT,
            env=clean_environment(**variables),
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    print(f"debrief {words[0]}: exit {done.returncode}", file=sys.stderr)


if __name__ == "__main__":
    main()
