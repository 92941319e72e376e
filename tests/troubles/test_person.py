"""What the person did: corrections that name the same thing, interruptions, and what was asked."""

from __future__ import annotations

from debrief.troubles.remedies import line_for
from tests.signals.scenario import Story
from tests.troubles.scenario import events, told, troubles

REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def corrected(words: str) -> Story:
    return Story().turn("Add a cap").edit("a.py", "a", "b").turn(words).edit("a.py", "b", "c")


def test_corrections_join_when_they_name_the_same_thing() -> None:
    (trouble,) = troubles(
        corrected("linting is failing now"),
        corrected("that's wrong, the cap is 50"),
        corrected("1. lint failing\n2. update from main"),
        corrected("I don't see the commands"),
        corrected("argghh build failing: lint"),
    )
    assert (trouble.kind, trouble.subject) == ("correction", "“lint fails”")
    assert trouble.count == 3
    assert [example.words for example in trouble.examples] == [
        "argghh build failing: lint",
        "1. lint failing 2. update from main",
    ]


def test_a_new_wish_and_pasted_words_are_no_corrections() -> None:
    pasted = "Here is the log:\n```\nthat is wrong, you forgot `cap.py`\n```\nWhat does it mean?"
    stories = [corrected(words) for words in ("Now add a floor", pasted, "Thanks, looks good")]
    assert [event for event in events(*stories, *stories) if event.kind == "correction"] == []


def test_an_interruption_has_what_the_person_said_next() -> None:
    def stopped(words: str) -> Story:
        return Story().turn("Go on").run("ls").deed("interruption").turn(words).say("Yes.")

    (trouble,) = troubles(stopped("leave the api.lock"), stopped("not the api.lock, the other"))
    assert (trouble.kind, trouble.count) == ("interruption", 2)
    assert trouble.subject == "the person stopped the agent: “api.lock”"
    assert trouble.examples[0].words == "not the api.lock, the other"
    assert told(stopped("are you stuck?"), stopped("not that folder, the other one")) == []
    assert told(stopped("continue"), stopped("sorry, wrong chat")) == []
    retyped = Story().turn("8").deed("interruption").turn("6").say("Yes.")
    assert told(retyped, retyped) == []  # the agent had done nothing yet


def test_a_refusal_has_what_was_asked_and_why_it_was_refused() -> None:
    def refused() -> Story:
        story = Story().turn("Install it")
        story.run("cd app && npm install zod", REFUSED, "rejected")
        return story.deed("rejection", "use pnpm").run("pnpm add zod", "done")

    (trouble,) = troubles(refused(), refused())
    assert (trouble.kind, trouble.subject) == ("refused_permission", "npm install zod: refused")
    assert trouble.examples[0].words == "use pnpm"


def test_a_refusal_that_was_not_meant_is_none() -> None:
    story = Story().turn("Go on").edit("/home/ada/shop/a.py", "a", "b", status="rejected")
    assert events(story.deed("rejection").turn("sorry, continue").say("Yes.")) == []


def test_a_plan_that_is_talked_over_was_not_refused() -> None:
    def planned(words: str = "") -> Story:
        story = Story().turn("Plan it").call("ExitPlanMode", REFUSED, "rejected", plan="Add a cap")
        return story.deed("rejection", words)

    refused = [planned(words) for words in ("keep the floor", "no cap", "say why", "more")]
    assert [event.reason for event in events(*refused)] == ["plan"] * 4
    assert told(*refused) == []
    assert events(planned(), planned("Perfect, go!")) == []


def test_refused_edits_of_different_files_say_little() -> None:
    def refused(path: str) -> Story:
        return Story().turn("Go on").edit(f"/home/ada/shop/{path}", "a", "b", status="rejected")

    a, b, same = refused("a.py"), refused("b.py"), [("refused_permission", "an edit: refused")]
    assert told(a, b, a) == []
    assert told(a, a) == []  # by settings, for all that is known
    assert told(a, a, a) == told(a, b, b, b) == same


def test_a_command_that_was_granted_elsewhere_is_not_forbidden_by_a_line() -> None:
    def refused(*later: str) -> Story:
        story = Story().turn("Go on").run("git commit -m a", REFUSED, "rejected")
        for command in later:
            story.run(command, "done")
        return story

    granted = refused("git commit -m b")
    assert troubles(granted, refused()) == []  # what each was to do was refused
    (trouble,) = troubles(granted, granted, granted, refused())
    assert line_for(trouble) is None
    (trouble,) = troubles(*[refused()] * 3)
    assert line_for(trouble) is None  # by settings, for all that is known
    (trouble,) = troubles(*[refused().turn("Leave that to me")] * 2)
    assert line_for(trouble) == "Do not run `git commit -m a` unasked: it was refused."


def test_calls_that_were_refused_at_once_are_one_refusal() -> None:
    story = Story().turn("Go on")
    asked = [
        story.make("Edit", REFUSED, "rejected", file_path=f"/home/ada/shop/{name}.py")
        for name in ("a", "b", "c")
    ]
    assert [event.subject for event in events(story.say("", *asked))] == ["an edit: refused"]


def test_the_answer_to_a_question_is_no_correction() -> None:
    def story(last: str, words: str) -> Story:
        return Story().turn("Build a page").say("I will.").turn("Go on").say(last).turn(words)

    no = "no, let's just say that it is open"
    assert [event.kind for event in events(story("It is done.", no))] == ["correction"]
    assert events(story("Shall it say that it is closed?", no)) == []
    offer = story("It is done. Would you like me to write a test?", "no, it is still broken")
    assert len(events(offer)) == 1
    wrong = "that is not what I asked for"
    assert len(events(story("Shall I go on?", wrong))) == 1


def test_what_was_stopped_while_it_ran_was_not_refused() -> None:
    def story(result: str) -> Story:
        return Story().turn("Go").call("Agent", result, "rejected", prompt="Look").turn("By hand")

    stopped = "[Request interrupted by user for tool use]"
    assert told(*[story(stopped)] * 4) == []
    assert told(*[story("The user doesn't want to proceed.")] * 4) == [
        ("refused_permission", "Agent: refused")
    ]
