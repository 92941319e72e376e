"""What a run is configured with: its lake, where sessions are read, which, and who evaluates them.

Dagster's launchpad has the same fields with the same descriptions. Settings decide what may be
chosen.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field

from debrief.conditions import parse_where
from debrief.conversion import open_lake
from debrief.evaluators import Evaluators, configured_model, make_evaluators
from debrief.lake import Lake
from debrief.langfuse.source import source_from_settings
from debrief.permitted import (
    lower,
    permitted_folders,
    permitted_lake,
    permitted_model,
    permitted_repository,
)
from debrief.redaction.redactor import Redactor, redactor_of
from debrief.scope import Scope
from debrief.sessions.places import places_of, usual_folders
from debrief.sessions.store import SessionServer
from debrief.settings import load_settings
from debrief.snapshots.clones import Clones, find_clones


class LakeChoice(BaseModel, frozen=True):
    """Where the tables and training sets are."""

    url: str = Field(
        default="",
        description="A folder or a URL (s3://…) that DEBRIEF_LAKE or DEBRIEF_LAKES names. Empty: "
        "the former.",
    )

    def open(self) -> Lake:
        """Return the lake.

        Raises:
            ConfigurationError: settings name no such lake.
        """
        return open_lake(permitted_lake(self.url, load_settings()))


class SessionSources(BaseModel, frozen=True):
    """Where transcripts are read from: folders and servers, and with which redaction."""

    folders: list[str] = Field(
        default=[],
        description="Folders with transcripts of any supported tool, or URLs (s3://…), among those "
        "that DEBRIEF_SESSIONS names (separated as PATH is). Empty: all of them, else the usual "
        "folders of this machine's user.",
    )
    langfuse: bool = Field(
        default=False,
        description="Read the sessions of the configured Langfuse server too. Also "
        "DEBRIEF_LANGFUSE_SESSIONS=1.",
    )
    recorder: bool = Field(
        default=False,
        description="Read the records of the recorder's database too: the one that DATABASE_URL "
        "names, else this machine's embedded one. Also DEBRIEF_RECORDER=1.",
    )

    def servers(self) -> tuple[SessionServer, ...]:
        """Return the servers whose sessions are read beside the transcripts."""
        settings, found = load_settings(), list[SessionServer | None]()
        if self.langfuse or settings.langfuse_sessions:
            found.append(source_from_settings(settings))
        if self.recorder or settings.recorder:
            from debrief.sessions.recorder_source import recorder_source

            found.append(recorder_source(settings))
        return tuple(source for source in found if source is not None)

    def places(self) -> list[Path]:
        """Return the folders to search; what is in an object store is brought here first.

        Raises:
            ConfigurationError: settings do not name a folder.
            DebriefError: a store is away, or refuses.
        """
        settings = load_settings()
        usual = map(str, usual_folders())
        return places_of(settings, permitted_folders(self.folders, settings, usual))

    def clones(self) -> Clones:
        """Return the clones of repositories that settings name."""
        return find_clones(load_settings().clones)

    def redactor(self) -> Redactor:
        """Return the redactor with this machine's key."""
        return redactor_of(load_settings())


class ScopeChoice(BaseModel, frozen=True):
    """What a run is narrowed down to, and what it makes again though nothing changed."""

    where: list[str] = Field(
        default=[],
        description="Conditions on sessions such as `tool=droid` or `task=late-*`; all must hold. "
        "The other sessions' rows stay as they are.",
    )
    force: bool = Field(default=False, description="Make again what is up to date too.")

    def open(self) -> Scope:
        """Return the scope.

        Raises:
            InputError: a condition cannot be read.
        """
        return Scope(parse_where(self.where), self.force)


class EvaluatorChoice(BaseModel, frozen=True):
    """The choice of the model that reviews, judges and mines, or of none."""

    no_model: bool = Field(
        default=False,
        description="Ask no model, so nothing is reviewed. Also DEBRIEF_NO_MODEL=1.",
    )
    model: str = Field(
        default="",
        description="A LiteLLM model name that answers for every judge, review and rubric, among "
        "those of DEBRIEF_MODELS. Empty: DEBRIEF_MODEL, else the model that each judge's file "
        "names, else none where no key for these is set.",
    )
    repository: str = Field(
        default="",
        description="A repository on this machine whose own `.debrief/judges` and "
        "`.debrief/prompts` win over the project's, and whose `human_feedback.md` files are read, "
        "among those of DEBRIEF_REPOSITORIES.",
    )
    max_cost_usd: float | None = Field(
        default=None,
        description="No new call once the run, with the runs that it retries, has spent so much; "
        "the next run makes what was left out. DEBRIEF_MAX_COST_USD holds where it is lower or "
        "this is empty.",
    )
    max_calls: int | None = Field(
        default=None,
        description="No new call after so many. DEBRIEF_MAX_CALLS holds where it is lower or this "
        "is empty.",
    )
    dry_run: bool = Field(
        default=False,
        description="Ask nothing and write nothing: each stage's metadata says what asking would "
        "take.",
    )

    def open(self, run: str = "", account: str = "") -> Evaluators:
        """Return whoever is configured.

        Args:
            run: the run's id; its stages and processes share the limits.
            account: the run that spending is counted under; the run itself by default.

        Raises:
            ConfigurationError: settings do not name what is chosen, or a model is needed and no
                key for it is set.
        """
        known = load_settings()
        settings = known.with_given(
            model=permitted_model("model", self.model, known),
            max_cost_usd=lower(self.max_cost_usd, known.max_cost_usd),
            max_calls=lower(self.max_calls, known.max_calls),
        )
        repository = self.repository_folder()
        has_one = bool(self.model or configured_model(settings, repository))
        return make_evaluators(
            settings,
            no_model=self.no_model or not has_one,
            repository=repository,
            run=run,
            account=account,
            dry_run=self.dry_run,
        )

    def repository_folder(self) -> Path | None:
        """Return the repository; None without one.

        Raises:
            ConfigurationError: settings name no such repository.
        """
        return permitted_repository(self.repository, load_settings())


class StageOptions(BaseModel, frozen=True):
    """All that the stages of a run are configured with."""

    lake: LakeChoice = LakeChoice()
    sessions: SessionSources = SessionSources()
    evaluator: EvaluatorChoice = EvaluatorChoice()
    scope: ScopeChoice = ScopeChoice()
