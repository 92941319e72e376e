"""Settings of this machine: from the environment, else ``~/.debrief/.env``, else the default.

``docs/settings.md`` is made from the docstrings here, by ``python -m tools.settings_page``.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from debrief.errors import ConfigurationError
from debrief.home import home_folder
from debrief.keys import plain_name

PREFIX = "DEBRIEF_"
ScoreTarget = Literal["session", "trace"]
"""What scores are written on in Langfuse; ``trace`` is a session's first one."""


PROTOCOLS = ("file", "s3", "gs", "az", "memory")
"""Of the URLs that name a place: the kinds of storage that are known to keep what is there."""


def location(text: str) -> str:
    """Return a folder or URL, if it is one that may be used.

    Raises:
        ValueError: it is of another protocol, or has a password in it, which would be printed and
            stored with it.
    """
    protocol, separator, _ = text.partition("://")
    if separator and protocol not in PROTOCOLS:
        kinds = ", ".join(f"{each}://" for each in PROTOCOLS)
        raise ValueError(f"{protocol}:// is no storage that is used here; known: {kinds}")
    return without_password(text)


def without_password(address: str) -> str:
    """Return an address, if no password is in it, which would be printed and stored with it.

    Raises:
        ValueError: there is one.
    """
    if _PASSWORD.search(address):
        raise ValueError("an address with a password is not taken: keys belong in the environment")
    return address


def _absolute(text: str) -> str:
    return location(text) if "://" in text else str(Path(text).expanduser().absolute())


_BETWEEN = re.compile(rf"{re.escape(os.pathsep)}(?!//)")


_PASSWORD = re.compile(r"://[^/@]*:[^/]*@")


def split_locations(text: str) -> tuple[str, ...]:
    """Return the folders and URLs that a text names, separated as ``PATH`` is.

    >>> split_locations("/home/ann/a:s3://team/transcripts:/b")
    ('/home/ann/a', 's3://team/transcripts', '/b')
    """
    return tuple(location for location in _BETWEEN.split(text) if location)


def _no_json(text: object) -> object:
    if isinstance(text, str) and text.lstrip().startswith("{"):
        raise ValueError("names a file, and is the content of one: write it into a file")
    return text


def _parts(separator: str) -> BeforeValidator:
    return BeforeValidator(
        lambda text: [part.strip() for part in text.split(separator) if part.strip()]
    )


Folder = Annotated[Path, AfterValidator(Path.expanduser)]
File = Annotated[Path, BeforeValidator(_no_json), AfterValidator(Path.expanduser)]
Folders = Annotated[tuple[Folder, ...], _parts(os.pathsep)]
Names = Annotated[tuple[str, ...], _parts(",")]
Address = Annotated[str, AfterValidator(without_password)]
Location = Annotated[str, AfterValidator(location)]
Locations = Annotated[
    tuple[Location, ...],
    BeforeValidator(lambda text: split_locations(without_password(text))),
]
Globs = Annotated[tuple[str, ...], BeforeValidator(shlex.split)]
Networks = Annotated[tuple[IPv4Network | IPv6Network, ...], _parts(",")]
Roles = Annotated[
    Mapping[str, Literal["read", "label", "run"]],
    BeforeValidator(
        lambda text: dict(
            (part.strip() for part in entry.rpartition("=")[::2])
            for entry in text.split(",")
            if entry.strip()
        )
    ),
]
Amount = Annotated[FiniteFloat, Field(ge=0)]


_SCORE_NAME = re.compile(r"[a-z0-9][a-z0-9_]{0,39}\Z")


def _score_names(names: tuple[str, ...]) -> tuple[str, ...]:
    plain = tuple(dict.fromkeys(map(plain_name, names)))
    if not plain:
        raise ValueError("names no score")
    for name in plain:
        if not _SCORE_NAME.match(name):
            raise ValueError(f"{name!r} is no score name: up to 40 of a to z, 0 to 9 and _")
    return plain


Secret = Annotated[str, Field(repr=False)]
"""Never shown when settings are printed."""


DAGSTER_PATH = "/dagster"
"""Below the pages' address: where Dagster's UI is."""


class Settings(BaseModel):
    """Everything that is configured outside the project's own files.

    A field is read from ``DEBRIEF_`` and its name in capitals, unless it has an alias. A default
    that depends on something else is named at the end of the field's docstring.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=lambda field: f"{PREFIX}{field.upper()}",
        defer_build=True,
    )

    values: Mapping[str, str] = Field(validation_alias="values", repr=False)

    home: Folder = Field(default_factory=lambda: Path.home() / ".debrief")
    """keys, cache of answers, this machine's redaction key. Default: `~/.debrief`"""
    lake: Annotated[str, AfterValidator(_absolute)] = Field(
        default_factory=lambda fields: str(fields["home"] / "lake"), validate_default=True
    )
    """tables, training sets, reports: a folder, or `s3://…`, `gs://…`, `az://…`. Default:
    `<home>/lake`"""
    lakes: Locations = ()
    """further lakes that a run may choose in Dagster's UI, separated as in `PATH`"""
    sessions: Locations = ()
    """folders with transcripts, or URLs of an object store (mirrored into `<home>/mirror`),
    separated as in `PATH`. Default: the tools' usual ones"""
    redaction_key: Secret = ""
    """64 hex digits; the key of the placeholders for secrets, in place of `<home>/redaction.key`.
    All machines of one lake need the same. Default: the file"""
    personal_data: Literal["keep", "replace"] = "keep"
    """`replace`: the names of home folders, mail addresses, phone numbers, the git user's name and
    names beside mail addresses give way to stand-ins in sessions that are read. Default: `keep`"""
    push_to: Location = ""
    """where `debrief push` brings transcripts"""
    judges: Folder | None = None
    """folder of the judges. Default: `.debrief/judges`, else the project's"""
    prompts: Folder | None = None
    """folder of rubric templates that replace the shipped ones, file by file. Default:
    `.debrief/prompts`, else none"""
    repositories: Folders = ()
    """repositories that a run may choose in Dagster's UI, for their own judges, templates and
    feedback.
    Default: under `debrief ui`, the one it is started in"""
    clones: Folders = ()
    """clones of the repositories that sessions worked in, or folders that hold such: where a
    session's own folder is not here, its prompts, commit and licence are looked for in the one of
    its name"""
    execute: Names = ()
    """repositories, commas between, whose commands runs may run in a sandbox, to see how sessions'
    checks end before and after their change; each needs a clone in `DEBRIEF_CLONES`, or the
    session's own folder. Default: none, so that nothing is run"""
    dagster_home: Folder | None = Field(None, validation_alias="DAGSTER_HOME")
    """Dagster's own storage. Default: `.dagster` beside a local lake"""

    launch: Literal["here", "queue"] = "here"
    """`queue`: hand runs to workers"""
    broker: Secret = ""
    """the workers' queue: `redis://host:6379/0`"""
    weeks_a_run: PositiveInt | None = None
    """most weeks that one run of a backfill takes. Default: all of them"""

    no_model: bool = False
    """`1`: ask no model"""
    model: str = ""
    """one LiteLLM name, or program (`claude-code/opus`), that answers for everything. Default: each
    judge's own"""
    model_base_url: Address = ""
    """a server of one's own that speaks OpenAI's protocol. Default: the provider's"""
    fallback_models: Names = ()
    """tried in turn when a model fails, and recorded; commas between"""
    models: Names = ()
    """further models that a run may choose in Dagster's UI; commas between"""
    temperature: Annotated[FiniteFloat, Field(ge=0, le=2)] = 0.0
    """of every question of judging, scoring and mining"""
    max_tokens: Annotated[int, Field(ge=500)] = 64_000
    """longest answer asked for, thinking included; less where LiteLLM's table or a refusal of the
    provider says that the model gives less. What takes longer to write than `DEBRIEF_TIMEOUT` is
    given up"""
    concurrency: PositiveInt = 8
    """calls at once, a model. Default: 8, and 2 for a program such as `claude-code`"""
    timeout: Amount = 180
    """seconds for one attempt at a call; a program has three times as many"""
    retry_pause: Amount = 0.5
    """seconds before the second attempt; doubled before each further"""
    max_cost_usd: Amount | None = None
    """no new call of a run after so many US dollars. Default: no limit"""
    max_calls: NonNegativeInt | None = None
    """no new call of a run after so many. Default: no limit"""
    prices: File = Field(default_factory=lambda fields: fields["home"] / "prices.json")
    """a file of prices for models without a known one: `{"<model>": {"input": 0.2, "output": 0.5}}`
    in USD a million tokens, with `cache_read` and `cache_write` where they differ. Default:
    `<home>/prices.json`"""
    cache: bool = True
    """`off`: keep no answers"""
    cache_days: Amount = 90
    """days that answers are kept; pruned once a day and by `debrief cache prune`"""
    cache_mb: Amount = 2000
    """most megabytes of answers that are kept"""

    state_url: Secret = ""
    """`postgresql://…`: answers and budgets of a team, in a schema `debrief_state` of its own;
    `here`: a file of this machine. Default: where Dagster's tables are, if that is
    `DATABASE_URL`'s server or runs come from a broker; else a file in `<home>/cache`"""

    langfuse_host: Address = Field(
        "", validation_alias=AliasChoices("LANGFUSE_BASE_URL", "LANGFUSE_HOST")
    )
    """the server to which scores are written and from which annotations are read"""
    langfuse_public_key: str = Field("", validation_alias="LANGFUSE_PUBLIC_KEY")
    """the first half of its API key"""
    langfuse_secret_key: Secret = Field("", validation_alias="LANGFUSE_SECRET_KEY", repr=False)
    """the other half"""
    langfuse: bool = True
    """`off`: keep scores local all the same"""
    langfuse_sessions: bool = False
    """`1`: also read sessions from the server"""
    langfuse_since: datetime | None = None
    """date before which a session that began there is not read. Default: no limit"""
    langfuse_environments: Names = ()
    """environments whose sessions are read; commas between. Default: all"""
    langfuse_tags: Names = ()
    """tags of which a session has one to be read; commas between. Default: any session"""
    langfuse_list_days: Amount = 1
    """days between two listings of everything, which find what came late and what is gone"""
    langfuse_keep_gone: bool = False
    """`1`: sessions that were deleted on the server stay in the lake"""
    langfuse_all_scores: bool = False
    """`1`: also write scores of sessions that the server does not have"""
    score_target: ScoreTarget = "session"
    """what scores are written on: the `session`, or its first `trace`"""
    langfuse_requests_a_minute: Annotated[FiniteFloat, Field(gt=0)] | None = None
    """pace. Default: no limit"""

    rater: str = ""
    """who labels on the pages on this machine. Default: the system's user"""
    score_names: Annotated[Names, AfterValidator(_score_names)] = (
        *("excellence", "token_efficiency", "user_turn_efficiency"),
    )
    """scores by which a session is good, for mining rubrics; commas between. Any name beside the
    default three is that of a dimension, or of labels. Default:
    `excellence,token_efficiency,user_turn_efficiency`"""
    extraction_min_rubrics: Annotated[PositiveInt, Field(le=100)] = 3
    """fewest rubrics to ask for from one session"""
    extraction_max_rubrics: Annotated[PositiveInt, Field(le=100, validate_default=True)] = 7
    """most rubrics to ask for, and to take, from one session"""

    labels: Folders = ()
    """CSV files with `session_id,name,value[,rater]`, separated as in `PATH`"""
    feedback: Folders = ()
    """`.debrief` folders whose `human_feedback.md` files count. Default: the repository's"""
    min_agreement: Annotated[FiniteFloat, Field(ge=0, le=1)] | None = None
    """agreement from 0 to 1 below which training sets are held back. Default: off"""

    recorder: bool = False
    """`1`: also take recorded sessions from the database below"""
    database_url: Secret = Field("", validation_alias="DATABASE_URL", repr=False)
    """Postgres of the recorder's API. Default: an embedded server in `<home>/postgres`"""
    ready_rule: str = ""
    """what a session needs to be `ready` besides a verified patch: `passed`, `final-tree`.
    Default: a validation command"""
    recorder_programs: Names = ()
    """programs, commas between, that records may have run to be taken. Default: all that their own
    rules name"""
    recorder_url: Address = ""
    """where `debrief record stop` sends to"""
    recorder_token: Secret = ""
    """its token"""
    recorder_ignore: Globs = ()
    """globs, quoted as in a shell, of files that records leave out"""

    dagster_database_url: Secret = Field("", validation_alias="DAGSTER_DATABASE_URL", repr=False)
    """Postgres of Dagster's tables; `?options=-csearch_path%3Ddagster` at its end gives them a
    schema of their own. Default: SQLite in `DAGSTER_HOME`"""
    keep_runs_days: Amount = 90
    """days after which runs and their events go, every night"""

    keep_former_sets_days: Amount = 30
    """days that training sets of former configurations stay in `training/former/`"""
    keep_sessions_days: Annotated[FiniteFloat, Field(gt=0)] | None = None
    """days after its end that a session is forgotten (`debrief forget --before`), every night with
    the old runs. Default: never"""

    webhook_url: Secret = ""
    """where the weekly report and failures are sent (JSON with `text`, as chat services take it)"""
    webhook: bool = True
    """`off`: send nothing all the same"""

    view_url: Address = "http://127.0.0.1:3000"
    """the address at which people reach the pages, and Dagster's UI below its `/dagster`, for
    links to them"""
    hosts: Names = ()
    """further host names that the pages answer to; commas between"""
    identity_header: str = ""
    """the header by which a login proxy says who somebody is, such as `X-Forwarded-Email`.
    Default: the system's user on this machine, nobody elsewhere"""
    trusted_proxies: Networks = ()
    """addresses or networks (`10.0.0.7,10.1.0.0/24`) from which that header is believed"""
    roles: Roles = Field(default_factory=dict)
    """what people may do, by the first name or pattern that fits:
    `ada@example.org=run,*@example.org=label,*=read`. Default: everybody who is known may run"""

    claude_command: str = "claude"
    """what `debrief code` starts for Claude Code"""
    droid_command: str = "droid"
    """what `debrief code` starts for Factory droid"""

    @field_validator("extraction_max_rubrics")
    @classmethod
    def _not_below_the_minimum(cls, most: int, info: ValidationInfo) -> int:
        least = info.data.get("extraction_min_rubrics", 1)
        if most < least:
            raise ValueError(f"{most} is below DEBRIEF_EXTRACTION_MIN_RUBRICS, {least}")
        return most

    @property
    def has_langfuse(self) -> bool:
        """Whether something of a Langfuse server is set, and it is not turned off."""
        given = (self.langfuse_host, self.langfuse_public_key, self.langfuse_secret_key)
        return self.langfuse and any(given)

    def with_given(self, **given: Any) -> Self:
        """Return the settings with what a command was given; what is None or empty stays."""
        chosen = {name: value for name, value in given.items() if value not in ("", None)}
        return self.model_copy(update=chosen)

    def variable(self, name: str) -> str:
        """Return a variable that has no field of its own, such as a provider's key, or ``""``."""
        return self.values.get(name, "")


def variable_of(field: str) -> str:
    """Return the environment variable that a field of ``Settings`` is read from."""
    alias = Settings.model_fields[field].validation_alias
    names = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return str(names[-1] or f"{PREFIX}{field.upper()}")


def variables() -> frozenset[str]:
    """Return the names of all environment variables that settings are read from."""
    aliases = (field.validation_alias for field in Settings.model_fields.values())
    several = (alias.choices for alias in aliases if isinstance(alias, AliasChoices))
    names = (str(name) for choices in several for name in choices)
    return frozenset({*map(variable_of, Settings.model_fields), *names} - {"values"})


_GIVEN: dict[str, str] = {}
"""What a command was given, by variable: it wins over this process's environment."""


@contextmanager
def given(values: Mapping[str, str]) -> Iterator[Settings]:
    """Have settings say what a command was given, within the block and in all threads.

    Args:
        values: by field of ``Settings``, as its variable would say it.

    Raises:
        ConfigurationError: a value is wrong.
    """
    former = dict(_GIVEN)
    _GIVEN.update({variable_of(name): value for name, value in values.items()})
    try:
        yield load_settings()
    finally:
        _GIVEN.clear()
        _GIVEN.update(former)


def environment() -> dict[str, str]:
    """Return the environment of a process that is to have the same settings."""
    return {**os.environ, **_GIVEN}


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings; an empty variable counts as not set.

    Args:
        environ: the environment; by default this process's own, and what its command was given.

    Raises:
        ConfigurationError: a value is wrong, or the environment file can be read by other users
            of the machine.
    """
    environ = environment() if environ is None else environ
    home = home_folder(environ)
    values = {**_environment_file(home / ".env"), **{k: v for k, v in environ.items() if v}}
    try:
        values["DEBRIEF_HOME"] = str(home)
        return Settings.model_validate({**values, "values": values})
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
