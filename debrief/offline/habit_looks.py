"""How each habit is seen in a session: one function a habit, from 1 to 5, with evidence.

Each follows its habit's five lines to the letter. None means that the session gave the habit no
occasion, which says nothing for it or against it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from debrief.offline.conversation import Conversation, Prompt, Stop, content_words, is_ask
from debrief.offline.model import Sighting


class Look(Struct, frozen=True, kw_only=True):
    """What was seen of a habit in one session."""

    level: int
    """From 1 to 5, as the habit's scale says."""
    value: float
    """The number behind the level: a count, or a share from 0 to 1."""
    finding: str
    """What was seen, as the end of a sentence about the user."""
    sightings: tuple[Sighting, ...] = ()
    """Where: words that stand in these turns."""


def _look(level: int, value: float, finding: str, *sightings: Sighting) -> Look:
    return Look(level=level, value=value, finding=finding, sightings=sightings[:3])


def _first_with(prompts: Sequence[Prompt], section: str) -> Prompt | None:
    return next((prompt for prompt in prompts if prompt.says(section)), None)


def names_the_place(talk: Conversation) -> Look:
    """See whether the first prompt names files, symbols or links."""
    first = talk.first
    if not first.anchors:
        later = next((prompt for prompt in talk.later if prompt.anchors), None)
        if later is None:
            return _look(1, 0, "names no file, symbol or link in any prompt", first.sighting())
        finding = f"names nothing in the code before turn {later.turn}"
        return _look(2, 0, finding, first.sighting(), later.sighting_of(_anchor(later)))
    at = first.sighting_of(_anchor(first))
    exact = bool(first.paths) and (bool(first.symbols) or first.names_a_line)
    if exact:
        place = first.symbols[0] if first.symbols else "a line"
        return _look(5, first.anchors, f"names {first.paths[0]} and, in it, {place}", at)
    names = "one place" if first.anchors == 1 else f"{first.anchors} places"
    level = 3 if first.anchors == 1 else 4
    return _look(level, first.anchors, f"names {names}, {_anchor(first)} first", at)


def _anchor(prompt: Prompt) -> str:
    return (*prompt.paths, *prompt.symbols, *prompt.links)[0]


def states_the_result(talk: Conversation) -> Look:
    """See whether the first prompt says what must be true in the end."""
    first = talk.first
    stated = first.count("expectations")
    if not stated:
        later = _first_with(talk.later, "expectations")
        if later is None:
            return _look(1, 0, "never says what the result must be", first.sighting())
        finding = f"first says in turn {later.turn} what the result must be"
        return _look(2, 0, finding, later.sighting("expectations"))
    at = first.sighting("expectations")
    if stated > 1 and (first.says("proofs") or first.has_code or first.says("examples")):
        finding = "says what the result must be and how that is to be seen"
        return _look(5, stated, finding, at, first.sighting("proofs"))
    finding = "says what the result must be" + (" in one sentence" if stated == 1 else "")
    return _look(3 if stated == 1 else 4, stated, finding, at)


def sets_limits(talk: Conversation) -> Look:
    """See whether the first prompt says what must not change or be done."""
    first = talk.first
    limits = first.count("limits")
    if limits:
        finding = f"sets {'one limit' if limits == 1 else f'{limits} limits'} in the first prompt"
        return _look(4 if limits == 1 else 5, limits, finding, first.sighting("limits"))
    later = _first_with(talk.later, "limits")
    if talk.corrections:
        stop = talk.corrections[0]
        finding = f"sets no limit at first and takes something back in turn {stop.turn}"
        return _look(1, 0, finding, stop.prompt.sighting())
    if later is not None:
        finding = f"sets the first limit in turn {later.turn}"
        return _look(3, 0, finding, later.sighting("limits"))
    return _look(2, 0, "sets no limit", first.sighting())


def shows_the_failure(talk: Conversation) -> Look | None:
    """See whether a failure that the person reports is shown as it appeared."""
    reports = [p for p in talk.prompts if p.says("failures") and not _is_plan(p)]
    if not reports:
        return None
    told = reports[0]
    exact = told.find("exact_failures", told.looked_at) or told.has_code
    if exact:
        how = told.says("reproductions") or told.find("reproductions", told.looked_at)
        finding = "gives the exact failure" + (" and what led to it" if how else "")
        return _look(5 if how else 4, 1, finding, told.sighting("failures"))
    if any(p.find("exact_failures", p.looked_at) or p.has_code for p in reports[1:]):
        finding = "reports a failure and gives its exact words only later"
        return _look(2, 0, finding, told.sighting("failures"))
    if told.says("reproductions") or len(told.words) >= 12:
        finding = "describes the failure in words, without its message or test"
        return _look(3, 0, finding, told.sighting("failures"))
    finding = "says that something fails and not what was seen"
    return _look(1, 0, finding, told.sighting("failures"))


def _is_plan(prompt: Prompt) -> bool:
    return prompt.says("plans") and prompt.listed >= 3


def asks_for_proof(talk: Conversation) -> Look:
    """See whether the person asks that the work be checked, and how."""
    asking = _first_with(talk.prompts, "proofs")
    if asking is None:
        return _look(1, 0, "never asks for a check or a test", talk.first.sighting())
    at = asking.sighting("proofs")
    tests = any("test" in word or "lint" in word or "spec" in word for word in asking.words)
    if asking is not talk.first:
        finding = f"asks for {'tests' if tests else 'a check'} in turn {asking.turn}, not at first"
        return _look(3 if tests else 2, 1, finding, at)
    exact = tests and any(
        "test" in name.casefold() or "spec" in name.casefold() or " " in name
        for name in (*asking.paths, *asking.symbols)
    )
    if exact:
        return _look(5, 1, "asks at once for a check and names the test or command", at)
    finding = "asks at once for tests" if tests else "asks at once for a check"
    return _look(4 if tests else 3, 1, finding, at)


def gives_examples(talk: Conversation) -> Look:
    """See whether the person shows what is meant."""
    first = talk.first
    shown = first.says("examples") or first.has_code
    like = first.says("models")
    if shown and first.says("expectations"):
        finding = "shows an example and what must come of it"
        return _look(5, 2, finding, first.sighting("examples"))
    if shown:
        return _look(4, 1, "shows an example in the first prompt", first.sighting("examples"))
    if like:
        finding = "points to something that the work should be like"
        return _look(3, 1, finding, first.sighting("models"))
    later = next((p for p in talk.later if p.says("examples") or p.has_code), None)
    if later is not None:
        finding = f"shows the first example in turn {later.turn}"
        return _look(2, 0, finding, later.sighting("examples"))
    return _look(1, 0, "shows no example", first.sighting())


def plans_first(talk: Conversation) -> Look:
    """See whether the work starts from a plan."""
    first = talk.first
    if first.listed >= 3 or first.says("plans"):
        exact = first.listed >= 3 or first.anchors >= 3
        finding = "starts from " + ("ordered steps" if exact else "a plan that is referred to")
        return _look(5 if exact else 4, max(first.listed, 1), finding, first.sighting("plans"))
    if first.says("plan_requests"):
        finding = "asks for a plan or an opinion before the work"
        return _look(4, 1, finding, first.sighting("plan_requests"))
    later = _first_with(talk.later, "plan_requests") or _first_with(talk.later, "plans")
    if later is not None:
        level = 3 if later is talk.later[0] else 2
        section = "plan_requests" if later.says("plan_requests") else "plans"
        return _look(level, 0, f"comes to a plan in turn {later.turn}", later.sighting(section))
    return _look(1, 0, "neither gives nor asks for a plan", first.sighting())


def explains_why(talk: Conversation) -> Look:
    """See whether the reason and the present state are told."""
    first = talk.first
    reason, state = first.says("reasons"), first.says("states")
    if reason and state:
        finding = "tells the reason and how things are now"
        return _look(5, 2, finding, first.sighting("reasons"), first.sighting("states"))
    if reason:
        return _look(4, 1, "tells the reason", first.sighting("reasons"))
    if state:
        return _look(3, 1, "tells how things are now, not why", first.sighting("states"))
    later = _first_with(talk.later, "reasons")
    if later is not None:
        finding = f"tells the first reason in turn {later.turn}"
        return _look(2, 0, finding, later.sighting("reasons"))
    return _look(1, 0, "tells no reason", first.sighting())


def says_it_up_front(talk: Conversation) -> Look:
    """See how much is asked for only after the first prompt."""
    extra = [p for p in talk.later if is_ask(p) and p.says("extras")]
    count = len(extra)
    if not count:
        return _look(5, 0, "adds no requirement after the first prompt", talk.first.sighting())
    finding = f"adds requirements in {_turns(extra)}"
    return _look(max(1, 5 - count), count, finding, *(p.sighting("extras") for p in extra))


def stays_on_topic(talk: Conversation) -> Look | None:
    """See whether later prompts go on with the work of the first."""
    asks = [p for p in talk.later if is_ask(p) and len(content_words(p.own)) >= 4]
    if not asks:
        return None
    known = set(content_words(talk.first.looked_at))
    strangers: list[Prompt] = []
    for turn, prompt in zip(talk.turns, talk.prompts, strict=True):
        words = content_words(prompt.own)
        if prompt in asks and not words & known and not prompt.says("extras"):
            strangers.append(prompt)
        known |= words
        for message in turn.messages:
            known |= content_words(message.text)
            for call in message.calls:
                known |= content_words((call.path or "").replace("/", " ").replace("_", " "))
    count = len(strangers)
    if not count:
        return _look(5, 0, "keeps to one topic", asks[-1].sighting())
    share = count / len(asks)
    level = 4 if count == 1 and share <= 0.25 else 3 if count == 1 else 2 if share <= 0.5 else 1
    finding = f"turns to something else in {_turns(strangers)}"
    return _look(level, count, finding, *(p.sighting() for p in strangers))


def needs_no_corrections(talk: Conversation) -> Look:
    """See how often the person has to put the agent right."""
    count = len(talk.corrections)
    if not count:
        return _look(5, 0, "never has to put the agent right", talk.first.sighting())
    share = count / max(len(talk.later), count)
    level = 4 if share <= 0.2 else 3 if share <= 0.34 else 2 if share <= 0.5 else 1
    finding = f"puts the agent right {_times(count)} in {len(talk.prompts)} prompts"
    return _look(level, share, finding, *(stop.prompt.sighting() for stop in talk.corrections))


def says_what_instead(talk: Conversation) -> Look | None:
    """See what the person says where they stop or correct the agent."""
    stops = _with_words_after(talk)
    if not stops:
        return None
    levels = sorted(_stop_level(prompt) for _, prompt in stops)
    level = levels[len(levels) // 2] if len(levels) % 2 else levels[len(levels) // 2 - 1]
    finding = {
        1: "stops the agent without a word",
        2: "says that something is wrong and no more",
        3: "says what is wrong",
        4: "says what is wanted instead",
        5: "says what is wrong, what is wanted instead, and where or why",
    }[level]
    seen = [prompt.sighting() for _, prompt in stops if prompt is not None]
    often = "the one time" if len(stops) == 1 else f"typically, of {len(stops)} times"
    return _look(level, len(stops), f"{finding} ({often})", *seen)


def _with_words_after(talk: Conversation) -> list[tuple[Stop, Prompt | None]]:
    """Pair each stop with its words: its own, else those of the prompt that follows it."""
    pairs: list[tuple[Stop, Prompt | None]] = []
    for stop in talk.stops:
        said: Prompt | None = stop.prompt if stop.words.strip() else None
        if said is None:
            said = next((p for p in talk.prompts if p.turn == stop.turn + 1), None)
        pairs.append((stop, said))
    return pairs


def _stop_level(prompt: Prompt | None) -> int:
    if prompt is None:
        return 1
    if len(prompt.words) < 4 and not prompt.anchors:
        return 2
    if not prompt.says("instead"):
        return 3
    return 5 if prompt.anchors or prompt.says("reasons") else 4


def lets_it_finish(talk: Conversation) -> Look:
    """See how often the person interrupts the agent."""
    count = talk.interruptions
    if not count:
        return _look(5, 0, "never interrupts the agent", talk.first.sighting())
    prompts = len(talk.prompts)
    level = 4 if count == 1 and prompts >= 5 else 3 if count == 1 else 2 if count == 2 else 1
    turns = [s.turn for s in talk.stops if s.kind == "interruption"]
    seen = [p.sighting() for p in talk.prompts if p.turn in turns]
    finding = f"interrupts the agent {_times(count)} in {prompts} prompts"
    return _look(level, count / prompts, finding, *seen)


def answers_questions(talk: Conversation) -> Look | None:
    """See how the person answers what the agent asks."""
    levels = [(_answer_level(reply), reply.sighting()) for _, reply in talk.asked]
    levels += [(4, answer) for answer in talk.answers]
    if not levels:
        return None
    mean = sum(level for level, _ in levels) / len(levels)
    worst = min(levels, key=lambda pair: pair[0])
    best = max(levels, key=lambda pair: pair[0])
    seen = (best[1],) if best[1] == worst[1] else (best[1], worst[1])
    finding = f"answers {len(levels)} of the agent's questions, at {mean:.1f} of 5 on average"
    return _look(round(mean), mean, finding, *seen)


def _answer_level(reply: Prompt) -> int:
    if reply.says("evasions"):
        return 1
    if reply.says("nudges"):
        return 2
    if len(reply.words) < 3 and not reply.anchors:
        return 3
    return 5 if reply.anchors or reply.says("reasons") or len(reply.words) >= 8 else 4


def avoids_vague_asks(talk: Conversation) -> Look:
    """See how many prompts leave the agent to guess what is meant."""
    vague = [p for p in talk.prompts if p.says("vague") or (p is talk.first and _says_little(p))]
    if not vague:
        return _look(5, 0, "makes no vague request", talk.first.sighting())
    share = len(vague) / len(talk.prompts)
    finding = f"leaves the agent to guess in {_turns(vague)}"
    level = 4 if share <= 0.15 else 3 if share <= 0.3 else 2 if share <= 0.5 else 1
    if vague[0] is talk.first:
        level = min(level, 2)
    return _look(level, share, finding, *(p.sighting() for p in vague))


def _says_little(prompt: Prompt) -> bool:
    return len(prompt.words) < 5 and not prompt.anchors


def fits_the_first_prompt(talk: Conversation) -> Look:
    """See whether the first prompt is neither a stub nor a flood."""
    words = len(talk.first.words)
    bands = ((5, 25, 250), (4, 14, 450), (3, 9, 900), (2, 5, 1800))
    level = next((level for level, least, most in bands if least <= words <= most), 1)
    finding = f"opens with {words} words of their own"
    return _look(level, words, finding, talk.first.sighting())


def needs_few_prompts(talk: Conversation) -> Look:
    """See how many prompts the session takes."""
    count = len(talk.prompts)
    level = 5 if count <= 2 else 4 if count <= 4 else 3 if count <= 7 else 2 if count <= 12 else 1
    return _look(
        level, count, f"uses {count} prompt{'s' * (count != 1)}", talk.prompts[-1].sighting()
    )


def closes_the_loop(talk: Conversation) -> Look | None:
    """See how the person ends a session of several prompts."""
    if len(talk.prompts) < 2:
        return None
    last = talk.prompts[-1]
    stopped = any(s.turn == last.turn for s in talk.stops)
    if stopped:
        return _look(1, 0, "leaves after a correction or an interruption", last.sighting())
    accepted = len(last.words) < 40 and (last.says("verified") or last.says("acceptances"))
    if accepted and (last.says("wrap_ups") or last.anchors or len(last.words) > 6):
        return _look(5, 1, "says that the result holds and what comes of it", last.sighting())
    if accepted:
        return _look(4, 1, "says that the result holds", last.sighting())
    if last.says("wrap_ups"):
        return _look(3, 1, "has the work committed or shipped", last.sighting("wrap_ups"))
    return _look(2, 0, "leaves without a word on the result", last.sighting())


def _turns(prompts: Sequence[Prompt]) -> str:
    numbers = [str(prompt.turn) for prompt in prompts]
    if len(numbers) == 1:
        return f"turn {numbers[0]}"
    shown = ", ".join(numbers[:6]) + (" …" if len(numbers) > 6 else "")
    return f"turns {shown}"


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"
