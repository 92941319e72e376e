"""``debrief export``: training sets for trainers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from debrief.cli.options import option_names, takes
from debrief.cli.shared import (
    LakeUrl,
    chosen,
    console,
    existing_lake,
    warn,
)
from debrief.errors import ConfigurationError, InputError
from debrief.markdown import counted, shorten

if TYPE_CHECKING:
    from debrief.lake import Lake
    from debrief.scoring.verdict import VerdictName
    from debrief.settings import Settings
    from debrief.training.model import Status
    from debrief.training.publishing.folder import Published
    from debrief.training.publishing.form import RewardKind
    from debrief.training.publishing.publish import ExportOptions, PublishedTrajectories
    from debrief.training.windows import ContextTable

_STATUSES: Mapping[str, Status | None] = {"any": None, "ready": "ready", "draft": "draft"}
_MOST_REASONS = 8
_INCLUDED = "Known: reasoning, subagents."
_FEWEST_TOKENS = 256
_OF_SESSIONS = {"--to", "--lake", "--form", "--task"}
"""Options of ``--form atif``."""
_LEAVE = "Leave it out."
_SAME = (
    *("form", "task", "tool", "model", "fingerprint", "kind", "max_tokens", "one_file", "parquet"),
    *("min_overall_quality", "single_calls", "unreviewed", "licence"),
)
"""Fields that the library takes as they are."""


@dataclass(frozen=True, kw_only=True)
class ExportChoice:
    """What ``debrief export`` writes, and where."""

    to: Annotated[str, typer.Option("--to", help="A folder or an fsspec URL such as s3://…")]
    lake: LakeUrl = ""
    form: Annotated[
        str,
        typer.Option(
            "--form",
            "--format",
            help="messages, trl, axolotl, swift, sharegpt, openai, mistral, preference, kto or rl; "
            "atif for whole sessions.",
        ),
    ] = "messages"
    task: Annotated[
        str,
        typer.Option(help="Only these tasks, commas between; * and ? as in file names, as below."),
    ] = ""
    tool: Annotated[
        str, typer.Option(help="Only of these programs, such as codex or 'claude-code/2.1.*'.")
    ] = ""
    model: Annotated[str, typer.Option(help="Only of these models, such as 'claude-opus-*'.")] = ""
    fingerprint: Annotated[
        str,
        typer.Option(help="Only with these prompts, as b7d4e2f9, or pairs, as b7d4e2f9-a3f8b2c1."),
    ] = ""
    kind: Annotated[
        str, typer.Option(help="Only this work: code, text, settings, operations, answer.")
    ] = ""
    max_tokens: Annotated[
        int,
        typer.Option(help="Cut longer lines, tools counted in, into windows that begin at a turn."),
    ] = 0
    one_file: Annotated[
        bool,
        typer.Option(
            "--one-file/--per-set", help="One file of each side for all lines, or for each set."
        ),
    ] = True
    parquet: Annotated[bool, typer.Option("--parquet", help="Parquet files beside the JSONL.")] = (
        False
    )
    include: Annotated[
        str,
        typer.Option(
            help="With commas between: reasoning, what the model thought; subagents, their own "
            "conversations."
        ),
    ] = ""
    verdicts: Annotated[
        str,
        typer.Option(
            help="Only lines of these verdicts, with commas between: complete_verified, "
            "complete_unverified, partial, failed, undetermined."
        ),
    ] = ""
    unreviewed: Annotated[
        bool,
        typer.Option(
            "--unreviewed",
            help="Also sessions that nobody reviewed and no signal speaks against, each line "
            "marked.",
        ),
    ] = False
    min_overall_quality: Annotated[
        float,
        typer.Option(
            "--min-quality",
            help="Only lines of at least this overall quality, 0 to 1; those that an LLM reviewed "
            "have one.",
        ),
    ] = 0.0
    status: Annotated[str, typer.Option(help="any, ready or draft.")] = "any"
    single_calls: Annotated[
        bool,
        typer.Option(
            "--single-calls",
            help="Tell calls made at once one after the other, for chat templates that take one "
            "call a message, such as Llama 3.1's.",
        ),
    ] = False
    reward: Annotated[
        str,
        typer.Option(
            help="Of rl: what its rewards are by, verdict if not given, outcome, execution or "
            "quality; one kind a file, null where it is not known."
        ),
    ] = ""
    licence: Annotated[
        str, typer.Option(help="Under which it may be used, such as apache-2.0; for its page.")
    ] = ""
    push: Annotated[
        str,
        typer.Option(
            help="Say what would go to this dataset of the Hugging Face Hub, as NAME/DATASET."
        ),
    ] = ""
    yes: Annotated[bool, typer.Option("--yes", help="With --push: send it.")] = False
    public: Annotated[
        bool, typer.Option("--public", help="With --push: a new dataset is for everybody.")
    ] = False
    since: Annotated[
        str,
        typer.Option(
            help="Only what began on that day or later, as 2026-01-31, or at that time or later, "
            "as 2026-01-31T12:00:00Z."
        ),
    ] = ""
    split: Annotated[
        str,
        typer.Option(
            help="What is held out: week, weeks of repositories; repository, whole ones; "
            "time:2026-01-31, what began on that day or later."
        ),
    ] = "week"
    eval_share: Annotated[
        float | None,
        typer.Option(help="Of --split repository: held out for evaluation, 0 to 1."),
    ] = None
    decontaminate: Annotated[
        str,
        typer.Option(
            help="Leave out sessions that hold problems of benchmarks: a JSONL file of these."
        ),
    ] = ""

    def given(self) -> list[str]:
        """Return the options that say something else than their default, as they are typed."""
        names = option_names(type(self)) | {"one_file": "--per-set"}
        changed = (each.name for each in fields(self) if getattr(self, each.name) != each.default)
        return [names[name] for name in changed]

    def check(self) -> None:
        """Refuse what makes no sense together.

        Raises:
            ConfigurationError: it does not.
        """
        given = self.given()
        rules = [
            (self.form == "atif", set(given) - _OF_SESSIONS, "is not of whole sessions", _LEAVE),
            (self.split != "repository", {"--eval-share"}, "is of --split repository", "Add it."),
            (self.form != "rl", {"--reward"}, "is of rl alone", ""),
            (not self.push, {"--yes", "--public"}, "is of --push", "Add it."),
        ]
        for holds, refused, reason, move in rules:
            for option in given if holds else ():
                if option in refused:
                    raise ConfigurationError(option, reason, move)
        if self.max_tokens and self.max_tokens < _FEWEST_TOKENS:
            fewest = f"leaves no room: from {_FEWEST_TOKENS}"
            raise ConfigurationError(f"--max-tokens {self.max_tokens}", fewest, "Ask for more.")
        if unknown := self.included - {"reasoning", "subagents"}:
            raise ConfigurationError(f"--include {min(unknown)}", "is not known", _INCLUDED)

    @property
    def included(self) -> set[str]:
        """Return what lines hold that they would not otherwise."""
        return set(filter(None, map(str.strip, self.include.split(","))))

    def options(self) -> ExportOptions:
        """Return the same for the library.

        Raises:
            ConfigurationError: a value is not known.
            InputError: a time or split cannot be read.
        """
        from debrief.training.options import training_options
        from debrief.training.publishing.publish import ExportOptions
        from debrief.training.publishing.rewards import REWARD_KINDS

        file, share = self.decontaminate, self.eval_share
        shares = training_options({} if share is None else {"eval_share": share})
        same = {name: getattr(self, name) for name in _SAME}
        kinds: dict[str, RewardKind] = {kind: kind for kind in REWARD_KINDS}
        return ExportOptions(
            **same,
            since=_since(self.since),
            split=_split(self.split),
            eval_share=shares.eval_share,
            decontaminate=str(Path(file).expanduser().absolute()) if file else "",
            verdicts=_verdicts(self.verdicts),
            status=chosen("--status", self.status, _STATUSES),
            reasoning="reasoning" in self.included,
            subagents="subagents" in self.included,
            reward=chosen("--reward", self.reward or "verdict", kinds),
            refuse_undecided=bool(self.push),
        )


@takes(ExportChoice)
def export(choice: ExportChoice) -> None:
    """Write training sets to a folder that **datasets.load_dataset** takes as splits.

    In it are **train.jsonl** and **eval.jsonl** with all lines that are asked for (with --per-set,
    below **TASK/FINGERPRINT/** those of each set), the sets' cards, and a README.md that says what
    is in it. Every line is made by the rules of who reads the form.
    First it shows what usual contexts keep of the lines and what they lose, since trainers cut
    without a word; **--max-tokens** cuts long ones into windows instead.

    With **--push** the folder is shown, and with **--yes** sent, to the Hugging Face Hub, with the
    token that *hf auth login* keeps. A new dataset is private.

    With **--form atif** whole sessions are written as trajectories, **ID.json** each, whatever they
    are worth for training; `debrief sources` reads them again.

    """
    from debrief.conversion import open_lake
    from debrief.settings import load_settings
    from debrief.training.publishing.publish import ATIF

    settings = load_settings()
    opened = open_lake(existing_lake(choice.lake) or settings.lake)
    choice.check()
    if choice.form == ATIF:
        _export_sessions(opened, choice.to, choice.task)
        return
    options, push, yes = choice.options(), choice.push, choice.yes
    if push:
        _check_push(choice.to, choice.licence)
    published = _export_sets(opened, choice.to, options, settings, sent_to=push if yes else "")
    if push and published.files:
        _push(choice.to, push, published.unlicensed, public=choice.public, yes=yes)


def _export_sessions(lake: Lake, to: str, task: str) -> None:
    """Write whole sessions as trajectories, and say how many."""
    from debrief.training.publishing.exported import note_export
    from debrief.training.publishing.publish import ATIF, publish_trajectories

    note_export(lake, to, ATIF)
    _print_trajectories(to, publish_trajectories(lake, to, task))


def _export_sets(
    lake: Lake, to: str, options: ExportOptions, settings: Settings, *, sent_to: str
) -> Published:
    """Write training sets to a folder, and say what it holds.

    Args:
        lake: with the sets.
        to: the folder, or an fsspec URL.
        options: which lines, and in which form.
        settings: by which the sets were made.
        sent_to: the dataset of the Hub that gets the folder, for the note of what left the lake;
            empty where none does.
    """
    from debrief.training.options import options_chosen
    from debrief.training.publishing.exported import note_export
    from debrief.training.publishing.publish import publish

    note_export(lake, to, options.form, options, sent_to)
    published = publish(lake, to, options, _print_contexts, options_chosen(settings, {}))
    _print_sets(published)
    if published.files:
        _print_end(published.target, published.changed, loadable=True)
    return published


def _verdicts(text: str) -> tuple[VerdictName, ...]:
    from debrief.scoring.verdict import VERDICT_NAMES

    named = [name.strip() for name in text.split(",") if name.strip()]
    known = {str(name): name for name in VERDICT_NAMES}
    if unknown := [name for name in named if name not in known]:
        known_ones = f"There are: {', '.join(VERDICT_NAMES)}."
        raise ConfigurationError(f"--verdicts {unknown[0]}", "is no verdict", known_ones)
    return tuple(known[name] for name in named)


def _check_push(to: str, licence: str) -> None:
    if not licence:
        raise ConfigurationError(
            "--push",
            "is refused without a licence",
            "Look at the cards for those of the repositories, then add --licence.",
        )
    if "://" in to:
        raise ConfigurationError(f"--to {to}", "is no local folder", "--push sends one.")


def _push(folder: str, repository: str, unlicensed: int, *, public: bool, yes: bool) -> None:
    from debrief.training.publishing.folder import exported_files

    out = console()
    if unlicensed:
        warn(
            f"of {counted(unlicensed, 'line')} the repository's licence is not known: the cards "
            "name the repositories"
        )
    names = exported_files(Path(folder))
    files = [(name, (Path(folder) / name).stat().st_size) for name in names]
    for name, size in files:
        out.print(f"{size:>14,}  {name}")
    total = f"{counted(len(files), 'file')}, {sum(size for _, size in files):,} bytes"
    who = "for everybody" if public else "private if it is new"
    if not yes:
        out.print(f"{total} would go to {repository} ({who}). Nothing was sent: add --yes.")
        return
    out.print(f"{total} are at {_pushed(folder, repository, names, public=public)}")


_OURS = ["*.jsonl", "*.parquet", "*card.md", "dataset_info.json"]
"""Files that a push takes away where they are no longer in the folder."""
_REASON = 300
_REPEAT = "Nothing of it is seen there. Repeat the command: what has arrived is not sent again."


def _pushed(folder: str, repository: str, names: list[str], *, public: bool) -> str:
    """Send an exported folder to a dataset, which is made if there is none, and return its address.

    All of it becomes one commit, so whoever loads the dataset has the old state or the new one. The
    token is where ``hf auth login`` puts it, or in ``HF_TOKEN``; it is never ours to keep.
    """
    from httpx import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, LocalTokenNotFoundError

    api, culprit = HfApi(), f"push to {repository}"
    try:
        api.create_repo(repository, repo_type="dataset", private=not public, exist_ok=True)
        api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            repo_type="dataset",
            commit_message="Training sets",
            allow_patterns=names,
            delete_patterns=_OURS,
        )
    except (LocalTokenNotFoundError, HFValidationError) as error:
        reason = shorten(str(error), _REASON)
        raise InputError(culprit, reason, "hf auth login keeps a token.") from error
    except (HTTPError, OSError) as error:
        refused = f"was refused: {shorten(str(error), _REASON)}"
        raise InputError(culprit, refused, _REPEAT) from error
    return f"{api.endpoint}/datasets/{repository}"


def _print_contexts(kept: ContextTable, left_out: Mapping[str, int]) -> None:
    from debrief.training.windows import HEADER

    table = Table(box=None, pad_edge=False)
    for heading in HEADER:
        table.add_column(heading, justify="right")
    for row in kept.rows():
        table.add_row(*row)
    console().print("What contexts keep of these lines, when a trainer cuts them there:")
    console().print(table)
    for reason, count in sorted(left_out.items()):
        warn(f"{counted(count, 'line')} left out: {reason}")


def _print_trajectories(to: str, done: PublishedTrajectories) -> None:
    console().print(counted(done.sessions, "session"))
    _print_left_out(done.withheld, done.sessions + len(done.withheld))
    _print_end(to, done.changed, loadable=False)


def _print_left_out(reasons: Mapping[str, str], total: int) -> None:
    for reason, count in Counter(reasons.values()).most_common(_MOST_REASONS):
        console().print(f"left out: {count} of {total}: {reason}")


def _print_sets(published: Published) -> None:
    table = Table(box=None, pad_edge=False)
    is_joined = any(not file.config for file in published.files)
    for heading in ("file",) if is_joined else ("task", "fingerprint"):
        table.add_column(heading)
    for heading in ("lines",) if is_joined else ("train", "eval"):
        table.add_column(heading, justify="right")
    table.add_column("bytes", justify="right")
    for file in published.files if is_joined else ():
        table.add_row(file.path, f"{file.lines:,}", f"{file.size:,}")
    for made in () if is_joined else published.sets:
        counts = (str(made.lines["train"]), str(made.lines["eval"]), f"{made.size:,}")
        table.add_row(made.task, made.fingerprint, *counts)
    console().print(table)
    console().print(published.account)
    if published.decontaminated:
        console().print(published.decontaminated)
    for warning in published.warnings:
        warn(warning)


def _print_end(target: str, changed: bool, loadable: bool) -> None:
    note = "" if changed else " (nothing had changed)"
    console().print(f"Everything is in {target}{note}")
    if loadable:
        console().print(f'Load it: datasets.load_dataset("{target}")')


def _since(text: str) -> datetime | None:
    from debrief.recorder.storage.rows import moment_of

    try:
        return moment_of(text) if text else None
    except ValueError as error:
        raise ConfigurationError(f"--since {text}", str(error), "As 2026-01-31.") from None


def _split(text: str) -> str:
    from debrief.training.splits import parse_split

    try:
        parse_split(text)
    except ValueError as error:
        known = "Known: week, repository, time:2026-01-31."
        raise ConfigurationError(f"--split {text}", str(error), known) from None
    return text
