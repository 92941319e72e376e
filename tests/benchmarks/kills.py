"""Commands that are killed many times: ``python -m tests.benchmarks.kills``.

Kills exports, ``debrief outcomes``, ``debrief forget`` and the pages with SIGKILL, half of them
before a change of the disk and half by the clock, and checks what ``tests/faults/test_kills.py``
checks of three kills each. Ends with a traceback when a promise is broken.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from tests.benchmarks import measuring
from tests.faults import test_kills as checks
from tests.faults.killing import Commands


def main() -> None:
    """Kill each command as often as is asked for."""
    options = measuring.options(__doc__, kills=30, seed=random.randrange(1000))
    print(f"seed {options.seed}", flush=True)
    of_commands = {
        "export": checks.check_exports,
        "outcomes": checks.check_labels,
        "forget": checks.check_forgetting,
    }
    half = options.kills // 2
    with tempfile.TemporaryDirectory() as scratch, Commands() as commands:
        for name, check in of_commands.items():
            for way, draw in (("by change", checks.by_change), ("by clock", checks.by_clock)):
                folder = Path(scratch) / name / way.replace(" ", "-")
                check(commands, folder, half, draw(options.seed))
                measuring.show(f"{name}, killed {way}", f"{half} times: kept")
        checks.check_pages(commands, Path(scratch) / "pages", options.kills, options.seed)
        measuring.show("pages, killed while labelling", f"{options.kills} times: kept")


if __name__ == "__main__":
    main()
