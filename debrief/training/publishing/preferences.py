"""The export form of preference pairs: two answers within a session, or two runs of one task.

A pair of one session is an answer that the person refused or corrected, and the one that they then
let pass. Both stand behind the same messages: all that came before, and what the person said to the
first of them. So the better one is the one that does what was asked for, and neither rests on work
that the other did. They are of one kind: calls of one tool, or words alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from debrief.reports import Markdown
from debrief.scoring.verdict import COMPLETE, INCOMPLETE, VERDICT_LABELS, WORST_FIRST
from debrief.sessions.readers.claude_code.content import words_of_refusal
from debrief.training.formats import MOST_TOOLS, TOOLS
from debrief.training.model import (
    ChatCall,
    ChatMessage,
    LineRow,
    NotTrainedReason,
    SampleMetadata,
    ScoreEntry,
    Split,
    ToolSchema,
)
from debrief.training.publishing.form import Form, StoredLine, template_messages
from debrief.training.publishing.rows import (
    Messages,
    is_trained,
    is_untrained,
    up_to_the_last_answer,
    without_ends,
)

PairKind = Literal["refused", "corrected", "rewound", "verdict"]
KINDS: dict[PairKind, str] = {
    "refused": "a call that the person refused, and the one that they accepted",
    "corrected": "an answer in words that the person corrected, and the one after",
    "rewound": "a turn that the person went back to before, and the one with its words that stayed",
    "verdict": "two runs of one task, one complete and one not",
}
_MAX_REASONS = 3
_PICTURE = re.compile(r"\[Image #\d|\(\d+ images?\)")
"""What was shown there is in no line, and the better answer may rest on it."""


def pairs_within(line: StoredLine) -> Iterator[dict[str, Any]]:
    """Yield the pairs that a line holds, in order."""
    messages = without_ends(line.messages)
    for place, message in enumerate(messages):
        why: NotTrainedReason | None = message.not_trained.reason if message.not_trained else None
        rest = messages[place + 1 :]
        if why == "refused":
            said, answer = _accepted(message, rest)
        elif why == "corrected" and not message.tool_calls and messages[place - 1].role == "user":
            said, answer = _next(rest)
            answer = None if answer and answer.tool_calls else answer
        else:
            continue
        if answer is not None and said.strip() and not _PICTURE.search(said):
            kind: PairKind = "refused" if why == "refused" else "corrected"
            yield pair_row(
                kind,
                (_asked(messages[:place], said), [answer], [message]),
                tools=bytes(line.tools).decode(),
                reasons=[" ".join(said.split())],
                sessions=(line.session_id, line.session_id),
            )


def _accepted(refused: ChatMessage, rest: Messages) -> tuple[str, ChatMessage | None]:
    """Return what the person said to a refused call, and the answer on it with a call of that tool
    that was accepted, if it is one.

    Of several calls at once some may have run, so there is no pair.
    """
    calls = refused.tool_calls or ()
    if len(calls) != 1 or not rest:
        return "", None
    said, answer = _next(rest[1:])
    others = (answer.tool_calls or ()) if answer else ()
    is_like = any(other.function.name == calls[0].function.name for other in others)
    is_same = any(_called(other) == _called(calls[0]) for other in others)
    return said or words_of_refusal(rest[0].content), answer if is_like and not is_same else None


def _called(call: ChatCall) -> tuple[str, str]:
    return call.function.name, call.function.arguments


def _next(rest: Messages) -> tuple[str, ChatMessage | None]:
    """Return what the person says at the beginning of messages, and the answer behind it, if it is
    trained on."""
    said, rest = (rest[0].content, rest[1:]) if rest and rest[0].role == "user" else ("", rest)
    return said, rest[0] if rest and is_trained(rest[0]) else None


def _asked(history: Messages, said: str) -> Messages:
    """Return a history with what the person said behind it, in one message with a request that
    nobody has answered yet."""
    if history[-1].role != "user":
        return [*history, ChatMessage(role="user", content=said)]
    return [*history[:-1], replace(history[-1], content=f"{history[-1].content}\n\n{said}")]


def pair_row(
    kind: PairKind,
    sides: tuple[Messages, Messages, Messages],
    *,
    tools: str,
    reasons: list[str],
    sessions: tuple[str, str],
) -> dict[str, Any]:
    """Return a pair as a line.

    Args:
        kind: of the pair.
        sides: its prompt, the better answers and the worse ones.
        tools: as JSON text.
        reasons: why the one is better.
        sessions: that the better and the worse answers are of.
    """
    prompt, chosen, rejected = map(template_messages, sides)
    return {
        "kind": kind,
        "prompt": prompt,
        "chosen": chosen,
        "rejected": rejected,
        "tools": tools,
        "reasons": reasons,
        "chosen_session": sessions[0],
        "rejected_session": sessions[1],
    }


def pair_line(better: StoredLine, worse: StoredLine) -> dict[str, Any] | None:
    """Return two lines that begin with one request as one.

    None when both hold the same conversation, when one of them is a window, as a verdict is of all
    of a session, when an answer of the better one is not trained on, or the worse one has none.
    """
    (prompt, chosen), (_, rejected) = map(_first_request, (better, worse))
    winner, loser = better.about, worse.about
    is_whole = winner.windows == loser.windows == 1
    is_clean = bool(chosen) and not any(map(is_untrained, chosen))
    alike = template_messages(chosen) == template_messages(rejected)
    if alike or not rejected or not is_whole or not is_clean:
        return None
    tools = {
        tool.function.name: tool for line in (worse, better) for tool in TOOLS.decode(line.tools)
    }
    return pair_row(
        "verdict",
        (prompt, chosen, rejected),
        tools=msgspec.json.encode(_fitting(tools, [*prompt, *chosen, *rejected])).decode(),
        reasons=list(_reasons(winner, loser)),
        sessions=(winner.session_id, loser.session_id),
    )


def _fitting(tools: Mapping[str, ToolSchema], messages: Iterable[ChatMessage]) -> list[ToolSchema]:
    """Return two lines' tools by name, without some that nobody called where all are more than a
    line may have.
    """
    calls = (call for message in messages for call in message.tool_calls or ())
    called = {call.function.name for call in calls}
    kept = sorted(tools, key=lambda name: (name not in called, name))[:MOST_TOOLS]
    return [tools[name] for name in sorted(kept)]


def _first_request(line: StoredLine) -> tuple[Messages, Messages]:
    """Return a line's messages up to its first request, and what follows up to the last answer."""
    messages = without_ends(line.messages)
    start = 1 + next(place for place, message in enumerate(messages) if message.role == "user")
    return messages[:start], up_to_the_last_answer(messages[start:])


def _reasons(better: SampleMetadata, worse: SampleMetadata) -> Iterator[str]:
    sides = (VERDICT_LABELS[side.verdict] for side in (better, worse) if side.verdict)
    said = ", against ".join(sides)
    yield said + _comments(better.scores[0], worse.scores[0])
    others = {(entry.kind, entry.name): entry for entry in worse.scores}
    differing = [
        (entry, other)
        for entry in better.scores
        if entry.kind in ("dimension", "judge")
        and (other := others.get((entry.kind, entry.name))) is not None
        and entry.value > other.value
    ]
    differing.sort(key=lambda pair: (-_gap(*pair), pair[0].kind, pair[0].name))
    for entry, other in differing[:_MAX_REASONS]:
        reason = f"{entry.kind} {entry.name} {entry.value:.2f} against {other.value:.2f}"
        yield reason + _comments(entry, other)


def _comments(better: ScoreEntry, worse: ScoreEntry) -> str:
    comments = "; ".join(
        f"{word}: {' '.join(score_entry.comment.split())}"
        for word, score_entry in (("better", better), ("worse", worse))
        if score_entry.comment.strip()
    )
    return f" ({comments})" if comments else ""


def _gap(entry: ScoreEntry, other: ScoreEntry) -> float:
    return (entry.weight or 1.0) * (entry.value - other.value)


PREFERENCE = Form(
    name="preference",
    reader="TRL's `RewardTrainer` and `DPOTrainer`",
    columns={
        "kind": "string",
        "prompt": ["json"],
        "chosen": ["json"],
        "rejected": ["json"],
        "tools": "string",
        "reasons": ["string"],
        "chosen_session": "string",
        "rejected_session": "string",
    },
    note=(
        "`kind` says what a pair is. `refused`: a call that the person refused, and the answer "
        "that came next, whose call of the same tool they accepted. `corrected`: an answer in "
        "words alone that the person corrected, and the one after. In both, `prompt` is all that "
        "came before, with what the person said to the first answer at its end, and `reasons` is "
        "what they said. `rewound`: what was said in a turn that the person went back to before, "
        "and in the one with the same words that stayed. `verdict`: two whole sessions of one "
        "repository that began with the same words (whatever their white space), under one pair of "
        "fingerprints, on one side of the split, one of them complete by its verdict, the other "
        "partial or failed; `reasons` is what the verdicts and the scores say of it, and the "
        "results of calls are in `chosen` and `rejected`: keep them out of DPO's loss. Messages "
        "are as in `trl`."
    ),
    convert=pairs_within,
    pair=pair_line,
)


class PairCounts:
    """The pairs of an export, counted by their kinds as its lines go by."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def counted(
        self, lines: Iterable[tuple[Split, dict[str, Any]]]
    ) -> Iterator[tuple[Split, dict[str, Any]]]:
        """Yield pairs, with their sides, as they are."""
        for side, line in lines:
            self._counts[line["kind"]] += 1
            yield side, line

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Return each kind, what it holds, and how many pairs of it there are."""
        return [
            (Markdown(f"`{kind}`"), what, str(self._counts[kind])) for kind, what in KINDS.items()
        ]

    def warnings(self) -> Iterator[str]:
        """Yield what to know before training."""
        if not self._counts:
            yield "there are no pairs: nobody refused or corrected anything, or what came of it is \
not known, and no task was completed once and not another time"


Pair: TypeAlias = tuple[LineRow, LineRow]
"""The better line and the worse one."""


def pairs_of(lines: Iterable[LineRow]) -> list[Pair]:
    """Return the pairs among lines of one side that began with the same words, in the order of the
    better one's line.

    The better one is complete, the worse one partial or failed. Each session is in at most one
    pair; what is verified and what failed are taken first. Of a session in windows the first
    stands for it.
    """
    groups: dict[str, list[LineRow]] = {}
    for line in lines:
        groups.setdefault(line.opening, []).append(line)
    pairs = [pair for group in groups.values() for pair in _paired(group)]
    return sorted(pairs, key=lambda pair: pair[0].offset)


def _paired(lines: Sequence[LineRow]) -> Iterator[Pair]:
    known = [line for line in lines if line.verdict in COMPLETE | INCOMPLETE]
    known.sort(key=lambda line: (WORST_FIRST.index(line.verdict or "undetermined"), line.offset))
    bad = [line for line in known if line.verdict in INCOMPLETE]
    verified = sorted(
        (line for line in known if line.verdict in COMPLETE),
        key=lambda line: (line.verdict != "complete_verified", line.offset),
    )
    yield from zip(verified, bad, strict=False)
