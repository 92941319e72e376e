"""Judging sessions: what a judge is shown of a session's changes, and one row a session and judge.

A judge is shown the first human prompt, the changes that the transcript's own edits make up, and
how checks and calls ended. Files changed through a shell are only named. Changes are fitted
into what a judge can take by whole hunks and files, and never silently. Least telling goes first:
generated files before data, data before documentation, tests before the code itself; within one
kind the largest hunk first, because it buys the most room.

A row of an earlier run is reused when session, judge, evaluation fingerprint and the version of
the offline measures are what they were and it was a success; failures are tried again.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from operator import attrgetter
from posixpath import join, normpath
from queue import SimpleQueue
from typing import Any

from msgspec import Struct, structs

from debrief.errors import ModelError
from debrief.evaluation import evaluate, failure_of, version_of
from debrief.judging.model import ChangeContext, ChangeJudge, Judge, JudgeEvaluation
from debrief.models.fencing import injection_signs, is_suspected
from debrief.offline.facts import facts_of
from debrief.sessions.model import Session, calls_of
from debrief.sessions.readers.patches import edits_of_call

_HUNK_START = re.compile(r"^@@ ", re.MULTILINE)
_GENERATED = re.compile(
    r"(^|/)(node_modules|vendor|dist|build|\.next|target|__snapshots__)/"
    r"|(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|poetry\.lock|uv\.lock|cargo\.lock"
    r"|go\.sum|gemfile\.lock|composer\.lock)$"
    r"|\.(min\.(js|css)|map|snap|pb\.go|g\.dart)$|_pb2\.pyi?$",
    re.IGNORECASE,
)
_DATA = re.compile(r"\.(jsonl?|csv|tsv|svg|xml|ipynb|sql|txt|html?)$", re.IGNORECASE)
_PROSE = re.compile(r"\.(md|mdx|rst|adoc)$", re.IGNORECASE)
_TEST = re.compile(
    r"(^|/)(tests?|spec|__tests__)/|(^|/)(test_[^/]*|[^/]*([._]test|[._]spec)\.[a-z]+)$",
    re.IGNORECASE,
)
_LISTED = 20


class FileDiff(Struct, frozen=True, kw_only=True):
    """The changes of one file, as hunks in the order in which they belong."""

    path: str
    hunks: tuple[str, ...]
    """Each a unified hunk, ``@@ …`` first, ending with a line end."""
    created: bool = False


def split_hunks(patch: str) -> tuple[str, ...]:
    """Split unified hunks without file headers; what comes before the first ``@@`` is dropped."""
    starts = [match.start() for match in _HUNK_START.finditer(patch)]
    ends = [*starts[1:], len(patch)][: len(starts)]
    pieces = (patch[start:end] for start, end in zip(starts, ends, strict=True))
    return tuple(piece if piece.endswith("\n") else piece + "\n" for piece in pieces)


def fit(files: Sequence[FileDiff], room: int) -> tuple[str, list[str]]:
    """Return as many whole hunks as ``room`` takes, in order, and what had to be left out.

    Args:
        files: in the order in which they are shown.
        room: characters for hunks and their file headers; the list of what was left out is not
            counted, and is at most a line a file.

    Returns:
        The text, and a sentence for each file of which hunks are missing.
    """
    hunks = [
        (rank(file.path), len(hunk), at, number)
        for at, file in enumerate(files)
        for number, hunk in enumerate(file.hunks)
    ]
    headers = [len(_header(file)) for file in files]
    shown = [len(file.hunks) for file in files]
    used = sum(size for _, size, _, _ in hunks) + sum(headers)
    dropped: set[tuple[int, int]] = set()
    for _, size, at, number in sorted(hunks, key=lambda hunk: (hunk[0], -hunk[1], hunk[2:])):
        if used <= room:
            break
        dropped.add((at, number))
        shown[at] -= 1
        used -= size + (headers[at] if shown[at] == 0 else 0)
    parts = []
    left_out = []
    for at, file in enumerate(files):
        kept = [hunk for number, hunk in enumerate(file.hunks) if (at, number) not in dropped]
        if kept:
            parts.append(_header(file) + "".join(kept))
        if len(kept) < len(file.hunks):
            missing = len(file.hunks) - len(kept)
            lines = sum(hunk.count("\n") for hunk in file.hunks)
            whole = f"the whole file's changes ({lines} lines)"
            part = f"{missing} of {len(file.hunks)} hunks"
            left_out.append(f"{file.path}: {part if kept else whole}")
    return "\n".join(parts), left_out


def left_out_note(
    left_out: Sequence[str], why: str = "Left out for size, do not count it as missing"
) -> str:
    """Return the paragraph that tells a judge what it does not see; empty when it sees all."""
    if not left_out:
        return ""
    more = [f"- and {len(left_out) - _LISTED} more files"] if len(left_out) > _LISTED else []
    lines = [f"- {sentence}" for sentence in left_out[:_LISTED]] + more
    return f"{why}:\n" + "\n".join(lines) + "\n"


def is_generated(path: str) -> bool:
    """Return whether a file's name says that a program wrote it."""
    return _GENERATED.search(path) is not None


def rank(path: str) -> int:
    """Rank a file by how much its changes tell: 0 least."""
    patterns = (_GENERATED, _DATA, _PROSE, _TEST)
    return next((place for place, found in enumerate(patterns) if found.search(path)), 4)


def _header(file: FileDiff) -> str:
    before = "/dev/null" if file.created else f"a/{file.path}"
    return f"--- {before}\n+++ b/{file.path}\n"


MAX_SIZE = 240_000
_PLAN_SHARE, _OUTCOMES_SHARE = 4, 8


def context_from_session(session: Session, max_size: int = MAX_SIZE) -> ChangeContext:
    """Return the plan and the changes of a session, both bounded.

    Args:
        session: with or without edits.
        max_size: characters of plan and changes together; notes, and at most an eighth more of
            how checks and calls ended, come on top.
    """
    files = changes_of(session)
    prompts = (turn.prompt for turn in session.turns if turn.number > 0 and turn.prompt.strip())
    prompt = next(prompts, "(The session holds no human prompt.)")
    plan = bounded_plan(prompt, files, max_size)
    outcomes = outcomes_of(session, files)[-max_size // _OUTCOMES_SHARE :]
    text, left_out = fit(files, max(max_size - len(plan), 0))
    return ChangeContext(
        plan_content=plan,
        git_changes=f"{_said(files, text, left_out)}\n{outcomes}",
        shrink=lambda size: context_from_session(session, size),
    )


def outcomes_of(session: Session, files: Sequence[FileDiff] = ()) -> str:
    """Return what was run and how it ended, for a judge who sees no transcript.

    Args:
        session: with or without checks.
        files: whose changes the judge is shown.
    """
    facts = facts_of(session)
    shown = {_placed(session, file.path) for file in files}
    changed = dict.fromkeys(each.quote for each in facts.edits)
    unseen = [path for path in changed if _placed(session, path) not in shown]
    lists = {
        "Changed, but it is not shown how": unseen,
        "Checks that were run": [run.shown for run in facts.checks],
        "Calls that failed": [f"turn {each.turn}: {each.quote}" for each in facts.errors],
        "Assertions of older tests that were rewritten": [
            f"turn {each.turn}: {each.quote}" for each in facts.rewritten
        ],
        "Files that were removed": [f"turn {each.turn}: {each.quote}" for each in facts.deleted],
        "How it ends": [
            f"{words}: {found}"
            for words, found in (
                ("the last check after the last edit", facts.last_check and facts.last_check.shown),
                ("the end", facts.end.evidence and facts.end.evidence.quote),
            )
            if found
        ],
    }
    parts = ["What was run, and how it ended; of each the last ones."]
    for title, rows in lists.items():
        shown_rows = [f"- {each}" for each in list(rows)[-_LISTED:]] or ["- none"]
        parts.append("\n".join([f"{title}:", *shown_rows]))
    return "\n\n".join(parts) + "\n"


def _placed(session: Session, path: str) -> str:
    return normpath(join(session.cwd, path))


def changes_of(session: Session) -> list[FileDiff]:
    """Return the changes of each file, in the order in which files were first touched.

    Hunks of one file follow each other as the edits did, so a later one may change what an
    earlier one wrote. Failed and rejected edits are not among them.
    """
    hunks: dict[str, list[str]] = {}
    folder = session.cwd.rstrip("/")
    made = (call for call in calls_of(session) if call.path and call.patch and call.status == "ok")
    for edit in (edit for call in made for edit in edits_of_call(call)):
        path = edit.path.removeprefix(f"{folder}/") if folder else edit.path
        hunks.setdefault(path, []).extend(split_hunks(edit.patch))
    return [
        FileDiff(path=path, hunks=tuple(found), created=found[0].startswith("@@ -0,0 "))
        for path, found in hunks.items()
        if found
    ]


def bounded_plan(plan: str, files: Sequence[FileDiff], max_size: int) -> str:
    """Return a plan in a quarter of the room, or in all that the changes leave of it.

    Beginning and end of a longer one stay: the aim and the last conditions.
    """
    room = max(max_size // _PLAN_SHARE, max_size - len(fit(files, sys.maxsize)[0]))
    if len(plan) <= room:
        return plan
    for keep in range(room, -1, -1):
        note = f"[… {len(plan) - keep} characters of the plan left out for size …]"
        if keep + len(note) + 2 <= room:
            head, tail = plan[: keep - keep // 3], plan[len(plan) - keep // 3 :]
            return f"{head}\n{note}\n{tail}"
    return note


def _said(files: list[FileDiff], text: str, left_out: list[str]) -> str:
    if not files:
        return (
            "The session's own editing tools changed no file.\n"
            "Changes made through a shell are invisible here, and only named below.\n"
        )
    added = sum(count_lines(file, "+") for file in files)
    removed = sum(count_lines(file, "-") for file in files)
    noun = "file" if len(files) == 1 else "files"
    lines = [
        f"{len(files)} {noun} changed, {added} lines added, {removed} removed.",
        "Reconstructed from the session's own edits, file by file in the order in which they "
        "were made; a later hunk may change what an earlier one wrote.",
        "Changes made through a shell are invisible here, and only named below.",
    ]
    note = left_out_note(left_out)
    return "\n".join([*lines, *([note] if note else []), text])


def count_lines(file: FileDiff, sign: str) -> int:
    """Return how many lines of a file's hunks begin with a sign."""
    return sum(line.startswith(sign) for hunk in file.hunks for line in hunk.split("\n"))


ContextOf = Callable[[Session], ChangeContext]
_Item = tuple[Session, Judge, Callable[[], ChangeContext]]


def evaluate_week(
    sessions: Iterable[Session],
    judges: Sequence[Judge],
    judge_by: ChangeJudge,
    eval_fingerprint: str,
    previous: Iterable[JudgeEvaluation] = (),
    *,
    concurrency: int = 1,
    context_of: ContextOf = context_from_session,
) -> Iterator[JudgeEvaluation]:
    """Yield the rows of many sessions: in the sessions' order, each in judge-name order.

    A failed judge gives a row with status ``failed`` and its reason.

    Args:
        sessions: read one by one, at most twice ``concurrency`` of them held at once.
        judges: at least one.
        judge_by: must be safe to call from several threads when ``concurrency`` is over 1.
        eval_fingerprint: of these judges; rows of another one are not reused.
        previous: rows of an earlier run of the same weeks.
        concurrency: calls under way at once; 1 judges in this thread (right for the offline
            evaluator, which waits for nobody).
        context_of: what a judge is shown of a session.
    """
    version = version_of(judge_by)
    ordered = sorted(judges, key=lambda judge: judge.name)
    stored = {_identity(row): row for row in previous if row.status == "ok"}

    def stored_row(item: _Item) -> JudgeEvaluation | None:
        session, judge, _ = item
        return stored.get((session.id, session.digest, judge.name, eval_fingerprint, version))

    def groups() -> Iterator[list[_Item]]:
        for session in sessions:
            context = cache(partial(context_of, session))
            yield [(session, judge, context) for judge in ordered]

    def ask(item: _Item) -> JudgeEvaluation:
        return _judge(*item, judge_by, eval_fingerprint)

    return evaluate(groups(), stored_row, ask, workers=concurrency)


def judge_change(
    judges: Sequence[Judge],
    judge_by: ChangeJudge,
    context: ChangeContext,
    session: Session,
    eval_fingerprint: str,
) -> list[JudgeEvaluation]:
    """Return the judgements of all judges on one change, in judge-name order.

    All are asked at once. The others are not waited for once one has failed: their threads end
    with the process.

    Raises:
        ModelError: one of them failed; which, and why.
    """
    done: SimpleQueue[JudgeEvaluation] = SimpleQueue()

    def ask(judge: Judge) -> None:
        done.put(_judge(session, judge, lambda: context, judge_by, eval_fingerprint))

    for judge in judges:
        threading.Thread(target=ask, args=(judge,), daemon=True, name=judge.name).start()
    rows = []
    for _ in judges:
        row = done.get()
        if row.status == "failed":
            raise ModelError(f"judge {row.judge}", row.failure.rstrip("."))
        rows.append(row)
    return sorted(rows, key=lambda row: row.judge)


def weighted_average(rows: Iterable[Any]) -> float | None:
    """Return the mean of the scores weighted by the judges' weights; None without a score.

    Failed rows have no score and do not count: look at their number before using the mean.

    Args:
        rows: each with a ``weight`` and a ``score``.
    """
    scored = [(row.weight, row.score) for row in rows if row.score is not None]
    whole = sum(weight for weight, _ in scored)
    return sum(weight * score for weight, score in scored) / whole if whole else None


_identity = attrgetter("session_id", "session_digest", "judge", "eval_fingerprint", "version")


def _judge(
    session: Session,
    judge: Judge,
    context: Callable[[], ChangeContext],
    judge_by: ChangeJudge,
    eval_fingerprint: str,
) -> JudgeEvaluation:
    row = JudgeEvaluation(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        judge=judge.name,
        weight=judge.weight,
        model=judge.model,
        status="failed",
        eval_fingerprint=eval_fingerprint,
    )
    try:
        shown = context()
        answer = judge_by.judge(judge, shown, session)
        if not 0.0 <= answer.score <= 1.0:
            raise ValueError(f"the score {answer.score!r} is not between 0 and 1")
        texts = shown.plan_content, shown.git_changes
        suspected = is_suspected(session) or bool(injection_signs(texts))
    except Exception as error:
        return structs.replace(row, failure=failure_of(error))
    said = {**structs.asdict(answer), "injection_suspected": suspected}
    return structs.replace(row, status="ok", version=version_of(judge_by), **said)
