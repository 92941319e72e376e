"""The pages that a newcomer reads first: each name on them is in the code."""

from __future__ import annotations

import ast
import re

from tests.words import PROJECT
from tools.imports_picture import PICTURE, imports, picture

_WORD = re.compile(r"`(?:\w+\.)*([A-Za-z_]\w+)(?:\(\w*\)|=\w+|\[\w+\])?`")
_NAME = re.compile(r"`((?:assets|debrief|pipelines|resources)(?:\.\w+)+)`")


def test_each_name_on_the_page_is_in_the_code() -> None:
    page = (PROJECT / "docs" / "architecture.md").read_text()
    names = _NAME.findall(page)
    assert len(names) > 20
    assert [name for name in names if not _is_there(name)] == []


def test_each_name_on_the_page_of_additions_is_in_the_code() -> None:
    page = (PROJECT / "docs" / "extending.md").read_text()
    names = set(_WORD.findall(page))
    assert len(names) > 60
    folders = [PROJECT / name for name in ("debrief", "assets", "pipelines", "tests", "recorder")]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    code = "\n".join(path.read_text() for path in [*files, PROJECT / "pyproject.toml"])
    assert sorted(names - set(re.findall(r"\w+", code))) == []


def test_each_room_of_the_library_has_its_layer_and_its_row() -> None:
    page = (PROJECT / "docs" / "architecture.md").read_text()
    layers = (PROJECT / "pyproject.toml").read_text()
    tops = (PROJECT / "debrief", PROJECT / "recorder" / "debrief")
    rooms = {path.parent.name for top in tops for path in top.glob("*/*.py")}
    assert len(rooms) > 20
    assert [room for room in sorted(rooms) if f"debrief.{room}" not in layers] == ["samples"]
    assert [room for room in sorted(rooms) if f"`{room}" not in page] == []


def test_the_picture_of_imports_shows_those_of_today() -> None:
    assert PICTURE.read_text() == picture(imports()), "Run: python -m tools.imports_picture"


def _is_there(name: str) -> bool:
    """Return whether a dotted name is a module, or what one defines at its top."""
    module, _, last = name.rpartition(".")
    return bool(_source(name)) or last in {
        name for node in ast.parse(_source(module)).body for name in _defined(node)
    }


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


def _source(module: str) -> str:
    paths = [top.joinpath(*module.split(".")) for top in (PROJECT, PROJECT / "recorder")]
    files = [each for path in paths for each in (path.with_suffix(".py"), path / "__init__.py")]
    return next((file.read_text() for file in files if file.is_file()), "")
