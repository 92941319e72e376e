"""Read references for sessions: labels of careful readers, of people, and of benchmarks.

Readers' files are JSON lines, one a reading: ``session_id``, ``verdict`` (one of the five), and if
there are any ``quality`` (0 to 100), ``task`` and ``transcript`` (a path below the folder of
sessions). Benchmarks' are ``labels.csv``: ``session_id,success,task,family``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.files import read_text
from debrief.lake import Lake
from debrief.outcomes.labels import labels_from_csv
from debrief.outcomes.store import PEOPLE, LabelledSession, Roll, success_labels, success_of
from debrief.scoring.verdict import COMPLETE, INCOMPLETE, VerdictName
from debrief.sessions.model import Session
from debrief.sessions.scanning import Scan
from debrief.sessions.sources import read_week, scan
from debrief.sessions.store import sessions_of_lake

LABELS = "labels.csv"
LEVELS: dict[VerdictName, int] = {
    "failed": 0,
    "partial": 1,
    "undetermined": 2,
    "complete_unverified": 3,
    "complete_verified": 4,
}
"""Verdicts from the worst to the best; of what nothing is known stands in the middle."""
_MOVE = (
    "Put beside the sessions a file of lines such as "
    '{"session_id": "0a1b…", "verdict": "complete_verified", "quality": 80}, '
    "or labels.csv with session_id,success,task,family."
)


class ReaderVerdict(Struct, frozen=True, kw_only=True):
    """What one reader says of a session: a line of a file; its other columns are for people."""

    session_id: str
    verdict: VerdictName
    quality: float | None = None
    task: str = ""
    transcript: str = ""
    """Below the folder of sessions; what follows ``#`` is a place in the file."""


class Reference(Struct, frozen=True, kw_only=True):
    """What is known of a session from outside; no evaluator sees it."""

    session_id: str
    done: bool | None
    """None where the reader could not say."""
    readings: tuple[ReaderVerdict, ...] = ()
    task: str = ""
    """Runs of one task are not independent; by default a session is on a task of its own."""
    family: str = ""
    """Sessions that are ordered together: an agent on one kind of task, or a person's own."""

    @property
    def verdict(self) -> VerdictName | None:
        """Return the readers' verdict, the worst of several; None where there is no reader."""
        found = (reading.verdict for reading in self.readings)
        return min(found, key=LEVELS.__getitem__, default=None)

    @property
    def quality(self) -> float | None:
        """Return the mean of what readers say of the quality, from 0 to 100."""
        found = [reading.quality for reading in self.readings if reading.quality is not None]
        return fmean(found) if found else None


class Corpus(Struct, frozen=True, kw_only=True):
    """Sessions that are ordered together, some of which have a reference."""

    references: dict[str, Reference]
    """By session id."""
    transcripts: Scan = Scan()
    lake: str = ""
    """Where the sessions are, if not in transcripts."""

    def sessions(self, redact: Callable[[Session], Session]) -> Iterator[Session]:
        """Yield all that can be read, those without a reference too."""
        for week in self.transcripts.weeks():
            for item in read_week(self.transcripts, week, redact):
                if isinstance(item, Session):
                    yield item
        if self.lake:
            yield from sessions_of_lake(Lake(self.lake))


def corpora_in(folder: Path, sessions: Path | None = None) -> tuple[list[Corpus], list[str]]:
    """Read the references of a folder, and find the sessions that they are of.

    Args:
        folder: with readers' files in it or ``labels.csv`` in or below it; or one readers' file.
        sessions: where the readers' sessions are; by default ``sessions`` beside or in the folder,
            else the folder itself. Those of a ``labels.csv`` are below its own folder.

    Returns:
        Collections, and what is wrong with lines and transcripts that are left out.

    Raises:
        InputError: there is no reference, or no session of one.
    """
    corpora: list[Corpus] = []
    problems: list[str] = []
    readings = list(_readings(folder, problems))
    if readings:
        found = scan([sessions or _beside(folder)])
        references = _of_readers(readings, found, folder.name, problems)
        if references:
            corpora.append(Corpus(references=references, transcripts=found))
    for file in sorted(folder.rglob(LABELS)):
        found = scan([file.parent])
        for references in _of_benchmark(file, found, problems):
            own = tuple(entry for entry in found.entries if entry.session_id in references)
            corpora.append(Corpus(references=references, transcripts=Scan(own)))
    if not corpora:
        reason = "; ".join(problems[:5]) or "holds no reader's file and no labels.csv"
        raise InputError(str(folder), reason.rstrip("."), _MOVE)
    return corpora, problems


def _beside(folder: Path) -> Path:
    home = folder.parent if folder.is_file() else folder
    places = (home / "sessions", home.absolute().parent / "sessions")
    return next((place for place in places if place.is_dir()), home)


def _readings(folder: Path, problems: list[str]) -> Iterator[ReaderVerdict]:
    """Yield the readings of a file, or of all files in a folder that begin with one."""
    for file in [folder] if folder.is_file() else sorted(folder.glob("*.jsonl")):
        lines = read_text(file, "Check the folder.").splitlines()
        for number, line in enumerate(lines, 1):
            try:
                yield msgspec.json.decode(line, type=ReaderVerdict)
            except (msgspec.DecodeError, msgspec.ValidationError) as error:
                if number == 1:  # a transcript
                    break
                if line.strip():
                    problems.append(f"{file}:{number}: is no reading: {error}.")


def _of_readers(
    readings: Sequence[ReaderVerdict], found: Scan, family: str, problems: list[str]
) -> dict[str, Reference]:
    ids = {entry.session_id for entry in found.entries if entry.session_id}
    files = {entry.path: entry.session_id for entry in found.entries if entry.session_id}
    by_session: dict[str, list[ReaderVerdict]] = defaultdict(list)
    for reading in readings:
        id_ = reading.session_id
        if id_ not in ids and reading.transcript and "#" not in reading.transcript:
            end = f"/{reading.transcript}"
            id_ = next((own for path, own in files.items() if path.endswith(end)), id_)
        if id_ in ids:
            by_session[id_].append(reading)
        else:
            problems.append(f"session {id_}: its transcript is not there. Name --sessions.")
    return {
        id_: Reference(
            session_id=id_,
            done=_done(min((verdict.verdict for verdict in own), key=LEVELS.__getitem__)),
            readings=tuple(own),
            task=own[0].task or id_,
            family=family,
        )
        for id_, own in by_session.items()
    }


def _done(verdict: VerdictName) -> bool | None:
    return verdict in COMPLETE if verdict in COMPLETE | INCOMPLETE else None


def _of_benchmark(file: Path, found: Scan, problems: list[str]) -> Iterable[dict[str, Reference]]:
    """Return the references of a file's families."""
    roll = Roll(
        LabelledSession(id=entry.session_id, task="", started=entry.started)
        for entry in found.entries
        if entry.session_id
    )
    labels = labels_from_csv(file)
    problems += labels.problems
    problems += (
        f"{entry.path}:{entry.line}: {entry.reason}. Its label, if it has one, is not used."
        for entry in found.entries
        if entry.reason and not entry.expected
    )
    families: dict[str, dict[str, Reference]] = defaultdict(dict)
    for label in labels.labels:
        id_, done = label.session_id, success_of(label)
        if id_ not in roll.ids:
            alike = roll.look_alike(id_)
            move = f"Write {alike}" if alike else "Correct the id, or put its transcript there"
            no_such = f"no transcript below {file.parent} has session {id_}"
            problems.append(f"{label.place}: {no_such}. {move}.")
        elif done is not None:
            family = label.family or file.parent.name
            task = label.task or id_
            families[family][id_] = Reference(session_id=id_, done=done, task=task, family=family)
    return families.values()


def corpus_of_lake(lake: Lake) -> Corpus:
    """Return a lake's sessions, with what people say of them as references.

    Raises:
        InputError: nobody says anything.
    """
    references = {
        id_: Reference(session_id=id_, done=known.success, task=known.task, family=lake.url)
        for id_, known in success_labels(lake, PEOPLE).items()
    }
    if not references:
        reason = "holds no label of a person"
        raise InputError(lake.url, reason, "Label some in debrief view, or name a folder.")
    return Corpus(references=references, lake=lake.url)


def parts_of(corpus: Corpus, size: int) -> Iterator[Corpus]:
    """Yield a corpus of transcripts in parts of so many sessions; one of a lake whole."""
    ids = sorted({entry.session_id for entry in corpus.transcripts.entries if entry.session_id})
    if corpus.lake:
        yield corpus
    for start in range(0, len(ids), size):
        part = frozenset(ids[start : start + size])
        scanned = corpus.transcripts
        entries = tuple(entry for entry in scanned.entries if entry.session_id in part)
        yield replace(corpus, transcripts=replace(scanned, entries=entries, gone=()))
