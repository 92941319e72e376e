"""Settings of this machine: from the environment, else ``~/.debrief/.env``, else the default.

``docs/settings.md`` is made from the descriptions here, by ``python -m tools.settings_page``.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    FiniteFloat,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
)
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from debrief.errors import ConfigurationError

PREFIX = "DEBRIEF_"


def _absolute_lake(lake: str) -> str:
    return lake if "://" in lake else str(Path(lake).expanduser().absolute())


def _parts(separator: str) -> BeforeValidator:
    return BeforeValidator(
        lambda text: [part.strip() for part in text.split(separator) if part.strip()]
    )


Folder = Annotated[Path, AfterValidator(Path.expanduser)]
Folders = Annotated[tuple[Folder, ...], NoDecode, _parts(os.pathsep)]
Names = Annotated[tuple[str, ...], NoDecode, _parts(",")]
Globs = Annotated[tuple[str, ...], NoDecode, BeforeValidator(shlex.split)]
Amount = Annotated[FiniteFloat, Field(ge=0)]


class Settings(BaseSettings):
    """Everything that is configured outside the project's own files.

    A field is read from ``DEBRIEF_`` and its name in capitals, unless it has an alias. Defaults
    that depend on something else are described in ``json_schema_extra``.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="ignore", validate_default=False
    )

    values: Annotated[Mapping[str, str], NoDecode] = Field(repr=False, exclude=True)
    """The environment over the environment file, for keys of providers and training options."""

    home: Folder = Field(
        default_factory=lambda: Path.home() / ".debrief",
        description="keys, cache of answers, this machine's redaction key",
        json_schema_extra={"default": "`~/.debrief`"},
    )
    lake: Annotated[str, AfterValidator(_absolute_lake)] = Field(
        default_factory=lambda fields: str(fields["home"] / "lake"),
        validate_default=True,
        description="tables, training sets, reports: a folder or an fsspec URL",
        json_schema_extra={"default": "`<home>/lake`"},
    )
    sessions: str = Field(
        default="",
        description="folders with transcripts, or URLs of an object store (mirrored into "
        "`<home>/mirror`), separated as in `PATH`",
        json_schema_extra={"default": "the tools' usual ones"},
    )
    redaction_key: str = Field(
        default="",
        repr=False,
        description="64 hex digits; the key of the placeholders for secrets, in place of "
        "`<home>/redaction.key`. All machines of one lake need the same",
        json_schema_extra={"default": "the file"},
    )
    push_to: str = Field(default="", description="where `debrief push` brings transcripts")
    judges: Folder | None = Field(
        default=None,
        description="folder of the judges",
        json_schema_extra={"default": "`.debrief/judges`, else the project's"},
    )
    dagster_home: Folder | None = Field(
        default=None,
        validation_alias="DAGSTER_HOME",
        description="Dagster's own storage",
        json_schema_extra={"default": "`.dagster` beside a local lake"},
    )

    launch: Literal["here", "queue"] = Field(
        default="here", description="`queue`: hand runs to workers"
    )
    broker: str = Field(
        default="", repr=False, description="the workers' queue: `redis://host:6379/0`"
    )
    weeks_a_run: PositiveInt | None = Field(
        default=None,
        description="most weeks that one run goes over",
        json_schema_extra={"default": "4; 26 without a queue"},
    )

    offline: bool = Field(default=False, description="`1`: ask no model")
    model: str = Field(
        default="",
        description="one LiteLLM name that answers for everything",
        json_schema_extra={"default": "each judge's own"},
    )
    model_base_url: str = Field(
        default="",
        description="a server of one's own that speaks OpenAI's protocol",
        json_schema_extra={"default": "the provider's"},
    )
    fallback_models: Names = Field(
        default=(), description="tried in turn when a model fails, and recorded; commas between"
    )
    concurrency: PositiveInt = Field(default=8, description="calls at once, a model")
    timeout: Amount = Field(default=180, description="seconds for one attempt at a call")
    retry_pause: Amount = Field(
        default=0.5, description="seconds before the second attempt; doubled before each further"
    )
    max_cost_usd: Amount | None = Field(
        default=None,
        description="no new call of a run after so many US dollars",
        json_schema_extra={"default": "no limit"},
    )
    max_calls: NonNegativeInt | None = Field(
        default=None,
        description="no new call of a run after so many",
        json_schema_extra={"default": "no limit"},
    )
    prices: Folder = Field(
        default_factory=lambda fields: fields["home"] / "prices.json",
        description="JSON of prices in USD per million tokens, for models without a known one",
        json_schema_extra={"default": "`<home>/prices.json`"},
    )
    cache: bool = Field(default=True, description="`off`: keep no answers")
    cache_days: Amount = Field(
        default=90,
        description="days that answers are kept; pruned once a day and by `debrief cache prune`",
    )
    cache_mb: Amount = Field(default=2000, description="most megabytes of answers that are kept")

    state_url: str = Field(
        default="",
        repr=False,
        description="`postgresql://…`: answers, budgets and leases of a team, in a schema "
        "`debrief_state` of its own; `here`: a file of this machine",
        json_schema_extra={
            "default": "where Dagster's tables are, if that is `DATABASE_URL`'s server or runs "
            "come from a broker; else a file in `<home>/cache`"
        },
    )
    lease_seconds: Annotated[FiniteFloat, Field(ge=3)] = Field(
        default=30,
        description="silence after which a process on another machine counts as dead, and its "
        "work is taken over; the same on all machines",
    )

    langfuse_host: str = Field(
        default="",
        validation_alias=AliasChoices("LANGFUSE_BASE_URL", "LANGFUSE_HOST"),
        description="the server to which scores are written and from which annotations are read",
    )
    langfuse_public_key: str = Field(
        default="",
        validation_alias="LANGFUSE_PUBLIC_KEY",
        description="the first half of its API key",
    )
    langfuse_secret_key: str = Field(
        default="",
        validation_alias="LANGFUSE_SECRET_KEY",
        repr=False,
        description="the other half",
    )
    langfuse: bool = Field(default=True, description="`off`: keep scores local all the same")
    langfuse_sessions: bool = Field(
        default=False, description="`1`: also read sessions from the server"
    )
    langfuse_since: datetime | None = Field(
        default=None,
        description="date before which a session that began there is not read",
        json_schema_extra={"default": "no limit"},
    )
    langfuse_requests_a_minute: Annotated[FiniteFloat, Field(gt=0)] | None = Field(
        default=None, description="pace", json_schema_extra={"default": "no limit"}
    )

    labels: Folders = Field(
        default=(),
        description="CSV files with `session_id,name,value[,rater]`, separated as in `PATH`",
    )
    feedback: Folders = Field(
        default=(),
        description="`.debrief` folders whose `human_feedback.md` files count",
        json_schema_extra={"default": "the repository's"},
    )
    min_agreement: Annotated[FiniteFloat, Field(ge=0, le=1)] | None = Field(
        default=None,
        description="agreement from 0 to 1 below which training sets are held back",
        json_schema_extra={"default": "off"},
    )

    recorder: bool = Field(
        default=False, description="`1`: also take recorded sessions from the database below"
    )
    database_url: str = Field(
        default="",
        validation_alias="DATABASE_URL",
        repr=False,
        description="Postgres of the recorder's API",
        json_schema_extra={"default": "an embedded server in `<home>/postgres`"},
    )
    ready_rule: str = Field(
        default="",
        description="what a session needs to be `ready` besides a verified patch: `passed`, "
        "`final-tree`",
        json_schema_extra={"default": "a validation command"},
    )
    recorder_url: str = Field(
        default="",
        description="where `debrief record stop` sends to, and `debrief export --from-recorder` "
        "reads from",
    )
    recorder_token: str = Field(default="", repr=False, description="its token")
    recorder_ignore: Globs = Field(
        default=(), description="globs, quoted as in a shell, of files that no record tells of"
    )

    dagster_database_url: str = Field(
        default="",
        validation_alias="DAGSTER_DATABASE_URL",
        repr=False,
        description="Postgres of Dagster's tables",
        json_schema_extra={
            "default": "the schema `dagster` in `DATABASE_URL`'s database, else in the embedded "
            "server"
        },
    )
    keep_runs_days: Amount = Field(
        default=90, description="days after which runs and their events go, every night"
    )

    webhook_url: str = Field(
        default="",
        repr=False,
        description="where the weekly report and failures are sent (JSON with `text`, as chat "
        "services take it)",
    )
    webhook: bool = Field(default=True, description="`off`: send nothing all the same")
    ui_url: str = Field(
        default="",
        description="the address at which people reach Dagster's UI, for links in messages",
        json_schema_extra={"default": "that of `debrief up`, else the run's id stands there"},
    )

    claude_command: str = Field(
        default="claude", description="what `debrief code` starts for Claude Code"
    )
    droid_command: str = Field(
        default="droid", description="what `debrief code` starts for Factory droid"
    )

    def variable(self, name: str) -> str:
        """Return a variable that has no field of its own, such as a provider's key, or ``""``."""
        return self.values.get(name, "")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the fields from ``values`` instead of this process's environment."""
        assert isinstance(init_settings, InitSettingsSource)
        assert isinstance(env_settings, EnvSettingsSource)
        values: Mapping[str, str] = init_settings.init_kwargs["values"]
        env_settings.env_vars = {name.lower(): value for name, value in values.items()}
        return init_settings, env_settings


def variable_of(field: str) -> str:
    """Return the environment variable that a field of ``Settings`` is read from."""
    alias = Settings.model_fields[field].validation_alias
    names = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return str(names[-1] or f"{PREFIX}{field.upper()}")


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings; an empty variable counts as not set.

    Args:
        environ: the environment; this process's own by default.

    Raises:
        ConfigurationError: a value is wrong, or the environment file can be read by other users
            of the machine.
    """
    environ = os.environ if environ is None else environ
    home = Path(environ.get("DEBRIEF_HOME") or Path.home() / ".debrief").expanduser()
    values = {**_environment_file(home / ".env"), **{k: v for k, v in environ.items() if v}}
    try:
        return Settings(values={**values, "DEBRIEF_HOME": str(home)})
    except ValidationError as error:
        problem = error.errors()[0]
        name = str(problem["loc"][0])
        name = variable_of(name) if name in Settings.model_fields else name
        reason = problem["msg"].replace("Input", repr(problem["input"]), 1)
        reason = reason.removeprefix("Value error, ")
        raise ConfigurationError(name, reason, "Correct it or unset it.") from None


def _environment_file(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    from dotenv import dotenv_values

    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigurationError(
            str(path), "holds keys and can be read by others", f"Run: chmod 600 {path}"
        )
    return {key: value for key, value in dotenv_values(path).items() if value}
