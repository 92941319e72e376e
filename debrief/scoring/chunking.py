"""Traces and chunks: a session of any length in parts that each fit one scoring call.

A trace is a turn with all its work. Every observation's text carries its own label and line end,
so a trace's text and tokens are those of its observations added up. What comes out of the session
is made safe before tokens are counted: look-alikes of our labels are marked and invisible
characters shown, both of which make text longer.

Whatever the input:

1. no chunk exceeds the target: a trace over it is split between its observations, an observation
   over it within its text;
2. the chunks' own traces, joined, are the session;
3. consecutive chunks share up to ``overlap`` traces, fewer when that many would take more than a
   quarter of the target, or leave no room for what comes next;
4. a small final chunk is merged into the one before if the traces of both still fit, which may
   cost that chunk a part of its overlap; else it takes traces from it until it is small no more,
   as the end of a session decides whether its task was done;
5. one pass, linear in the session: a text is counted once, one that is split a few times more.

Tokens are those of the observations' texts; the prompt around them is not counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from msgspec import structs

from debrief.errors import InputError
from debrief.models.fencing import defuse, finish
from debrief.scoring.model import Chunk, Observation, Trace
from debrief.sessions.model import Message, Session, Subagent, ToolCall, Turn
from debrief.tokens import count_tokens

RESULT_HEAD = 1_500
RESULT_TAIL = 2_500
"""Characters of a result that are kept. The 500 of a session's rendering lose the end of a test
run, where it says what failed; the middle of a long listing says nothing about the work."""

CONTEXT_SHOWN, CONTEXT_OF_PROGRAM = 1_500, 200
"""Characters of a text in the model's request that no person wrote: what a command, a task or a
hook said bears on the work, and the program's lists and reminders hardly do."""
SUBAGENT_BUDGET = 24_000
"""Characters of one subagent's work that are shown, about 6,000 tokens: it is scored with the
turn that asked for it and must not crowd out the turn's own work. As many are shown to every
chunk of what the person said."""


def traces_of(session: Session) -> list[Trace]:
    """Return the session's traces in order, the preamble included when there is one.

    A subagent's work follows the call that started it. What started it is known by its id or its
    prompt in the call, else by the time; otherwise it follows the last turn's work.
    Where only subagents' work is left of a session, that is the one trace, with number 0.
    """
    if not session.turns and session.subagents:
        work = [part for subagent in session.subagents for part in _subagent(subagent)]
        return [Trace(number=0, observations=tuple(work))]
    started_by, by_turn = _places(session)
    return [
        Trace(
            number=turn.number,
            observations=tuple(_observations(turn, started_by, by_turn.get(index, ()))),
        )
        for index, turn in enumerate(session.turns)
    ]


def trace_text(trace: Trace) -> str:
    """Return a trace as text; each observation starts on a line of its own."""
    return "".join(
        part.text if part.text.endswith("\n") or not part.text else f"{part.text}\n"
        for part in trace.observations
    )


def task_context(session: Session) -> str:
    """Return the first human message; empty when the session has none."""
    return next((turn.prompt for turn in session.turns if turn.number > 0), "")


def words_of_person(session: Session) -> str:
    """Return what the person said in all turns: what was asked for, and how content they were."""
    said = [
        _labelled(kind, f"[USER] {kind}", text)
        for turn in session.turns
        for kind, text in (
            ("prompt", turn.prompt),
            *((each.kind, each.text or "(in silence)") for each in turn.interventions),
        )
        if text
    ]
    return "".join(part.text for part in _within_budget(said))


def shortened(text: str, head: int, tail: int) -> str:
    """Return ``text`` with its middle left out, and how much of it, when it is too long."""
    left_out = len(text) - head - tail
    if left_out <= 0:
        return text
    end = text[len(text) - tail :] if tail else ""
    return f"{text[:head]}\n... ({left_out} characters left out)\n{end}"


def _observations(
    turn: Turn, started_by: dict[int, list[Subagent]], loose: Sequence[Subagent]
) -> Iterator[Observation]:
    yield Observation("turn", _headline(turn))
    if turn.prompt or turn.images:
        pictures = f"\n({turn.images} pictures attached)" if turn.images else ""
        yield _labelled("prompt", "[USER]", f"{turn.prompt}{pictures}")
    for message in turn.messages:
        yield from _message(message, started_by)
    for intervention in turn.interventions:
        yield _labelled("intervention", f"[USER] {intervention.kind}", intervention.text)
    for subagent in loose:
        yield from _subagent(subagent)


def _headline(turn: Turn) -> str:
    name = f"Turn {turn.number}" if turn.number else "Before the first prompt"
    compacted = " (the conversation was compacted)" if turn.compacted else ""
    return f"--- {name}{compacted} ---\n"


def _message(message: Message, started_by: dict[int, list[Subagent]]) -> Iterator[Observation]:
    for given in message.context:
        most = CONTEXT_OF_PROGRAM if given.said_by == "program" else CONTEXT_SHOWN
        yield _labelled("context", f"[CONTEXT] {given.said_by}", shortened(given.text, most, 0))
    if message.text.strip():
        yield _labelled("message", "[ASSISTANT]", message.text)
    for call in message.calls:
        yield from _call(call)
        for subagent in started_by.get(id(call), ()):
            yield from _subagent(subagent)


def _call(call: ToolCall) -> Iterator[Observation]:
    yield _labelled("call", f"[TOOL_CALLS] {call.name}", call.input)
    if call.result is None:
        yield _labelled("result", "[TOOL_RESULTS] none", "")
        return
    code = "" if call.exit_code is None else f", exit code {call.exit_code}"
    growth = f", +{call.added} -{call.removed} lines" if call.added or call.removed else ""
    label = f"[TOOL_RESULTS] {call.status}{code}{growth}"
    yield _labelled("result", label, shortened(call.result, RESULT_HEAD, RESULT_TAIL))


def _subagent(subagent: Subagent) -> Iterator[Observation]:
    name = " ".join(filter(None, (subagent.type, subagent.description))) or subagent.id
    yield _labelled("subagent", f"[SUBAGENTS] {name}", shortened(subagent.prompt, 2_000, 0))
    shown = [part for message in subagent.messages for part in _message(message, {})]
    for part in _within_budget(shown):
        yield Observation("subagent", f"[SUBAGENTS] {part.text}")
    yield Observation("subagent", "[SUBAGENTS] end\n")


def _within_budget(parts: Sequence[Observation]) -> Iterator[Observation]:
    """Yield the first and the last observations, half of the budget each."""
    half = SUBAGENT_BUDGET // 2
    trimmed = [Observation(p.kind, shortened(p.text, half // 3, half // 3)) for p in parts]
    first = _fitting(trimmed, half)
    last = _fitting(reversed(trimmed[first:]), half)
    yield from trimmed[:first]
    left_out = len(trimmed) - first - last
    if left_out:
        yield Observation("subagent", f"({left_out} observations left out)\n")
    yield from trimmed[len(trimmed) - last :]


def _fitting(parts: Iterable[Observation], budget: int) -> int:
    sizes = accumulate(len(part.text) for part in parts)
    return sum(size <= budget for size in sizes)


def _labelled(kind: str, label: str, text: str) -> Observation:
    head = finish(" ".join(label.split()))
    body = defuse(text.strip("\n"))
    return Observation(kind, f"{head}\n{body}\n" if body else f"{head}\n")


def _places(session: Session) -> tuple[dict[int, list[Subagent]], dict[int, list[Subagent]]]:
    """Return the subagents by the identity of their call, and the others by index of turn."""
    by_call: dict[int, list[Subagent]] = {}
    by_turn: dict[int, list[Subagent]] = {}
    if not session.subagents or not session.turns:
        return by_call, by_turn
    calls = [call for turn in session.turns for message in turn.messages for call in message.calls]
    ids = {call.id: call for call in calls}
    prompts: dict[str, list[ToolCall]] = {}
    for call in calls:
        if prompt := _prompt_of(call):
            prompts.setdefault(prompt, []).append(call)
    for subagent in session.subagents:
        same_prompt = prompts.get(subagent.prompt.strip(), [])
        found = ids.get(subagent.call_id) or ids.get(subagent.id)
        if found is None and same_prompt:
            found = same_prompt.pop(0)
        if found is None:
            found = next((call for call in calls if _names(call, subagent.id)), None)
        if found is not None:
            by_call.setdefault(id(found), []).append(subagent)
        else:
            by_turn.setdefault(_turn_at(session, subagent), []).append(subagent)
    return by_call, by_turn


def _prompt_of(call: ToolCall) -> str:
    if '"prompt"' not in call.input:
        return ""
    try:
        given = json.loads(call.input)
    except (ValueError, RecursionError):
        return ""
    prompt = given.get("prompt") if isinstance(given, dict) else None
    return prompt.strip() if isinstance(prompt, str) else ""


def _names(call: ToolCall, subagent_id: str) -> bool:
    return len(subagent_id) >= 6 and (
        subagent_id in call.input or subagent_id in (call.result or "")
    )


def _turn_at(session: Session, subagent: Subagent) -> int:
    began = next((message.at for message in subagent.messages if message.at), None)
    latest = [
        index
        for index, turn in enumerate(session.turns)
        if began is not None and (turn.at is None or turn.at <= began)
    ]
    return latest[-1] if latest else len(session.turns) - 1


TARGET = 70_000
OVERLAP = 4
MIN_CHUNK_RATIO = 0.5

Count = Callable[[str], int]
Measured = tuple[Trace, int]
_Range = tuple[int, int, int]
"""The first overlapped, the first own, and the end of a chunk, as indices of pieces."""

_SURELY_OVER = 8
"""Characters that a token of ordinary text never has on average."""
_GOOD_ENDS = tuple(map(re.compile, (r"\n(?=[^\s/])", r"[^\W_](?=\s)", r"[,;.)}\]](?=\w)")))
"""The end of a line, of a word, of a clause."""


def chunk_by_tokens(
    traces: Iterable[Trace],
    target: int = TARGET,
    overlap: int = OVERLAP,
    min_chunk_ratio: float = MIN_CHUNK_RATIO,
    count: Count = count_tokens,
) -> list[Chunk]:
    """Return the chunks of a session; none for a session without traces.

    Args:
        traces: the session, in order.
        target: the most tokens that a chunk may have, overlap included; at least 1.
        overlap: the most traces that a chunk repeats from the end of the one before.
        min_chunk_ratio: a final chunk whose own tokens are under this part of the target is
            merged into the one before when that fits, and takes traces from it otherwise.
        count: the tokens of a text.

    Raises:
        InputError: the target or the overlap is not usable, or a single character exceeds the
            target.
    """
    if target < 1 or overlap < 0:
        raise InputError("chunking", f"target {target} and overlap {overlap} cannot be used")
    pieces = [piece for trace in traces for piece in _pieces(trace, target, overlap, count)]
    if not pieces:
        return []
    ranges = _packed(pieces, target, overlap, min_chunk_ratio)
    return [_chunk(index, len(ranges), part, pieces) for index, part in enumerate(ranges)]


def _packed(
    pieces: Sequence[Measured], target: int, overlap: int, min_chunk_ratio: float
) -> list[_Range]:
    ranges: list[_Range] = []
    lead = own = held = 0
    for index, (_, tokens) in enumerate(pieces):
        if held + tokens > target and index > own:
            ranges.append((lead, own, index))
            room = min(target // 4, target - tokens)
            lead, own = _lead(pieces, lead, index, overlap, room), index
            held = sum(size for _, size in pieces[lead:index])
        held += tokens
    small = sum(size for _, size in pieces[own:]) < min_chunk_ratio * target
    if ranges and small:
        lead_before, own_before, _ = ranges[-1]
        room = target - sum(size for _, size in pieces[own_before:])
        if room >= 0:
            most = own_before - lead_before
            ranges.pop()
            lead, own = _lead(pieces, lead_before, own_before, most, room), own_before
        else:
            own, held = _further_back(pieces, own_before, own, min_chunk_ratio * target, target)
            ranges[-1] = (lead_before, own_before, own)
            lead = _lead(pieces, lead_before, own, overlap, min(target // 4, target - held))
    return [*ranges, (lead, own, len(pieces))]


def _further_back(
    pieces: Sequence[Measured], floor: int, own: int, least: float, target: int
) -> tuple[int, int]:
    """Return where a final chunk begins that takes from the one before until it has ``least``
    tokens, and how many it has.
    """
    held = sum(size for _, size in pieces[own:])
    while held < least and own - 1 > floor and held + pieces[own - 1][1] <= target:
        own -= 1
        held += pieces[own][1]
    return own, held


def _lead(pieces: Sequence[Measured], floor: int, end: int, most: int, room: int) -> int:
    """Return where the longest run of at most ``most`` pieces begins that ends at ``end``."""
    lead = end
    while lead > floor and end - lead < most and pieces[lead - 1][1] <= room:
        lead -= 1
        room -= pieces[lead][1]
    return lead


def _chunk(index: int, count: int, ranges: _Range, pieces: Sequence[Measured]) -> Chunk:
    lead, own, end = ranges
    own_tokens = sum(size for _, size in pieces[own:end])
    return Chunk(
        index=index,
        count=count,
        overlap=tuple(trace for trace, _ in pieces[lead:own]),
        traces=tuple(trace for trace, _ in pieces[own:end]),
        tokens=own_tokens + sum(size for _, size in pieces[lead:own]),
        own_tokens=own_tokens,
    )


def _pieces(trace: Trace, target: int, overlap: int, count: Count) -> Iterator[Measured]:
    """Yield the trace, or its parts when it exceeds the target.

    The parts are so small that ``overlap`` of them fit into the quarter that an overlap may take,
    so a chunk that begins in the middle of a long trace has context too.
    """
    measured = [part for seen in trace.observations for part in _measured(seen, target, count)]
    total = sum(tokens for _, tokens in measured)
    if total <= target and len(measured) == len(trace.observations):
        yield trace, total
        return
    limit = target // (4 * max(1, overlap))
    part: list[Observation] = []
    held = 0
    continued = trace.continued
    for observation, tokens in measured:
        if part and held + tokens > limit:
            yield structs.replace(trace, observations=tuple(part), continued=continued), held
            part, held, continued = [], 0, True
        part.append(observation)
        held += tokens
    yield structs.replace(trace, observations=tuple(part), continued=continued), held


def _measured(observation: Observation, target: int, count: Count) -> list[tuple[Observation, int]]:
    """Return the observation with its tokens, or its parts when it exceeds the target."""
    total = count(observation.text)
    if total <= target:
        return [(observation, total)]
    parts = _cut(observation.text, max(1, target // 4), target, count)
    return [
        (Observation(observation.kind, text, observation.continued or place > 0), tokens)
        for place, (text, tokens) in enumerate(parts)
    ]


def _cut(text: str, limit: int, target: int, count: Count) -> Iterator[tuple[str, int]]:
    """Yield halves of halves of a text with their tokens, until each is within the limit.

    A text that is surely too long is not counted, so every character is counted a few times at
    most.
    """
    if len(text) <= _SURELY_OVER * limit or len(text) == 1:
        tokens = count(text)
        if len(text) == 1 and tokens > target:
            raise InputError("chunking", f"one character has {tokens} tokens, over {target}")
        if tokens <= limit or len(text) == 1:
            yield text, tokens
            return
    middle = _good_end(text)
    for half in (text[:middle], text[middle:]):
        yield from _cut(half, limit, target, count)


def _good_end(text: str) -> int:
    """Return the best place to cut in the quarter before the middle of a text, else its middle."""
    middle = len(text) // 2
    for good in _GOOD_ENDS:
        places = [match.end() for match in good.finditer(text, middle // 2, middle)]
        if places:
            return places[-1]
    return middle
