"""``debrief export --from-recorder``: recorded sessions as a folder that trainers load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from debrief.cli.console import console
from debrief.cli.export import status_of, table_of
from debrief.cli.record import warn_of_exposure
from debrief.errors import ConfigurationError
from debrief.recorder.client import RecorderClient, client_of
from debrief.recorder.contracts import Status
from debrief.recorder.fetching import FetchedRecords, RecordQuery
from debrief.recorder.publishing import PublishedRecords, publish_as_records, publish_records
from debrief.settings import Settings, load_settings
from debrief.training.model import Split
from debrief.training.selection import training_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from debrief.recorder.exporting import StoredRecord

_Publish = Callable[["Iterable[StoredRecord]"], PublishedRecords]
_MOST_REASONS = 8


class RecordsWish(Struct, frozen=True, kw_only=True):
    """What was asked for on the command line."""

    target: str
    form: str
    task: str = ""
    status: str = "any"
    since: str = ""
    split: str = "both"
    eval_share: float | None = None
    url: str = ""
    database: str = ""
    refused: Mapping[str, bool] = {}
    """Options of training sets, and whether they were given."""


def export_records(wish: RecordsWish) -> None:
    """Write recorded sessions to a folder and tell what came of it.

    Raises:
        DebriefError: an option makes no sense, the source is away, or the folder holds something
            else.
    """
    for option, given in wish.refused.items():
        if given:
            raise ConfigurationError(option, "is of training sets alone", "Leave it out.")
    settings = load_settings()
    status, since = status_of(wish.status), _since(wish.since)
    split = _split(wish.split)
    shares = {} if wish.eval_share is None else {"eval_share": wish.eval_share}
    options = training_options(shares)

    def publish(records: Iterable[StoredRecord]) -> PublishedRecords:
        if wish.form == "record":
            return publish_as_records(records, wish.target, split)
        return publish_records(records, wish.target, wish.form, options, split)

    server = None if wish.database else _server(settings, wish.url)
    if server is None:
        done = _from_database(wish, settings, status, since, publish)
    else:
        query = RecordQuery(task=wish.task, status=status, since=since.isoformat() if since else "")
        with server, FetchedRecords(server, settings.home, query) as fetched:
            fetched.fetch()
            done = publish(fetched)
            done.left_out.update(fetched.withheld)
            fetched.forget()
    _tell(wish, done)


def _from_database(
    wish: RecordsWish,
    settings: Settings,
    status: Status | None,
    since: datetime | None,
    publish: _Publish,
) -> PublishedRecords:
    from debrief.recorder.postgres import database_url
    from debrief.recorder.storage.rows import SessionFilter
    from debrief.recorder.storage.store import RecordStore

    chosen = SessionFilter(task_id=wish.task or None, status=status, since=since)
    with RecordStore(wish.database or database_url(settings)) as store:
        store.check()
        with store.export(chosen) as records:
            return publish(records)


def _server(settings: Settings, url: str) -> RecorderClient | None:
    if url:
        settings = settings.model_copy(update={"recorder_url": url})
    if not settings.recorder_url:
        return None
    client = client_of(settings, "export", report=_warn)
    if client.is_exposed:
        warn_of_exposure(client.url)
    return client


def _since(text: str) -> datetime | None:
    if not text:
        return None
    try:
        if len(text) == len("2026-01-31"):
            day = date.fromisoformat(text)
            return datetime(day.year, day.month, day.day, tzinfo=UTC)
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(f"--since {text}", "is no date", "As 2026-01-31.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _split(text: str) -> Split | None:
    match text:
        case "both":
            return None
        case "train" | "eval":
            return text
        case _:
            raise ConfigurationError(f"--split {text}", "is none", "Give both, train or eval.")


def _warn(words: str) -> None:
    console(stderr=True).print(f"debrief: {words}", style="yellow", soft_wrap=True)


def _tell(wish: RecordsWish, done: PublishedRecords) -> None:
    screen = console()
    if not done.records:
        of = f" of task {wish.task}" if wish.task else ""
        _warn(f"there is no such record{of}. See --task, --status and --since.")
    if done.published is not None:
        screen.print(table_of(done.published))
        for warning in done.published.warnings:
            _warn(warning)
    for name, count in done.files.items():
        records = "1 record" if count == 1 else f"{count:,} records"
        screen.print(f"{name}  {records}", soft_wrap=True)
    reasons = Counter(done.left_out.values())
    for reason, count in reasons.most_common(_MOST_REASONS):
        screen.print(f"left out: {count} of {done.records}: {reason}", soft_wrap=True)
    said = "" if done.changed else " (nothing had changed)"
    screen.print(f"Everything is in {wish.target}{said}", soft_wrap=True)
    if done.published is not None and done.published.sets:
        screen.print(f'Load it: datasets.load_dataset("{wish.target}")', soft_wrap=True)
