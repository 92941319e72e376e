"""Benchmarks' problems in sessions."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from debrief.errors import InputError
from debrief.sessions.model import Session, Subagent
from debrief.training.contamination import Contamination, Where, given_texts, read_problems
from tests.training.scenario import call, says, session, turn

COMMIT = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"
TEXT = (
    "Quantity of an order turns negative when two refunds are booked in one second, and the total "
    "of the basket is wrong from then on."
)
OTHER = (
    "Two refunds that are booked in one second turn the quantity of an order negative, so from then "
    "on the total of the basket is wrong."
)


def listed(folder: Path, *problems: dict[str, Any]) -> Path:
    path = folder / "problems.jsonl"
    path.write_text(
        "\n\n".join(json.dumps({"benchmark": "Bench", **problem}) for problem in problems)
    )
    return path


@pytest.mark.parametrize(
    ("problem", "request_text", "repository", "commit", "by"),
    [
        pytest.param(
            {"text": TEXT}, f"Look:\n> {TEXT.upper()}\nFix it!", "", "", "request", id="told"
        ),
        pytest.param({"text": TEXT}, TEXT[:88], "", "", "request", id="13 of its words and more"),
        pytest.param({"text": TEXT}, OTHER, "", "", None, id="other words for the same"),
        pytest.param({"text": TEXT}, "Fix the quantity of an order", "", "", None, id="its topic"),
        pytest.param(
            {"text": "Fix all."}, "fix all", "", "", "request", id="a short one, as it is"
        ),
        pytest.param({"text": "Fix all."}, "Fix all tests.", "", "", None, id="a short one in it"),
        pytest.param(
            {"repository": "ann/shop", "commit": COMMIT},
            "Go.",
            "shop",
            COMMIT,
            "commit",
            id="commit",
        ),
        pytest.param(
            {"repository": "ann/shop", "commit": COMMIT[:9]},
            "Go.",
            "Ann/Shop",
            COMMIT,
            "commit",
            id="a short id",
        ),
        pytest.param(
            {"repository": "ann/shop", "commit": COMMIT}, "Go.", "shop", "", None, id="not known"
        ),
        pytest.param(
            {"repository": "ann/shop", "commit": COMMIT},
            "Go.",
            "bob/shop",
            COMMIT,
            None,
            id="owner",
        ),
        pytest.param({"repository": "ann/shop"}, "Go.", "shop", "", "repository", id="all of it"),
        pytest.param({"repository": "ann/shop"}, "Go.", "shops", "", None, id="another name"),
        pytest.param({"repository": "ann/shop"}, "Go.", "", "", None, id="no repository"),
    ],
)
def test_a_problem_is_found_by_text_commit_or_repository(
    tmp_path: Path,
    problem: dict[str, Any],
    request_text: str,
    repository: str,
    commit: str,
    by: Any,
) -> None:
    problems = read_problems(listed(tmp_path, problem, {"benchmark": "X", "text": "Else."}))
    found = problems.found_in(
        [("request", "Hello."), ("request", request_text)], repository, commit
    )
    assert found == (Contamination("Bench", by) if by else None)


def test_problems_are_counted_and_what_is_near_is_told(tmp_path: Path) -> None:
    problems = read_problems(
        listed(
            tmp_path, {"repository": "ann/shop", "commit": COMMIT}, {"text": TEXT}, {"text": "x"}
        )
    )
    assert problems.counts == {"Bench": 3}
    assert problems.is_near("shop")
    assert not problems.is_near("bank")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "truncated"),
        ('{"text": "Fix it."}', "missing required field `benchmark`"),
        ('{"benchmark": "B"}', "names neither repository nor text"),
        ('{"benchmark": "B", "repository": "a/b", "commit": "main"}', "its commit is none"),
    ],
)
def test_a_line_that_is_no_problem_is_told_with_its_place(
    tmp_path: Path, line: str, reason: str
) -> None:
    path = tmp_path / "problems.jsonl"
    path.write_text(f'{{"benchmark": "B", "text": "Fix it."}}\n{line}\n')
    with pytest.raises(InputError, match=reason) as told:
        read_problems(path)
    assert told.value.culprit == f"{path}:2"


def test_a_list_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_problems(tmp_path / "none.jsonl")


WRAPPED = textwrap.fill(TEXT, 40)
NUMBERED = "\n".join(f"{n:6}→{line}" for n, line in enumerate(WRAPPED.splitlines(), 1))


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(TEXT, id="as it is"),
        pytest.param(NUMBERED, id="a file with numbers of lines"),
        pytest.param(NUMBERED.replace("→", "\t"), id="as cat -n shows it"),
        pytest.param(
            "\n".join(f"TASK.md:{n}:{line}" for n, line in enumerate(WRAPPED.splitlines(), 1)),
            id="as grep shows it",
        ),
        pytest.param(json.dumps({"title": "Refunds", "body": WRAPPED}), id="as JSON"),
        pytest.param(textwrap.indent(WRAPPED, "+> "), id="as a diff of a quotation"),
        pytest.param(TEXT.replace(" ", " \x1b[1;32m", 3), id="in colors"),
    ],
)
def test_a_problem_is_found_wherever_it_reaches_the_model(tmp_path: Path, shown: str) -> None:
    problems = read_problems(listed(tmp_path, {"text": TEXT}))
    read = call("Read", {"file_path": "TASK.md"}, shown)
    crowd: dict[Where, Session] = {
        "request": session("s", turn(shown, says("Fine."))),
        "result": session("s", turn("Do what TASK.md says.", says("", read))),
        "system prompt": session("s", turn("Go.", says("Fine.")), system_prompt=shown),
        "subagent's task": session(
            "s", turn("Go.", says("Fine.")), subagents=(Subagent(id="a", prompt=shown),)
        ),
    }
    for where, one in crowd.items():
        assert problems.found_in(given_texts(one)) == Contamination("Bench", where)
    own = session("s", turn("Go.", says(shown, call(arguments={"command": shown}))))
    assert problems.found_in(given_texts(own)) is None
