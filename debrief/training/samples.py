"""Convert a session into training lines: one for it, and one for each subagent.

A subagent was given a prompt by a model, not by a person; what it did with it is work of a model
all the same. Its line has the session's circumstances and scores, as nobody scored it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from debrief.errors import InputError
from debrief.judging.evaluation import weighted_average
from debrief.judging.model import JudgeEvaluation
from debrief.outcomes.store import Success
from debrief.redaction import Finding, contains_secret
from debrief.remembering import by_digest
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.dimensions import DIMENSIONS
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import NOT_REVIEWED, SessionVerdict, basis_text
from debrief.sessions.model import Session, Subagent, Turn
from debrief.signals.schema import SessionSignals
from debrief.signals.shell import simple_commands
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.training.conversations import (
    ConversationBuilder,
    call_id,
    conversation_of,
    encode,
    function_name,
    is_answered,
    is_trained_on,
    label,
    time_text,
)
from debrief.training.formats import tool_schemas, validate_line
from debrief.training.given import Given, SystemPrompt, given_to
from debrief.training.kinship import validation_commands
from debrief.training.model import (
    PromptText,
    SampleLine,
    SampleMetadata,
    ScoreEntry,
    Split,
    Status,
)
from debrief.training.selection import verdict_by
from debrief.training.windows import samples_of

SECRET_FOUND = "the last gate still found a secret"
_WEIGHTS = {dimension.name: dimension.weight for dimension in DIMENSIONS}


def sample_of(
    session: Session,
    *,
    metadata: SessionMetadataRow,
    scores: SessionScores | None = None,
    signals: SessionSignals | None = None,
    judgements: Iterable[JudgeEvaluation] = (),
    rubric_evaluations: Iterable[RubricEvaluation] = (),
    snapshot: PromptSnapshotRow | None = None,
    given: Given | None = None,
    outcome: Success | None = None,
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
        scores: its LLM review, where there is one.
        signals: of it, where they are known.
        judgements: its rows by judge; failed ones are passed over.
        rubric_evaluations: its rows by rubric; failed ones are passed over.
        snapshot: the person's own prompts.
        given: what the model was given before the first prompt; worked out when None.
        outcome: whether it succeeded, where a label says so.
        split: the side of the train/eval split that it is on.
        status: whether anything has to be looked at before it trains a model.
        eval_fingerprint: of the judges; that of ``metadata`` when None.
        eval_digest: the whole digest; that of ``metadata`` when empty, if it fits.

    Raises:
        InputError: the model said nothing in it, or nobody knows on what.
    """
    verdict = verdict_by(scores, outcome)
    given = given or given_to(session, snapshot)
    train = scores.review.train if scores is not None and scores.review is not None else None
    parts = train.turns if train is not None else ()
    conversation = conversation_of(session, given.system, given.reminder, parts)
    messages = conversation.close()
    if not is_answered(messages):
        raise InputError(f"session {session.id}", "no answer of the model")
    if not is_trained_on(messages):
        raise InputError(f"session {session.id}", "no answer in full to a request that is known")
    declared = session.declared_tools or ()
    tools = tool_schemas(metadata.tool, conversation.calls, declared)
    subagents = sorted(snapshot.subagents if snapshot else (), key=lambda prompt: prompt.name)
    fingerprint = eval_fingerprint or metadata.eval_fingerprint
    digest = eval_digest or metadata.eval_digest
    judgements, on_rubrics = list(judgements), list(rubric_evaluations)
    said = (*((scores,) if scores else ()), *judgements, *on_rubrics)
    return SampleLine(
        messages=messages,
        tools=tools,
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
            base_commit_origin=metadata.base_commit_origin,
            check_command=label(_check(validation_commands(session))),
            started=time_text(session.started),
            ended=time_text(session.ended),
            prompt_fingerprint=metadata.prompt_fingerprint,
            prompt_digest=metadata.prompt_digest,
            prompt_origin=snapshot.origin if snapshot else "unknown",
            system_prompt=given.origin,
            tool_schemas=("recorded" if declared else "rebuilt") if tools else "none",
            prompts=(
                PromptText("main", label(snapshot.main) if snapshot else ""),
                *(PromptText(label(prompt.name), label(prompt.text)) for prompt in subagents),
            ),
            eval_fingerprint=fingerprint,
            eval_digest=digest if digest.startswith(fingerprint) else "",
            scoring_fingerprint=scores.scoring_fingerprint if scores else "",
            scoring_model=label(scores.model) if scores else "",
            reviewed=verdict is not None,
            verdict=verdict.verdict if verdict else "",
            verdict_basis=verdict.basis if verdict else "",
            scores=tuple(score_entries(scores, judgements, on_rubrics, outcome)),
            status=status,
            split=split,
            window=1,
            windows=1,
            kind=signals.work if signals else "unknown",
            ending=signals.ending if signals else "",
            turns=session.prompt_count,
            calls=len(conversation.calls),
            subagents=len(session.subagents),
            lines_added=session.lines_added,
            lines_removed=session.lines_removed,
            stand_ins=conversation.stand_ins,
            redactions=session.redactions,
            machine_texts=conversation.machine_texts,
            injection_suspected=any(row.injection_suspected for row in said),
        ),
    )


def _check(commands: Iterable[str]) -> str:
    """Return the last command that checked the work; one that uses git beside, such as to commit,
    only where there is no other."""
    last = alone = ""
    for command in commands:
        last = command
        if all(words[0] != "git" for words in simple_commands(command)):
            alone = command
    return alone or last


def encode_line(sample: SampleLine) -> bytes:
    """Return the line as UTF-8 JSON with its line end."""
    return encode(sample) + b"\n"


def checked_line(sample: SampleLine, *, searched: bool = False) -> bytes:
    """Return the line as UTF-8 JSON with its line end, validated and searched for secrets.

    Args:
        sample: the line.
        searched: what it was made of has been searched for secrets.

    Raises:
        InputError: it is not valid, or holds a secret.
    """
    data = encode_line(sample)
    culprit = f"session {sample.metadata.session_id}"
    if not searched and secrets_in(data):
        raise InputError(culprit, SECRET_FOUND)
    problems = validate_line(data)
    if problems:
        raise InputError(culprit, f"gives no valid line: {problems[0]}")
    return data


@by_digest
def secrets_in(line: bytes) -> list[Finding]:
    """Return the secrets in a finished line; the check of a set asks it of the same lines again."""
    return contains_secret(line)


def score_entries(
    scores: SessionScores | None,
    judgements: Iterable[JudgeEvaluation],
    rubric_evaluations: Iterable[RubricEvaluation],
    outcome: Success | None = None,
) -> Iterator[ScoreEntry]:
    """Yield the verdict, the outcome, overall quality, dimensions, efficiencies, judges and
    rubrics, in this order.

    One list rather than one a kind: a list without entries has no type that a loader could read
    off, while this one always holds the verdict's, which says "not reviewed" where there is none.
    Failed judgements and rubric evaluations give no entry; a missing number is never a 0.
    """
    known = verdict_by(scores, outcome)
    yield ScoreEntry(
        kind="verdict",
        name="verdict",
        value=0.0,
        maximum=0.0,
        category=known.verdict if known else "",
        comment=_who_says_so(known) if known else NOT_REVIEWED,
    )
    if outcome is not None:
        said = float(outcome.success)
        yield ScoreEntry(kind="outcome", name="success", value=said, category=outcome.source)
    if scores is not None:
        yield from _entries_of_review(scores)
    yield from _entries_of_judges(judgements)
    for row in sorted(rubric_evaluations, key=lambda row: (row.score_name, row.rubric_key)):
        if row.score is not None:
            yield ScoreEntry(
                kind="rubric",
                name=f"{row.score_name}/{row.rubric_key}",
                value=float(row.score),
                minimum=1.0,
                maximum=5.0,
                model=row.model,
                comment=row.reasoning,
            )


def _who_says_so(verdict: SessionVerdict) -> str:
    """Return who gave a verdict, without a person's name: a line may be published."""
    is_person = verdict.basis == "person"
    return basis_text(replace(verdict, source="") if is_person else verdict)


def _entries_of_review(scores: SessionScores) -> Iterator[ScoreEntry]:
    if scores.overall_quality is not None:
        quality = float(scores.overall_quality)
        yield ScoreEntry(kind="overall", name="overall_quality", value=quality, model=scores.model)
    for verdict in scores.dimension_scores:
        if verdict.value is None:
            continue
        yield ScoreEntry(
            kind="dimension",
            name=verdict.dimension,
            value=float(verdict.value),
            weight=float(_WEIGHTS[verdict.dimension]),
            category=verdict.category or "",
            model=scores.model,
            comment=verdict.rationale,
        )
    for name in ("token_efficiency", "user_turn_efficiency"):
        value: float | None = getattr(scores, name)
        if value is not None:
            yield ScoreEntry(kind="efficiency", name=name, value=float(value), maximum=0.0)


def _entries_of_judges(judgements: Iterable[JudgeEvaluation]) -> Iterator[ScoreEntry]:
    judged = sorted(judgements, key=lambda row: row.judge)
    mean = judges_mean(judged)
    if mean is not None:
        yield ScoreEntry(kind="judges", name="weighted_mean", value=mean)
    for judgement in judged:
        if judgement.score is not None:
            yield ScoreEntry(
                kind="judge",
                name=judgement.judge,
                value=float(judgement.score),
                weight=float(judgement.weight),
                model=judgement.model,
                comment=judgement.feedback,
            )


def judges_mean(judgements: Sequence[JudgeEvaluation]) -> float | None:
    """Return the weighted mean of the judges' scores; None when one failed or there is none.

    A mean over fewer judges is another measure, so it is not given; a judge who says that it cannot
    be seen is not waited for.
    """
    failed = any(row.status == "failed" for row in judgements)
    return None if failed else weighted_average(judgements)


def subagent_samples(
    session: Session,
    sample: SampleLine,
    max_tokens: int | None = None,
    asked: SystemPrompt = "recorded",
) -> Iterator[SampleLine]:
    """Yield the lines of a session's subagents.

    Passed over are those that a call of the session started that is not trained on or that the
    person went back behind; those of which there are reports of progress alone, which lack the end;
    those whose prompt is not known; and those that do not fit.

    Args:
        session: normalised and redacted.
        sample: its own line, whole.
        max_tokens: of each line; None for no limit.
        asked: whether their system prompts are to be in the lines.
    """
    passed_over = _not_trained_calls(session, sample)
    for agent in session.subagents:
        if agent.place == "progress" or agent.call_id in passed_over:
            continue
        line = _line_of(agent, session, sample, asked)
        if line is None:
            continue
        if not max_tokens:
            yield line
            continue
        with suppress(InputError):
            yield from samples_of(line, max_tokens)


def _not_trained_calls(session: Session, sample: SampleLine) -> set[str]:
    """Return the ids, as the transcript has them, of calls that are not trained on."""
    trained = {
        call.id
        for message in sample.messages
        if message.weight != 0
        for call in message.tool_calls or ()
    }
    found, number = set(), 0
    for turn in session.turns:
        for call in (call for message in turn.messages for call in message.calls):
            number += not turn.rewound
            if turn.rewound or call_id(number) not in trained:
                found.add(call.id)
    return found - {""}


def _line_of(
    agent: Subagent, session: Session, sample: SampleLine, asked: SystemPrompt
) -> SampleLine | None:
    """Return a subagent's conversation as a line; None when nothing in it is to be trained on."""
    prompts = {prompt.name: prompt.text for prompt in sample.metadata.prompts[1:]}
    system = prompts.get(label(agent.type), "") if asked != "none" else ""
    conversation = ConversationBuilder(system)
    conversation.add_turn(Turn(number=1, prompt=agent.prompt, messages=agent.messages))
    messages = conversation.close()
    if not is_trained_on(messages):
        return None
    called = {function_name(name) for name, _ in conversation.calls}
    declared = [tool for tool in session.declared_tools or () if function_name(tool.name) in called]
    tools = tool_schemas(sample.metadata.tool, conversation.calls, declared)
    times = [message.at for message in agent.messages if message.at]
    calls = [call for message in agent.messages for call in message.calls]
    models = [message.model for message in agent.messages if message.model]
    return SampleLine(
        messages=messages,
        tools=tools,
        metadata=replace(
            sample.metadata,
            session_id=label(f"{session.id}/{agent.id}"),
            parent_session=sample.metadata.session_id,
            model=label(max(models, key=models.count)) if models else sample.metadata.model,
            started=time_text(min(times, default=session.started)),
            ended=time_text(max(times, default=session.ended)),
            system_prompt="rebuilt" if system else "none",
            tool_schemas="rebuilt" if tools else "none",
            turns=1,
            calls=len(calls),
            subagents=0,
            lines_added=sum(call.added for call in calls),
            lines_removed=sum(call.removed for call in calls),
            stand_ins=conversation.stand_ins,
            machine_texts=conversation.machine_texts,
        ),
    )
