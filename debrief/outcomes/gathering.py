"""Collect labels and outcomes of a lake's sessions from every source on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import orjson

from debrief.errors import InputError
from debrief.git import scratch_of
from debrief.lake import Lake
from debrief.langfuse.client import LangfuseClient
from debrief.outcomes.history import History, shipped_in
from debrief.outcomes.labels import labels_from_csv, labels_from_feedback, labels_from_langfuse
from debrief.outcomes.store import (
    PROBLEMS,
    Label,
    LabelProblem,
    Labels,
    Source,
    joined,
    only_label_writer,
    outcome,
    put_labels,
    without_forgotten,
)
from debrief.sessions.forgotten import Forgotten
from debrief.sessions.model import Session, SessionHead
from debrief.sessions.readers.values import mapping, moment, string
from debrief.settings import Settings
from debrief.snapshots.capture import find_repository
from debrief.snapshots.captures import repository_of

_BESIDE: tuple[Source, ...] = ("benchmark",)
_IN_REPOSITORY: tuple[Source, ...] = ("kept", "revert", "survival", "pull-request", "ci")
_IN_SESSION: tuple[Source, ...] = ("commit",)
_GROUPS = (_BESIDE, _IN_REPOSITORY, _IN_SESSION)


def read_labels(
    settings: Settings, client: LangfuseClient | None, repository: Path | None
) -> Labels:
    """Read people's labels from everywhere that is configured.

    ``DEBRIEF_LABELS`` names CSV files, and ``DEBRIEF_FEEDBACK`` the ``.debrief`` folders whose
    ``human_feedback.md`` files are read (both separated as PATH is); the latter is the
    repository's own by default.

    Args:
        settings: of this machine.
        client: of a Langfuse server; None when none is configured.
        repository: its top folder; None without one.

    Raises:
        InputError: a CSV file cannot be used.
    """
    return joined([*map(labels_from_csv, settings.labels), _given(settings, client, repository)])


def _given(settings: Settings, client: LangfuseClient | None, repository: Path | None) -> Labels:
    folders = settings.feedback or ([repository / ".debrief"] if repository is not None else [])
    parts = [labels_from_feedback(folders)]
    if client is not None:
        parts.append(labels_from_langfuse(client))
    return joined(parts)


def gather_labels(
    lake: Lake,
    settings: Settings,
    client: LangfuseClient | None,
    repository: Path | None,
    forgotten: Forgotten,
) -> list[LabelProblem]:
    """Keep in the lake what people say of its sessions, and what lies beside the transcripts.

    Args:
        lake: with the sessions.
        settings: of this machine, as for ``read_labels``.
        client: as there.
        repository: as there.
        forgotten: whose labels are not taken in.

    Returns:
        What could not be read, which is kept too. A file that cannot be used costs no other.
    """
    parts, problems = [outcomes_beside(lake), _given(settings, client, repository)], []
    for path in settings.labels:
        try:
            parts.append(labels_from_csv(path))
        except InputError as error:
            problems.append(LabelProblem(text=str(error), whole=True))
    found = joined(parts)
    problems += [LabelProblem(text=problem) for problem in found.problems]
    with only_label_writer(lake, settings.home):
        put_labels(lake, without_forgotten(found, forgotten))
    lake.write(PROBLEMS, "all", problems, LabelProblem)
    return problems


def outcomes_beside(lake: Lake) -> Labels:
    """Return what files beside the transcripts tell: nothing else is opened."""
    heads = list(lake.rows("raw_sessions", SessionHead))
    return _read_whole((label for head in heads for label in beside(head)), {_BESIDE: _here(heads)})


def outcomes_of(lake: Lake, named: Sequence[Path], now: datetime) -> Labels:
    """Return what became of every session's work.

    Args:
        lake: with the sessions.
        named: top folders of repositories, each for the sessions in it or in one of its name;
            without any, each session's own counts, where it is still there.
        now: no outcome is given before its time is up.
    """
    labels: list[Label] = []
    ids: dict[tuple[Source, ...], set[str]] = {sources: set() for sources in _GROUPS}
    with ExitStack() as opened:

        @cache
        def history_of(root: Path) -> History | None:
            with suppress(InputError):  # there is no working tree, or git refuses to look
                return History(opened.enter_context(scratch_of(root)), root, now)
            return None

        for session in lake.rows("raw_sessions", Session):
            shipped = shipped_in(session)
            found = [*shipped.outcomes(session), *beside(session)]
            ids[_BESIDE] |= _here([session])
            ids[_IN_SESSION].add(session.id)
            root = _root_of(session, named)
            if root is not None:
                ids[_IN_REPOSITORY].add(session.id)
                history = history_of(root)
                found += history.outcomes(session, shipped) if history else ()
            labels += {label.source: label for label in found}.values()
    return _read_whole(labels, ids)


def _read_whole(labels: Iterable[Label], ids: Mapping[tuple[Source, ...], set[str]]) -> Labels:
    read = {source: frozenset(known) for sources, known in ids.items() for source in sources}
    return Labels(labels=tuple(labels), read=read)


def _here(sessions: Iterable[Session | SessionHead]) -> set[str]:
    return {session.id for session in sessions if local_transcripts(session)}


def _root_of(session: Session, named: Sequence[Path]) -> Path | None:
    """Return the repository that a session worked in; None where it is not at hand."""
    cwd, root = Path(session.cwd), None
    with suppress(OSError, ValueError):  # another machine's, or one that may not be looked into
        own = find_repository(cwd if cwd.is_dir() else repository_of(session.cwd) or cwd)
        root = own.root if own is not None and cwd.is_absolute() else None
    if root in named or not named:
        return root
    name = session.repository.rpartition("/")[2]
    return next((folder for folder in named if folder.name == name), None)


_MOST_PARENTS = 6
"""Folders above a transcript that may be its trial's: agents keep transcripts deep in theirs."""


def local_transcripts(session: Session | SessionHead) -> list[Path]:
    """Return a session's transcripts that are on this machine."""
    paths = [Path(transcript.path.partition("#")[0]) for transcript in session.transcripts]
    return [path for path in paths if path.is_absolute() and _is_file(path)]


def _is_file(path: Path) -> bool:
    with suppress(OSError, ValueError):  # a name or a folder that this machine cannot open
        return path.is_file()
    return False


def beside(session: Session | SessionHead) -> Iterator[Label]:
    """Yield the outcomes that files beside a session's transcripts tell, the last of each kind."""
    found: dict[str, Label] = {}
    for path in local_transcripts(session):
        for label in _reward(session.id, path):
            other = found.get(label.source, label)
            found[label.source] = max(other, label, key=attrgetter("seen"))
    yield from found.values()


def _reward(session_id: str, path: Path) -> Iterator[Label]:
    """Yield the reward of the trial that a transcript lies in, as Harbor keeps it."""
    for trial in list(path.parents)[:_MOST_PARENTS]:
        place = trial / "verifier" / "reward.txt"
        result = _json(trial / "result.json")
        reward = mapping(mapping(result.get("verifier_result")).get("rewards")).get("reward")
        with suppress(OSError, ValueError, TypeError):
            reward = place.read_text() if reward is None else reward
            at = moment(result.get("finished_at"))
            task = string(result.get("task_name")) or trial.name.partition("__")[0]
            detail, solved = f"reward {float(reward):g}", float(reward) >= 1
            yield outcome(session_id, "benchmark", solved, detail, str(trial), at, task)
            return


def _json(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        return mapping(orjson.loads(path.read_bytes()))
    return {}
