"""The places where transcripts are, as Dagster configures them."""

from pathlib import Path

import dagster as dg
from pydantic import Field

from debrief.langfuse.source import source_from_settings
from debrief.recorder import source as recorder
from debrief.redaction.redactor import Redactor, key_of
from debrief.sessions.sources import default_folders
from debrief.sessions.store import SessionServer
from debrief.sessions.transfer import local_folders, split_locations
from debrief.settings import load_settings


class SessionStore(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Which folders are searched for transcripts, and how what they hold is redacted."""

    folders: list[str] = Field(
        default=[],
        description=(
            "Folders with transcripts of any supported tool, or fsspec URLs (s3://…). Empty: "
            "DEBRIEF_SESSIONS "
            "(separated as PATH is), else the usual folders of this machine's user."
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
        asked: list[SessionServer | None] = []
        if self.langfuse or settings.langfuse_sessions:
            asked.append(source_from_settings(settings))
        asked.append(recorder.source_from_settings(settings, self.recorder))
        return tuple(source for source in asked if source is not None)

    def places(self) -> list[Path]:
        """Return the folders to search; what is in an object store is brought here first.

        Raises:
            DebriefError: a store is away, or refuses.
        """
        settings = load_settings()
        named = self.folders or split_locations(settings.sessions)
        return local_folders(named, settings.home) or list(default_folders(Path.home()))

    def redactor(self) -> Redactor:
        """Return the redactor with this machine's key."""
        return Redactor(key_of(load_settings()))
