"""Looking again, waiting, filling the context, and checks that see nothing of the change."""

from __future__ import annotations

from msgspec.structs import replace

from debrief.sessions.model import Session, Usage
from debrief.troubles.finding import events_of
from debrief.troubles.grouping import find_troubles
from debrief.troubles.remedies import line_for
from tests.signals.scenario import Story
from tests.troubles.scenario import day, events, prices, told, troubles

LONG = "x = 1\n" * 500


def kinds(*stories: Story) -> list[str]:
    return [event.kind for event in events(*stories)]


def test_a_file_is_read_again_where_it_shows_the_same_again() -> None:
    def read(story: Story, text: str = LONG) -> Story:
        return story.read("/home/ada/shop/a.py", text)

    again = read(read(Story().turn("Look")).run("make format").turn("Look again"))
    (event,) = events(again)
    assert (event.kind, event.file) == ("repeated_read", "a.py")
    assert event.usage == Usage(input=100, output=100)  # the message that read it again alone
    assert kinds(read(read(Story().turn("Look")), LONG + "y = 2")) == []
    assert kinds(read(read(Story().turn("Look"), "x = 1"), "x = 1")) == []  # hardly worth a word
    copies = Story().turn("Look").read("/home/ada/shop/a.py", LONG)
    assert kinds(copies.read("/home/ada/shop/copy_of_a.py", LONG)) == []


def test_waiting_by_looking_is_named_after_what_was_waited_for() -> None:
    def waiting(looks: int = 12) -> Story:
        story = Story().turn("Test it").run("mise run test:ci", "still running")
        for _ in range(looks):
            story.call("wait", "still running", seconds=10)
        return story

    page = Story().turn("Page").run("make page", "still running")
    for _ in range(12):
        page.call("wait", "still running", seconds=10)
    (trouble,) = troubles(waiting(), page, waiting(), apart=10)
    assert (trouble.kind, trouble.names) == ("polling", ("mise run test:ci", "make page"))
    assert line_for(trouble) == (
        "Wait for `mise run test:ci` and `make page` in one long look: "
        "every look costs the whole context again."
    )
    assert events(waiting(), apart=30) == []  # with a pause before each look
    assert events(waiting(5), apart=9) == []  # a few looks at what is soon over
    assert kinds(Story().turn("Test").run("make test").call("wait", "done", seconds=1)) == []
    other = Story().turn("Go on").run("make serve", "Process running with session ID 7")
    other.run("make page", "done")
    for _ in range(4):
        other.call("wait", "still running", session_id=7)
    assert [event.name for event in events(other, apart=18)] == ["make serve"]
    fetched = Story().turn("Go on").run("make all", "Process running with session ID 7")
    for number in range(3):
        done = fetched.make("wait", "done", session_id=number)
        fetched.say("", replace(done, exit_code=0))  # what three commands had printed to their end
    assert kinds(fetched) == []


def test_a_long_output_costs_what_it_put_into_the_context() -> None:
    story = Story().turn("Look").run("rg -n price .", "a.min.js: price\n" * 4_000)
    (event,) = events(story)
    assert (event.kind, event.subject) == ("long_output", "rg: long output")
    assert event.usage == Usage(input=16_000)
    assert event.cost_usd == 16.0
    for command in ("cat notes.md", "sed -n 1,900p notes.md"):  # a file is read, as by a tool
        shown = Story().turn("Look").run(command, "a note\n" * 5_000)
        assert kinds(shown) == []
        (event,) = events(Story().turn("Look").run(command, "a note\n" * 9_000))
        assert (event.subject, event.file) == ("notes.md: long output", "notes.md")


def test_a_check_that_cannot_see_the_change() -> None:
    other = Story().turn("Fix it").edit("/home/ada/shop/tool.py", "a", "b")
    other.run("cargo check", "Finished dev")
    assert told(other, other) == []
    assert told(other, other, other) == [
        ("blind_check", "cargo check: cannot see what was changed")
    ]
    docs = Story().turn("Say it").edit("/home/ada/shop/README.md", "a", "b")
    assert kinds(docs.run("go test ./...", "ok shop")) == []  # it checks what was there before
    for path in ("page.html", "settings.yaml", "skill.md"):
        seen = Story().turn("Fix it").edit(f"/home/ada/shop/{path}", "a", "b")
        assert kinds(seen.run("go test ./...", "ok shop")) == []


def test_code_that_was_changed_and_never_run() -> None:
    def fixed(last: str = "Fixed.") -> Story:
        return Story().turn("Fix it").edit("/home/ada/shop/a.go", "a", "b\n" * 12).say(last)

    named = "go was changed, and nothing was run that could see it"
    assert [event.subject for event in events(fixed())] == [named]
    small = Story().turn("Fix it").edit("/home/ada/shop/a.go", "a", "b").say("Fixed.")
    assert kinds(small) == []  # nobody would run a check for it
    assert kinds(fixed().run("./shop --price 3", "3").say("Fixed.")) == []
    assert (
        kinds(fixed().run("git commit -m x", "12 passed in 0.1s\n[main 0a1b2c3] x").say("Done."))
        == []
    )
    hook = "[STARTED] eslint --fix\n[COMPLETED] eslint --fix\n[main 0a1b2c3] x"
    assert kinds(fixed().run("git commit -m x", hook).say("Done.")) == []
    assert kinds(fixed().run("tail -5 /tmp/x/tasks/b1.output", "restarted").say("Done.")) == []
    assert kinds(Story().turn("Say").edit("/home/ada/shop/a.go", "// a", "// b").say("Done.")) == []


def test_files_read_again_after_a_compaction() -> None:
    story = Story().turn("Go on")
    for _ in range(2):
        for name in "abc":
            story.read(f"/home/ada/shop/{name}.py")
    session = day(0, story)
    (turn,) = session.turns
    messages = list(turn.messages)
    messages[3] = replace(messages[3], summary="So far: …")
    compacted = replace(session, turns=(replace(turn, messages=tuple(messages)),))
    (event,) = (event for event in events_of(compacted, prices) if event.kind != "same_start")
    assert (event.kind, event.evidence.quote) == (
        "work_done_twice",
        "3 files read again: a.py, b.py, c.py",
    )
    assert event.subject == "a.py and others: read again after a compaction"
    assert kinds(story) == []


def test_sessions_that_begin_by_looking_up_the_same() -> None:
    def begins(path: str, command: str = "") -> Story:
        story = Story().turn("Add a cap").read(f"/home/ada/shop/{path}", LONG)
        return story.run(command or "ls").edit("/home/ada/shop/b.py", "a", "b")

    by_hand = Story().turn("Add").run("sed -n '1,220p' docs/rules.md", LONG).edit("c.py", "a", "b")
    rules = [begins("docs/rules.md") for _ in range(3)]
    stories = [*rules, by_hand, begins("a.py"), begins("b.py")]
    assert told(*stories) == [("same_start", "docs/rules.md: looked up at the beginning")]
    assert told(*[begins("README.md", "cat package.json") for _ in range(4)]) == []


def test_what_a_fork_has_from_its_original_counts_there_alone() -> None:
    session: Session = day(0, Story().turn("Look").read("/a.py", LONG).read("/a.py", LONG))
    (turn,) = session.turns
    assert events_of(session, prices)
    assert events_of(replace(session, turns=(replace(turn, origin="inherited"),)), prices) == []


def test_sessions_of_no_known_repository_have_nothing_in_common() -> None:
    missed = Story().turn("Go").edit("a.py", "a", "b", status="failed")
    assert (
        find_troubles(
            (event for n in range(3) for event in events_of(day(n, missed, ""), prices)), {"": 3}
        )
        == []
    )


def test_several_looks_of_one_message_are_one_look() -> None:
    story = Story().turn("Go").run("npm run build", "Process running with session ID 7")
    look = [story.make("write_stdin", "still at it", "ok", session_id=n) for n in (7, 8, 9, 10)]
    assert kinds(story.say("", *look)) == []


def test_a_file_that_is_edited_later_is_no_start_however_it_is_looked_up() -> None:
    def begins() -> Story:
        story = Story().turn("Add a cap").run("sed -n '1,220p' src/cart.py", "x = 1")
        return story.edit("/home/ada/shop/src/cart.py", "a", "b")

    assert told(*[begins() for _ in range(4)]) == []


def test_skills_that_are_read_anew_are_one_trouble_whichever_they_are() -> None:
    def story(name: str) -> Story:
        path = f"/home/ada/.codex/skills/{name}/SKILL.md"
        return Story().turn("Go").read(path, LONG).turn("Go on").read(path, LONG)

    stories = [story(name) for name in ("trail", "design", "yeet")]
    assert told(*stories) == [("repeated_read", "skills: looked at again, unchanged")]


def test_a_file_that_is_read_right_before_it_is_changed_is_not_read_in_vain() -> None:
    path = "/home/ada/shop/plan.md"
    story = Story().turn("Go").read(path, LONG).say("Hm.").read(path, LONG)
    assert kinds(story) == ["repeated_read"]
    assert kinds(story.edit(path, "a", "b")) == []


def test_a_session_that_was_told_of_a_file_did_not_have_to_find_it() -> None:
    def begins(prompt: str, first: str = "ls") -> Story:
        story = Story().turn(prompt).run(first, "Read docs/rules.md before all else.")
        story.read("/home/ada/shop/docs/rules.md", LONG)
        return story.edit("/home/ada/shop/b.py", "a", "b")

    found = [("same_start", "docs/rules.md: looked up at the beginning")]
    assert told(*[begins("Add a cap")] * 4) == found
    assert told(*[begins("Add a cap, see docs/rules.md")] * 4) == []
    assert told(*[begins("Add a cap", "cat AGENTS.md")] * 4) == []
    assert told(*[begins("Review it", "git diff --stat")] * 4) == []


def test_a_check_is_not_blind_where_something_else_was_run_that_could_see_the_change() -> None:
    def changed() -> Story:
        return Story().turn("Fix it").edit("/home/ada/shop/tool.py", "a", "b")

    blind = changed().run("cargo check", "Finished dev").run("git status", "clean")
    assert kinds(blind) == ["blind_check"]
    assert (
        kinds(changed().run("cargo check", "Finished").run("uv run python -c 'import tool'")) == []
    )
    assert kinds(changed().run("python3 tool.py", "3").run("cargo check", "Finished dev")) == []
    again = changed().run("cargo check", "Finished").edit("/home/ada/shop/tool.py", "b", "c")
    assert kinds(again.run("cargo check", "Finished dev")) == ["blind_check"] * 2


def test_a_hook_that_checks_documents_saw_no_code() -> None:
    def committed(printed: str) -> Story:
        story = Story().turn("Fix it").edit("/home/ada/shop/a.go", "a", "b\n" * 12)
        return story.run("git commit -m x", printed).say("Done.")

    assert kinds(committed("[STARTED] markdownlint --fix\n[main 0a1b2c3] x")) == ["blind_check"]
    assert kinds(committed("[STARTED] vitest run\n[main 0a1b2c3] x")) == []


def test_a_long_output_of_several_commands_is_of_none() -> None:
    def printed(command: str) -> list[str]:
        return [event.subject for event in events(Story().turn("Look").run(command, "x" * 40_000))]

    assert printed("git log --oneline -5; git diff") == []
    assert printed("git diff a.py && git diff b.py") == ["git diff: long output"]
    assert printed("git diff | head -5000") == ["git diff: long output"]


def test_a_few_looks_at_what_takes_a_minute_are_no_waste() -> None:
    def waited(looks: int) -> list[str]:
        story = Story().turn("Test it").run("git status && mise run test:ci", "still running")
        for _ in range(looks):
            story.call("wait", "still running", seconds=10)
        return [event.name for event in events(story, apart=10)]

    assert waited(5) == []
    assert waited(14) == ["mise run test:ci"]


def test_what_is_waited_for_is_found_by_its_id_in_a_script_too() -> None:
    story = Story().turn("Test it")
    begun = 'Script completed\nOutput:\n{"session_id":37,"output":""}'
    story.run("cargo fmt && cargo test", begun).run("cargo fmt", "")
    for _ in range(4):
        script = "let {output} = await tools.write_stdin({session_id:37, chars:''}); text(output)"
        story.call("wait", "Compiling shop", input=script)
    assert [event.name for event in events(story, apart=18)] == ["cargo test"]
