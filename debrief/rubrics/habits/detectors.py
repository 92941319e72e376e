"""How each habit is seen in a session: one function a habit, from 1 to 5, with evidence.

Each follows its habit's five lines to the letter. None means that the session gave the habit no
occasion, which says nothing for it or against it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from debrief.offline.talk import Sighting
from debrief.rubrics.habits.dialogue import Dialogue, HumanPrompt, content_words, is_ask


class Detection(Struct, frozen=True, kw_only=True):
    """What was seen of a habit in one session."""

    level: int
    """From 1 to 5, as the habit's scale says."""
    finding: str
    """What was seen, as the end of a sentence about the user."""
    sightings: tuple[Sighting, ...] = ()
    """Where: words that stand in these turns."""


def _detected(level: int, finding: str, *sightings: Sighting) -> Detection:
    return Detection(level=level, finding=finding, sightings=sightings[:3])


def _first_with(prompts: Sequence[HumanPrompt], section: str) -> HumanPrompt | None:
    return next((prompt for prompt in prompts if prompt.says(section)), None)


def _later_or_never(dialogue: Dialogue, section: str, later: str, never: str) -> Detection:
    """See what the first prompt does not show: 2 where a later one does, else 1."""
    found = _first_with(dialogue.later, section)
    if found is None:
        return _detected(1, never, dialogue.first.sighting())
    return _detected(2, later.format(turn=found.turn), found.sighting(section))


def names_the_place(dialogue: Dialogue) -> Detection:
    """See whether the first prompt names files, symbols or links."""
    first = dialogue.first
    if not first.anchors:
        later = next((prompt for prompt in dialogue.later if prompt.anchors), None)
        if later is None:
            return _detected(1, "names no file, symbol or link in any prompt", first.sighting())
        finding = f"names nothing in the code before turn {later.turn}"
        return _detected(2, finding, first.sighting(), later.sighting_of(_anchor(later)))
    at = first.sighting_of(_anchor(first))
    exact = bool(first.paths) and (bool(first.symbols) or first.names_a_line)
    if exact:
        place = first.symbols[0] if first.symbols else "a line"
        return _detected(5, f"names {first.paths[0]} and, in it, {place}", at)
    names = "one place" if first.anchors == 1 else f"{first.anchors} places"
    level = 3 if first.anchors == 1 else 4
    return _detected(level, f"names {names}, {_anchor(first)} first", at)


def _anchor(prompt: HumanPrompt) -> str:
    return (*prompt.paths, *prompt.symbols, *prompt.links)[0]


def states_the_result(dialogue: Dialogue) -> Detection:
    """See whether the first prompt says what must be true in the end."""
    first = dialogue.first
    stated = first.count("expectations")
    if not stated:
        finding = "first says in turn {turn} what the result must be"
        never = "never says what the result must be"
        return _later_or_never(dialogue, "expectations", finding, never)
    at = first.sighting("expectations")
    if stated > 1 and (first.says("proofs") or first.has_code or first.says("examples")):
        finding = "says what the result must be and how that is to be seen"
        return _detected(5, finding, at, first.sighting("proofs"))
    finding = "says what the result must be" + (" in one sentence" if stated == 1 else "")
    return _detected(3 if stated == 1 else 4, finding, at)


def sets_limits(dialogue: Dialogue) -> Detection:
    """See whether the first prompt says what must not change or be done."""
    first = dialogue.first
    limits = first.count("limits")
    if limits:
        finding = f"sets {'one limit' if limits == 1 else f'{limits} limits'} in the first prompt"
        return _detected(4 if limits == 1 else 5, finding, first.sighting("limits"))
    later = _first_with(dialogue.later, "limits")
    if later is None:
        return _detected(1, "sets no limit", first.sighting())
    finding = f"sets the first limit in turn {later.turn}"
    level = 3 if later is dialogue.later[0] else 2
    return _detected(level, finding, later.sighting("limits"))


def shows_the_failure(dialogue: Dialogue) -> Detection | None:
    """See whether a failure that the person reports is shown as it appeared."""
    reports = [p for p in dialogue.prompts if p.says("failures") and not _is_plan(p)]
    if not reports:
        return None
    reported = reports[0]
    exact = reported.find("exact_failures", reported.looked_at) or reported.has_code
    if exact:
        how = reported.says("reproductions") or reported.find("reproductions", reported.looked_at)
        finding = "gives the exact failure" + (" and what led to it" if how else "")
        return _detected(5 if how else 4, finding, reported.sighting("failures"))
    if any(p.find("exact_failures", p.looked_at) or p.has_code for p in reports[1:]):
        finding = "reports a failure and gives its exact words only later"
        return _detected(2, finding, reported.sighting("failures"))
    if reported.says("reproductions") or len(reported.words) >= 12:
        finding = "describes the failure in words, without its message or test"
        return _detected(3, finding, reported.sighting("failures"))
    finding = "says that something fails and not what was seen"
    return _detected(1, finding, reported.sighting("failures"))


def _is_plan(prompt: HumanPrompt) -> bool:
    return prompt.says("plans") and prompt.listed >= 3


def requests_proof(dialogue: Dialogue) -> Detection:
    """See whether the person asks that the work be checked, and how."""
    asking = _first_with(dialogue.prompts, "proofs")
    if asking is None:
        return _detected(1, "never asks for a check or a test", dialogue.first.sighting())
    at = asking.sighting("proofs")
    tests = any("test" in word or "lint" in word or "spec" in word for word in asking.words)
    if asking is not dialogue.first:
        finding = f"asks for {'tests' if tests else 'a check'} in turn {asking.turn}, not at first"
        return _detected(3 if tests else 2, finding, at)
    exact = tests and any(
        "test" in name.casefold() or "spec" in name.casefold() or " " in name
        for name in (*asking.paths, *asking.symbols)
    )
    if exact:
        return _detected(5, "asks at once for a check and names the test or command", at)
    finding = "asks at once for tests" if tests else "asks at once for a check"
    return _detected(4 if tests else 3, finding, at)


def gives_examples(dialogue: Dialogue) -> Detection:
    """See whether the person shows what is meant."""
    first = dialogue.first
    shown = first.says("examples") or first.has_code
    like = first.says("models")
    if shown and first.says("expectations"):
        return _detected(5, "shows an example and what must come of it", first.sighting("examples"))
    if shown:
        return _detected(4, "shows an example in the first prompt", first.sighting("examples"))
    if like:
        finding = "points to something that the work should be like"
        return _detected(3, finding, first.sighting("models"))
    later = next((p for p in dialogue.later if p.says("examples") or p.has_code), None)
    if later is not None:
        finding = f"shows the first example in turn {later.turn}"
        return _detected(2, finding, later.sighting("examples"))
    return _detected(1, "shows no example", first.sighting())


def plans_first(dialogue: Dialogue) -> Detection:
    """See whether the work starts from a plan."""
    first = dialogue.first
    if first.listed >= 3 or first.says("plans"):
        exact = first.listed >= 3 or first.anchors >= 3
        finding = "starts from " + ("ordered steps" if exact else "a plan that is referred to")
        return _detected(5 if exact else 4, finding, first.sighting("plans"))
    if first.says("plan_requests"):
        finding = "asks for a plan or an opinion before the work"
        return _detected(4, finding, first.sighting("plan_requests"))
    later = _first_with(dialogue.later, "plan_requests") or _first_with(dialogue.later, "plans")
    if later is not None:
        level = 3 if later is dialogue.later[0] else 2
        section = "plan_requests" if later.says("plan_requests") else "plans"
        return _detected(level, f"comes to a plan in turn {later.turn}", later.sighting(section))
    return _detected(1, "neither gives nor asks for a plan", first.sighting())


def explains_why(dialogue: Dialogue) -> Detection:
    """See whether the reason and the present state are reported."""
    first = dialogue.first
    reason, state = first.says("reasons"), first.says("states")
    if reason and state:
        finding = "tells the reason and how things are now"
        return _detected(5, finding, first.sighting("reasons"), first.sighting("states"))
    if reason:
        return _detected(4, "tells the reason", first.sighting("reasons"))
    if state:
        return _detected(3, "tells how things are now, not why", first.sighting("states"))
    finding = "tells the first reason in turn {turn}"
    return _later_or_never(dialogue, "reasons", finding, "tells no reason")


def says_it_up_front(dialogue: Dialogue) -> Detection:
    """See how much is asked for only after the first prompt."""
    extra = [p for p in dialogue.later if is_ask(p) and p.says("extras")]
    count = len(extra)
    if not count:
        return _detected(5, "adds no requirement after the first prompt", dialogue.first.sighting())
    finding = f"adds requirements in {_turns(extra)}"
    return _detected(max(1, 5 - count), finding, *(p.sighting("extras") for p in extra))


def stays_on_topic(dialogue: Dialogue) -> Detection | None:
    """See whether later prompts go on with the work of the first."""
    requests = [p for p in dialogue.later if is_ask(p) and len(content_words(p.own)) >= 4]
    if not requests:
        return None
    known = set(content_words(dialogue.first.looked_at))
    strangers: list[HumanPrompt] = []
    for turn, prompt in zip(dialogue.turns, dialogue.prompts, strict=True):
        words = content_words(prompt.own)
        if prompt in requests and not words & known and not prompt.says("extras"):
            strangers.append(prompt)
        known |= words
        for message in turn.messages:
            known |= content_words(message.text)
            for call in message.calls:
                known |= content_words((call.path or "").replace("/", " ").replace("_", " "))
    count = len(strangers)
    if not count:
        return _detected(5, "keeps to one topic", requests[-1].sighting())
    share = count / len(requests)
    level = 4 if count == 1 and share <= 0.25 else 3 if count == 1 else 2 if share <= 0.5 else 1
    finding = f"turns to something else in {_turns(strangers)}"
    return _detected(level, finding, *(p.sighting() for p in strangers))


def needs_no_corrections(dialogue: Dialogue) -> Detection:
    """See how often the person has to put the agent right."""
    count = len(dialogue.corrections)
    if not count:
        return _detected(5, "never has to put the agent right", dialogue.first.sighting())
    share = count / max(len(dialogue.later), count)
    level = 4 if share <= 0.2 else 3 if share <= 0.34 else 2 if share <= 0.5 else 1
    finding = f"puts the agent right {_times(count)} in {len(dialogue.prompts)} prompts"
    seen = (objection.prompt.sighting() for objection in dialogue.corrections)
    return _detected(level, finding, *seen)


def says_what_instead(dialogue: Dialogue) -> Detection | None:
    """See what the person says where they stop or correct the agent."""
    stops = _words_at_stops(dialogue)
    if not stops:
        return None
    levels = sorted(map(_stop_level, stops))
    level = levels[len(levels) // 2] if len(levels) % 2 else levels[len(levels) // 2 - 1]
    finding = {
        1: "stops the agent without a word",
        2: "says that something is wrong and no more",
        3: "says what is wrong",
        4: "says what is wanted instead",
        5: "says what is wrong, what is wanted instead, and where or why",
    }[level]
    seen = [prompt.sighting() for prompt in stops if prompt is not None]
    often = "the one time" if len(stops) == 1 else f"typically, of {len(stops)} times"
    return _detected(level, f"{finding} ({often})", *seen)


def _words_at_stops(dialogue: Dialogue) -> list[HumanPrompt | None]:
    """Return what was said at each stop: its own words, else the prompt that follows it."""
    by_turn: dict[int, HumanPrompt] = {p.turn: p for p in reversed(dialogue.prompts)}
    return [
        objection.prompt if objection.prompt.own.strip() else by_turn.get(objection.turn + 1)
        for objection in dialogue.objections
    ]


def _stop_level(prompt: HumanPrompt | None) -> int:
    if prompt is None:
        return 1
    if len(prompt.words) < 4 and not prompt.anchors:
        return 2
    if not prompt.says("instead"):
        return 3
    return 5 if prompt.anchors or prompt.says("reasons") else 4


def lets_it_finish(dialogue: Dialogue) -> Detection:
    """See how often the person interrupts the agent."""
    count = dialogue.interruptions
    if not count:
        return _detected(5, "never interrupts the agent", dialogue.first.sighting())
    prompts = len(dialogue.prompts)
    level = 4 if count == 1 and prompts >= 5 else 3 if count == 1 else 2 if count == 2 else 1
    turns = [s.turn for s in dialogue.objections if s.kind == "interruption"]
    seen = [p.sighting() for p in dialogue.prompts if p.turn in turns]
    return _detected(level, f"interrupts the agent {_times(count)} in {prompts} prompts", *seen)


def answers_questions(dialogue: Dialogue) -> Detection | None:
    """See how the person answers what the agent asks."""
    levels = [(_answer_level(reply), reply.sighting()) for reply in dialogue.replies]
    levels += [(4, answer) for answer in dialogue.answers]
    if not levels:
        return None
    mean = sum(level for level, _ in levels) / len(levels)
    worst = min(levels, key=lambda pair: pair[0])
    best = max(levels, key=lambda pair: pair[0])
    seen = (best[1],) if best[1] == worst[1] else (best[1], worst[1])
    finding = f"answers {len(levels)} of the agent's questions, at {mean:.1f} of 5 on average"
    return _detected(round(mean), finding, *seen)


def _answer_level(reply: HumanPrompt) -> int:
    if reply.says("evasions"):
        return 1
    if reply.says("nudges"):
        return 2
    if len(reply.words) < 3 and not reply.anchors:
        return 3
    return 5 if reply.anchors or reply.says("reasons") or len(reply.words) >= 8 else 4


def avoids_vague_requests(dialogue: Dialogue) -> Detection:
    """See how many prompts leave the agent to guess what is meant."""
    first = dialogue.first
    is_little = len(first.words) < 5 and not first.anchors
    vague = [p for p in dialogue.prompts if p.says("vague") or (p is first and is_little)]
    if not vague:
        return _detected(5, "makes no vague request", dialogue.first.sighting())
    share = len(vague) / len(dialogue.prompts)
    finding = f"leaves the agent to guess in {_turns(vague)}"
    level = 4 if share <= 0.15 else 3 if share <= 0.3 else 2 if share <= 0.5 else 1
    if vague[0] is first:
        level = min(level, 2)
    return _detected(level, finding, *(p.sighting() for p in vague))


def fits_the_first_prompt(dialogue: Dialogue) -> Detection:
    """See whether the first prompt is neither a stub nor a flood."""
    words = len(dialogue.first.words)
    bands = ((5, 25, 250), (4, 14, 450), (3, 9, 900), (2, 5, 1800))
    level = next((level for level, least, most in bands if least <= words <= most), 1)
    return _detected(level, f"opens with {words} words of their own", dialogue.first.sighting())


def needs_few_prompts(dialogue: Dialogue) -> Detection:
    """See how many prompts the session takes."""
    count = len(dialogue.prompts)
    level = 5 if count <= 2 else 4 if count <= 4 else 3 if count <= 7 else 2 if count <= 12 else 1
    finding = f"uses {count} prompt{'s' * (count != 1)}"
    return _detected(level, finding, dialogue.prompts[-1].sighting())


def closes_the_loop(dialogue: Dialogue) -> Detection | None:
    """See how the person ends a session of several prompts."""
    if len(dialogue.prompts) < 2:
        return None
    last = dialogue.prompts[-1]
    stopped = any(s.turn == last.turn for s in dialogue.objections)
    if stopped:
        return _detected(1, "leaves after a correction or an interruption", last.sighting())
    accepted = len(last.words) < 40 and (last.says("verified") or last.says("acceptances"))
    if accepted and (last.says("wrap_ups") or last.anchors or len(last.words) > 6):
        return _detected(5, "says that the result holds and what comes of it", last.sighting())
    if accepted:
        return _detected(4, "says that the result holds", last.sighting())
    if last.says("wrap_ups"):
        return _detected(3, "has the work committed or shipped", last.sighting("wrap_ups"))
    return _detected(2, "leaves without a word on the result", last.sighting())


def _turns(prompts: Sequence[HumanPrompt]) -> str:
    numbers = [str(prompt.turn) for prompt in prompts]
    if len(numbers) == 1:
        return f"turn {numbers[0]}"
    shown = ", ".join(numbers[:6]) + (" …" if len(numbers) > 6 else "")
    return f"turns {shown}"


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"
