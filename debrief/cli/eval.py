"""``debrief eval``, and ``debrief judge``, which is the same: judge a plan's worktree."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from debrief.cli.completing import starting_with
from debrief.cli.shared import (
    AsJson,
    DryRun,
    MaxCost,
    Model,
    Repo,
    Yes,
    checked_limit,
    console,
    cost_text,
    print_json,
)
from debrief.errors import ConfigurationError, InputError
from debrief.markdown import counted

if TYPE_CHECKING:
    from debrief.evaluators import Evaluators
    from debrief.judging.model import ChangeContext, JudgeEvaluation
    from debrief.judging.worktree import PlanChanges
    from debrief.redaction.redactor import Redactor
    from debrief.sessions.model import Session

_JSON_FIELDS = (
    *("judge", "score", "weight", "model", "answered_by", "feedback"),
    *("injection_suspected", "input_tokens", "output_tokens", "cost_usd"),
)
_BAR = 20
_LINE = "<!-- What stands below this line is left out. -->"
_INVITATION = f"""

{_LINE}

What was good about this piece of work, what was not, and what should the agent have known?
"""


def _worktree_ids(root: Path) -> list[str]:
    from debrief.snapshots.capture import HOME

    folders = (root / HOME / "worktrees").glob("[!.]*")
    return sorted(path.name for path in folders if path.is_dir())


def evaluate(
    plan_id: Annotated[
        str,
        typer.Argument(
            help="A plan that has a worktree.", autocompletion=starting_with(_worktree_ids)
        ),
    ],
    model: Model = "",
    judge: Annotated[
        list[str] | None, typer.Option(help="Only this judge; may be given more than once.")
    ] = None,
    as_json: AsJson = False,
    export: Annotated[
        bool | None,
        typer.Option(
            "--export/--no-export",
            help="File the training sample, or leave it. Default: where the plan has a capture.",
        ),
    ] = None,
    tests: Annotated[
        str, typer.Option(help="A command; run before and after the change, for the sample.")
    ] = "",
    feedback: Annotated[
        str | None, typer.Option(help="Your own words on the work, for the sample.")
    ] = None,
    edit: Annotated[
        bool, typer.Option("--edit", help="Write your own words in an editor instead.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    max_cost: MaxCost = None,
    repo: Repo = Path(),
) -> None:
    """Judge what was done in a plan's worktree: a score and feedback of each judge.

    Judged is **.debrief/worktrees/PLAN_ID/**: its plan.md, git status, git diff HEAD (from the
    plan's git_sha on, where work was committed since), new files and changed files in full,
    secrets taken out. All judges work at once; at the first that fails the command stops, with
    an exit code that is not 0. Judges are **.debrief/judges/*.md**, else the project's own.
    Answers are kept: the same work is not judged twice.

    The estimated cost is printed first. Nobody is asked to agree, unless the estimate is above
    the limit. Where `debrief code` captured the session, the training sample is filed in
    **.debrief/training_data/PLAN_ID/**.
    """
    from debrief.cli.asking import agree, estimate_of, print_notes
    from debrief.evaluators import make_evaluators, require_model
    from debrief.judging.evaluation import evaluate_week, judge_change, weighted_average
    from debrief.redaction.redactor import redactor_of
    from debrief.settings import load_settings
    from debrief.snapshots.plans import repository_of

    settings = load_settings()
    root = repository_of(repo).root
    worktree, plan = _worktree_and_plan(root, plan_id)
    has_own = bool(tests or feedback is not None or edit)
    if export is False and has_own:
        culprit = "--no-export"
        reason = "leaves out the sample that --tests, --feedback and --edit go into"
        raise ConfigurationError(culprit, reason, "Give one or the other.")
    given = settings.with_given(model=model, max_cost_usd=checked_limit(max_cost))
    if not model:
        require_model("debrief eval", settings, root)
    make = partial(
        make_evaluators,
        no_model=False,
        repository=root,
        history=True,
        only=tuple(judge or ()),
        fail_fast=True,
    )
    evaluators = make(given, dry_run=dry_run)
    print_notes(evaluators.models)
    redactor = redactor_of(settings)
    changes, context, session = _shown_work(root, plan_id, worktree, plan, redactor)
    judges, fingerprint = evaluators.judges, evaluators.eval_fingerprint
    counting = make(given, dry_run=True)
    asked = counting.change_judge
    list(evaluate_week([session], judges, asked, fingerprint, context_of=lambda _: context))
    if dry_run:
        _print_estimate(counting, as_json)
        return
    models = ", ".join(sorted({judge.model for judge in judges}))
    estimate = estimate_of(models, counting.spent, margin=0.0)
    evaluators = make(agree(estimate, given, yes=yes, is_small=True))
    judge_one = evaluators.change_judge
    with console(stderr=True).status(f"{len(judges)} judges are at work …"):
        rows = judge_change(judges, judge_one, context, session, fingerprint)
    if as_json:
        print_json(
            {
                "plan_id": plan_id,
                "worktree": changes.folder,
                "base_commit": changes.base,
                "eval_fingerprint": fingerprint,
                "weighted_average": weighted_average(rows),
                "judges": [{name: getattr(row, name) for name in _JSON_FIELDS} for row in rows],
                "spent": evaluators.spent,
            }
        )
    else:
        _print_rows(plan_id, changes, rows, evaluators)
    left = "" if export or has_own else _why_not_filed(root, plan_id, bool(judge))
    if export is False or left:
        if left and export is None:
            console(stderr=True).print(f"No training sample: {left} --export files it.")
        return
    if edit and feedback is None:
        feedback = _edited()
    _file_sample(plan_id, root, changes, rows, evaluators, redactor, tests, feedback)


def _shown_work(
    root: Path, plan_id: str, worktree: Path, plan: str, redactor: Redactor
) -> tuple[PlanChanges, ChangeContext, Session]:
    """Return what was changed in a worktree, what judges are shown of it, and it as a session."""
    from debrief.judging.worktree import (
        context_from_worktree,
        read_worktree,
        session_from_worktree,
    )
    from debrief.sessions.redaction import redact_session
    from debrief.snapshots.capture import HOME, read_metadata

    changes = read_worktree(worktree, plan)
    context = context_from_worktree(changes, lambda text: redactor.redact(text).text)
    try:
        tool = str(read_metadata(root / HOME / "sessions" / plan_id).get("tool") or "unknown")
    except (OSError, ValueError):
        tool = "unknown"
    session = session_from_worktree(changes, plan_id, datetime.now(UTC), tool)
    return changes, context, redact_session(session, redactor)


def _why_not_filed(root: Path, plan_id: str, is_part: bool) -> str:
    """Return why a sample that nobody asked for is not filed; empty when it is.

    Args:
        root: of the repository.
        plan_id: of the plan.
        is_part: not all judges were asked.
    """
    from debrief.snapshots.capture import HOME

    capture = root / HOME / "sessions" / plan_id
    if not capture.is_dir():
        return f"debrief code captured no session of this plan in {capture}."
    if is_part:
        return "not all judges were asked."
    return ""


def _worktree_and_plan(root: Path, plan_id: str) -> tuple[Path, str]:
    """Return a plan's worktree and the plan's text."""
    from debrief.files import read_text
    from debrief.snapshots.capture import PLAN
    from debrief.snapshots.migration import move_of_earlier_worktree
    from debrief.snapshots.plans import checked_plan_id, find_plan, worktree_folder

    folder = worktree_folder(root, checked_plan_id(plan_id))
    if folder.is_symlink() or not folder.is_dir():
        known = ", ".join(_worktree_ids(root)) or "none"
        move = f"Run: debrief code {plan_id}. Plans with a worktree: {known}."
        move = move_of_earlier_worktree(root, plan_id) or move
        raise InputError(f"plan {plan_id}", f"has no worktree at {folder}", move)
    own = folder / PLAN
    path = own if own.is_file() else find_plan(root, plan_id, folder)
    text = read_text(path)
    if not text.strip():
        raise InputError(str(path), "is empty", "Write the plan there.")
    return folder, text


def _print_estimate(evaluators: Evaluators, as_json: bool) -> None:
    spent = evaluators.spent
    if as_json:
        print_json(spent)
        return
    console().print(
        f"{spent.calls} calls with {spent.usage.input_tokens:,} tokens, "
        f"{cost_text(spent.usage.cost_usd)}; {spent.recalled} answers are in the cache. "
        "Nothing was asked."
    )


def _print_rows(
    plan_id: str, changes: PlanChanges, rows: Sequence[JudgeEvaluation], evaluators: Evaluators
) -> None:
    """Print each judge's score and feedback, then the weighted average and what it took."""

    from debrief.judging.evaluation import weighted_average
    from debrief.models.fencing import LOOK_FIRST, make_visible

    out = console()
    out.print(Text.assemble(("Plan ", "dim"), (plan_id, "bold")))
    out.print(Text.assemble(("Worktree ", "dim"), changes.folder))
    files = counted(len(changes.files) + len(changes.named), "file")
    out.print(Text.assemble(("Changed ", "dim"), f"{files} since {changes.base[:12]}"))
    for row in rows:
        out.print()
        out.print(Rule(Text(row.judge, "bold"), align="left", style="dim"), soft_wrap=False)
        by = row.answered_by or row.model
        bar = Text("cannot be seen") if row.score is None else _score_bar(row.score)
        out.print(bar.append(f"   weight {row.weight:g}, {by}", "dim"))
        out.print()
        out.print(Padding(Text(make_visible(row.feedback.strip())), (0, 2)), soft_wrap=False)
    average = weighted_average(rows)
    out.print()
    out.print(Rule(style="dim"), soft_wrap=False)
    if any(row.injection_suspected for row in rows):
        out.print(LOOK_FIRST, style="yellow")
    if average is not None:
        out.print(Text("Weighted average  ", "bold").append_text(_score_bar(average)))
    out.print(Text(f"eval fingerprint {evaluators.eval_fingerprint}; {_spent(evaluators)}", "dim"))


def _score_bar(score: float) -> Text:
    colour = "green" if score >= 0.7 else "yellow" if score >= 0.4 else "red"
    filled = round(score * _BAR)
    text = Text(f"{score:.2f} ", f"bold {colour}")
    return text.append("━" * filled, colour).append("─" * (_BAR - filled), "dim")


def _spent(evaluators: Evaluators) -> str:
    spent = evaluators.spent
    cost = spent.usage.cost_usd
    price = "cost not known" if cost is None else f"${cost:.4f}"
    tokens = spent.usage.input_tokens + spent.usage.output_tokens
    text = f"{spent.calls} answers, {tokens:,} tokens, {price}" if spent.calls else "no call"
    return f"{text}, {spent.recalled} out of the cache" if spent.recalled else text


def _file_sample(
    plan_id: str,
    root: Path,
    changes: PlanChanges,
    rows: Sequence[JudgeEvaluation],
    evaluators: Evaluators,
    redactor: Redactor,
    tests: str,
    feedback: str | None,
) -> None:
    """Run the tests if there are any, write the sample, and print what it lacks and where it is."""
    from debrief.judging.suites import run_tests, run_tests_at
    from debrief.snapshots.capture import HOME
    from debrief.training.training_data_exporter import create_training_data

    notes = console(stderr=True)
    outcomes, worktree = {}, Path(changes.folder)
    if tests:

        def redact(text: str) -> str:
            return redactor.redact(text).text

        with notes.status("The tests are running …"):
            outcomes["before"] = run_tests_at(tests, worktree, changes.base, redact)
            outcomes["after"] = run_tests(tests, worktree, "worktree", redact)
        for name, run in outcomes.items():
            end = "ran out of time" if run.exit_code is None else f"exit code {run.exit_code}"
            notes.print(f"tests {name}: {end}, {run.seconds:.0f} s")
    folder, files, warnings = create_training_data(
        root / HOME,
        redactor,
        plan_id=plan_id,
        plan=changes.plan,
        base=changes.base,
        evaluations=[row for row in rows if row.score is not None],
        eval_fingerprint=evaluators.eval_fingerprint,
        eval_digest=evaluators.eval_digest,
        tests=outcomes,
        feedback=feedback,
    )
    for warning in warnings:
        notes.print(f"warning: {warning}", style="yellow")
    notes.print(f"Filed the training sample: {files} files in {folder}")


def _edited() -> str | None:
    import click

    text = click.edit(_INVITATION, extension=".md")
    return None if text is None else text.partition(_LINE)[0]
