"""What a run is configured with: where sessions are read, and who evaluates them.

The fields are those of Dagster's resources, which say what each means. Settings decide what may be
chosen.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from debrief.evaluators import Evaluators, configured_model, make_evaluators
from debrief.langfuse.source import source_from_settings
from debrief.permitted import lower, permitted_folders, permitted_model, permitted_repository
from debrief.redaction.redactor import Redactor, redactor_of
from debrief.sessions.places import places_of, usual_folders
from debrief.sessions.store import SessionServer
from debrief.settings import load_settings
from debrief.snapshots.clones import Clones, find_clones


class SessionSources(Struct, frozen=True, kw_only=True):
    """Where transcripts are read from: folders and servers, and with which redaction."""

    folders: tuple[str, ...] = ()
    langfuse: bool = False
    recorder: bool = False

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


class EvaluatorChoice(Struct, frozen=True, kw_only=True):
    """The choice of the model that reviews, judges and mines, or of none."""

    no_model: bool = False
    model: str = ""
    repository: str = ""
    max_cost_usd: float | None = None
    max_calls: int | None = None
    dry_run: bool = False

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
