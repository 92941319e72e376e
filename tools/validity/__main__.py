"""Measures the offline evaluator as ``debrief validity`` does, and holds it to the bars.

    python -m tools.validity FOLDER... [--shuffles 100] [--people FOLDER] [--json FILE]

Beside what the product says it fits tables of success of its own: one without the family that is
tested and all that share a task with it, and that one fitted on to a fifth of the family's tasks.
Exit code 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from debrief import samples
from debrief.cli.outcomes import measured
from debrief.cli.shared import console
from debrief.errors import DebriefError
from debrief.markdown import table
from debrief.validity.figures import report_markdown, report_of
from debrief.validity.measuring import ORDER, shuffle_scores
from tools.validity.bars import bars_of
from tools.validity.refits import with_refits, without_family


def main() -> int:
    """Measure the folders that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.validity",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
    )
    parser.add_argument("folders", type=Path, nargs="+", help="of labelled sessions")
    parser.add_argument("--sample", type=int, default=40, help="sessions of a family to change")
    parser.add_argument("--shuffles", type=int, default=100, help="of the scores of people")
    parser.add_argument("--people", type=Path, help="a folder of people's sessions")
    parser.add_argument("--json", type=Path, help="all figures and bars are written there")
    options = parser.parse_args()
    try:
        rows = measured(options.folders, options.sample)
        rows = with_refits(rows, without_family(rows))
        people = options.people or samples.folder()
        shuffled = shuffle_scores(people, options.shuffles) if options.shuffles else None
    except DebriefError as error:
        print(f"validity: {error}", file=sys.stderr)
        return 1
    report = report_of(rows, "offline", shuffled)
    bars = list(bars_of(ORDER, report.figures, report.moves, rows, shuffled))
    if options.json:
        whole = {"report": report, "bars": bars}
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(whole)))
    out = console()
    for paragraph in report_markdown(report):
        out.print(f"{paragraph}\n")
    lines = [(b.name, b.bar, b.goal, b.measured, "yes" if b.holds else "NO") for b in bars]
    out.print("## Bars\n\n" + table(("bar", "at least", "goal", "measured", "holds"), lines))
    return int(not all(bar.holds for bar in bars))


if __name__ == "__main__":
    sys.exit(main())
