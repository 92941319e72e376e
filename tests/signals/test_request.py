"""What a session was asked to do, where its request may only point to a file."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.judging.context import MAX_SIZE, context_from_session
from debrief.judging.evaluation import evaluate_week
from debrief.judging.model import Judge
from debrief.rubrics.asking import show
from debrief.scoring.chunking import TARGET
from debrief.scoring.scorer import DEFAULT
from debrief.scoring.shown_session import shown_text
from debrief.sessions.model import ContextText, Message, Session
from debrief.signals.request import points_elsewhere, request_of, spelled_out
from tests.signals.scenario import Story

RULES = "\n".join(
    f"- Rule {number}: mark{number} must hold, and be tested." for number in range(300)
)
OPENING = "Read plan.md in this folder and carry it out from beginning to end."


def numbered(text: str) -> str:
    return "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.split("\n"), 1))


def worked(story: Story) -> Session:
    return story.edit("app.py", "a", "b").say("Done.").session()


def asked(prompt: str, path: str, text: str = RULES) -> Session:
    return worked(Story().turn(prompt).read(path, numbered(text)))


POINTERS = {
    "a plan of ours": (OPENING, "/home/ann/shop/.debrief/worktrees/x/plan.md"),
    "a task": ("Do what TASK.md says.", "/home/ann/shop/TASK.md"),
    "a mention": ("@docs/plan.md", "docs/plan.md"),
    "a mention with words": ("Please implement @docs/queue.rst, step by step", "docs/queue.rst"),
    "a path in quotes": ("Work through `notes/to do.txt` and tick it off", "notes/to do.txt"),
    "a file without an ending": ("Do the first item of ./TODO now", "./TODO"),
    "a specification as data": ("Make the client match api/openapi.yaml", "/srv/api/openapi.yaml"),
}


@pytest.mark.parametrize(("prompt", "path"), POINTERS.values(), ids=POINTERS)
def test_a_file_that_the_request_names_and_the_session_read_first_is_shown_whole_to_all(
    prompt: str, path: str
) -> None:
    session = asked(prompt, path)
    request = request_of(session)
    assert request is not None
    assert RULES in request.text
    assert RULES in context_from_session(session).plan_content
    (chunk,) = DEFAULT.chunks_of(session)
    assert RULES in shown_text(session, chunk)
    assert RULES in show(session).text


SHELLS = (
    "cat TASK.md",
    "cd docs && sed -n '1,400p' TASK.md",
    "head -n 500 ./docs/TASK.md",
)


@pytest.mark.parametrize("command", SHELLS)
def test_a_shell_reads_files_too(command: str) -> None:
    session = worked(Story().turn("Do what docs/TASK.md says").run(command, RULES))
    request = request_of(session)
    assert request is not None
    assert (RULES in request.text) == ("docs" in command)


def test_a_file_that_was_read_in_parts_is_put_together() -> None:
    lines = RULES.split("\n")
    story = Story().turn("Do what TASK.md says")
    for part in (lines[:100], lines[:100], lines[100:250], lines[250:]):
        story.read("TASK.md", "\n".join(part))
    request = request_of(worked(story))
    assert request is not None
    assert request.text == RULES


def test_a_file_that_the_program_put_beside_the_mention_counts_as_read() -> None:
    given = ContextText(
        said_by="program",
        text=f"<system-reminder>\nContents of /w/docs/plan.md:\n\n{RULES}\n</system-reminder>",
    )
    session = worked(Story().turn("@docs/plan.md").say("I will."))
    (turn,) = session.turns
    first = msgspec.structs.replace(turn.messages[0], context=(given,))
    turn = msgspec.structs.replace(turn, messages=(first, *turn.messages[1:]))
    request = request_of(msgspec.structs.replace(session, turns=(turn,)))
    assert request is not None
    assert request.text.strip() == RULES


OTHERS = {
    "another file of that name": Story()
    .turn("Do what docs/plan.md says")
    .read("old/plan.md", RULES),
    "a file with a longer name": Story().turn("Do what plan.md says").read("my-plan.md", RULES),
    "after the first edit": Story().turn("Do it").edit("a.py", "a", "b").read("TASK.md", RULES),
    "a refused read": Story()
    .turn("Do what TASK.md says")
    .call("Read", RULES, "rejected", file_path="TASK.md"),
    "the code to be changed": Story().turn("Fix app.py").read("app.py", RULES),
    "code to be explained": Story().turn("Explain /w/util.py").read("/w/util.py", RULES),
    "settings to be changed": Story()
    .turn("Fix ci.yaml")
    .read("ci.yaml", RULES)
    .edit("ci.yaml", "a", "b"),
    "a search": Story().turn("See TASK.md").call("Grep", RULES, pattern="x", path="TASK.md"),
    "a command that writes it": Story().turn("See TASK.md").run("cat > TASK.md", RULES),
}


@pytest.mark.parametrize("story", OTHERS.values(), ids=OTHERS)
def test_what_is_no_file_of_the_request_is_not_taken_for_one(story: Story) -> None:
    request = request_of(worked(story))
    assert request is not None
    assert not request.files


def test_a_captured_plan_is_the_request_and_is_not_said_twice() -> None:
    bare = worked(Story().turn(OPENING).say("Reading."))
    planned = msgspec.structs.replace(bare, plan=f"---\nstatus: done\n---\n{RULES}")
    request = request_of(planned)
    assert request is not None
    assert RULES in request.text
    assert OPENING not in request.text
    assert RULES in context_from_session(planned).plan_content
    handed = msgspec.structs.replace(worked(Story().turn(RULES)), plan=RULES)
    assert spelled_out(handed) == handed


class Unasked:
    """A judge that must not be asked."""

    version = "1"

    def judge(self, *given: object) -> object:
        raise AssertionError("nothing can be judged without the plan")


UNKNOWN = {
    "no read": Story().turn(OPENING),
    "a read without a result": Story()
    .turn(OPENING)
    .call("Read", None, "unanswered", file_path="plan.md"),
    "a read that failed": Story()
    .turn("Do what TASK.md says")
    .call("Read", "File does not exist.", "failed", file_path="TASK.md"),
}


@pytest.mark.parametrize("story", UNKNOWN.values(), ids=UNKNOWN)
def test_without_the_plan_no_judge_scores_the_words_that_point_to_it(story: Story) -> None:
    session = worked(story)
    judge = Judge(name="plan-compliance", weight=1.0, model="m", body="Judge it.")
    (row,) = evaluate_week([session], [judge], Unasked(), "f")  # type: ignore[arg-type]
    assert (row.status, row.score) == ("ok", None)
    assert row.feedback.startswith("The plan is not known")
    (chunk,) = DEFAULT.chunks_of(session)
    assert "The plan is not known" in shown_text(session, chunk)


KNOWN = (
    "Shorten README.md",
    "Write docs/queue.md about the queue",
    "Fix the failing test",
    "Read it",
    "Add a changelog entry to CHANGES.md",
)


@pytest.mark.parametrize("prompt", KNOWN)
def test_a_request_that_says_what_to_do_is_judged_without_the_file(prompt: str) -> None:
    request = request_of(worked(Story().turn(prompt)))
    assert request is not None
    assert not request.unknown


names = st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8}){0,2}\.(md|txt|rst)", fullmatch=True)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), min_size=1, max_size=300)


@given(name=names, text=texts)
def test_whatever_the_file_holds_it_is_the_task(name: str, text: str) -> None:
    session = asked(f"Do what {name} says", f"/home/ann/shop/{name}", text)
    request = request_of(session)
    assert request is not None
    if text.strip():
        assert points_elsewhere(request.words)
        shown = spelled_out(session).turns[0].prompt
        assert all(line in shown for line in text.strip("\n").split("\n"))
        assert spelled_out(spelled_out(session)) == spelled_out(session)


@given(size=st.integers(1, 400_000), prompt=st.sampled_from(["Do what TASK.md says", ""]))
def test_however_long_the_task_is_nobody_is_shown_more_than_fits(size: int, prompt: str) -> None:
    text = ("Lorem ipsum dolor sit amet, consectetur.\n" * (size // 40 + 1))[:size]
    session = asked(prompt, "TASK.md", text) if prompt else worked(Story().turn(text))
    assert context_from_session(session).size < 1.1 * MAX_SIZE
    for chunk in DEFAULT.chunks_of(session):
        assert chunk.tokens <= TARGET


def test_a_session_without_words_was_asked_nothing() -> None:
    session = worked(Story().turn(" "))
    assert request_of(session) is None
    assert spelled_out(session) is session
    assert isinstance(session.turns[0].messages[0], Message)


@pytest.mark.parametrize(
    "command",
    ["sed -n '20,40p' TASK.md", "head -n 2 TASK.md", "tail TASK.md", "cat TASK.md; go version"],
)
def test_a_part_of_a_file_or_what_more_was_printed_is_not_the_file(command: str) -> None:
    request = request_of(worked(Story().turn("Do what TASK.md says").run(command, RULES)))
    assert request is not None
    assert RULES not in request.text
