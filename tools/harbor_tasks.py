"""Checks tasks that ``debrief tasks`` wrote by Harbor's own models and linter.

    python -m tools.harbor_tasks FOLDER TASKS [--python python3.12]

Harbor is installed below FOLDER, for which it takes a Python of 3.12 or newer. No container is
built, and nothing of a task is run. Exit code 1 when Harbor refuses a task, or its linter says more
than that tests run in the agent's own container, as they do in most of Harbor's tasks.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "0.26.0"
EXPECTED = {"shared-verifier"}
"""Findings of the linter that say how the tasks are meant."""
_READ = """
import json, sys
from harbor.lint.models import DEFAULT_RULES
from harbor.lint.task import lint_task
from harbor.models.task.task import Task
from pathlib import Path
for name in sys.argv[1:]:
    try:
        refused = "" if Task(name).instruction.strip() else "it asks for nothing"
    except Exception as error:
        refused = str(error)
    found = lint_task(Path(name), selected_rules=DEFAULT_RULES)
    findings = [[str(each.rule.value), each.message] for each in found]
    print(json.dumps({"task": name, "refused": refused, "findings": findings}))
"""


def main() -> int:
    """Check the tasks of a folder, and say what Harbor says of them."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.harbor_tasks",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
    )
    parser.add_argument("folder", type=Path, help="where Harbor is installed")
    parser.add_argument("tasks", type=Path, help="that debrief tasks wrote")
    parser.add_argument("--python", default="python3.12", help="3.12 or newer")
    given = parser.parse_args()
    tasks = sorted(path.parent for path in given.tasks.glob("*/task.toml"))
    if not tasks:
        print(f"{given.tasks}: holds no task")
        return 1
    python = _installed(given.folder, given.python)
    done = subprocess.run(
        [python, "-c", _READ, *map(str, tasks)], check=True, capture_output=True, text=True
    )
    wrong = 0
    for line in done.stdout.splitlines():
        found = json.loads(line)
        said = [f"{rule}: {text}" for rule, text in found["findings"] if rule not in EXPECTED]
        said += [found["refused"]] * bool(found["refused"])
        wrong += bool(said)
        print(Path(found["task"]).name, "; ".join(said) or "is a task", sep="  ")
    print(f"Harbor {VERSION}: {len(tasks) - wrong} of {len(tasks)} are tasks")
    return int(wrong > 0)


def _installed(folder: Path, python: str) -> Path:
    """Return a Python with Harbor."""
    ready = folder / f".harbor-{VERSION}"
    made = folder / "venv" / "bin" / "python"
    if not ready.exists():
        if shutil.which(python) is None:
            sys.exit(f"{python} is not here: name a Python of 3.12 or newer with --python")
        subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
        packages = [str(made), "-m", "pip", "install", "--quiet", f"harbor=={VERSION}"]
        subprocess.run(packages, check=True)
        ready.touch()
    return made


if __name__ == "__main__":
    sys.exit(main())
