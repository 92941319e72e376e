"""Forms that say what was good and what was not, and what they need of an export's scores.

The verdict says it, which an outcome decides where there is one. A session of which nothing is
known is neither good nor bad. Scores of one scorer are comparable with one another and with nothing
else, and may all be low: the best and the worst sessions by them are labelled only when that is
asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from debrief.markdown import table
from debrief.offline.talk import correction_in
from debrief.scoring.verdict import SHORT_OF_DONE, SHOWN, VerdictName
from debrief.training.conversations import TURN_ENDED, is_trained_on
from debrief.training.formats import TOOLS
from debrief.training.model import ChatMessage, LineRow, SampleMetadata, ScoreEntry, Split
from debrief.training.publishing.form import (
    Form,
    Standing,
    StoredLine,
    template_messages,
    trained_messages,
)

Messages = Sequence[ChatMessage]

GOOD: Final[VerdictName] = "done_verified"
MIN_MARGIN = 0.1
"""Of overall quality, 0 to 1: less is within what one scorer varies by."""
_MAX_REASONS = 3


def pair_line(better: StoredLine, worse: StoredLine) -> dict[str, Any] | None:
    """Return two lines that begin with one request as one; None when both hold the same
    conversation, or one of them has no answer to the request that is trained on."""
    prompt, chosen = _first_request(better)
    _, rejected = _first_request(worse)
    if chosen == rejected or not chosen or not rejected:
        return None
    winner, loser = better.about, worse.about
    tools = {
        tool.function.name: tool for line in (worse, better) for tool in TOOLS.decode(line.tools)
    }
    return {
        "prompt": prompt,
        "chosen": chosen,
        "rejected": rejected,
        "tools": msgspec.json.encode([tools[name] for name in sorted(tools)]).decode(),
        "reasons": list(_reasons(winner, loser)),
        "chosen_session": winner.session_id,
        "rejected_session": loser.session_id,
    }


def _first_request(line: StoredLine) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a line's messages up to its first request, and those that follow; none follow where
    no answer to it is trained on."""
    end = 1 + next(place for place, one in enumerate(line.messages) if one.role == "user")
    kept = trained_messages(line.messages)
    is_kept = kept[:end] == line.messages[:end]
    prompt = template_messages(line.messages[:end])
    return prompt, template_messages(kept[end:]) if is_kept else []


def _reasons(better: SampleMetadata, worse: SampleMetadata) -> Iterator[str]:
    said = f"{SHOWN[better.verdict]}, against {SHOWN[worse.verdict]}"
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
        f"{word}: {' '.join(one.comment.split())}"
        for word, one in (("better", better), ("worse", worse))
        if one.comment.strip()
    )
    return f" ({comments})" if comments else ""


def _gap(entry: ScoreEntry, other: ScoreEntry) -> float:
    return (entry.weight or 1.0) * (entry.value - other.value)


PREFERENCE = Form(
    name="preference",
    reader="TRL's `RewardTrainer` and `DPOTrainer`",
    columns={
        "prompt": ["json"],
        "chosen": ["json"],
        "rejected": ["json"],
        "tools": "string",
        "reasons": ["string"],
        "chosen_session": "string",
        "rejected_session": "string",
    },
    note=(
        "Two sessions of one repository that began with the same words (whatever their white "
        "space), under one pair of fingerprints, on one side of the split: one that is done and "
        "checked, and one that is partly or not done. `prompt` is the better one's, messages are "
        "as in `trl`, `reasons` is what the verdicts and the scores say of it. The results of "
        "calls are in `chosen` and `rejected`: keep them out of DPO's loss."
    ),
    pair=pair_line,
)


def _kto(line: StoredLine) -> Iterator[dict[str, Any]]:
    """Yield the answers of a line that are known to be desirable or not."""
    messages, about = line.messages, line.about
    asked = [place for place, one in enumerate(messages) if one.role == "user"]
    for start, end in zip(asked, [*asked[1:], len(messages)], strict=True):
        label: bool | None = None
        source = reason = ""
        if end < len(messages):
            if correction := _correction(messages, end):
                label, source, reason = False, "correction", correction
        elif about.window == about.windows and is_trained_on(messages[start:]):
            label, source, reason = _ending(about, line.standing)
        answers = _without_stand_in(messages[start + 1 : end])
        if label is not None and answers:
            yield {
                "prompt": template_messages(messages[: start + 1]),
                "completion": template_messages(answers),
                "label": label,
                "label_source": source,
                "tools": bytes(line.tools).decode(),
                "reason": reason,
                "session_id": about.session_id,
            }


def _correction(messages: Messages, place: int) -> str | None:
    """Return the words of a prompt that correct the work before it, which then has weight 0."""
    if messages[place - 1].weight != 0:
        return None
    return correction_in(messages[place].content)


def _without_stand_in(answers: Messages) -> Messages:
    """Return answers without the text that stands for an end, and without results before it."""
    end = len(answers)
    if answers and answers[-1].weight == 0 and answers[-1].content == TURN_ENDED:
        end -= 1
    while end and answers[end - 1].role == "tool":
        end -= 1
    return answers[:end]


def _is_good(about: SampleMetadata) -> bool | None:
    """Return whether a session is done and checked; None where it neither is nor falls short."""
    return about.verdict == GOOD if about.verdict in {GOOD, *SHORT_OF_DONE} else None


def _source(about: SampleMetadata) -> str:
    return "outcome" if about.verdict_ground == "outcome" else "verdict"


def _ending(about: SampleMetadata, standing: Standing) -> tuple[bool | None, str, str]:
    """Return whether a session's end is desirable, by what, and why: by its verdict, else by where
    its overall quality stands, if that was asked for; None when neither says so."""
    is_good = _is_good(about)
    if is_good is not None:
        return is_good, _source(about), f"{SHOWN[about.verdict]}. {about.scores[0].comment}"
    if not standing:
        return None, "", ""
    reason = f"{about.quality or 0.0:.2f}, among the {standing} ones of this export"
    return standing == "high", "overall quality", reason


KTO = Form(
    name="kto",
    reader="TRL's `KTOTrainer`",
    columns={
        "prompt": ["json"],
        "completion": ["json"],
        "label": "bool",
        **dict.fromkeys(("label_source", "tools", "reason", "session_id"), "string"),
    },
    note=(
        "Answers that are desirable or not, unpaired, each with all that came before it. Not "
        "desirable is what the person's next words reject, undo or correct. The last answer of a "
        "session is desirable when the session is done and checked, and not when it is partly or "
        "not done; what became of it decides where that is known. Any other is left out, unless "
        "labels by overall quality were asked for: then it is desirable at the upper end of this "
        "export, and not at the lower one. `label_source` says which it was. The results of calls "
        "are in `completion`: keep them out of the loss."
    ),
    convert=_kto,
    of_labels=True,
)


def _rl(line: StoredLine) -> Iterator[dict[str, Any]]:
    """Yield a session as a task, what was done on it, and how good that was."""
    about = line.about
    if about.windows > 1:
        return
    end = 1 + next(place for place, one in enumerate(line.messages) if one.role == "user")
    prompt, trajectory = line.messages[:end], _without_stand_in(line.messages[end:])
    reward, source = _reward(about)
    yield {
        "id": about.session_id,
        "prompt": [{"role": one.role, "content": one.content} for one in prompt],
        "data_source": "debrief",
        "ability": "coding",
        "reward_model": {"style": "rule", "ground_truth": about.check_command},
        "environment": {
            "repository": about.repository,
            "base_commit": about.base_commit,
            "base_commit_origin": about.base_commit_origin,
            "licence": about.licence,
            "check": about.check_command,
        },
        "extra_info": {"session_id": about.session_id, "split": about.split},
        "tools": bytes(line.tools).decode(),
        "trajectory": template_messages(trajectory),
        "reward": reward,
        "reward_source": source,
        "step_rewards": _step_rewards(trajectory, reward),
    }


def _reward(about: SampleMetadata) -> tuple[float | None, str]:
    """Return 1 or 0 by a session's verdict, and by what that is; None where it says neither."""
    is_good = _is_good(about)
    return (None, "none") if is_good is None else (float(is_good), _source(about))


def _step_rewards(trajectory: Messages, reward: float | None) -> list[float | None]:
    """Return a reward for each assistant message of a trajectory: -1 for the last one before words
    that correct it, the session's reward for the last one, else 0."""
    rewards: list[float | None] = []
    for place, message in enumerate(trajectory):
        if message.role == "assistant":
            rewards.append(0.0)
        elif message.role == "user" and rewards and _correction(trajectory, place):
            rewards[-1] = -1.0
    if rewards:
        rewards[-1] = reward
    return rewards


RL = Form(
    name="rl",
    reader="verifiers (as tasks of a taskset) and verl (as Parquet)",
    columns={
        "id": "string",
        "prompt": [{"role": "string", "content": "string"}],
        "data_source": "string",
        "ability": "string",
        "reward_model": {"style": "string", "ground_truth": "string"},
        "environment": dict.fromkeys(
            ("repository", "base_commit", "base_commit_origin", "licence", "check"), "string"
        ),
        "extra_info": {"session_id": "string", "split": "string"},
        "tools": "string",
        "trajectory": ["json"],
        "reward": "float64",
        "reward_source": "string",
        "step_rewards": ["float64"],
    },
    note=(
        "A task and what was done on it. `environment` says where it began, how that is known, "
        "and which command checked it last, empty where not known; `ground_truth` is that command "
        "too. `reward` is 1 where the session is done and checked and 0 where it is partly or not "
        "done, by an outcome or else by the session itself, as `reward_source` says, and null "
        "where neither is known. `step_rewards` has one for each assistant message of "
        "`trajectory`: -1 where the person's next words correct it, `reward` at the last, else 0. "
        "Sessions in windows are left out, as their parts have no reward of their own."
    ),
    convert=_rl,
)


_WORDS = {True: "desirable", False: "undesirable"}


def standings(qualities: Mapping[str, float], share: float) -> dict[str, Standing]:
    """Return where sessions stand that are among the best or the worst of an export.

    There are fewer, or none, where the two ends are less than ``MIN_MARGIN`` apart.

    Args:
        qualities: overall qualities by session, of those that have one.
        share: of all sessions, at each end.
    """
    ranked = sorted(qualities, key=lambda name: (qualities[name], name))
    count = int(len(ranked) * share)
    while count and qualities[ranked[-count]] - qualities[ranked[count - 1]] < MIN_MARGIN:
        count -= 1
    ends: dict[str, Standing] = dict.fromkeys(ranked[:count], "low")
    return ends | dict.fromkeys(ranked[len(ranked) - count :], "high")


class LabelCounts:
    """The labels of an export, counted by what they are by, as its lines go by."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._counts: Counter[tuple[str, bool]] = Counter()

    def counted(
        self, lines: Iterable[tuple[Split, dict[str, Any]]]
    ) -> Iterator[tuple[Split, dict[str, Any]]]:
        """Yield labelled lines, with their sides, as they are."""
        for side, line in lines:
            self._counts[line["label_source"], line["label"]] += 1
            yield side, line

    def note(self) -> str:
        """Return the part of an export's page that says how many labels there are."""
        rows = [
            (source, *(str(self._counts[source, label]) for label in _WORDS))
            for source in sorted({source for source, _ in self._counts})
        ]
        by_quality = (
            f"\n\nBy overall quality the best and the worst {self._share:.0%} of the sessions that "
            "have one are labelled, where the verdict is neither done and checked nor short of it."
        )
        labels = table(("by", *_WORDS.values()), rows)
        return f"## Labels\n\n{labels}{by_quality * bool(self._share)}"

    def warnings(self) -> Iterator[str]:
        """Yield what to know before training."""
        found = {label for _, label in self._counts}
        if len(found) == 1:
            yield (
                f"all {self._counts.total()} labels are {_WORDS[found.pop()]}: there is nothing to "
                "tell apart"
            )


Pair: TypeAlias = tuple[LineRow, LineRow]
"""The better line and the worse one."""


def pairs_of(lines: Iterable[LineRow]) -> list[Pair]:
    """Return the pairs among lines of one side that began with the same words, in the order of the
    better one's line.

    The better one is done and checked, the worse one partly or not done. Each session is in at
    most one pair; what is not done is taken before what is partly done. Of a session in windows
    the first stands for it.
    """
    groups: dict[str, list[LineRow]] = {}
    for line in lines:
        groups.setdefault(line.opening, []).append(line)
    pairs = [pair for group in groups.values() for pair in _paired(group)]
    return sorted(pairs, key=lambda pair: pair[0].offset)


def _paired(lines: Iterable[LineRow]) -> Iterator[Pair]:
    ranked = sorted(lines, key=lambda line: (line.verdict != "not_done", line.offset))
    good = (line for line in ranked if line.verdict == GOOD)
    bad = (line for line in ranked if line.verdict in SHORT_OF_DONE)
    yield from zip(good, bad, strict=False)
