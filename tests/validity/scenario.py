"""Folders of sessions, and of what readers and benchmarks say of them."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from tests.sessions.scenario import Log, hunk

HEAD = "session_id,success,task,family,kind"
CART = "/home/ann/shop/cart.py"
FAILING = "FAILED test_cart.py::test_total - assert 3 == 4\n1 failed, 2 passed in 0.10s"


def identity(name: str) -> str:
    return str(uuid5(NAMESPACE_URL, name))


def worked(name: str, passes: bool = True, *, edits: bool = True, checked: bool = True) -> Log:
    """A session that changes a file and tests it, as far as it is wanted."""
    log = Log(f"Fix the total of {name}.", session=identity(name))
    log.calls("look", "Bash", command="ls")
    log.result("look", "cart.py test_cart.py")
    if edits:
        log.calls("edit", "Edit", file_path=CART, old_string="a = 3", new_string="a = 4")
        patch = [hunk("-a = 3", "+a = 4")]
        log.result("edit", "The file was updated.", {"filePath": CART, "structuredPatch": patch})
    if checked:
        log.calls("test", "Bash", command="pytest -q")
        log.result("test", "3 passed in 0.10s" if passes else FAILING, error=not passes)
    log.says("The total is computed by the cart now, and rounded once.")
    return log


def read_folder(folder: Path, lines: list[dict[str, object]]) -> Path:
    """Write a readers' file into a folder; a line's ``name`` becomes the session's id."""
    rows = [
        {
            "session_id": identity(str(line["name"])),
            **{k: v for k, v in line.items() if k != "name"},
        }
        for line in lines
    ]
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "read.jsonl").write_text(text)
    return folder


def benchmark_folder(folder: Path, tasks: int, family: str, right: float = 1.0) -> Path:
    """Write two runs a task, one of which is solved; its test passes in so many of the tasks."""
    lines = [HEAD]
    for task in range(tasks):
        for solved in (0, 1):
            name = f"{family}-{task}-{solved}"
            fits = task < right * tasks
            worked(name, bool(solved) == fits).write(
                folder / "sessions" / f"{identity(name)}.jsonl"
            )
            lines.append(f"{identity(name)},{solved},task-{task},{family},coding")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder
