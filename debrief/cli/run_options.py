"""The options of the commands that launch the graph, each declared once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.shared import (
    Conditions,
    DryRun,
    LakeUrl,
    MaxCost,
    Model,
    NoModel,
    ScoreTarget,
    Sessions,
    Yes,
    check_models,
    check_no_file,
    checked_limit,
    existing_lake,
)
from debrief.conditions import Where, parse_where
from debrief.errors import InputError
from debrief.keys import FIRST_WEEK, is_week, week_after

if TYPE_CHECKING:
    from debrief.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where to read, where to write, and who evaluates. A field has the name of its setting."""

    sessions: Sessions = None
    lake: LakeUrl = ""
    no_model: NoModel = False
    local: bool = False
    """No Langfuse server and no webhook is used, whatever is configured."""
    score_names: tuple[str, ...] = ()
    """By which sessions are good when rubrics are mined; those of the settings by default."""

    def __post_init__(self) -> None:
        """Refuse places that are not there.

        Raises:
            InputError: one is not.
        """
        check_no_file(self.lake)
        _check_folders(self.sessions, "transcripts")

    @contextmanager
    def applied(self) -> Iterator[Settings]:
        """Have settings say what was chosen within the block: a run works only on what they name.

        Raises:
            ConfigurationError: a place cannot be used.
        """
        from debrief.settings import Settings, given, load_settings

        known = load_settings()
        values = {
            name: _text(value)
            for name, value in asdict(self).items()
            # 0 is a limit, and not the absence of one.
            if name in Settings.model_fields and (value or (value == 0 and value is not False))
        }
        if self.local:
            values |= {"langfuse": "off", "webhook": "off"}
        if "model" in values:
            values["no_model"] = "0"
        if here := repository_here():
            own = here / ".debrief" / "judges"
            named = dict.fromkeys([*map(str, known.repositories), str(here)])
            values["repositories"] = os.pathsep.join(named)
            if own.is_dir() and not known.judges:
                values["judges"] = str(own)
        with given(values) as settings:
            yield settings


@dataclass(frozen=True, kw_only=True)
class RunOptions(Places):
    """What ``debrief run`` is to make, and how far it may go by itself."""

    select: Annotated[
        str,
        typer.Option(
            "--select",
            metavar="STAGES",
            help="Only these stages, in Dagster's selection syntax: session_scores, "
            "session_scores+ (and what follows it), +rubrics (and what comes before it). Default: "
            "all that is due.",
        ),
    ] = ""
    week: Annotated[
        list[str] | None,
        typer.Option(
            "--week",
            "--weeks",
            help="A Monday (2026-11-16) or a range (2026-10-05..2026-11-16); may be given more "
            "than once. Default: every week with a session.",
        ),
    ] = None
    where: Conditions = None
    force: Annotated[bool, typer.Option("--force", help="Make what is up to date again.")] = False
    clones: Annotated[
        list[str] | None,
        typer.Option(
            "--repositories",
            help="A folder that is or holds clones of the repositories that sessions worked in, "
            "for prompts, commits and licences of sessions whose own folder is not here; may be "
            "given more than once. Default: DEBRIEF_CLONES.",
        ),
    ] = None
    model: Model = ""
    newest: Annotated[
        int,
        typer.Option(
            "--newest",
            min=0,
            metavar="N",
            help="Have the model review only the N newest sessions that nobody has reviewed. "
            "Default: all.",
        ),
    ] = 0
    score_target: ScoreTarget = None
    yes: Yes = False
    max_cost_usd: MaxCost = None
    dry_run: DryRun = False

    def __post_init__(self) -> None:
        """Refuse what makes no sense together.

        Raises:
            InputError, ConfigurationError: it does not.
        """
        super().__post_init__()
        check_models(self.no_model, self.model)
        checked_limit(self.max_cost_usd)
        _check_folders(self.clones, "clones")
        if self.newest and (self.week or self.no_model or self.is_partial):
            raise InputError(
                "--newest",
                "takes none of --select, --week, --where, --force and --no-model",
                "Leave these out.",
            )

    @property
    def weeks(self) -> tuple[str, ...]:
        """Return the weeks to take; empty for every week that holds sessions."""
        return parse_weeks(self.week or ())

    @property
    def conditions(self) -> Where:
        """Return the conditions on sessions."""
        return parse_where(self.where or ())

    @property
    def is_partial(self) -> bool:
        """Return whether only some stages or sessions are taken, or made again."""
        return bool(self.select or self.where or self.force)


@dataclass(frozen=True, kw_only=True)
class UiOptions(Places):
    """What ``debrief ui`` shows, and where."""

    demo: Annotated[bool, typer.Option("--demo", help="Show the demo's lake.")] = False
    port: Annotated[int, typer.Option(min=1, max=65535, help="Of the pages.")] = 3000
    public: Annotated[
        bool,
        typer.Option(
            "--public", help="Listen on all addresses, not only on 127.0.0.1: behind a login proxy."
        ),
    ] = False
    open: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser when it answers.")
    ] = False

    def __post_init__(self) -> None:
        """Refuse a lake that is not there.

        Raises:
            InputError: it is not.
        """
        super().__post_init__()
        existing_lake(self.lake)

    @property
    def places(self) -> Places:
        """Return what is shown."""
        return demo_options(self.lake) if self.demo else self


def _check_folders(folders: Iterable[str] | None, what: str) -> None:
    for folder in folders or ():
        if "://" not in folder and not Path(folder).is_dir():
            raise InputError(folder, "is not a folder", f"Name one that holds {what}.")


def _text(value: object) -> str:
    """Return a value as a variable says it; folders are named from the root."""
    if isinstance(value, list):
        return os.pathsep.join(map(_absolute, value))
    if isinstance(value, tuple):
        return ",".join(value)
    return "1" if value is True else str(value)


def demo_options(lake: str) -> RunOptions:
    """Return the options of a run on the bundled sample sessions."""
    from debrief.samples import REVIEWER, SCORE_NAMES, folder
    from debrief.settings import load_settings

    return RunOptions(
        sessions=[str(folder())],
        lake=lake or str(load_settings().home / "demo"),
        model=REVIEWER,
        score_names=SCORE_NAMES,
        local=True,
    )


def repository_here() -> Path | None:
    """Return the repository that a command was started in; None outside of any."""
    from debrief.snapshots.capture import find_repository

    repository = find_repository(Path.cwd())
    return repository.root if repository else None


def _absolute(folder: str) -> str:
    return folder if "://" in folder else str(Path(folder).absolute())


def parse_weeks(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the weeks that options name: Mondays, or ranges of them with ``..`` between.

    Raises:
        InputError: a text is neither.
    """
    weeks: set[str] = set()
    for text in texts:
        first, _, last = text.partition("..")
        last = last or first
        for end in (first, last):
            if not is_week(end):
                raise InputError(
                    f"--week {text}",
                    f"{end or 'nothing'} is not the date of a Monday",
                    "Weeks are written 2026-11-16, ranges 2026-10-05..2026-11-16.",
                )
        if last < first:
            raise InputError(f"--week {text}", "runs backwards", f"Write {last}..{first}.")
        if first < FIRST_WEEK:
            raise InputError(
                f"--week {text}", f"begins before {FIRST_WEEK}", "No week before that is looked at."
            )
        while first <= last:
            weeks.add(first)
            first = week_after(first)
    return tuple(sorted(weeks))
