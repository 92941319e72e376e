"""``debrief eval``: what the judges say of a plan's worktree."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs, to_builtins

from debrief.cli.completion import worktree_ids
from debrief.cli.console import console
from debrief.errors import ConfigurationError, InputError
from debrief.judging.worktree import WorktreeChanges, read_worktree, without_front_matter
from debrief.judging.worktree_context import context_from_worktree, session_from_worktree
from debrief.settings import Settings, load_settings
from debrief.snapshots.capture import repository_of
from debrief.snapshots.plans import PLAN, checked_plan_id, find_plan
from debrief.snapshots.repositories import HOME
from debrief.snapshots.worktrees import worktree_folder
from debrief.snapshots.writing import read_metadata

if TYPE_CHECKING:
    from debrief.evaluators import Evaluators
    from debrief.judging.model import ChangeContext, JudgeEvaluation
    from debrief.redaction.redactor import Redactor
    from debrief.sessions.model import Session


class Wish(Struct, frozen=True, kw_only=True):
    """What was asked for on the command line."""

    plan_id: str
    folder: Path = Path()
    """Inside the plan's repository."""
    offline: bool = False
    model: str = ""
    judges: tuple[str, ...] = ()
    """Only these; empty for all."""
    as_json: bool = False
    export: bool = False
    tests: str = ""
    feedback: str | None = None
    edit: bool = False
    dry_run: bool = False
    max_cost_usd: float | None = None


class _Work(Struct, frozen=True, kw_only=True):
    """A plan's work, ready to be judged."""

    root: Path
    changes: WorktreeChanges
    context: ChangeContext
    session: Session
    redactor: Redactor


_TOLD = (
    "judge",
    "score",
    "weight",
    "model",
    "answered_by",
    "feedback",
    "input_tokens",
    "output_tokens",
    "cost_usd",
)


def evaluate_plan(wish: Wish) -> None:
    """Judge a plan's worktree by all judges at once and print what they say.

    Raises:
        DebriefError: the plan, the worktree, the judges or the key is missing or wrong, or one
            judge failed.
    """
    settings = load_settings()
    root, folder, plan = _places(wish)
    if not wish.export and (wish.tests or wish.feedback is not None or wish.edit):
        raise ConfigurationError(
            "--tests, --feedback and --edit", "go into an export", "Add --export."
        )
    evaluators = _evaluators(wish, settings, root)
    work = _gather(wish, settings, root, folder, plan)
    if wish.dry_run:
        _tell_costs(evaluators, work, wish)
        return
    from debrief.judging.evaluation import judge_change

    waiting = console(stderr=True).status(f"{len(evaluators.judges)} judges are at work …")
    with waiting:
        rows = judge_change(
            evaluators.judges,
            evaluators.change_judge,
            work.context,
            work.session,
            evaluators.eval_fingerprint,
        )
    if wish.as_json:
        _print_json(wish, work, rows, evaluators)
    else:
        from debrief.cli.verdicts import print_verdicts

        print_verdicts(wish.plan_id, work.changes, rows, evaluators, console())
    if wish.export:
        _export(wish, work, rows, evaluators)


def _places(wish: Wish) -> tuple[Path, Path, str]:
    """Return the repository, the worktree and the plan's text."""
    plan_id = checked_plan_id(wish.plan_id)
    root = repository_of(wish.folder).root
    folder = worktree_folder(root, plan_id)
    if folder.is_symlink() or not folder.is_dir():
        try:
            find_plan(root, plan_id, folder)
        except InputError as error:
            known = ", ".join(worktree_ids(root)) or "none"
            raise InputError(
                error.culprit,
                f"{error.reason}, and has no worktree",
                f"Plans with a worktree: {known}.",
            ) from None
        raise InputError(
            f"plan {plan_id}", f"has no worktree at {folder}", f"Run: debrief code {plan_id}"
        )
    own = folder / PLAN
    path = own if own.is_file() else find_plan(root, plan_id, folder)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            str(path), f"is not UTF-8 at byte {error.start}", "Save it as UTF-8."
        ) from None
    if not text.strip():
        raise InputError(str(path), "is empty", "Write the plan there.")
    return root, folder, text


def _evaluators(wish: Wish, settings: Settings, root: Path) -> Evaluators:
    from debrief.evaluators import make_evaluators

    return make_evaluators(
        settings,
        offline=wish.offline,
        model=wish.model,
        repository=root,
        max_cost_usd=wish.max_cost_usd,
        dry_run=wish.dry_run,
        history=True,
        only=wish.judges,
    )


def _gather(wish: Wish, settings: Settings, root: Path, folder: Path, plan: str) -> _Work:
    from debrief.redaction.redactor import Redactor, key_of
    from debrief.redaction.sessions import redact_session

    redactor = Redactor(key_of(settings))
    changes = read_worktree(folder, plan)
    context = context_from_worktree(changes, lambda text: redactor.redact(text).text)
    if wish.offline:
        context = structs.replace(context, plan_content=without_front_matter(context.plan_content))
    moment = datetime.now(UTC)
    try:
        tool = str(read_metadata(root / HOME / "sessions" / wish.plan_id).get("tool") or "unknown")
    except (OSError, ValueError):
        tool = "unknown"
    session = session_from_worktree(changes, wish.plan_id, moment, tool)
    return _Work(
        root=root,
        changes=changes,
        context=context,
        session=redact_session(session, redactor),
        redactor=redactor,
    )


def _print_json(
    wish: Wish, work: _Work, rows: Sequence[JudgeEvaluation], evaluators: Evaluators
) -> None:
    import json

    from debrief.judging.evaluation import weighted_average

    report: dict[str, Any] = {
        "plan_id": wish.plan_id,
        "worktree": work.changes.folder,
        "base_commit": work.changes.base,
        "eval_fingerprint": evaluators.eval_fingerprint,
        "weighted_average": weighted_average(rows),
        "judges": [{name: getattr(row, name) for name in _TOLD} for row in rows],
        "spent": to_builtins(evaluators.spent),
    }
    sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")


def _tell_costs(evaluators: Evaluators, work: _Work, wish: Wish) -> None:
    import json

    from debrief.judging.evaluation import evaluate_week

    rows = evaluate_week(
        [work.session],
        evaluators.judges,
        evaluators.change_judge,
        evaluators.eval_fingerprint,
        context_of=lambda _: work.context,
    )
    list(rows)
    spent = evaluators.spent
    if wish.as_json:
        sys.stdout.write(json.dumps(to_builtins(spent), indent=2) + "\n")
        return
    cost = spent.usage.cost_usd
    price = "at an unknown price" if cost is None else f"for about ${cost:.4f}"
    console().print(
        f"{spent.calls} calls with {spent.usage.input_tokens:,} tokens, {price}; "
        f"{spent.recalled} answers are in the cache. Nothing was asked."
    )


def _export(
    wish: Wish, work: _Work, rows: Sequence[JudgeEvaluation], evaluators: Evaluators
) -> None:
    from debrief.training.plan_export import Judged, export_plan

    notes = console(stderr=True)
    before = after = None
    if wish.tests:
        from debrief.judging.suites import run_tests, run_tests_at

        def redact(text: str) -> str:
            return work.redactor.redact(text).text

        with notes.status("The tests are running …"):
            before = run_tests_at(wish.tests, work.root, work.changes.base, redact)
            after = run_tests(wish.tests, Path(work.changes.folder), "worktree", redact)
        for name, run in (("before", before), ("after", after)):
            end = "ran out of time" if run.exit_code is None else f"exit code {run.exit_code}"
            notes.print(f"tests {name}: {end}, {run.seconds:.0f} s")
    exported = export_plan(
        Judged(
            plan_id=wish.plan_id,
            plan=work.changes.plan,
            base=work.changes.base,
            evaluations=tuple(rows),
            eval_fingerprint=evaluators.eval_fingerprint,
            eval_digest=evaluators.eval_digest,
            tests_before=before,
            tests_after=after,
            feedback=_feedback(wish),
        ),
        work.root / HOME,
        work.redactor,
    )
    for warning in exported.warnings:
        notes.print(f"warning: {warning}", style="yellow", soft_wrap=True)
    notes.print(f"exported {len(exported.files)} files to {exported.folder}", soft_wrap=True)


def _feedback(wish: Wish) -> str | None:
    if wish.feedback is not None or not wish.edit:
        return wish.feedback
    import click

    said = click.edit(_INVITATION, extension=".md")
    return None if said is None else said.partition(_LINE)[0]


_LINE = "<!-- What stands below this line is left out. -->"
_INVITATION = f"""

{_LINE}

What was good about this piece of work, what was not, and what should the agent have known?
"""
