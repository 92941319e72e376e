"""What is a repository's trouble, and what is shown on the page of one session alone."""

from __future__ import annotations

from debrief.troubles.session_troubles import session_troubles
from tests.signals.scenario import Story
from tests.troubles.scenario import events, told

NOT_THERE = "sh: pnpm: not found"
PYRIGHT = "src/a.py:3:5 - error: Type of x is unknown (reportUnknownVariableType)\n1 error"


def without_pnpm(times: int) -> Story:
    story = Story().turn("Go")
    for _ in range(times):
        story.run("pnpm test", NOT_THERE, "failed")
    return story


def in_session(story: Story) -> list[tuple[str, int, tuple[str, ...]]]:
    return [
        (trouble.kind, len(trouble.events), trouble.subjects)
        for trouble in session_troubles(events(story))
    ]


def locked(times: int, more_calls: int = 0) -> Story:
    """A command that fails, nobody knows why, and what is tried meanwhile."""
    story = Story().turn("Go")
    for _ in range(times):
        story.run("pnpm db:reset --yes", "error: the database is locked", "failed")
        for _ in range(more_calls):
            story.run("pnpm db:status", "locked").run("pnpm db:reset --yes", "done")
    return story


def test_what_three_sessions_had_and_one_in_twelve_is_a_trouble_of_the_repository() -> None:
    reset = [("failing_command", "pnpm db:reset: error: the database is locked")]
    fine = Story().turn("Hello").say("Hello.")
    assert told(*[locked(4, more_calls=1)] * 2) == []
    assert told(*[locked(1)] * 3) == reset
    assert told(*[locked(1)] * 3, *[fine] * 33) == reset
    assert told(*[locked(1)] * 3, *[fine] * 34) == []
    assert told(*[locked(1)] * 15, *[fine] * 300) == reset


def test_a_long_output_that_was_asked_for_is_no_trouble_of_a_repository() -> None:
    def printed(command: str) -> Story:
        return Story().turn("Look").run(command, "x" * 40_000)

    assert told(*[printed("curl -s https://shop.example/a")] * 4) == []
    stories = [printed("shop list --all")] * 3
    assert told(*stories) == [("long_output", "shop list: long output")]


def test_a_session_shows_what_it_had_twice() -> None:
    assert in_session(without_pnpm(1)) == []
    assert in_session(without_pnpm(2)) == [("missing_tool", 2, ("pnpm: command not found",))]


def test_a_session_shows_what_it_took_unless_stretches_share_calls() -> None:
    twice = without_pnpm(2).say("Hm.")
    (trouble,) = session_troubles(events(twice))
    assert trouble.cost[0] == "400 tokens"
    event = trouble.events[0]
    (shared,) = session_troubles([event, event])
    assert shared.cost == []


def test_what_a_check_finds_again_in_one_session_is_shown_there_alone() -> None:
    story = Story().turn("Type it")
    for number in range(5):
        story.run("uv run pyright", PYRIGHT, "failed").edit("src/a.py", f"{number}", "b")
    assert told(story) == []
    ((kind, count, _),) = in_session(story)
    assert (kind, count) == ("failing_command", 5)


def test_in_one_session_edits_that_miss_are_one_trouble_whatever_their_files() -> None:
    story = Story().turn("Go")
    for name in ("a.py", "b.py"):
        story.edit(f"/home/ada/shop/{name}", "a", "b", status="failed")
    ((kind, count, subjects),) = in_session(story)
    assert (kind, count) == ("missed_edit", 2)
    assert subjects == ("a.py", "b.py")


def test_a_session_in_which_all_went_well_shows_nothing() -> None:
    story = Story().turn("Go")
    for number in range(6):
        story.run("pnpm test", "ok").edit("a.py", f"{number}", "b")
    assert in_session(story) == []


def test_a_file_outside_the_repository_is_no_trouble_of_it() -> None:
    def missed(path: str) -> Story:
        story = Story().turn("Go")
        for number in range(3):
            story.edit(path, f"{number}", "b", status="failed").say("Again.").read(path)
            story.edit(path, f"{number}", "b")
        return story

    assert told(*[missed("/home/ada/.notes/MEMORY.md")] * 3) == []
    assert [kind for kind, _ in told(*[missed("/home/ada/shop/a.py")] * 3)] == ["missed_edit"]
