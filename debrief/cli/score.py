"""``debrief score``, and ``debrief skill`` with which a coding agent scores sessions itself."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.finding import SESSION_HELP, find_session, made_whole
from debrief.cli.shared import (
    AsJson,
    DryRun,
    LakeUrl,
    MaxCost,
    Model,
    Repo,
    ScoreTarget,
    User,
    Yes,
    checked_limit,
    console,
    existing_lake,
    print_json,
)
from debrief.errors import DebriefError, InputError, ModelError
from debrief.markdown import counted

if TYPE_CHECKING:
    from debrief.evaluators import Evaluators
    from debrief.lake import Lake
    from debrief.langfuse.outgoing import ScoreReceipt
    from debrief.scoring.model import ChunkScorer, SessionScores
    from debrief.sessions.model import Session
    from debrief.settings import Settings

UNANSWERED = 3
"""Exit code while prompts still need an answer."""


def score(
    session: Annotated[
        str,
        typer.Argument(help=f"{SESSION_HELP}, or a folder of them."),
    ] = "",
    langfuse: Annotated[
        str, typer.Option("--langfuse", help="The id of a session on the Langfuse server.")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="Every session of the lake.")] = False,
    model: Model = "",
    store: Annotated[
        bool,
        typer.Option("--store", help="Write the scores to the Langfuse server and read them back."),
    ] = False,
    score_target: ScoreTarget = None,
    answers: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Write the prompts there, and take the answers that a coding agent leaves there.",
        ),
    ] = "",
    yes: Yes = False,
    max_cost: MaxCost = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    lake: LakeUrl = "",
) -> None:
    """Have a model review a session: whether it did what was asked, and six dimensions, each with
    the turns that show it. What the model is likely to take is said before it is asked.

    A session of any length is cut into parts by tokens and put together again; how far the
    parts agree is shown. The review of a session of the lake is kept there, and the pages show it;
    **--store** writes the scores to Langfuse. Exit code 1 when a session cannot be reviewed or the
    server does not confirm a score.
    """
    from debrief.cli.results import print_receipts, print_scores, report_of
    from debrief.conversion import open_lake
    from debrief.evaluators import require_model
    from debrief.outcomes.store import labels_of
    from debrief.redaction.redactor import redactor_of
    from debrief.scoring.scorer import AGENT, HandScorer, score_session, write_prompts
    from debrief.sessions.store import sessions_in_folder, sessions_of_lake
    from debrief.settings import load_settings

    if sum(map(bool, (session, langfuse, everything))) != 1:
        raise InputError("debrief score", "needs one of SESSION, --langfuse ID and --all")
    if score_target and not store:
        raise InputError("--score-target", "says where scores are written", "Add --store.")
    settings = load_settings().with_given(
        max_cost_usd=checked_limit(max_cost), score_target=score_target
    )
    redactor = redactor_of(settings)

    redact = made_whole(redactor)

    def scorer(ask: Callable[[ChunkScorer], object]) -> ChunkScorer:
        """Return who scores, once what the model takes for ``ask`` is agreed to."""
        if answers:
            return HandScorer(Path(answers), model or AGENT)
        given = settings.with_given(model=model)
        if not model:
            require_model("debrief score", settings)
        return _asked(given, ask, yes=yes, dry_run=dry_run)

    opened = open_lake(existing_lake(lake) or settings.lake)
    if everything or (session and Path(session).is_dir()):
        if store or answers:
            raise InputError(
                "--store and --answers",
                "take one session",
                "For many sessions: debrief run --select langfuse_scores, or debrief run.",
            )

        def whole() -> Iterator[Session]:
            if session:
                return sessions_in_folder(Path(session), redact)
            return sessions_of_lake(opened)

        by = scorer(lambda by: deque((score_session(session, by) for session in whole()), 0))
        rows = [score_session(one, by) for one in whole()]
        console(stderr=True).print(_kept(_keep(rows, settings, opened), opened))
        _print_many(rows, session, as_json)
        return
    one = find_session(session, settings, opened, redact, langfuse)
    if answers:
        missing = [prompt for prompt in write_prompts(one, Path(answers)) if not prompt.is_answered]
        if missing:
            out = console()
            out.print(f"{len(missing)} prompts need an answer; then run the same command again:")
            for prompt in missing:
                out.print(f"  {prompt.path}  →  {prompt.answer.name}")
            raise typer.Exit(UNANSWERED)
    chunk_scorer = scorer(lambda by: score_session(one, by))
    row = score_session(one, chunk_scorer)
    if row.status == "failed":
        raise DebriefError(one.id, f"could not be scored: {row.failure}".rstrip("."))
    if not answers:  # what an agent says of its own work is shown alone
        console(stderr=True).print(_kept(_keep([row], settings, opened), opened))
    receipts = _store(row, chunk_scorer, settings, opened) if store else []
    labels = labels_of(opened, one.id)
    if as_json:
        print_json(report_of(one, row, receipts, labels))
    else:
        print_scores(console(), one, row, labels)
        if store:
            print_receipts(console(), receipts)
    raise typer.Exit(int(any(receipt.status != "written" for receipt in receipts)))


def _asked(
    settings: Settings,
    ask: Callable[[ChunkScorer], object],
    *,
    yes: bool,
    dry_run: bool,
) -> ChunkScorer:
    """Return the model that reviews, once what it takes is agreed to."""
    from debrief.cli.asking import agreed

    def count(by: Evaluators) -> None:
        with suppress(ModelError):
            ask(by.chunk_scorer)

    return agreed(settings, count, yes, dry_run=dry_run).chunk_scorer


def _print_many(rows: Sequence[SessionScores], folder: str, as_json: bool) -> None:
    from debrief.cli.results import print_many
    from debrief.scoring.chunking import TARGET

    if not rows:
        hint = "Name another." if folder else "debrief run fills it."
        raise InputError(folder or "the lake", "holds no session", hint)
    if as_json:
        print_json(rows)
    else:
        print_many(console(), rows, TARGET)
    raise typer.Exit(int(any(row.status == "failed" for row in rows)))


def _keep(rows: Sequence[SessionScores], settings: Settings, lake: Lake) -> int:
    """Keep reviews of sessions that the lake has as they are; return how many these are.

    Each takes the place of an earlier one by the same model. The next run takes them over.
    """
    from debrief.files import only_writer
    from debrief.keys import week_of
    from debrief.scoring.model import SessionScores
    from debrief.sessions.model import SessionHead
    from debrief.sessions.store import SESSIONS_TABLE

    by_week: dict[str, list[SessionScores]] = {}
    for row in rows:
        if row.status == "ok":
            by_week.setdefault(week_of(row.started), []).append(row)
    kept = 0
    for week, fresh in by_week.items():
        with only_writer(settings.home, lake.url):
            heads = lake.read(SESSIONS_TABLE, week, SessionHead)
            known = {(head.id, head.digest) for head in heads}
            own = [row for row in fresh if (row.session_id, row.session_digest) in known]
            replaced = {(row.session_id, row.scoring_fingerprint) for row in own}
            others = [
                row
                for row in lake.read("session_scores", week, SessionScores)
                if (row.session_id, row.scoring_fingerprint) not in replaced
            ]
            if own:
                lake.write("session_scores", week, [*own, *others], SessionScores)
        kept += len(own)
    return kept


def _kept(count: int, lake: Lake) -> str:
    if count:
        return f"Kept {counted(count, 'review')} in {lake.url}."
    return "Nothing was kept: the lake has no such session as it is now. debrief run reads it."


def _store(
    row: SessionScores, scorer: ChunkScorer, settings: Settings, lake: Lake
) -> list[ScoreReceipt]:
    """Write one session's scores to the server; return their receipts, filed with the week's."""
    from debrief.keys import week_of
    from debrief.langfuse.outgoing import ScoreReceipt
    from debrief.langfuse.session_scorer import SessionScorer
    from debrief.outcomes.labels import annotations_of

    week = week_of(row.started)
    whole = SessionScorer.from_settings(settings, scorer, "--store")
    with whole.client:
        previous = list(lake.read("langfuse_scores", week, ScoreReceipt))
        annotations = annotations_of(lake, whole.redact).get(row.session_id, ())
        receipts = whole.store(row, previous, annotations)
    lake.write("langfuse_scores", week, receipts, ScoreReceipt)
    return whole.receipts[row.session_id]


skill_app = typer.Typer(
    no_args_is_help=True, help="The skill with which a coding agent scores sessions itself."
)
NAME = "score-session"


@skill_app.command("install")
def skill_install(user: User = False, repo: Repo = Path()) -> None:
    """Install the skill in a repository's .claude/skills, or with --user for all of them."""
    target, files = _target(user, repo), _files()
    state = "brought up to date" if target.exists() else "installed"
    changed = False
    for name, data in files.items():
        path = target / name
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            changed = True
    state = state if changed else "is there already; nothing was changed"
    console().print(f"{target}: {state}")
    console().print(f"Claude Code uses it when asked how a session went, or by /{NAME}")


@skill_app.command("remove")
def skill_remove(user: User = False, repo: Repo = Path()) -> None:
    """Remove the skill's own files and nothing else."""
    target = _target(user, repo)
    installed = [target / name for name in _files() if (target / name).is_file()]
    for path in installed:
        path.unlink()
    for folder in (target / "scripts", target):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    state = "removed" if installed else "is not there; nothing was changed"
    console().print(f"{target}: {state}")


def _target(user: bool, repo: Path) -> Path:
    from debrief.snapshots.hook import settings_file

    return settings_file(user=user, folder=repo).parent / "skills" / NAME


def _files() -> dict[str, bytes]:
    """Return the skill's files by their path, with the command that is running now."""
    from debrief.content import folder

    source = folder("skills") / NAME
    found = sorted(file for file in source.rglob("*") if file.suffix in (".md", ".py"))
    own = Path(sys.executable).with_name("debrief")
    command = [str(own)] if own.exists() else [sys.executable, "-m", "pipelines.command"]
    return {
        **{file.relative_to(source).as_posix(): file.read_bytes() for file in found},
        "scripts/command.json": f"{json.dumps(command)}\n".encode(),
        "scripts/.gitignore": b".gitignore\ncommand.json\n",
    }
