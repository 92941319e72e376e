"""First requests: what two of them have in common beside templates, quoting and markup."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from debrief.sessions.model import Session
from debrief.snapshots.plans import POINTER
from debrief.training.kinship import Kinship, traits_of
from debrief.training.requests import COMMON, request_words, words_of
from tests.training.scenario import MONDAY, call, says, session, turn
from tests.training.test_selection import candidate, chosen

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def prose(draw: random.Random, count: int) -> str:
    """Return words that nobody else says."""
    return " ".join("".join(draw.choices(LETTERS, k=8)) for _ in range(count))


def work(
    id: str, prompt: str, *, said: str = "", path: str = "", week: int = 0, repository: str = "shop"
) -> Session:
    draw = random.Random(id)
    edit = call(
        "Write",
        {"file_path": path, "content": "x"},
        path=path,
        added=3,
        patch="@@ -0,0 +1,3 @@\n+x\n+y\n+z\n",
    )
    return session(
        id,
        turn(prompt, says(said or prose(draw, 60), *([edit] if path else []))),
        started=MONDAY + timedelta(weeks=week),
        repository=repository,
    )


def families(crowd: Sequence[Session]) -> list[str]:
    """Return the members of each family, the oldest first."""
    kinship = Kinship(map(traits_of, crowd))
    members: dict[str, list[str]] = {}
    for one in crowd:
        kin = kinship.of(one.id)
        assert kin is not None
        members.setdefault(kin.head.session_id, []).append(one.id)
    return sorted(map(" ".join, members.values()))


HARNESS = (
    "<uploaded_files>\n/repo\n</uploaded_files>\nI've uploaded a code repository to the directory "
    "/repo. Consider the following issue:\n\n<issue_description>\n{}\n</issue_description>\n\n"
    "Can you help me implement the necessary changes to the repository so that the requirements of "
    "the issue are met? I've already taken care of all changes to the test files, which means that "
    "you do not have to modify the testing logic in any way! Make minimal changes to non-test "
    "files. Explore the structure first, write a script that reproduces the error, change the "
    "source, run the script again, and think about edge cases."
)
COMMAND = (
    "<command-message>fix-issue</command-message>\n<command-args>{0}</command-args>\nFind the issue "
    "named {0} in the tracker, read the code that it names, write a failing test, mend the code "
    "until it passes, then open a pull request with a summary of what was changed and why."
)
NIGHTLY = (
    "Nightly maintenance. Look through the open tasks, take this one, and leave the rest to others: "
    "{}. Commit on a branch of its own and write what you did into the log."
)
TEMPLATES = {"harness": HARNESS, "command": COMMAND, "nightly": NIGHTLY}
ISSUES = [
    "The parser drops the last row of a CSV file without a final newline.",
    "Comparing two intervals with open ends raises a TypeError.",
    "The cache is never emptied when its size is set to zero.",
    "Retry waits twice as long as the header asks for.",
    "Dates before 1970 are shown as tomorrow in the calendar.",
    "Uploading a file with a space in its name answers 404.",
    "The progress bar stays at ninety percent after a cancelled download.",
    "Sorting by price puts missing prices first instead of last.",
    "Log files of the worker grow without rotation until the disk is full.",
    "The search field ignores umlauts in German street names.",
]


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
@pytest.mark.parametrize("count", [2, 3, 4, 5, 10])
@pytest.mark.parametrize("said", ["", "Fixed and tested."], ids=["own words", "the same words"])
def test_different_tasks_in_one_template_are_strangers(
    template: str, count: int, said: str
) -> None:
    crowd = [
        work(f"s{n}", template.format(issue), said=said, week=n, repository=f"repo{n}")
        for n, issue in enumerate(ISSUES[:count])
    ]
    assert families(crowd) == [one.id for one in crowd]
    assert not chosen(*map(candidate, crowd)).left_out


def test_short_tasks_in_a_template_that_many_share_are_strangers() -> None:
    tasks = ["fix typos", "bump ruff", "sort imports", "drop python 2", "rename main", "add docs"]
    tasks += [f"close ticket {number}" for number in (12, 13, 14)]
    crowd = [
        work(f"s{n}", HARNESS.format(task), week=n, path=f"/repo/src/app{n}.py")
        for n, task in enumerate(tasks)
    ]
    assert families(crowd) == [one.id for one in crowd]


QUOTED: dict[str, Callable[[str], str]] = {
    "bare": str,
    "block quote": lambda text: textwrap.indent(textwrap.fill(text, 40), "> "),
    "fence": lambda text: f"```text\n{text}\n```",
    "quotation marks": lambda text: f"“{text}”",
    "tags": lambda text: f'<request from="ann">\n{text}\n</request>',
    "escaped tags": lambda text: f"&lt;request&gt;{text}&lt;/request&gt;",
    "list": lambda text: f"- [ ] **{text}**",
    "capitals": str.upper,
    "white space": lambda text: "\n\n\t".join(text.split()),
    "a word before": lambda text: f"Please do this:\n\n> {text}",
    "a sentence before": lambda text: f"A ticket that Ann wrote yesterday says:\n> {text}",
    "a harness": HARNESS.format,
    "thanks behind": lambda text: f"{text} Thanks a lot!",
}
REQUEST = (
    "Add a folder named app and in it a script that prints the sum of two numbers, with a test "
    "for negative ones."
)


@pytest.mark.parametrize("way", QUOTED)
def test_quoting_and_markup_make_no_other_request(way: str) -> None:
    crowd = [work("bare", REQUEST), work("again", QUOTED[way](REQUEST), week=9, repository="docs")]
    assert families(crowd) == ["bare again"]


@pytest.mark.parametrize("way", QUOTED)
@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_a_task_given_twice_in_a_template_is_one_family(template: str, way: str) -> None:
    others = [
        work(f"s{n}", template.format(issue), week=n) for n, issue in enumerate(ISSUES[1:7], 2)
    ]
    twice = [
        work("a0", template.format(ISSUES[0])),
        work("a1", template.format(QUOTED[way](ISSUES[0])), week=1),
    ]
    assert families([*twice, *others]) == ["a0 a1", *(one.id for one in others)]


@pytest.mark.parametrize(
    "other",
    [
        "Without a final newline, the parser drops a CSV file's last row.",
        "When a CSV file has no final newline, its last row is dropped by the parser.",
        "The parser drops the final row of a CSV file without a trailing newline.",
        "CSV: last row dropped by the parser (file without a final newline)",
    ],
)
def test_a_task_in_other_words_is_the_same_task(other: str) -> None:
    others = [work(f"s{n}", HARNESS.format(issue), week=n) for n, issue in enumerate(ISSUES[1:], 2)]
    twice = [
        work("a0", HARNESS.format(ISSUES[0])),
        work("a1", HARNESS.format(other), week=1),
    ]
    assert families([*twice, *others])[0] == "a0 a1"
    assert families([work("a0", ISSUES[0]), work("a1", other, week=1)]) == ["a0 a1"]


def test_one_request_in_a_few_branches_is_one_family_whatever_was_done() -> None:
    crowd = [work(f"s{n}", REQUEST, path=f"/w/{n}.py", week=n) for n in range(COMMON - 1)]
    assert families(crowd) == [" ".join(one.id for one in crowd)]


def test_one_request_for_many_pieces_of_work_is_boilerplate() -> None:
    nightly = "Take the next open task of this project and carry it out from beginning to end."
    crowd = [work(f"s{n:02}", nightly, path=f"/w/{n}.py", week=n) for n in range(12)]
    assert families(crowd) == [one.id for one in crowd]
    outcome = chosen(*map(candidate, crowd), eval_share=0.5)
    assert not outcome.left_out
    assert len({one.split for one in outcome.selected}) == 2


def test_many_attempts_at_one_task_stay_together() -> None:
    crowd = [work(f"s{n}", REQUEST, path="app/sum.py", week=n) for n in range(9)]
    assert families(crowd) == [" ".join(one.id for one in crowd)]


def test_attempts_at_one_task_with_a_date_in_the_request_stay_together() -> None:
    crowd = [
        work(f"s{n}", f"{REQUEST} Today is 2026-06-{n + 10}.", path="app/sum.py", week=n)
        for n in range(9)
    ]
    others = [
        work(f"z{n}", f"{REQUEST} Today is 2026-07-{n + 20}.", path=f"app/{n}.py", week=n)
        for n in range(9)
    ]
    assert families([*crowd, *others])[0] == " ".join(one.id for one in crowd)
    assert families(others) == [one.id for one in others]


def test_a_few_openings_before_one_request_make_no_template_of_it() -> None:
    openings = ["", "The boss wrote: ", "From the backlog: ", "New job for you: ", "Ticket:\n> "]
    crowd = [work(f"s{n}", f"{first}{REQUEST}", week=n) for n, first in enumerate(openings)]
    assert families(crowd) == [" ".join(one.id for one in crowd)]


def test_a_request_that_differs_in_a_slot_is_the_same_where_the_same_files_were_changed() -> None:
    crowd = [
        work(name, HARNESS.format(issue), path=path, week=week)
        for week, (name, issue, path) in enumerate(
            [("a0", ISSUES[0], "csv.py"), ("a1", ISSUES[1], "csv.py"), ("b0", ISSUES[2], "b.py")]
        )
    ]
    assert families(crowd) == ["a0 a1", "b0"]


@pytest.mark.parametrize(
    "pointer", [POINTER, "Do what plan.md says, from beginning to end, please."]
)
def test_a_request_that_points_to_a_plan_is_known_by_the_plan(pointer: str) -> None:
    assert request_words(work("s", pointer)) == b""
    captured = replace(work("s", pointer), plan=REQUEST)
    assert request_words(captured) == request_words(work("s", REQUEST)) != b""


def test_a_slash_command_is_known_by_what_the_model_was_given() -> None:
    def typed(id: str, issue: str, week: int) -> Session:
        asked = turn("/fix-issue", says(f"Did {id}."), expansion=COMMAND.format(issue))
        return session(id, asked, started=MONDAY + timedelta(weeks=week))

    crowd = [typed("a0", ISSUES[0], 0), typed("a1", ISSUES[0], 1), typed("b0", ISSUES[1], 2)]
    assert families(crowd) == ["a0 a1", "b0"]


def test_words_of_scripts_without_spaces_are_their_characters() -> None:
    assert words_of("再試行を直して Fix") == [*"再試行を直して", "fix"]


@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(8, 150), st.integers(3, 40))
@settings(deadline=None, max_examples=40)
def test_whatever_the_template_nothing_is_left_out_and_nobody_is_moved(
    seed: int, count: int, size: int, own: int
) -> None:
    draw = random.Random(seed)
    words = prose(draw, size).split()
    at = draw.randrange(size + 1)
    crowd = [
        work(
            f"s{n}",
            " ".join([*words[:at], prose(draw, own), *words[at:]]),
            said="Done.",
            week=draw.randrange(50),
            repository=f"repo{n % 3}",
        )
        for n in range(count)
    ]
    assert families(crowd) == [one.id for one in crowd]
    assert not chosen(*map(candidate, crowd)).left_out


@given(
    st.integers(0, 10**6),
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([*QUOTED]), st.integers(0, 50)),
        min_size=2,
        max_size=14,
    ),
)
@settings(deadline=None, max_examples=40)
def test_one_task_is_on_one_side_and_every_session_is_counted(
    seed: int, asked: list[tuple[int, str, int]]
) -> None:
    draw = random.Random(seed)
    tasks = [prose(draw, 20) for _ in range(4)]
    crowd = [
        work(f"s{n:02}", HARNESS.format(QUOTED[way](tasks[task])), week=week)
        for n, (task, way, week) in enumerate(asked)
    ]
    outcome = chosen(*map(candidate, crowd), eval_share=0.5)
    assert len(outcome.selected) + len(outcome.left_out) == len(crowd)
    sides: dict[int, set[str]] = {}
    for one in outcome.selected:
        sides.setdefault(asked[int(one.session_id[1:])][0], set()).add(one.split)
    assert all(len(found) == 1 for found in sides.values())
