"""What a run works with, as typed configuration: lake, transcripts, models, Langfuse, a webhook.

What each field means is the library's to say.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from logging import Logger
from pathlib import Path
from typing import Literal

import dagster as dg
from msgspec import Struct
from pydantic import Field

from debrief.conditions import Where, parse_where
from debrief.evaluators import Evaluators, make_evaluators
from debrief.files import only_writer
from debrief.lake import Lake
from debrief.langfuse.client import LangfuseClient, langfuse_from_settings
from debrief.langfuse.scores import WriteOptions
from debrief.langfuse.source import source_from_settings
from debrief.permitted import (
    lower,
    permitted_folders,
    permitted_lake,
    permitted_model,
    permitted_repository,
)
from debrief.redaction.redactor import Redactor, redactor_of
from debrief.sessions.model import Session, SessionHead
from debrief.sessions.recorder_source import recorder_source
from debrief.sessions.sources import default_folders
from debrief.sessions.store import SessionServer
from debrief.sessions.transfer import mirror
from debrief.settings import DAGSTER_PATH, load_settings
from debrief.snapshots.clones import Clones, find_clones
from debrief.snapshots.model import SessionMetadataRow
from debrief.weekly import send


class LakeResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Where the tables and training sets are."""

    url: str = Field(
        default="",
        description="A folder or a URL (s3://…) that DEBRIEF_LAKE or DEBRIEF_LAKES names. Empty: "
        "the former.",
    )

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["LakeResource"]:
        """Let one run at a time work on a local lake, so that no two ask a model the same.

        Where workers take runs, or the lake is in an object store, Dagster's pools do that.
        """
        settings = load_settings()
        lake = self.open()
        is_free = context.run is None or "://" in lake.url or settings.launch == "queue"
        with nullcontext() if is_free else only_writer(settings.home, lake.url):
            yield self

    def open(self) -> Lake:
        """Return the lake.

        Raises:
            ConfigurationError: settings name no such lake.
        """
        return Lake(permitted_lake(self.url, load_settings()))


class Scope(Struct, frozen=True):
    """The sessions of a run's weeks that are taken, and whether again."""

    where: Where = Where()
    force: bool = False

    def ids(self, lake: Lake, week: str) -> set[str]:
        """Return the ids of a week's sessions that the conditions hold for."""
        return {name for name, facts in facts_of(lake, week) if self.where.takes(facts)}

    def sessions(self, lake: Lake, week: str) -> Iterator[Session]:
        """Yield a week's sessions that the conditions hold for."""
        only = ("id", self.ids(lake, week)) if self.where else None
        return lake.read("raw_sessions", week, Session, only=only)


class ScopeResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """What a run is narrowed down to, and what it makes again though nothing changed."""

    where: list[str] = Field(
        default=[],
        description=(
            "Conditions on sessions such as `tool=droid` or `task=late-*`; all must hold. The "
            "other sessions' rows stay as they are."
        ),
    )
    force: bool = Field(default=False, description="Make again what is up to date too.")

    def open(self) -> Scope:
        """Return the scope.

        Raises:
            InputError: a condition cannot be read.
        """
        return Scope(parse_where(self.where), self.force)


def facts_of(lake: Lake, week: str) -> Iterator[tuple[str, dict[str, set[str]]]]:
    """Yield each session of a week with the values that conditions compare, by field.

    A task is the one that the session is filed under, or the one that its transcript names.
    """
    filed = {row.session_id: row for row in lake.read("session_metadata", week, SessionMetadataRow)}
    for head in lake.read("raw_sessions", week, SessionHead):
        row = filed.get(head.id)
        yield (
            head.id,
            {
                "session": {head.id},
                "source": {head.source},
                "tool": {head.tool},
                "model": {*head.models, *_of(row, "model")},
                "task": {head.task, *_of(row, "task")},
                "repository": {head.repository, *_of(row, "repository")},
                "fingerprint": set(_of(row, "prompt_fingerprint")),
            },
        )


def _of(row: SessionMetadataRow | None, field: str) -> Iterable[str]:
    value = getattr(row, field, None)
    return (value,) if value is not None else ()


class SessionStore(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Where transcripts are read from: folders and servers, and with which redaction.

    Nothing is stored here: sessions that were read are in the lake.
    """

    folders: list[str] = Field(
        default=[],
        description=(
            "Folders with transcripts of any supported tool, or URLs (s3://…), among those that "
            "DEBRIEF_SESSIONS names (separated as PATH is). Empty: all of them, else the usual "
            "folders of this machine's user."
        ),
    )

    langfuse: bool = Field(
        default=False,
        description=(
            "Read the sessions of the configured Langfuse server too. Also "
            "DEBRIEF_LANGFUSE_SESSIONS=1."
        ),
    )

    recorder: bool = Field(
        default=False,
        description=(
            "Read the records of the recorder's database too: the one that DATABASE_URL names, "
            "else this machine's embedded one. Also DEBRIEF_RECORDER=1."
        ),
    )

    def servers(self) -> tuple[SessionServer, ...]:
        """Return the servers whose sessions are read beside the transcripts."""
        settings = load_settings()
        asked = (
            source_from_settings(settings) if self.langfuse or settings.langfuse_sessions else None,
            recorder_source(settings) if self.recorder or settings.recorder else None,
        )
        return tuple(source for source in asked if source is not None)

    def places(self) -> list[Path]:
        """Return the folders to search; what is in an object store is brought here first.

        Raises:
            ConfigurationError: settings do not name a folder.
            DebriefError: a store is away, or refuses.
        """
        settings, usual = load_settings(), default_folders(Path.home(), os.environ)
        return [
            mirror(each, settings.home) if "://" in each else Path(each).expanduser().absolute()
            for each in permitted_folders(self.folders, settings, map(str, usual))
        ] or usual

    def clones(self) -> Clones:
        """Return the clones of repositories that settings name."""
        return find_clones(load_settings().clones)

    def redactor(self) -> Redactor:
        """Return the redactor with this machine's key."""
        return redactor_of(load_settings())


class EvaluatorResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The choice between models and the offline evaluator; never a silent one."""

    offline: bool = Field(
        default=False,
        description="Ask no model: the deterministic offline evaluator. Also DEBRIEF_OFFLINE=1.",
    )
    model: str = Field(
        default="",
        description=(
            "A LiteLLM model name that answers for every judge, dimension and rubric, among those "
            "of DEBRIEF_MODELS. Empty: DEBRIEF_MODEL, else the model that each judge's file names."
        ),
    )

    second_model: str = Field(
        default="",
        description=(
            "A LiteLLM model name that judges and scores as well, among those of DEBRIEF_MODELS; "
            "its rows stay apart. Empty: DEBRIEF_SECOND_MODEL, else none."
        ),
    )
    second_opinion: str = Field(
        default="",
        description=(
            "A LiteLLM model name, among those of DEBRIEF_MODELS, that scores, instead of the "
            "first, the sessions of which that one is unsure. Empty: DEBRIEF_SECOND_OPINION, else "
            "none."
        ),
    )
    samples: int = Field(
        default=0,
        ge=0,
        description=(
            "Independent answers to each question of judging and scoring, whose mean or majority "
            "counts. 0: DEBRIEF_SAMPLES, else 1."
        ),
    )
    repository: str = Field(
        default="",
        description=(
            "A repository on this machine whose own `.debrief/judges` win over the project's, and "
            "whose `human_feedback.md` files are read, among those of DEBRIEF_REPOSITORIES."
        ),
    )
    max_cost_usd: float | None = Field(
        default=None,
        description=(
            "No new call once the run, with the runs that it retries, has spent so much; the next "
            "run makes what was left out. DEBRIEF_MAX_COST_USD holds where it is lower or this is "
            "empty."
        ),
    )
    max_calls: int | None = Field(
        default=None,
        description=(
            "No new call after so many. DEBRIEF_MAX_CALLS holds where it is lower or this is empty."
        ),
    )
    dry_run: bool = Field(
        default=False,
        description=(
            "Ask nothing and write nothing: each stage's metadata says what asking would take."
        ),
    )

    def open(self, run: dg.DagsterRun | None = None) -> Evaluators:
        """Return whoever is configured.

        Args:
            run: its stages and processes share the limits, and so do its retries.

        Raises:
            ConfigurationError: settings do not name what is chosen, or a model is needed and no
                key for it is set.
        """
        known = load_settings()
        settings = known.with_given(
            model=permitted_model("model", self.model, known),
            second_model=permitted_model("second_model", self.second_model, known),
            second_opinion=permitted_model("second_opinion", self.second_opinion, known),
            samples=self.samples or None,
            max_cost_usd=lower(self.max_cost_usd, known.max_cost_usd),
            max_calls=lower(self.max_calls, known.max_calls),
        )
        offline = self.offline or (not self.model and settings.offline)
        return make_evaluators(
            settings,
            offline=offline,
            second_model="" if offline else settings.second_model,
            second_opinion="" if offline else settings.second_opinion,
            repository=self.repository_folder(),
            run=run.run_id if run is not None else "",
            account=account_of(run) if run is not None else "",
            dry_run=self.dry_run,
        )

    def repository_folder(self) -> Path | None:
        """Return the repository; None without one.

        Raises:
            ConfigurationError: settings name no such repository.
        """
        return permitted_repository(self.repository, load_settings())


def account_of(run: dg.DagsterRun) -> str:
    """Return the run that spending is counted under: of one that was retried, the first.

    A retry by Dagster goes on with the first run's limit; a person who runs it again has a new
    one.
    """
    return ("dagster/retry_number" in run.tags and run.root_run_id) or run.run_id


class LangfuseResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Whether scores are written to a server; which one, the environment says."""

    enabled: bool = Field(
        default=True, description="False keeps scores local even where a server is configured."
    )

    score_target: Literal["session", "trace"] = Field(
        default="session",
        description=(
            "What scores hang on: the session, or its first trace, for servers without session "
            "scores."
        ),
    )

    def options(self) -> WriteOptions:
        """Return how scores are written."""
        all_sessions = load_settings().langfuse_all_scores
        return WriteOptions(score_target=self.score_target, all_sessions=all_sessions)

    def open(self) -> LangfuseClient | None:
        """Return a client; None when no server is configured.

        A server is configured by LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY.
        """
        settings = load_settings()
        is_asked = self.enabled and settings.has_langfuse
        return langfuse_from_settings(settings) if is_asked else None


class WebhookResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Whether messages are sent; where to, DEBRIEF_WEBHOOK_URL says."""

    enabled: bool = Field(default=True, description="False sends nothing, whatever is configured.")

    def send(self, log: Logger, text: str, run_id: str) -> None:
        """Send a message about a run, with a link to it; a failure is a warning."""
        settings = load_settings()
        url = settings.webhook_url
        if not (self.enabled and settings.webhook and url):
            return
        link = f"(run {run_id})"
        if "view_url" in settings.model_fields_set:
            link = f"{settings.view_url.rstrip('/')}{DAGSTER_PATH}/runs/{run_id}"
        problem = send(url, f"{text} {link}", redactor_of(settings))
        if problem:
            log.warning(f"no message was sent: {problem}")
