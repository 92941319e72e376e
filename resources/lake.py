"""The resources that name the lake, the transcripts, and which of their sessions to read."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import dagster as dg
from pydantic import Field

from debrief.conditions import parse_where
from debrief.conversion import open_lake
from debrief.errors import DebriefError
from debrief.files import only_writer
from debrief.lake import Lake
from debrief.permitted import permitted_lake
from debrief.scope import Scope
from debrief.settings import load_settings
from debrief.stages.configuration import SessionSources


@contextmanager
def explained(log: dg.DagsterLogManager | None) -> Iterator[None]:
    """Log why the block failed in a line of its own: Dagster's message begins with a stack trace.

    Raises:
        DebriefError: It failed.
    """
    try:
        yield
    except DebriefError as error:
        if log is not None:
            log.error(str(error))
        raise


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

        Where workers take runs, or the lake is in an object store, Dagster's pools do that. Runs
        of one instance wait in its queue; a command's run or one of another instance waits here.

        Raises:
            ConfigurationError: settings name no such lake.
            DebriefError: another run has the lake and does not end.
        """
        with explained(context.log), ExitStack() as held:
            settings, lake, run = load_settings(), self.open(), context.run
            if run is not None and "://" not in lake.url and settings.launch != "queue":
                say = context.log.info if context.log else None
                writer = f"run {run.run_id}"
                held.enter_context(only_writer(settings.home, lake.url, writer, say))
            release = held.pop_all()
        with release:
            yield self

    def open(self) -> Lake:
        """Return the lake.

        Raises:
            ConfigurationError: settings name no such lake.
        """
        return open_lake(permitted_lake(self.url, load_settings()))


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

    def open(self) -> SessionSources:
        """Return where sessions are read."""
        return SessionSources(
            folders=tuple(self.folders), langfuse=self.langfuse, recorder=self.recorder
        )


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
