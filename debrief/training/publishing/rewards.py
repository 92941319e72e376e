"""The export form of a task, the work done on it, and a reward.

Kinds are never mixed in one file: a model that is rewarded by several learns where its data is
from. A session on which nobody gave a verdict has no reward.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args

from debrief.training.model import SampleMetadata, Split
from debrief.training.publishing.form import Form, RewardKind, StoredLine, template_messages
from debrief.training.publishing.labels import correction, is_complete
from debrief.training.publishing.rows import (
    Messages,
    is_answer,
    up_to_the_last_answer,
    without_ends,
)

REWARD_KINDS: tuple[RewardKind, ...] = get_args(RewardKind)
_WHERE_FROM: dict[RewardKind, str] = {
    "verdict": "a person, an outcome or an LLM review gives one",
    "outcome": "debrief outcomes says what became of the work",
    "execution": "debrief execute runs the checks of sessions again",
    "quality": "an LLM review gives one",
}
"""Where a kind of reward comes from, which is what to do when no line has one."""


def _rl(line: StoredLine) -> Iterator[dict[str, Any]]:
    """Yield a session as a task, what was done on it, and how good that was."""
    about = line.about
    if about.windows > 1:
        return
    messages = without_ends(line.messages)
    start = 1 + next(place for place, message in enumerate(messages) if message.role == "user")
    trajectory = up_to_the_last_answer(messages[start:])
    yield {
        "id": about.session_id,
        "prompt": [
            {"role": message.role, "content": message.content} for message in messages[:start]
        ],
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
        "reward": reward_of(about, line.reward),
        "reward_kind": line.reward,
        "reward_basis": about.verdict_basis,
        "corrected": list(_corrected(trajectory)),
    }


def reward_of(about: SampleMetadata, kind: RewardKind) -> float | None:
    """Return the reward of a kind, 0 to 1, that a session has; None where it has none.

    A verdict is 1 where the session is complete and 0 where it is partial or failed. An outcome is
    1 or 0, whoever says it; ``execution`` is one of checks that were run again.
    """
    if kind == "verdict":
        known = is_complete(about)
        return None if known is None else float(known)
    for score in about.scores:
        match score.kind, kind:
            case ("outcome", "outcome"):
                return score.value
            case ("outcome", "execution") if score.category == "execution":
                return score.value
            case ("overall", "quality"):
                return score.value
    return None


def _corrected(trajectory: Messages) -> Iterator[bool]:
    """Yield of each answer of a trajectory whether the person's next words correct it."""
    for place, message in enumerate(trajectory, 1):
        if is_answer(message):
            after = trajectory[place] if place < len(trajectory) else None
            asked = after is not None and after.role == "user"
            yield asked and correction(trajectory, place) is not None


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
        "reward_kind": "string",
        "reward_basis": "string",
        "corrected": ["bool"],
    },
    note=(
        "A task and what was done on it. `environment` says where it began, how that is known, and "
        "which command checked it last, empty where not known; `ground_truth` is that command too. "
        "`reward` is of the one kind that `reward_kind` names, from 0 to 1, and null where the "
        "session has none: `verdict`, 1 where it is complete and 0 where it is partial or failed; "
        "`outcome`, 1 or 0, by what became of the work or by a person's label; `execution`, 1 or "
        "0, by checks that were run again; `quality`, the overall quality of its LLM review. "
        "`reward_basis` says who gave the verdict: `person`, `outcome` or `review`. `corrected` "
        "says of each assistant message of `trajectory` whether the person's next words correct "
        "it. Sessions in windows are left out, as their parts have no reward of their own."
    ),
    convert=_rl,
    of_rewards=True,
)


class RewardCounts:
    """The rewards of an export, counted as its lines go by.

    Args:
        kind: of all of them.
    """

    def __init__(self, kind: RewardKind) -> None:
        self.kind = kind
        self.lines = self.known = 0

    def counted(
        self, lines: Iterable[tuple[Split, dict[str, Any]]]
    ) -> Iterator[tuple[Split, dict[str, Any]]]:
        """Yield lines with rewards, and their sides, as they are."""
        for side, line in lines:
            self.lines += 1
            self.known += line["reward"] is not None
            yield side, line

    def warnings(self) -> Iterator[str]:
        """Yield what to know before training."""
        if self.lines and not self.known:
            yield f"no line has a reward by {self.kind}: {_WHERE_FROM[self.kind]}"
