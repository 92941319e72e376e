"""Read this machine's sessions in the background of ``debrief start``, and follow growing ones.

``python -m debrief.cli.reading`` is a process of its own. It reads the newest week first and needs
no Dagster for that, so that the first session is there within seconds; then the whole graph runs
without a model. All the while it looks again for what is new or goes on, and reads that first.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from debrief.cli.asking import USUAL_MARGIN
from debrief.cli.offer import HOW_TO_ASK, counted_offer, offer_text
from debrief.cli.progress import StoppedError
from debrief.cli.shared import console, warn
from debrief.cli.sources import scan_stats
from debrief.conversion import open_lake
from debrief.errors import DebriefError
from debrief.files import only_writer
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.processes import stop_with_parent
from debrief.redaction.redactor import redactor_of
from debrief.review_offer import ReviewOffer, offered_model, review_offer
from debrief.sessions.forgotten import TABLE as FORGOTTEN
from debrief.sessions.places import places_of
from debrief.sessions.scanning import Scan
from debrief.sessions.store import SESSIONS_TABLE, read_from, scan_into, sessions_of, store_week
from debrief.settings import Settings, load_settings
from debrief.snapshots.captured_plans import CapturedPlans
from debrief.snapshots.hook import hook_command, is_short_lived, settings_file, status
from debrief.snapshots.model import SNAPSHOTS, PromptSnapshotRow
from debrief.stages.due import unread
from debrief.summary import content_of

if TYPE_CHECKING:
    from debrief.redaction.redactor import Redactor

_LOOK, _SHARE = 4.0, 15.0
"""Seconds between two looks at the folders, and at least so many times what the last one took with
what was read first of it."""
_QUIET = 120.0
"""Seconds without a change after which signals of what is new are made: those of a whole week."""
_PATIENCE = 10.0
"""Seconds that the week under way has for its end."""


class BackgroundReading:
    """What there is to read on this machine, and how much of it the lake has.

    It keeps others from the tables of sessions while it reads, and not from the lake: a run may be
    under way, which takes what it finds there.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.lake = open_lake(settings.lake)
        self._redactor: Redactor = redactor_of(settings)
        self.found = Scan()
        self._forgotten: Mapping[str, str] = {}
        """The tombstones that ``found`` was made without: what was forgotten since is not read."""
        self.pause = _LOOK
        """Seconds from one look to the next."""
        self.unfilled_since: float | None = None
        """When something was read last that no run knows of."""
        self._done: dict[str, str] = {}
        """By week, what was read of it by this object: a week with a transcript that cannot be read
        has no stamp that says so, and is not read again for that alone."""

    def look(self) -> list[str]:
        """Look for sessions; return the weeks that the lake has not as they are now, the newest
        first."""
        began = time.monotonic()
        with only_writer(self._settings.home, sessions_of(self.lake)):
            self._scan()
        self.pause = max(_LOOK, _SHARE * (time.monotonic() - began))
        new = unread(self.lake, self.found, self._redactor)
        return sorted((week for week in new if new[week] != self._done.get(week)), reverse=True)

    def _scan(self) -> None:
        self._forgotten = self.lake.versions(FORGOTTEN)
        self.found = scan_into(self.lake, places_of(self._settings), self._redactor)

    def catch_up(self, weeks: Sequence[str], say: Callable[[str], object]) -> None:
        """Read weeks, and look again now and then: of what runs meanwhile the new steps go first.

        Args:
            weeks: of a look.
            say: shows what is being read.
        """
        left, looked, is_first = list(weeks), time.monotonic(), True
        while left:
            say(self._progress(left))
            began = time.monotonic()
            self._read_or_say(left.pop(0))
            if is_first:
                self.pause += _SHARE * (time.monotonic() - began)
                is_first = False
            if left and time.monotonic() - looked > self.pause:
                left, looked, is_first = self.look(), time.monotonic(), True

    def _progress(self, left: Collection[str]) -> str:
        """Return how many of the sessions that were found are read: ``reading: 120 of 231``."""
        week_of = {one.session_id: one.week for one in self.found.entries if one.session_id}
        read = sum(week not in left for week in week_of.values())
        return f"reading: {read:,} of {counted(len(week_of), 'session')}"

    def keep_up(self, over: threading.Event) -> None:
        """Read what is new or goes on until ``over`` is set."""
        while not over.wait(self.pause):
            with suppress(DebriefError, OSError):  # a file that goes away is looked for again
                if weeks := self.look():
                    self.catch_up(weeks, bool)
                    self.unfilled_since = time.monotonic()

    def _read_or_say(self, week: str) -> None:
        """Read a week; say once why that failed: it costs no other week."""
        made_from = self._made_from(week)
        try:
            self.read(week)
        except (DebriefError, OSError) as error:
            warn(f"The week of {week} was not read: {error}")
            self._done[week] = made_from

    def _made_from(self, week: str) -> str:
        return read_from(self.found, week, self._redactor)

    def read(self, week: str) -> None:
        """Read a week's sessions into the lake."""
        with only_writer(self._settings.home, sessions_of(self.lake)):
            if self.lake.versions(FORGOTTEN) != self._forgotten:
                self._scan()
            plans = CapturedPlans(places_of(self._settings))
            store_week(self.lake, self.found, week, self._redactor, plan_of=plans.of)
        self._done[week] = self._made_from(week)


def reads_by_itself(settings: Settings) -> bool:
    """Return whether sessions come from folders of this machine alone, and go into its own lake."""
    elsewhere = [settings.lake, *settings.sessions]
    has_servers = settings.langfuse_sessions or settings.recorder
    is_here = not has_servers and not any("://" in each for each in elsewhere)
    return is_here and settings.launch == "here"


def found_lines(found: Scan) -> list[str]:
    """Return what was found, a line a tool: sessions, and from when to when."""
    stats = {source: stats for source, stats in scan_stats(found).items() if stats.sessions}
    total = sum(stat.sessions for stat in stats.values())
    if not stats:
        return []
    width = max(map(len, stats))
    lines = [f"Found {counted(total, 'session')} of {counted(len(stats), 'tool')}:"]
    for source, each in stats.items():
        span = f"{each.first:%Y-%m-%d} to {each.last:%Y-%m-%d}"
        lines.append(f"  {source:{width}}  {each.sessions:>6,}  {span}")
    return lines


def nothing_yet(settings: Settings) -> str:
    """Return one line for a machine on which no session was found."""
    if settings.sessions:
        return f"No session is in {', '.join(settings.sessions)} yet."
    return (
        "No session is yet in the folders where tools keep them. Name another one: "
        "DEBRIEF_SESSIONS=DIR debrief"
    )


def unknown_prompts(lake: Lake) -> int:
    """Return how many sessions do not say which prompt files they had."""
    return sum(row.origin == "unknown" for row in lake.rows(SNAPSHOTS, PromptSnapshotRow))


def _read_newest_first(reading: BackgroundReading) -> None:
    weeks = reading.look()
    for line in found_lines(reading.found):
        console().print(line)
    with console(stderr=True).status("Reading the newest sessions …") as status:
        reading.catch_up(weeks, status.update)


def _ran(*words: str) -> bool:
    """Have ``debrief run`` do something in a process of its own; return whether it succeeded.

    It knows the weeks that were read since this process began. It says itself why it failed.
    """
    run = subprocess.Popen(
        [sys.executable, "-P", "-m", "pipelines.command", "run", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        preexec_fn=stop_with_parent(signal.SIGTERM),
    )
    try:
        return run.wait() == 0
    finally:
        run.terminate()
        run.wait()


def _fill(settings: Settings) -> None:
    """Run the whole graph without a model, and say what is known of the sessions then."""
    if not _ran("--no-model"):
        return
    lake = open_lake(settings.lake)
    content = content_of(lake, lake.partitions(SESSIONS_TABLE))
    sessions = counted(len(content.heads), "session")
    console().print(f"{sessions}. {content.verdicts.sentences()}")


def _print_unknown_prompts(settings: Settings) -> None:
    out, lake = console(), Lake(settings.lake)
    if unknown := unknown_prompts(lake):
        said = "does not say which CLAUDE.md or AGENTS.md it had"
        if unknown > 1:
            said = "do not say which CLAUDE.md or AGENTS.md they had"
        how = (
            "The hook is installed, so new ones say it."
            if _has_hook()
            else "Press h to have Claude Code's new sessions say it (debrief hooks install --user)."
        )
        out.print(f"{counted(unknown, 'session')} {said}. {how}")


def _has_hook() -> bool:
    """Return whether the user's settings of Claude Code have our hook, as far as can be told."""
    state = status(settings_file(user=True), hook_command()).state
    return state == "installed" or (state == "outdated" and is_short_lived(Path(sys.prefix)))


class ReviewQuestion:
    """The question whether a model is to review the newest sessions: SIGUSR1 says yes.

    Keys are read by the process that started this one.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._offer: ReviewOffer | None = None
        self._agreed = threading.Event()
        signal.signal(signal.SIGUSR1, self._hear)

    def _hear(self, *_: object) -> None:
        if self._offer is not None:  # a key that comes before the question answers nothing
            self._agreed.set()

    def ask(self) -> None:
        """Ask, with what it takes; off a terminal, name the command that does it."""
        out, lake = console(), Lake(self._settings.lake)
        if self._settings.no_model:
            return
        if (offer := review_offer(lake, self._settings)) is None:
            if not offered_model(self._settings):
                out.print(HOW_TO_ASK)
        elif sys.stdout.isatty():
            self._offer = counted_offer(lake, self._settings, offer)
            out.print(f"{offer_text(self._offer)} Press y to have it do so.")
        else:
            out.print(f"{offer_text(offer)} {offer.command}")

    def review_if_agreed(self) -> None:
        """Have the sessions of the question reviewed, if somebody has said so."""
        if self._offer is None or not self._agreed.is_set():
            return
        offer, self._offer = self._offer, None
        self._agreed.clear()
        limit = []
        if offer.cost_usd is not None:
            limit = ["--max-cost", f"{max(offer.cost_usd * USUAL_MARGIN, 0.01):.2f}"]
        newest = ("--newest", str(len(offer.sessions)))
        if _ran(*newest, "--model", offer.model, "--yes", *limit):
            lake = open_lake(self._settings.lake)
            content = content_of(lake, lake.partitions(SESSIONS_TABLE))
            console().print(content.verdicts.sentences())


@contextmanager
def _keeping_up(reading: BackgroundReading) -> Iterator[None]:
    """Read what is new or goes on in a thread of its own within the block."""
    over = threading.Event()
    thread = threading.Thread(target=reading.keep_up, args=(over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(_PATIENCE)


def _follow(settings: Settings, reading: BackgroundReading, question: ReviewQuestion) -> None:
    """Review what was agreed to, and make signals of what was read once nobody has written for a
    while, until the parent is gone."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(_LOOK)
        try:
            question.review_if_agreed()
            since = reading.unfilled_since
            if since is not None and time.monotonic() - since > _QUIET:
                reading.unfilled_since = None
                _fill(settings)
        except StoppedError:
            raise  # or this process would go on, and be killed after a while
        except DebriefError as error:
            warn(str(error))


def main(environ: Mapping[str, str] = os.environ) -> None:
    """Read until SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    try:
        settings = load_settings(environ)
        question = ReviewQuestion(settings)
        if not reads_by_itself(settings):
            _fill(settings)
            _print_unknown_prompts(settings)
            question.ask()
            _follow(settings, BackgroundReading(settings), question)
            return
        reading = BackgroundReading(settings)
        _read_newest_first(reading)
        with _keeping_up(reading):
            if reading.found.weeks() or reading.lake.partitions(SESSIONS_TABLE):
                try:
                    _fill(settings)
                    _print_unknown_prompts(settings)
                    question.ask()
                except StoppedError:
                    raise
                except DebriefError as error:  # what is new is read all the same
                    warn(str(error))
            else:
                console().print(nothing_yet(settings))
            console().print("New sessions are read as they come.")
            _follow(settings, reading, question)
    except (KeyboardInterrupt, StoppedError):
        sys.exit(0)
    except DebriefError as error:
        console(stderr=True).print(f"debrief: {error}", style="red")
        sys.exit(1)


if __name__ == "__main__":
    main()
