"""Changes the code in one place at a time, and sees whether the tests of its room notice.

    python -m tools.mutants [--count 100] [--seed 1] [--first 0] [--seconds 300] [--list]
                           [--under FOLDER]

Each mutant is a line of the product with one operator, constant or condition changed, drawn at
random; the same seed draws the same ones. It is written into a copy of the checkout, never into the
checkout, and the tests of the room run there until the first of them fails. The suite has to be
green before: a test that fails anyway catches every mutant. Exit code 1 when a mutant survives.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("debrief", "recorder/debrief", "assets", "resources", "pipelines")
_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Lt: ast.LtE, ast.LtE: ast.Lt,
    ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
}  # fmt: skip
"""What stands in place of an operator."""
_TESTED_BY = {
    "evaluators": "models", "fields": "judging", "git": "recorder", "permitted": "models",
    "reports": "training", "scope": "resources", "stages": "pipelines", "tasks": "execution",
}  # fmt: skip
"""The rooms of tests for what has none of its own name."""


class Mutant(Struct, frozen=True):
    """One change of one file: the text from ``begin`` to ``end``, in bytes, is replaced."""

    path: str
    line: int
    column: int
    begin: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}"
        return f"{place}  {_short(self.before)}  ->  {_short(self.after)}"

    @property
    def tests(self) -> list[str]:
        """Return the folder or file of tests by the name of the product's.

        Files that name the module come first, as they end soonest what a mutant broke.
        """
        parts = Path(self.path.removeprefix("recorder/")).with_suffix("").parts
        name = parts[1] if parts[0] == "debrief" else parts[0]
        name = _TESTED_BY.get(name, name)
        places = (f"tests/{name}", f"tests/test_{name}.py")
        room = [place for place in places if (ROOT / place).exists()]
        module = ".".join(parts).removesuffix(".__init__")
        files = sorted(path for place in room for path in (ROOT / place).rglob("test_*.py"))
        near = [str(file.relative_to(ROOT)) for file in files if module in file.read_text()]
        return [*near, *room]


def mutants_of(path: str, source: bytes) -> Iterator[Mutant]:
    """Yield every mutant of a file.

    Annotations, decorators and what a class declares of itself, such as ``frozen``, are left alone.
    """
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _running(ast.parse(source)):
        for changed in _changes(node):
            begin = starts[node.lineno - 1] + node.col_offset
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            end = starts[node.end_lineno - 1] + node.end_col_offset
            before, after = source[begin:end].decode(), f"({ast.unparse(changed)})"
            yield Mutant(path, node.lineno, node.col_offset + 1, begin, end, before, after)


def _running(tree: ast.AST) -> Iterator[ast.expr]:
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list") or (
            name == "keywords" and isinstance(tree, ast.ClassDef)
        ):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.JoinedStr):  # its parts have no places of their own
                continue
            if isinstance(node, ast.expr):
                yield node
            if isinstance(node, ast.AST):
                yield from _running(node)


def _changes(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = copy.copy(node)
        other.ops = [_OTHER[type(node.ops[0])]()]  # type: ignore[list-item]
        yield other
    elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in _OTHER:
        changed = copy.copy(node)
        changed.op = _OTHER[type(node.op)]()  # type: ignore[assignment]
        yield changed
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)


def drawn(count: int, seed: int, rooms: Sequence[str] = ROOMS) -> list[Mutant]:
    """Return mutants of these folders, drawn at random and always the same for a seed."""
    paths = sorted(path for room in rooms for path in (ROOT / room).rglob("*.py"))
    found = [
        mutant
        for path in paths
        for mutant in mutants_of(str(path.relative_to(ROOT)), path.read_bytes())
    ]
    return random.Random(seed).sample(found, min(count, len(found)))


def fate_of(mutant: Mutant, folder: Path, seconds: int) -> tuple[str, str]:
    """Return whether the tests of its room catch it, in a copy of the checkout, and which or why.

    A module that no longer imports ends pytest before a test is named: that is caught too. So is
    a mutant whose tests do not end, if they end in half of the time without it.
    """
    if not mutant.tests:
        return "undecided", "no tests have its name"
    path = folder / mutant.path
    source = path.read_bytes()
    path.write_bytes(source[: mutant.begin] + mutant.after.encode() + source[mutant.end :])
    try:
        code, output = _tested(mutant.tests, folder, seconds)
    finally:
        path.write_bytes(source)
    if code is None:
        code, _ = _tested(mutant.tests, folder, seconds // 2)
        if code == 0:
            return "caught", f"no end in {seconds} s"
        return "undecided", f"{seconds} s were not enough"
    if code == 0:
        return "survived", ""
    found = re.search(r"^(?:FAILED|ERROR) (tests/.+?)(?: - |$)", output, re.MULTILINE)
    return "caught", found[1] if found else "the tests do not start"


def _tested(tests: Sequence[str], folder: Path, seconds: int) -> tuple[int | None, str]:
    """Return how pytest ended, or nothing if it did not in time, and what it printed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    run = subprocess.Popen(
        [*command, "--hypothesis-seed=0", *tests],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{folder / 'recorder'}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    try:
        output, _ = run.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
    return run.returncode, output


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else words[:59] + "…"


def _copied(folder: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in listed.stdout.split("\0"):
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())


def main() -> int:
    """Try mutants one after the other, and say what became of each and of all."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tools.mutants")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="leave out those before it")
    parser.add_argument("--seconds", type=int, default=300, help="for the tests of one mutant")
    parser.add_argument("--list", action="store_true", help="show the mutants and try none")
    parser.add_argument(
        "--under", action="append", help="a folder of the product: draw there alone"
    )
    given = parser.parse_args()
    mutants = drawn(given.count, given.seed, given.under or ROOMS)[given.first :]
    if given.list:
        print(*mutants, sep="\n")
        return 0
    fates: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="debrief-mutants-") as name:
        _copied(Path(name))
        for number, mutant in enumerate(mutants, given.first):
            started = time.monotonic()
            fate, by = fate_of(mutant, Path(name), given.seconds)
            fates[fate] += 1
            took = time.monotonic() - started
            print(f"{number:3}  {took:4.0f} s  {fate:9}  {mutant}  {by}", flush=True)
    print(", ".join(f"{count} {fate}" for fate, count in fates.items()))
    return 1 if fates["survived"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
