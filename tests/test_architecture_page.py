"""The page that a newcomer reads first: each name on it is in the code."""

from __future__ import annotations

import ast
import re

from tests.words import PROJECT

_NAME = re.compile(r"`((?:assets|debrief|pipelines|resources)(?:\.\w+)+)`")


def test_each_name_on_the_page_is_in_the_code() -> None:
    page = (PROJECT / "docs" / "architecture.md").read_text()
    names = _NAME.findall(page)
    assert len(names) > 20
    assert [name for name in names if not _is_there(name)] == []


def _is_there(name: str) -> bool:
    """Return whether a dotted name is a module, or a function or class of one."""
    module, _, last = name.rpartition(".")
    return bool(_source(name)) or any(
        isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == last
        for node in ast.parse(_source(module)).body
    )


def _source(module: str) -> str:
    paths = [top.joinpath(*module.split(".")) for top in (PROJECT, PROJECT / "recorder")]
    files = [each for path in paths for each in (path.with_suffix(".py"), path / "__init__.py")]
    return next((file.read_text() for file in files if file.is_file()), "")
