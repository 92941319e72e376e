"""One word for one idea: names that need translating, and names with several meanings, stay out.

``python -m tests.words debrief/rubrics`` lists what is wrong below a folder.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).parents[1]
ROOMS = ("assets", "debrief", "pipelines", "recorder/debrief", "resources")
_WORDS = """
    anyhow asks attend attendance doings doubt handing hindrance keeper leash looks outlay
    outlook patience spoken tally tell telling tells told unmet wanted wish
"""
BANNED = frozenset(_WORDS.split())
"""Words that no name in the code has as a part: each hides a term of the field or of Dagster."""
PHRASES = re.compile(
    r"\b(?:tell|tells|told) (?:of|whether|what|by|how|why|that|apart)\b|\bis told\b|\bas it stands\b"
    r"|\bof its own accord\b|\bwhat stands\b|\bheld against\b|\blaid over\b|\bno matter\b",
    re.IGNORECASE,
)
"""Phrases that no docstring has: they must be read twice."""


def wrong_in(folder: Path) -> Iterator[str]:
    """Yield what is wrong with names and docstrings below a folder, one line each."""
    for path, nodes in _parsed():
        if path.is_relative_to(folder):
            place = str(path.relative_to(PROJECT))
            yield from _names(nodes, path, place)
            yield from _docstrings(nodes, place)
    for name, places in sorted(_classes().items()):
        below = any((PROJECT / place.partition(":")[0]).is_relative_to(folder) for place in places)
        if len(places) > 1 and below:
            yield f"class {name} has {len(places)} meanings: {', '.join(places)}"


_READ = (
    *(ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef),
    *(ast.arg, ast.Name, ast.Expr),
)
_Nodes = Sequence[ast.AST]


@cache
def _parsed() -> list[tuple[Path, _Nodes]]:
    paths = sorted(file for room in ROOMS for file in (PROJECT / room).rglob("*.py"))
    return [
        (path, [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, _READ)])
        for path in paths
    ]


@cache
def _classes() -> Mapping[str, list[str]]:
    classes: defaultdict[str, list[str]] = defaultdict(list)
    for path, nodes in _parsed():
        for node in nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(f"{path.relative_to(PROJECT)}:{node.lineno}")
    return classes


def _names(nodes: _Nodes, path: Path, place: str) -> Iterator[str]:
    named: dict[str, int] = {path.stem: 1}
    for node in nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            named.setdefault(node.name, node.lineno)
        elif isinstance(node, ast.arg):
            named.setdefault(node.arg, node.lineno)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            named.setdefault(node.id, node.lineno)
    for name, line in named.items():
        if name.strip("_") == "undetermined":
            continue
        banned = BANNED & set(re.findall(r"[a-z]+", re.sub(r"([A-Z])", r"_\1", name).lower()))
        if banned:
            yield f"{place}:{line}: the name {name} has the word {', '.join(sorted(banned))}"


def _docstrings(nodes: _Nodes, place: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            for match in PHRASES.finditer(text) if isinstance(text, str) else ():
                yield f"{place}:{node.lineno}: a docstring says {match[0]!r}"


def main() -> None:
    """List what is wrong below the folders that the command line names."""
    for name in sys.argv[1:] or ROOMS:
        for line in wrong_in((PROJECT / name).absolute()):
            print(line)


if __name__ == "__main__":
    main()
