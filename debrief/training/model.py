"""What a training set is made of: the line, its metadata, and the file that holds the lines.

A line's columns must have one type on every line of every file, or a loader that reads the
types off the first file refuses the second. So nothing in a line is ever null, every list in the
metadata has at least one entry, and every number that can be a fraction is written as one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType
from pydantic import BaseModel, ConfigDict, Field

from debrief.markdown import counted
from debrief.scoring.verdict import NOT_REVIEWED, VerdictName
from debrief.snapshots.model import PromptSnapshot

Split = Literal["train", "eval"]
Status = Literal["draft", "ready"]
"""``ready``: something was changed, a validation command ran, and no redaction needs a look."""
Role = Literal["system", "user", "assistant", "tool"]
ScoreKind = Literal[
    "verdict", "outcome", "overall", "dimension", "efficiency", "judges", "judge", "rubric"
]
LineVerdict = Literal[VerdictName, ""]
"""Of a line's session; empty where nobody gave a verdict."""
Schema: TypeAlias = dict[str, object]
"""A JSON schema."""


class ChatFunction(Struct, frozen=True, gc=False):
    """The function of a call: its name, and its arguments as the JSON text of an object."""

    name: str
    arguments: str


class ChatCall(Struct, frozen=True, gc=False):
    """One call in an assistant message."""

    id: str
    type: Literal["function"]
    function: ChatFunction


NotTrainedReason = Literal[
    "unknown_request",
    "notice",
    "refused",
    "no_result",
    "unknown_arguments",
    "interrupted",
    "corrected",
    "inherited",
    "other_part",
    "stand_in",
]
_NOT_TRAINED: Mapping[NotTrainedReason, str] = {
    "unknown_request": "its request is not known",
    "notice": "it follows a notice that is in no line",
    "refused": "the person refused a call",
    "no_result": "a call has no result",
    "unknown_arguments": "the arguments of a call are not known",
    "interrupted": "the person interrupted it",
    "corrected": "the person corrected it",
    "inherited": "it is of the session that this one was forked from",
    "other_part": "whoever reviewed the session would train on other turns of it",
    "stand_in": "it stands for what was not recorded",
}


class NotTrained(Struct, frozen=True, kw_only=True):
    """Why an assistant message carries ``weight`` 0; of several reasons the first."""

    turn: int = 0
    """Of the session; 0 for a message of ours that stands for the end of one."""
    reason: NotTrainedReason
    sign: str = ""
    """What the person's words were taken by, of a correction."""

    @property
    def kind(self) -> str:
        """Return the reason in words, without its sign."""
        return _NOT_TRAINED[self.reason]

    @property
    def text(self) -> str:
        """Return the reason in words."""
        return f"{self.kind}: {self.sign}" if self.sign else self.kind


class ChatMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message in OpenAI's chat form; keys that do not belong to the role are left out."""

    role: Role
    content: str
    tool_calls: tuple[ChatCall, ...] | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    weight: Literal[0, 1] | UnsetType = UNSET
    """OpenAI's mark of an assistant message: 0 is not trained on."""
    reasoning_content: str = ""
    """What the model thought before it said this."""
    machine: tuple[tuple[int, int], ...] = ()
    """Where in the content of a user's message, or of a result, stands what the agent's program put
    there: first character and the one behind the last. Exports leave it out, too."""
    not_trained: NotTrained | None = None
    """Of weight 0: why. Exports leave it out, as trainers know no such key."""


class ToolParameters(Struct, frozen=True, kw_only=True):
    """A tool's arguments as a JSON schema, always with these three keys."""

    type: Literal["object"] = "object"
    properties: dict[str, Schema] = {}
    required: tuple[str, ...] = ()


class ToolFunction(Struct, frozen=True, kw_only=True):
    """What a tool is called, does and takes."""

    name: str
    description: str
    parameters: ToolParameters


class ToolSchema(Struct, frozen=True, kw_only=True):
    """One entry of a line's ``tools``."""

    type: Literal["function"] = "function"
    function: ToolFunction


class ScoreEntry(Struct, frozen=True, kw_only=True):
    """One score of the session, from whomever.

    Judges and dimensions run from 0 to 1, rubrics from 1 to 5, efficiencies from 0 without an end
    (``maximum`` is 0); an outcome is 0 or 1. A verdict is a category and no number: its ``value``
    and ``maximum`` are 0. ``kind`` says which it is, and they are never mixed in one number.
    """

    kind: ScoreKind
    name: str
    value: float
    minimum: float = 0.0
    maximum: float = 1.0
    weight: float = 0.0
    """Within its kind; 0 where the kind has no weights."""
    category: str = ""
    """The verdict's name, empty without one; a categorical dimension's; of an outcome, its
    source; else empty."""
    model: str = ""
    """Who gave the score; empty for what was computed."""
    comment: str = ""
    """Feedback, rationale or reasoning."""


class PromptText(Struct, frozen=True, gc=False):
    """A prompt that was in force: ``main``, or a subagent's."""

    name: str
    text: str


class SampleMetadata(Struct, frozen=True, kw_only=True):
    """The ``metadata`` of a line: the same keys with the same types everywhere."""

    session_id: str
    parent_session: str = ""
    """Of a subagent's line, the session that it worked for; empty for a person's own session."""
    session_digest: str
    source: str
    tool: str
    tool_version: str
    model: str
    task: str
    repository: str
    branch: str
    licence: str
    """The repository's, as an SPDX expression; empty when its files state none."""
    base_commit: str
    """The repository's commit that the work started from; empty when not known."""
    base_commit_origin: str
    """``recorder``, ``capture`` or ``transcript``, which name it; ``branch``: the last commit of
    the session's branch before it began; ``head``: that of the clone's own branch. Empty when not
    known."""
    check_command: str
    """The last shell command that tests, lints, checks types or builds, and, where there is such a
    one, does nothing with git beside; empty for none."""
    started: str
    """UTC, ISO 8601 with six digits of a second."""
    ended: str
    prompt_fingerprint: str
    prompt_digest: str
    prompt_origin: str
    """``recorded``, ``reconstructed`` or ``unknown``."""
    system_prompt: str
    """``recorded``: what the model was sent; ``rebuilt`` of the person's own prompts; ``none``."""
    tool_schemas: str
    """``recorded``: the tools that the model was sent; ``rebuilt`` from the calls; ``none``."""
    prompts: tuple[PromptText, ...]
    """``main`` first, its text empty when unknown; then the subagents by name."""
    eval_fingerprint: str
    eval_digest: str
    scoring_fingerprint: str
    """Of the reviewer, like the next; empty where no model reviewed it."""
    scoring_model: str
    reviewed: bool
    """A person, an outcome or an LLM review gave a verdict; else signals alone chose it."""
    verdict: LineVerdict
    verdict_basis: str
    """Who gave it: ``person``, ``outcome`` or ``review``; empty where nobody did."""
    scores: tuple[ScoreEntry, ...]
    """The verdict first, so never empty; ``overall_quality`` where there is one."""
    status: Status
    split: Split
    window: int
    """Which part of the session the line is, from 1."""
    windows: int
    """How many parts there are: more than 1 when the session was over the budget of tokens."""
    kind: str
    """Of work: ``code``, ``text``, ``settings``, ``operations``, ``answer`` or ``nothing``;
    ``unknown`` where no signals are known."""
    ending: str
    """How the session ends: ``answered``, ``open``, ``refused``, ``interrupted`` or ``limit``;
    empty where no signals are known."""
    turns: int
    """Of the whole session, like what follows."""
    calls: int
    subagents: int
    """Whose own messages are lines of their own: here are their answers, as results of the
    calls."""
    lines_added: int
    lines_removed: int
    stand_ins: int
    """Messages or results that the transcript lacks and a fixed text in round brackets stands
    for."""
    redactions: int
    machine_texts: int = 0
    """Texts in the model's requests that no person wrote and no call brought, such as notices and
    the output of commands that the person ran. They stand in the program's own tags."""
    injection_suspected: bool = False
    """The session, or what was shown of it, holds words that look made for a judge."""

    @property
    def quality(self) -> float | None:
        """The overall quality, 0 to 1; None where there is none."""
        return next((entry.value for entry in self.scores if entry.kind == "overall"), None)


class SampleLine(Struct, frozen=True, kw_only=True):
    """One line of a training set: one session, or a window of one."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSchema, ...]
    metadata: SampleMetadata


def not_trained_in(messages: Iterable[ChatMessage]) -> tuple[NotTrained, ...]:
    """Return the turns with answers of weight 0 and why, each once, in order; stand-ins apart."""
    found = (message.not_trained for message in messages)
    return tuple(
        dict.fromkeys(
            not_trained for not_trained in found if not_trained and not_trained.reason != "stand_in"
        )
    )


ExclusionKind = Literal[
    "no_metadata",
    "not_reviewed",
    "withheld",
    "no_answer",
    "no_request",
    "suspected",
    "other_tool",
    "other_model",
    "out_of_dates",
    "not_succeeded",
    "quality",
    "draft",
    "no_change",
    "no_validation",
    "unsure",
    "verdict",
    "contradicted",
    "signals",
    "review",
    "held",
    "removed",
    "near_duplicate",
    "cap",
    "no_line",
    "no_set",
    "earlier",
]
_EXCLUDED: Mapping[ExclusionKind, str] = {
    "no_metadata": "no metadata",
    "not_reviewed": NOT_REVIEWED,
    "withheld": "{}",
    "no_answer": "no answer of the model",
    "no_request": "no answer in full to a request that is known",
    "suspected": "holds words that look made for whoever judges it: a person should look first",
    "other_tool": "another tool",
    "other_model": "another model",
    "out_of_dates": "outside the dates",
    "not_succeeded": "no outcome says that it succeeded",
    "quality": "overall quality below {}, or none",
    "draft": "the recorder holds it as a draft",
    "no_change": "nothing was changed",
    "no_validation": "no validation command ran",
    "unsure": "holds redactions that a person should look at first",
    "verdict": "its verdict: {}",
    "contradicted": "its review says complete; the last check failed",
    "signals": f"{NOT_REVIEWED}, and a signal speaks against it: {{}}",
    "review": "whoever reviewed it would train on nothing of it",
    "held": "holds what may be a secret that no rule names: a person should look at it",
    "removed": "holds what a person said is a secret",
    "near_duplicate": "near-duplicate of an earlier session",
    "cap": "over the cap of {} for its repository",
    "no_line": "{}",
    "no_set": "in no current set: not judged, by other judges alone, or its set was not made",
    "earlier": "left out by an earlier version: make the set again to see why",
}


class Exclusion(Struct, frozen=True):
    """Why a session is not in a training set."""

    kind: ExclusionKind
    detail: str = ""
    """A limit, a source, or what is wrong with its line; empty for most kinds."""

    @property
    def reason(self) -> str:
        """Return it in words."""
        return _EXCLUDED[self.kind].format(self.detail)


class SkippedSessions(Struct, frozen=True, kw_only=True):
    """Sessions that are not in the training set for one reason."""

    kind: ExclusionKind = "earlier"
    """``earlier`` in a set of a version that did not record it."""
    detail: str = ""
    """As ``Exclusion`` has it."""
    count: int
    sessions: tuple[str, ...]
    """Their ids, in order."""

    @property
    def why(self) -> Exclusion:
        """Return the reason."""
        return Exclusion(self.kind, self.detail)

    @property
    def reason(self) -> str:
        """Return why, in words."""
        return self.why.reason


def left_out_shown(counts: Mapping[Exclusion, int]) -> list[str]:
    """Return each kind of reason once with the number of sessions, the most frequent first:
    ``its verdict: partial (5), failed (1)``."""
    kinds: dict[ExclusionKind, Counter[str]] = defaultdict(Counter)
    for why, count in counts.items():
        kinds[why.kind][why.detail] += count
    shown = []
    for kind, details in sorted(kinds.items(), key=lambda item: -item[1].total()):
        (detail, count), *others = details.most_common()
        if others:
            each = ", ".join(f"{detail} ({count})" for detail, count in details.most_common())
            shown.append(Exclusion(kind, each).reason)
        else:
            shown.append(f"{Exclusion(kind, detail).reason} ({count})")
    return shown


def unreviewed_shown(sessions: int) -> str:
    """Return in a sentence how many sessions of training sets nobody gave a verdict; empty for
    none."""
    if not sessions:
        return ""
    return (
        f"Training sets hold {counted(sessions, 'session')} that nobody reviewed and no signal "
        "speaks against; their lines say `reviewed: false`."
    )


class JudgeResult(BaseModel):
    """A judge's result as ``judge_<name>.json`` holds it."""

    model_config = ConfigDict(frozen=True, extra="allow")

    judge_name: str
    score: float = Field(ge=0, le=1)
    weight: float = 1.0
    feedback: str = ""


class TrainingSample(BaseModel):
    """One piece of work to improve prompts with; parts that are not there are None."""

    model_config = ConfigDict(frozen=True)

    plan_id: str
    plan_content: str | None = None
    code_trace: str | None = None
    human_feedback: str | None = None
    test_results_before: dict[str, object] | None = None
    test_results_after: dict[str, object] | None = None
    judge_results: tuple[JudgeResult, ...] = ()
    used_prompts: PromptSnapshot | None = None
    tool: str = "claude-code"
    model: str | None = None
    prompt_fingerprint: str | None = None
    eval_fingerprint: str | None = None
    split: Split | None = None
    """None for a sample that was not split yet."""


class Lengths(Struct, frozen=True, kw_only=True):
    """The tokens (o200k_base) of a line, with its tools and what chat templates usually write."""

    tokens: int
    trained: int
    """Of the answers that are trained on."""
    kept: tuple[int, ...]
    """Of these, within each of ``CONTEXTS``."""


INDEX, LINES = "training_index", "training_lines"


class TrainingSetRow(Struct, frozen=True, kw_only=True):
    """What is known of a pair's training set beside its files."""

    task: str
    fingerprint: str
    considered: int
    sessions: int = 0
    samples: int
    train: int
    eval: int
    tokens: int
    left_out: tuple[SkippedSessions, ...] = ()
    verdicts: tuple[VerdictName, ...] = ()
    """Those that were asked for; empty for any."""
    short: int = 0
    """Sessions that were left out for their verdict."""
    unreviewed: int = 0
    """Sessions with a line that nobody gave a verdict."""
    lines_digest: str
    """SHA-256 of the JSONL, in hex."""
    card_digest: str
    gate: str = ""
    """Digest of what the last gate looks for, which every line has passed: nothing searches them
    again."""
    line_format: str = ""
    """Of its lines."""

    @property
    def reasons(self) -> Counter[Exclusion]:
        """How many sessions were left out, by reason."""
        counts: Counter[Exclusion] = Counter()
        for row in self.left_out:
            counts[row.why] += row.count
        return counts


class LineRow(Struct, frozen=True, kw_only=True):
    """One line of a training set: where it is, and how it is chosen."""

    session_id: str
    window: int
    split: Split
    status: Status = "draft"
    verdict: LineVerdict = ""
    quality: float | None = None
    """Overall quality; None where there is none."""
    offset: int
    """Bytes from the beginning of the file."""
    size: int
    """Bytes, line end included."""
    opening: str
    """Digest of its repository and of the person's first words, whatever their white space; that of
    the line if nobody knows these."""
    messages: int
    tokens: int
    lengths: tuple[Lengths, ...] = ()
    """Without the model's thinking, and with it."""
    parent_session: str = ""
    """As in the line's metadata."""
    undecided: int = 0
    """Redactions of its session that nobody has decided on."""
    tool: str = ""
    """As in the line's metadata, like what follows."""
    tool_version: str = ""
    model: str = ""
    repository: str = ""
    licence: str = ""
    kind: str = "unknown"
    started: datetime = datetime.min.replace(tzinfo=UTC)
    ended: datetime = datetime.min.replace(tzinfo=UTC)
    digest: str
    """SHA-256 of its bytes, in hex."""


def training_path(task: str, fingerprint: str, suffix: str = ".jsonl") -> str:
    """Return where a pair's file is in the lake."""
    return f"training/{task}/{fingerprint}{suffix}"
