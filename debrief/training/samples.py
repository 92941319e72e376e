"""From a session to the line that a model is trained on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.judging.model import JudgeEvaluation
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.training.conversations import conversation_of, is_answered, is_trained_on
from debrief.training.formats import encode, label, time_text
from debrief.training.model import (
    PromptText,
    SampleLine,
    SampleMetadata,
    Split,
    Status,
    ToolSchema,
)
from debrief.training.score_entries import score_entries
from debrief.training.tool_schemas import tool_schemas, without_uncalled
from debrief.training.validation import validate_line
from debrief.training.windows import windows_of

_AROUND_A_LINE, _AROUND_A_MESSAGE = 128, 32
"""Tokens that chat templates write, as measured on Qwen's, of which none of 960 lines of real
sessions came out over; GLM's and gpt-oss's write a little more. They indent tools, which makes them
a third longer."""

SECRET_FOUND = "the last gate still found a secret"
NO_VALID_LINE = "gives no valid line"


class _MetadataOnly(Struct):
    metadata: SampleMetadata


_METADATA = msgspec.json.Decoder(_MetadataOnly)


def samples_of(sample: SampleLine, max_tokens: int) -> tuple[SampleLine, ...]:
    """Return a session's line as lines of at most ``max_tokens`` each, itself when it fits.

    Counted are the texts and calls, the tools, and what chat templates usually write around them,
    as a trainer cuts off what is over its limit. Tools that were declared to the session and never
    called give way where all of them would leave less than half of the tokens. The metadata speaks
    of the whole session on each line, but for ``window``.

    Raises:
        InputError: the tools or the system message leave less than half of the tokens, or
            nothing fits.
    """
    from debrief.tokens import count_tokens

    def beside(tools: tuple[ToolSchema, ...]) -> int:
        return max_tokens - _AROUND_A_LINE - count_tokens(encode(tools).decode()) * 4 // 3

    culprit = f"session {sample.metadata.session_id}"
    left = beside(sample.tools)
    if left < max_tokens / 2:
        called = {
            call.function.name for message in sample.messages for call in message.tool_calls or ()
        }
        sample = replace(sample, tools=without_uncalled(sample.tools, called))
        left = beside(sample.tools)
    if left < max_tokens / 2:
        raise InputError(culprit, f"its tools leave less than half of {max_tokens} tokens")
    # The same texts are counted whole, by turn and by step.
    windows = windows_of(sample.messages, left, cache(count_tokens), _AROUND_A_MESSAGE)
    if not windows:
        raise InputError(culprit, f"nothing of it fits {max_tokens} tokens")
    return tuple(
        replace(
            sample,
            messages=messages,
            metadata=replace(sample.metadata, window=number, windows=len(windows)),
        )
        for number, messages in enumerate(windows, 1)
    )


def sample_of(
    session: Session,
    *,
    metadata: SessionMetadataRow,
    scores: SessionScores,
    judgements: Iterable[JudgeEvaluation] = (),
    rubric_evaluations: Iterable[RubricEvaluation] = (),
    snapshot: PromptSnapshotRow | None = None,
    split: Split = "train",
    status: Status = "draft",
    eval_fingerprint: str | None = None,
    eval_digest: str = "",
) -> SampleLine:
    """Return the line of one session, without the turns that the person went back behind: what
    the model said later, it said without having seen them.

    Args:
        session: normalised and redacted.
        metadata: its circumstances and fingerprints.
        scores: its dimensions; the session must have been scored.
        judgements: its rows by judge; failed ones are passed over.
        rubric_evaluations: its rows by rubric; failed ones are passed over.
        snapshot: its prompts; the main one becomes the system message.
        split: the side of the train/eval split that it is on.
        status: whether anything has to be looked at before it trains a model.
        eval_fingerprint: of the judges; that of ``metadata`` when None.
        eval_digest: the whole digest; that of ``metadata`` when empty, if it fits.

    Raises:
        InputError: the model said nothing in it, nobody knows on what, or it was not scored.
    """
    if scores.overall_quality is None:
        raise InputError(f"session {session.id}", "not scored", "Score its week first.")
    conversation = conversation_of(session, snapshot.main if snapshot else "")
    messages = conversation.close()
    if not is_answered(messages):
        raise InputError(f"session {session.id}", "no answer of the model")
    if not is_trained_on(messages):
        raise InputError(f"session {session.id}", "no answer in full to a request that is known")
    fingerprint = eval_fingerprint or metadata.eval_fingerprint
    digest = eval_digest or metadata.eval_digest
    return SampleLine(
        messages=messages,
        tools=tool_schemas(metadata.tool, conversation.calls, session.declared_tools or ()),
        metadata=SampleMetadata(
            session_id=label(session.id),
            session_digest=session.digest,
            source=label(session.source),
            tool=label(metadata.tool),
            tool_version=label(session.tool_version),
            model=label(metadata.model or next(iter(session.models), "")),
            task=label(metadata.task),
            repository=label(metadata.repository or session.repository),
            branch=label(session.branch),
            licence=label(metadata.licence),
            base_commit=label(metadata.base_commit),
            started=time_text(session.started),
            ended=time_text(session.ended),
            prompt_fingerprint=metadata.prompt_fingerprint,
            prompt_digest=metadata.prompt_digest,
            prompt_origin=snapshot.origin if snapshot else "unknown",
            prompts=_prompts(snapshot),
            eval_fingerprint=fingerprint,
            eval_digest=digest if digest.startswith(fingerprint) else "",
            scoring_fingerprint=scores.scoring_fingerprint,
            scoring_model=label(scores.model),
            overall_quality=float(scores.overall_quality),
            scores=score_entries(scores, judgements, rubric_evaluations),
            status=status,
            split=split,
            window=1,
            windows=1,
            turns=session.prompt_count,
            calls=len(conversation.calls),
            subagents=len(session.subagents),
            lines_added=session.lines_added,
            lines_removed=session.lines_removed,
            stand_ins=conversation.stand_ins,
            redactions=session.redactions,
        ),
    )


def encode_line(sample: SampleLine) -> bytes:
    """Return the line as UTF-8 JSON with its line end."""
    return encode(sample) + b"\n"


def checked_line(sample: SampleLine) -> bytes:
    """Return the line as UTF-8 JSON with its line end, validated and searched for secrets.

    Raises:
        InputError: it is not valid, or holds a secret.
    """
    from debrief.redaction import contains_secret

    data = encode_line(sample)
    culprit = f"session {sample.metadata.session_id}"
    if contains_secret(data):
        raise InputError(culprit, SECRET_FOUND)
    problems = validate_line(data)
    if problems:
        raise InputError(culprit, f"{NO_VALID_LINE}: {problems[0]}")
    return data


def metadata_of_line(line: bytes) -> SampleMetadata:
    """Return a line's metadata without decoding its messages.

    Raises:
        msgspec.DecodeError: it is no line of ours.
    """
    return _METADATA.decode(line).metadata


def _prompts(snapshot: PromptSnapshotRow | None) -> tuple[PromptText, ...]:
    if snapshot is None:
        return (PromptText("main", ""),)
    subagents = sorted(snapshot.subagents, key=lambda prompt: prompt.name)
    return (
        PromptText("main", label(snapshot.main)),
        *(PromptText(label(prompt.name), label(prompt.text)) for prompt in subagents),
    )
