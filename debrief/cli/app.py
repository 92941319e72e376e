"""The commands that need no orchestrator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief import __version__
from debrief.cli.console import told

app = typer.Typer(
    name="debrief",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help=(
        "Turns the coding-agent sessions you already have into judged, scored, secrets-free "
        "training data, and says why each score is what it is.\n\n"
        "Start with **debrief demo** (sample sessions, no key, half a minute), then "
        "**debrief run** on your own."
    ),
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"debrief {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print and exit.")
    ] = False,
) -> None:
    """Take the options that come before a command."""


hooks = typer.Typer(
    no_args_is_help=True,
    help="Capture prompts and circumstances from Claude Code's own session-start hook.",
)
app.add_typer(hooks, name="hooks")

judges = typer.Typer(
    no_args_is_help=True, help="The judges that are in force: list them, check them, write one."
)
app.add_typer(judges, name="judges")

Repo = Annotated[
    Path, typer.Option("--repo", help="A folder inside the repository; the current one if none.")
]
User = Annotated[
    bool, typer.Option("--user", help="Your own settings, for every repository, instead.")
]
Local = Annotated[
    bool, typer.Option("--local", help="The repository's settings.local.json, never committed.")
]


@app.command()
@told
def sources(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders to search; the usual places of this machine's user if none."),
    ] = None,
    read: Annotated[
        bool,
        typer.Option("--read", help="Read everything: turns, tokens, growth, failures by reason."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List what was found: transcripts by source, with counts and dates. Writes nothing."""
    from debrief.cli.sources import list_sources

    list_sources(folders or [], read=read, as_json=as_json)


def _plan_ids(incomplete: str) -> list[str]:
    from debrief.snapshots.plans import plan_ids
    from debrief.snapshots.repositories import find_repository

    repository = find_repository(Path())
    ids = plan_ids(repository.root) if repository is not None else []
    return [plan_id for plan_id in ids if plan_id.startswith(incomplete)]


@app.command()
@told
def code(
    plan_id: Annotated[
        str,
        typer.Argument(
            help="Names the plan: a slug such as retry-queue.", autocompletion=_plan_ids
        ),
    ],
    extra: Annotated[
        list[str] | None, typer.Argument(help="After --: passed on to the tool as it is.")
    ] = None,
    tool: Annotated[str, typer.Option(help="claude-code or droid.")] = "claude-code",
    model: Annotated[
        str, typer.Option(help="As the tool names it, such as opus; its own default if none.")
    ] = "",
    repo: Repo = Path(),
) -> None:
    """Carry out a plan with a coding agent in a worktree of its own, and capture the session.

    The plan is **.debrief/plans/PLAN_ID.md**, else **.debrief/plans/PLAN_ID/plan.md**, else the
    **plan.md** of its worktree, else the repository's own plan.md. It is copied into the
    worktree **.debrief/worktrees/PLAN_ID/**, on a branch of its name.

    Prompts are those in **.debrief/prompts/active/TOOL/MODEL/** or **…/TOOL/** (main.md, and one
    file a subagent), else the repository's CLAUDE.md and .claude/agents, or AGENTS.md for droid.
    They are written to **.debrief/sessions/PLAN_ID/** with metadata.json before the tool starts;
    its transcript is filed there when it ends. An earlier run's folder is renamed to its
    session's id first.

    The tool is started with DEBRIEF_CLAUDE_COMMAND (claude) or DEBRIEF_DROID_COMMAND (droid); its
    exit code is passed on.
    """
    from debrief.cli.code import code_plan

    raise typer.Exit(
        code_plan(plan_id, tool=tool, model=model or None, folder=repo, extra=extra or [])
    )


@hooks.command("install")
@told
def hooks_install(user: User = False, local: Local = False, repo: Repo = Path()) -> None:
    """Install the hook in a repository's .claude/settings.json; all else in it is kept.

    Each session then has its prompts/ and metadata.json in **.debrief/sessions/SESSION_ID/** of
    the repository it runs in. The hook takes a tenth of a second, and says nothing: failures go
    to **~/.debrief/logs/hooks.log**.
    """
    from debrief.cli.hooks import install_hook

    install_hook(user=user, local=local, folder=repo)


@hooks.command("remove")
@told
def hooks_remove(user: User = False, local: Local = False, repo: Repo = Path()) -> None:
    """Remove our hook and nothing else."""
    from debrief.cli.hooks import remove_hook

    remove_hook(user=user, local=local, folder=repo)


@hooks.command("status")
@told
def hooks_status(user: User = False, repo: Repo = Path()) -> None:
    """Tell where the hook is installed, and what it last failed at; exit code 1 if nowhere."""
    from debrief.cli.hooks import show_hooks

    raise typer.Exit(show_hooks(user=user, folder=repo))


@app.command()
@told
def migrate(
    path: Annotated[
        Path, typer.Argument(help="A repository with a .weft or .lw_coder folder, or that folder.")
    ] = Path(),
    really: Annotated[
        bool, typer.Option("--apply", help="Write; without it, only what would be is told.")
    ] = False,
    target: Annotated[
        Path | None,
        typer.Option("--to", help="The .debrief folder to fill; the one beside it if none."),
    ] = None,
) -> None:
    """Make .debrief folders of .weft and .lw_coder ones by copy; nothing is overwritten.

    Sessions, training data, judges, plans (or tasks) and prompts are taken over. Prompts and
    metadata that a sample lacks are filled in from what lies around it, and listed in its
    metadata as filled in; what nobody can tell is reported as missing.
    """
    from debrief.cli.migrate import migrate as migrate_folders

    migrate_folders(path, target=target, really=really)


def _worktree_ids(incomplete: str) -> list[str]:
    from debrief.cli.completion import worktree_ids

    return [plan_id for plan_id in worktree_ids(Path()) if plan_id.startswith(incomplete)]


@app.command("eval")
@app.command("judge", help="The same as **eval**.")
@told
def evaluate(
    plan_id: Annotated[
        str,
        typer.Argument(help="A plan that has a worktree.", autocompletion=_worktree_ids),
    ],
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no model: the deterministic offline evaluator.")
    ] = False,
    model: Annotated[
        str, typer.Option(help="Answers for every judge; by default the model that each names.")
    ] = "",
    judge: Annotated[
        list[str] | None, typer.Option(help="Only this judge; may be given more than once.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    export: Annotated[
        bool, typer.Option("--export", help="Write .debrief/training_data/PLAN_ID/.")
    ] = False,
    tests: Annotated[
        str, typer.Option(help="A command; run before and after the change, for the export.")
    ] = "",
    feedback: Annotated[
        str | None, typer.Option(help="Your own words on the work, for the export.")
    ] = None,
    edit: Annotated[
        bool, typer.Option("--edit", help="Write your own words in an editor instead.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost, and ask nothing.")
    ] = False,
    max_cost: Annotated[
        float | None, typer.Option(help="In USD: no new call once so much is spent.")
    ] = None,
    repo: Repo = Path(),
) -> None:
    """Judge what was done in a plan's worktree: a score and feedback of each judge.

    Judged is **.debrief/worktrees/PLAN_ID/**: its plan.md, git status, git diff HEAD (from the
    plan's git_sha on, where work was committed since), new files and changed files in full,
    secrets taken out. All judges work at once; at the first that fails the command stops, with
    an exit code that is not 0. Judges are **.debrief/judges/*.md**, else the project's own.
    Answers are kept: the same work is not judged twice.
    """
    from debrief.cli.eval import Wish, evaluate_plan

    evaluate_plan(
        Wish(
            plan_id=plan_id,
            folder=repo,
            offline=offline,
            model=model,
            judges=tuple(judge or ()),
            as_json=as_json,
            export=export,
            tests=tests,
            feedback=feedback,
            edit=edit,
            dry_run=dry_run,
            max_cost_usd=max_cost,
        )
    )


@judges.command("list")
@told
def judges_list(repo: Repo = Path()) -> None:
    """List the judges in force, with their weights and models."""
    from debrief.cli.judges import list_judges

    list_judges(repo)


@judges.command("check")
@told
def judges_check(repo: Repo = Path()) -> None:
    """Check every judge's file; exit code 1 when one has a mistake."""
    from debrief.cli.judges import check_judges

    raise typer.Exit(1 if check_judges(repo) else 0)


@judges.command("new")
@told
def judges_new(
    name: Annotated[str, typer.Argument(help="Such as error-handling.")],
    weight: Annotated[float, typer.Option(help="Its share in the weighted average.")] = 0.5,
    model: Annotated[str, typer.Option(help="A LiteLLM model name.")] = (
        "openrouter/x-ai/grok-4.1-fast"
    ),
    repo: Repo = Path(),
) -> None:
    """Begin a judge in the repository's .debrief/judges."""
    from debrief.cli.judges import new_judge

    new_judge(name, weight, model, repo)


@app.command()
@told
def score(
    session: Annotated[
        str,
        typer.Argument(
            help="An id in the lake or among this machine's transcripts (its beginning will do), "
            "a transcript, or a folder of them."
        ),
    ] = "",
    langfuse: Annotated[
        str, typer.Option("--langfuse", help="The id of a session on the Langfuse server.")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="Every session of the lake.")] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no model: the deterministic offline evaluator.")
    ] = False,
    model: Annotated[str, typer.Option(help="A LiteLLM model name.")] = "",
    store: Annotated[
        bool,
        typer.Option("--store", help="Write the scores to the Langfuse server and read them back."),
    ] = False,
    invariance: Annotated[
        bool,
        typer.Option(
            "--invariance", help="How far scores move when sessions are cut at 80, 100 and 120 %."
        ),
    ] = False,
    answers: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Write the prompts there, and take the answers that a coding agent leaves there.",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    lake: Annotated[str, typer.Option(help="The lake; DEBRIEF_LAKE if none.")] = "",
) -> None:
    """Score a session in six dimensions, each with a rationale and the turns that show it.

    A session of any length is cut into parts by tokens and put together again; how far the
    parts agree is told. Nothing is kept but with **--store**. Exit code 1 when a session cannot
    be scored or the server does not confirm a score.
    """
    from debrief.cli.score import Wanted
    from debrief.cli.score import score as score_wanted

    wanted = Wanted(
        session=session,
        langfuse=langfuse,
        everything=everything,
        offline=offline,
        model=model,
        store=store,
        invariance=invariance,
        as_json=as_json,
        answers=answers,
        lake=lake,
    )
    raise typer.Exit(score_wanted(wanted))


rubrics = typer.Typer(
    no_args_is_help=True, help="The rubrics that were mined: read them, check them, compare them."
)
app.add_typer(rubrics, name="rubrics")
RubricLake = Annotated[str, typer.Option("--lake", help="The lake; DEBRIEF_LAKE if none.")]


@rubrics.command("show")
@told
def rubrics_show(
    lake: RubricLake = "",
    score_name: Annotated[
        str, typer.Option(help="excellence, token_efficiency or user_turn_efficiency; all if none.")
    ] = "",
    form: Annotated[str, typer.Option("--format", help="text, markdown or json.")] = "text",
) -> None:
    """Show the final rubrics, how they did on other sessions, and which were dropped."""
    from debrief.cli.rubrics import show_rubrics

    show_rubrics(lake, score_name, form)


@rubrics.command("lint")
@told
def rubrics_lint(
    path: Annotated[
        Path | None, typer.Argument(help="A JSON file of rubrics; those of the lake if none.")
    ] = None,
    lake: RubricLake = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Mark what makes a rubric hard to judge by; exit code 1 when anything is marked."""
    from debrief.cli.rubrics import lint_rubrics

    raise typer.Exit(1 if lint_rubrics(path, lake, as_json) else 0)


@rubrics.command("compare")
@told
def rubrics_compare(
    before: Annotated[str, typer.Argument(help="A lake, or a Monday: the set as of that week.")],
    after: Annotated[str, typer.Argument(help="Likewise.")],
    lake: RubricLake = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two sets by the rubrics' keys: what came, went, weighs more, was reworded."""
    from debrief.cli.rubrics import compare_sets

    compare_sets(before, after, lake, as_json)


skill = typer.Typer(
    no_args_is_help=True,
    help="The skill with which a coding agent scores sessions itself.",
)
app.add_typer(skill, name="skill")


@skill.command("install")
@told
def skill_install(user: User = False, repo: Repo = Path()) -> None:
    """Install the skill in a repository's .claude/skills, or with --user for all of them."""
    from debrief.cli.skill import install_skill

    install_skill(user=user, folder=repo)


@skill.command("remove")
@told
def skill_remove(user: User = False, repo: Repo = Path()) -> None:
    """Remove the skill's own files and nothing else."""
    from debrief.cli.skill import remove_skill

    remove_skill(user=user, folder=repo)


@app.command()
@told
def export(
    to: Annotated[str, typer.Option("--to", help="A folder or an fsspec URL such as s3://…")],
    lake: Annotated[str, typer.Option("--lake", help="The lake; DEBRIEF_LAKE if none.")] = "",
    form: Annotated[
        str,
        typer.Option("--format", help="messages, trl, openai, sharegpt, preference or reward."),
    ] = "messages",
    task: Annotated[str, typer.Option(help="Only this task.")] = "",
    fingerprint: Annotated[
        str, typer.Option(help="Only this pair, such as b7d4e2f9-a3f8b2c1.")
    ] = "",
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Parquet files beside the JSONL.")
    ] = False,
    min_quality: Annotated[
        float, typer.Option(help="Only lines of at least this overall quality, 0 to 1.")
    ] = 0.0,
    status: Annotated[str, typer.Option(help="any, ready or draft.")] = "any",
) -> None:
    """Write training sets to a folder that **datasets.load_dataset** takes as splits.

    Below it are **TASK/FINGERPRINT/train.jsonl** and **eval.jsonl** with the set's card, and a
    README.md that tells loaders the types. Every line is checked by the rules of who reads the
    format. Sets are published as they were made; *debrief backfill --stage training_sets* makes
    them again.
    """
    from debrief.cli.export import export as export_sets

    export_sets(
        to,
        lake=lake,
        form=form,
        task=task,
        fingerprint=fingerprint,
        parquet=parquet,
        min_quality=min_quality,
        status=status,
    )


@app.command()
@told
def train(
    task: Annotated[str, typer.Option(help="Only samples of this task.")] = "",
    tool: Annotated[str, typer.Option(help="Only samples of this tool.")] = "",
    model: Annotated[str, typer.Option(help="Only sessions that this model answered.")] = "",
    fingerprint: Annotated[
        str, typer.Option(help="Only this prompt fingerprint, or pair with an eval fingerprint.")
    ] = "",
    ask: Annotated[
        str, typer.Option(help="The language model that does it; DEBRIEF_MODEL if none.")
    ] = "",
    offline: Annotated[
        bool, typer.Option("--offline", help="Says that this cannot be had without a model.")
    ] = False,
    trials: Annotated[int, typer.Option(min=4, help="How often prompts may be tried.")] = 60,
    samples: Annotated[
        int, typer.Option(min=1, help="Most samples of each side of the split.")
    ] = 24,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how much would be asked, and ask nothing.")
    ] = False,
    max_cost: Annotated[
        float | None, typer.Option(help="In USD: no new call once so much is spent.")
    ] = None,
    lake: Annotated[str, typer.Option("--lake", help="The lake; DEBRIEF_LAKE if none.")] = "",
    repo: Repo = Path(),
) -> None:
    """Propose better prompts from training samples, and show before and after on held-out ones.

    Samples are those of the lake's training sets that ran with one known set of prompts. GEPA
    rewrites the main prompt and the subagents'; what it proposes is written to
    **.debrief/prompts/candidates/TOOL/FINGERPRINT/**, beside the active prompts and never over
    them. What was answered once is not asked again.
    """
    from debrief.cli.train import TrainWish
    from debrief.cli.train import train as train_prompts
    from debrief.training.lessons import LessonFilter

    train_prompts(
        TrainWish(
            lake=lake,
            samples=LessonFilter(task=task, tool=tool, model=model, fingerprint=fingerprint),
            offline=offline,
            ask=ask,
            trials=trials,
            most_samples=samples,
            max_cost_usd=max_cost,
            dry_run=dry_run,
            folder=repo,
        )
    )
