"""Habits: what a person observably does when working with an agent, each on a scale from 1 to 5.

A habit is about the user, and never about how much they type: each scale counts what is said,
not how long it takes. What the scales say is what `habit_detectors` sees, line for line.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from msgspec import Struct

from debrief.offline import habit_detectors as detectors
from debrief.offline.dialogue import Dialogue, content_words
from debrief.offline.habit_detectors import Detection
from debrief.scoring.model import ScoreName
from debrief.sessions.model import Session


class Habit(Struct, frozen=True, kw_only=True):
    """An observable habit of the user."""

    key: str
    name: str
    """Two to five words."""
    description: str
    scale: tuple[str, str, str, str, str]
    """What 1, 2, 3, 4 and 5 look like."""
    detect: Callable[[Dialogue], Detection | None]
    shares: frozenset[ScoreName] = frozenset()
    """Score names that are computed from the same signals, so that a link between habit and
    score is partly there by construction."""

    @property
    def scoring_criteria(self) -> str:
        """The scale as five lines, ``1: …`` to ``5: …``."""
        return "\n".join(f"{point}: {text}" for point, text in enumerate(self.scale, 1))


HABITS: tuple[Habit, ...] = (
    Habit(
        key="names-the-place",
        name="Names the Place",
        description="The user names the files, symbols, commands or issues that a request is "
        "about, so that the agent does not have to search for them.",
        scale=(
            "No prompt names a file, symbol, command, issue or link",
            "The first prompt names none; a later one does",
            "The first prompt names one",
            "The first prompt names two or more",
            "The first prompt names a file and the symbol or line in it",
        ),
        detect=detectors.names_the_place,
    ),
    Habit(
        key="states-the-result",
        name="States the Expected Result",
        description="The user says what must be true when the work is done.",
        scale=(
            "No prompt says what the result must be",
            "The first prompt does not; a later one does",
            "The first prompt says it in one sentence",
            "The first prompt says it in two or more sentences",
            "The first prompt says it in two or more, with a check, an example or a literal",
        ),
        detect=detectors.states_the_result,
    ),
    Habit(
        key="sets-limits",
        name="Sets Limits Beforehand",
        description="The user says what must stay as it is, or must not be done, before the "
        "agent does it.",
        scale=(
            "No limit in the first prompt, and the agent's work has to be taken back later",
            "No prompt sets a limit",
            "A limit is first set after the first prompt",
            "The first prompt sets one limit",
            "The first prompt sets two or more limits",
        ),
        detect=detectors.sets_limits,
    ),
    Habit(
        key="shows-the-failure",
        name="Shows the Exact Failure",
        description="Where something fails, the user gives the message, test or output itself "
        "and what led to it.",
        scale=(
            "Says that something fails, and not what was seen",
            "Gives the exact words only in a later report",
            "Describes in words what was seen",
            "Gives the message, test or output itself",
            "Gives it together with the command or steps that led to it",
        ),
        detect=detectors.shows_the_failure,
    ),
    Habit(
        key="asks-for-proof",
        name="Asks for Proof",
        description="The user asks that the work be checked, by tests where there can be some.",
        scale=(
            "No prompt asks for a check",
            "A later prompt asks for a check in general",
            "The first prompt asks for a check in general, or a later one for tests",
            "The first prompt asks for tests",
            "The first prompt asks for tests and names the test or the command",
        ),
        detect=detectors.requests_proof,
    ),
    Habit(
        key="gives-examples",
        name="Gives Concrete Examples",
        description="The user shows by an example, a literal or a model what is meant.",
        scale=(
            "No example in any prompt",
            "The first example comes after the first prompt",
            "The first prompt points to something that the work should be like",
            "The first prompt shows an example or a literal",
            "The first prompt shows an example and says what must come of it",
        ),
        detect=detectors.gives_examples,
    ),
    Habit(
        key="plans-first",
        name="Starts from a Plan",
        description="The user gives a plan, or asks for one, before code is written.",
        scale=(
            "No plan is given or asked for",
            "A plan comes up after the second prompt",
            "A plan comes up in the second prompt",
            "The first prompt asks for a plan or refers to one",
            "The first prompt holds ordered steps or a plan that names its places",
        ),
        detect=detectors.plans_first,
    ),
    Habit(
        key="explains-why",
        name="Explains the Reason",
        description="The user tells why the work is wanted and how things are now.",
        scale=(
            "No prompt tells a reason",
            "The first reason comes after the first prompt",
            "The first prompt tells how things are now, and no reason",
            "The first prompt tells the reason",
            "The first prompt tells the reason and how things are now",
        ),
        detect=detectors.explains_why,
    ),
    Habit(
        key="says-it-up-front",
        name="Says It Up Front",
        description="The user gives the requirements together instead of adding them one by one.",
        scale=(
            "Four or more later prompts add requirements",
            "Three later prompts add requirements",
            "Two later prompts add requirements",
            "One later prompt adds a requirement",
            "No later prompt adds a requirement",
        ),
        detect=detectors.says_it_up_front,
        shares=frozenset({"user_turn_efficiency"}),
    ),
    Habit(
        key="stays-on-topic",
        name="Keeps to One Topic",
        description="The user keeps a session to one topic and opens another for new work.",
        scale=(
            "More than half of the later requests are about something else",
            "Two or more later requests, up to half, are about something else",
            "One of fewer than four later requests is about something else",
            "One of four or more later requests is about something else",
            "Every request goes on with the same work",
        ),
        detect=detectors.stays_on_topic,
    ),
    Habit(
        key="needs-no-corrections",
        name="Needs No Corrections",
        description="The user guides the agent so that its work need not be put right.",
        scale=(
            "More than half of the later prompts put the agent right",
            "Up to half of the later prompts do",
            "Up to a third of the later prompts do",
            "Up to a fifth of the later prompts do",
            "No prompt has to put the agent right",
        ),
        detect=detectors.needs_no_corrections,
        shares=frozenset({"excellence"}),
    ),
    Habit(
        key="says-what-instead",
        name="Says What Instead",
        description="Where the user stops or corrects the agent, they say what is wanted instead.",
        scale=(
            "Stops the agent without a word",
            "Says that something is wrong, and no more",
            "Says what is wrong",
            "Says what is wanted instead",
            "Says what is wanted instead, and where or why",
        ),
        detect=detectors.says_what_instead,
    ),
    Habit(
        key="lets-it-finish",
        name="Lets the Agent Finish",
        description="The user prepares the work so that the agent can finish uninterrupted.",
        scale=(
            "Interrupts the agent three times or more",
            "Interrupts the agent twice",
            "Interrupts the agent once in fewer than five prompts",
            "Interrupts the agent once in five or more prompts",
            "Never interrupts the agent",
        ),
        detect=detectors.lets_it_finish,
        shares=frozenset({"excellence"}),
    ),
    Habit(
        key="answers-questions",
        name="Answers with a Decision",
        description="The user answers the agent's questions with a decision and what it needs.",
        scale=(
            "Leaves the decision open",
            "Only tells the agent to go on",
            "Answers with a bare yes, no or choice",
            "Answers in words of their own, or picks an offered answer",
            "Answers with a decision and its place, reason or detail",
        ),
        detect=detectors.answers_questions,
    ),
    Habit(
        key="avoids-vague-asks",
        name="Leaves Nothing to Guess",
        description="The user makes no request that leaves the agent to guess what is meant.",
        scale=(
            "More than half of the prompts are vague",
            "The first prompt, or up to half of all, is vague",
            "Up to three in ten prompts are vague",
            "Up to three in twenty prompts are vague",
            "No prompt is vague",
        ),
        detect=detectors.avoids_vague_requests,
    ),
    Habit(
        key="fits-the-first-prompt",
        name="Opens with Enough, No More",
        description="The user's first prompt is neither a stub nor a flood: pasted material "
        "apart, it has the words that the work needs.",
        scale=(
            "Fewer than 5 words of their own, or more than 1,800",
            "5 to 8 words, or 901 to 1,800",
            "9 to 13 words, or 451 to 900",
            "14 to 24 words, or 251 to 450",
            "25 to 250 words",
        ),
        detect=detectors.fits_the_first_prompt,
    ),
    Habit(
        key="needs-few-prompts",
        name="Gets There in Few Prompts",
        description="The user reaches the goal of the session with few prompts.",
        scale=(
            "13 prompts or more",
            "8 to 12 prompts",
            "5 to 7 prompts",
            "3 or 4 prompts",
            "1 or 2 prompts",
        ),
        detect=detectors.needs_few_prompts,
        shares=frozenset({"user_turn_efficiency"}),
    ),
    Habit(
        key="closes-the-loop",
        name="Closes the Loop",
        description="The user ends a session of several prompts by saying how the result stands.",
        scale=(
            "Leaves after a correction or an interruption",
            "Leaves without a word on the result",
            "Has the work committed or shipped without saying that it holds",
            "Says that the result holds",
            "Says that the result holds and what was checked or comes next",
        ),
        detect=detectors.closes_the_loop,
        shares=frozenset({"excellence"}),
    ),
)


@cache
def _by_key() -> dict[str, Habit]:
    return {habit.key: habit for habit in HABITS}


def habit_of(key: str) -> Habit | None:
    """Return the habit of a key, or None."""
    return _by_key().get(key)


def nearest_habit(words: str) -> tuple[Habit, float]:
    """Return the habit whose name, description and scale share most with ``words``.

    The number beside it, from 0 to 1, is the share of the rarer words that they have in common;
    rare means that few habits use the word.
    """
    topic = content_words(words)
    rated = [(_closeness(topic, habit), habit) for habit in HABITS]
    closeness, habit = max(rated, key=lambda pair: pair[0])
    return habit, closeness


@cache
def _words_of(habit: Habit) -> frozenset[str]:
    return content_words(f"{habit.name} {habit.description} {' '.join(habit.scale)}")


@cache
def _rarity() -> dict[str, float]:
    used: dict[str, int] = {}
    for habit in HABITS:
        for word in _words_of(habit):
            used[word] = used.get(word, 0) + 1
    return {word: 1 / count for word, count in used.items()}


def _closeness(topic: frozenset[str], habit: Habit) -> float:
    rarity = _rarity()
    name = content_words(habit.name)
    shared = sum(rarity[w] * (2 if w in name else 1) for w in topic & _words_of(habit))
    known = sum(rarity.get(word, 0.0) for word in topic)
    return min(1.0, shared / known) if known else 0.0


def detect_habits(session: Session) -> dict[str, Detection]:
    """Return what is seen of each habit in a session; habits without occasion are left out.

    A session without a human prompt shows nothing.
    """
    dialogue = Dialogue(session)
    if not dialogue.prompts:
        return {}
    seen = ((habit.key, habit.detect(dialogue)) for habit in HABITS)
    return {key: detection for key, detection in seen if detection is not None}
