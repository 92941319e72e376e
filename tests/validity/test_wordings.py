"""No rule holds the words of the changes that a verdict is tried with."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import debrief
from debrief.errors import InputError
from debrief.validity.changes import Wordings, wordings_from

LIBRARY = Path(debrief.__path__[0])
SCORING = ("rules.py", "order.py", "order.toml", "offline_evaluator.py")
WORDS = re.compile(r"[^\W\d_]+")
MARKS = re.compile(r"\\[bBsSwWdDAZ][+*?]?|\(\?[:P<=!>\w]*|[()\[\]{}|^$+*?.]")
NONSENSE = "zum"


def sentences() -> list[str]:
    wordings = wordings_from()
    return [text for name in Wordings.__struct_fields__ for text in getattr(wordings, name)]


def threes(text: str) -> set[tuple[str, ...]]:
    words = WORDS.findall(text.casefold())
    return set(zip(words, words[1:], words[2:], strict=False))


def files() -> list[Path]:
    """Return the files of all that decides without a model, and their data."""
    facts = (path for path in (LIBRARY / "facts").rglob("*") if path.is_file())
    return sorted([*facts, *(LIBRARY / "scoring" / name for name in SCORING)])


def literals() -> Iterator[tuple[str, str]]:
    """Yield every string of the rules' code, docstrings apart, and every line of their data."""
    for path in files():
        if path.suffix == ".py":
            nodes = list(ast.walk(ast.parse(path.read_text())))
            documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
            for node in nodes:
                if isinstance(node, ast.Constant) and id(node) not in documents:
                    yield path.name, str(node.value)
        elif path.suffix in (".toml", ".txt"):
            for line in path.read_text().splitlines():
                yield path.name, line


def modules() -> Iterator[ModuleType]:
    for path in files():
        if path.suffix == ".py":
            name = ".".join(path.relative_to(LIBRARY.parent).with_suffix("").parts)
            yield importlib.import_module(name.removesuffix(".__init__"))


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield every pattern that the rules hold, those of word lists included."""
    for module in modules():
        for name, value in vars(module).items():
            found = value() if name in ("patterns", "vocabulary") and callable(value) else value
            several = found.values() if isinstance(found, dict) else [found]
            for pattern in several:
                if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
                    yield f"{module.__name__}.{name}", pattern


def test_no_text_of_a_rule_has_three_words_in_a_row_of_a_wording() -> None:
    known = {three: text for text in sentences() for three in threes(text)}
    shared = [
        (file, " ".join(three), known[three])
        for file, text in literals()
        for three in threes(MARKS.sub(" ", text)) & known.keys()
    ]
    assert not shared


def test_no_pattern_of_a_rule_is_made_for_a_wording() -> None:
    """One that takes three words of it takes as much of any others in their place."""
    found = []
    for name, pattern in patterns():
        for text in sentences():
            seen = pattern.search(text)
            other = pattern.search(WORDS.sub(NONSENSE, text))
            if seen and len(WORDS.findall(seen[0])) >= 3 and not (other and other[0]):
                found.append((name, pattern.pattern, text))
    assert not found


def test_a_pattern_that_knows_a_wording_would_be_found() -> None:
    made_for_it = re.compile(r"gave up on (?:the cache|it)")
    (text,) = (text for text in sentences() if made_for_it.search(text))
    assert threes(MARKS.sub(" ", made_for_it.pattern)) & threes(text)
    assert made_for_it.search(WORDS.sub(NONSENSE, text)) is None


def test_every_list_has_enough_to_draw_from_and_none_twice() -> None:
    wordings = wordings_from()
    assert len(wordings.complaints) >= 30
    assert len(wordings.admissions) >= 30
    assert len({*sentences()}) == len(sentences())


def test_a_list_of_ones_own_must_be_one(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('complaints = ["It burns."]\n')
    with pytest.raises(InputError, match="is no list of wordings"):
        wordings_from(own)
