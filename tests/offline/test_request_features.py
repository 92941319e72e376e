"""What a prompt or plan asks for."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.offline.compliance import read_request, stems_of

PLAN = """# Retry uploads

Change `Uploader.send` in src/shop/upload.py (see @docs/retries.md) so that
MAX_TRIES and back_off() are honoured; see https://example.org/a.py for background.

- Retry on status 429 and 503
- Add unit tests
1. Update the changelog

Then commit.

## Out of scope
- Rewriting legacy.py
"""


def test_a_plan_is_read_for_files_names_items_and_kinds_of_work() -> None:
    request = read_request(PLAN)
    assert request.files == ("src/shop/upload.py", "docs/retries.md")
    assert request.attached == ("docs/retries.md",)
    assert request.names == ("Uploader.send", "MAX_TRIES", "back_off")
    assert request.items == (
        "Retry on status 429 and 503",
        "Add unit tests",
        "Update the changelog",
    )
    assert (request.change, request.tests, request.commit, request.docs) == (True, True, True, True)
    assert "legac" not in request.words


@pytest.mark.parametrize(
    ("prompt", "change"),
    [
        ("Add a retry to the uploader", True),
        ("fix the failing build", True),
        ("Behebe den Fehler beim Hochladen", True),
        ("What does the uploader do when it fails?", False),
        ("explain how to add a judge", False),
        ("Wie funktioniert das?", False),
        ("hello", False),
    ],
)
def test_a_question_is_told_from_a_change(prompt: str, change: bool) -> None:
    assert read_request(prompt).change is change


@pytest.mark.parametrize(
    ("prompt", "commit"),
    [
        ("fix it and commit", True),
        ("Then push.", True),
        ("open a draft pull request", True),
        ("the commit message is wrong", False),
        ("look at the latest commit(s)", False),
        ("who pushed this?", False),
    ],
)
def test_asking_for_a_commit_is_told_from_speaking_of_one(prompt: str, commit: bool) -> None:
    assert read_request(prompt).commit is commit


def test_what_the_editor_adds_is_no_ask() -> None:
    prompt = "<ide_opened_file>The user opened a/b.py</ide_opened_file>\nfix c.py"
    assert read_request(prompt).files == ("c.py",)


def test_forms_of_a_word_and_parts_of_a_name_meet() -> None:
    assert stems_of("parsing") & stems_of("parser") & stems_of("parse_args") & stems_of("doParse")
    assert stems_of("the and with") == frozenset()


@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    request = read_request(text)
    assert set(request.attached) <= set(request.files)


@pytest.mark.parametrize(
    "text",
    ["a" * 200_000, "a/" * 100_000, "`" * 100_000, "- \n" * 60_000, "A" * 100_000, "_a" * 9**5],
)
def test_hostile_plans_are_read_in_no_time(text: str) -> None:
    began = time.process_time()
    read_request(text)
    assert time.process_time() - began < 2.0
