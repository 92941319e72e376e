"""Find what is kept of sessions outside the lake: servers, ``DEBRIEF_HOME``, repositories,
exports."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from uuid import UUID

import msgspec
from msgspec import Struct

from debrief.errors import InputError
from debrief.files import locked, write_durably
from debrief.forgetting.choosing import mirrors_of
from debrief.forgetting.lake_files import holds, take_lines
from debrief.forgetting.pruning import pruned_lines
from debrief.forgetting.signs import Signs
from debrief.forgetting.subject import Subject, Swept
from debrief.keys import slugify
from debrief.lake import Lake
from debrief.langfuse.outgoing import NAMES, ScoreReceipt, id_on, score_id
from debrief.langfuse.sending import shown_scores
from debrief.outcomes.labels import annotation_id
from debrief.outcomes.store import PEOPLE, Roll, all_labels, labelled_sessions
from debrief.recorder.state import RecorderHome
from debrief.sessions.model import SessionHead
from debrief.sessions.scanning import local_entry
from debrief.sessions.sources import scan
from debrief.sessions.store import SESSIONS_TABLE
from debrief.sessions.transfer import leave_out_of_mirror
from debrief.snapshots.capture import HOME, METADATA, metadata_bytes, read_metadata, session_ids_of
from debrief.snapshots.captures import TRANSCRIPTS, repository_folders
from debrief.state import existing_state
from debrief.tasks.model import FORM as HARBOR
from debrief.training.publishing.exported import TABLE as EXPORTS
from debrief.training.publishing.exported import KnownExport
from debrief.training.publishing.folder import files_of, remove_files
from debrief.training.publishing.publish import ATIF, ExportOptions, publish
from debrief.view.index import index_file


def sweep_langfuse(subject: Subject, act: bool) -> Iterator[Swept]:
    """Have our scores, and the labels that went out from here, deleted on the server.

    Their ids follow from the sessions' alone, so those that other machines wrote are found too.
    """
    client, lake, person = subject.langfuse, subject.lake, subject.chosen.person
    if client is None:
        return
    ids = {score_id(session, name) for session in subject.signs.ids for name in NAMES}
    ids |= {
        receipt.score_id
        for receipt in lake.rows("langfuse_scores", ScoreReceipt)
        if receipt.session_id in subject.signs.ids and receipt.host == client.host
    }
    roll = Roll(labelled_sessions(lake))
    for label in all_labels(lake, PEOPLE):
        session = roll.find(label.session_id) or label.session_id
        if session in subject.signs.ids or (person and label.rater == person):
            ids.add(annotation_id(session, label))
    ids |= {id_on("trace", identity) for identity in ids}
    there = sorted(shown_scores(client, sorted(ids)))
    for identity in there if act else ():
        with client.sdk() as sdk:
            sdk.scores.delete(identity)
    if there:
        yield Swept(client.host, len(there), "score")


def sweep_records(subject: Subject, act: bool) -> Iterator[Swept]:
    """Delete the sessions' records from the recorder's database."""
    if subject.records is None:
        return
    there = []
    for name in sorted(subject.signs.ids):
        with suppress(ValueError, InputError):
            there.append(subject.records.session(UUID(name)).id)
    if there and act:
        subject.records.remove(there)
    if there:
        yield Swept("the recorder's database", len(there), "record")


def sweep_recorder(subject: Subject, act: bool) -> Iterator[Swept]:
    """Remove what this machine's recorder keeps of the sessions, sent and unsent."""
    home = RecorderHome(subject.settings.home.absolute())
    if count := sum(home.forget(id_, act=act) for id_ in sorted(subject.signs.ids)):
        yield Swept(str(home.path), count, "record")


def sweep_answers(subject: Subject, act: bool) -> Iterator[Swept]:
    """Delete the models' answers about the sessions.

    Earlier versions did not note what an answer is about: of those, the ones that hold words of
    the sessions.
    """
    state = existing_state(subject.settings)
    if state is None:
        return
    keys = state.about(subject.signs.ids)
    for key, value in state.unattributed():
        if subject.signs.are_in(_text_of(value)):
            keys.add(key)
    if keys and act:
        state.remove(keys)
    if keys:
        yield Swept(state.location, len(keys), "answer")


def sweep_changes(subject: Subject, act: bool) -> Iterator[Swept]:
    """Swept a person's name out of the list of who changed what."""
    state, person = existing_state(subject.settings), subject.chosen.person
    if state is None or not person or not (count := state.changes_of(person)):
        return
    if act:
        state.forget_person(person)
    yield Swept(state.location, count, "change")


def _text_of(answer: bytes) -> str:
    """Return the texts of a kept answer, whose own text often is JSON again."""
    texts: list[str] = []
    waiting: list[object] = [answer.decode("utf-8", "replace")]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            texts.append(value)
            with suppress(msgspec.DecodeError):
                decoded = msgspec.json.decode(value)
                waiting += [decoded] if isinstance(decoded, dict | list | str) else []
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return "\n".join(texts)


def sweep_index(subject: Subject, act: bool) -> Iterator[Swept]:
    """Remove the index of the lake's pages, whoever is in it: it may hold them no more and still
    have their words in pages that are free. The next page makes it anew."""
    index = index_file(subject.lake, subject.settings.home.absolute() / "view")
    if not index.exists():
        return
    is_in_it = False
    with suppress(sqlite3.Error), closing(sqlite3.connect(index, timeout=60)) as database:
        known = {row[0] for row in database.execute("SELECT id FROM sessions")}
        is_in_it = not known.isdisjoint(subject.signs.ids)
    if act:
        with locked(index.with_suffix(".lock"), timeout=60):
            for path in index.parent.glob(f"{index.name}*"):
                path.unlink(missing_ok=True)
    if is_in_it:
        yield Swept(str(index), 1, "file")


def sweep_logs(subject: Subject, act: bool) -> Iterator[Swept]:
    """Swept lines that name the sessions or hold their words out of the logs."""
    for path in sorted((subject.settings.home.absolute() / "logs").glob("*")):
        if not path.is_file():
            continue
        # In place: whoever writes the log has the file open.
        with path.open("r+b") as file:
            text, gone = pruned_lines(file.read().decode("utf-8", "replace"), subject.signs)
            if gone and act:
                file.seek(0)
                file.write(text.encode())
                file.truncate()
        if gone:
            yield Swept(str(path), gone, "line")


def sweep_mirrors(subject: Subject, act: bool) -> Iterator[Swept]:
    """Remove copies of the sessions' transcripts and captures that were brought here from stores.

    They are not brought here again.
    """
    origins = mirrors_of(subject.settings)
    kept = {file.path for kept_entry in subject.chosen.kept_entries for file in kept_entry.files}
    files = {
        file.path
        for entry in subject.chosen.entries
        for file in entry.files
        if file.path not in kept
    }
    local = {
        file.path
        for entry in subject.chosen.entries
        for file in local_entry(entry, origins).files
        if any(file.path.startswith(origin.here) for origin in origins)
    }
    there = {path for path in local - files if Path(path).is_file()}
    mirrored = (path for origin in origins for path in Path(origin.here).rglob(HOME))
    for capture in _captures(mirrored):
        if capture.is_theirs(subject) and not capture.of_others(subject):
            there |= {str(path) for path in capture.folder.rglob("*") if path.is_file()}
    for path in there if act else ():
        leave_out_of_mirror(origins, path)
    if there:
        yield Swept(str(subject.settings.home / "mirror"), len(there), "file")


def sweep_pushed(subject: Subject, act: bool) -> Iterator[Swept]:
    """Swept the sessions' files out of the list of what this machine pushed to a store."""
    for path in sorted((subject.settings.home.absolute() / "pushed").glob("*.json")):
        pushed = msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
        left = {name: raw for name, raw in pushed.items() if not subject.signs.names(name)}
        if len(left) < len(pushed):
            if act:
                write_durably(path, msgspec.json.encode(left))
            yield Swept(str(path), len(pushed) - len(left), "line")


class _Capture(Struct, frozen=True):
    """A folder of a plan or a session in a ``.debrief`` folder."""

    folder: Path
    names: frozenset[str]
    """The ids of its sessions; its own name where it tells none."""

    def is_theirs(self, subject: Subject) -> bool:
        return not self.names.isdisjoint(subject.signs.ids) or self._is_of_their_plan(subject)

    def of_others(self, subject: Subject) -> frozenset[str]:
        """Return the sessions of it that stay."""
        return frozenset() if self._is_of_their_plan(subject) else self.names - subject.signs.ids

    def _is_of_their_plan(self, subject: Subject) -> bool:
        """Return whether it is of a plan that no other session worked on."""
        if self.names != {self.folder.name}:
            return False
        task = slugify(self.folder.name)
        tasks = {head.task for head in subject.chosen.heads.values()}
        return task in tasks and not any(
            head.task == task and head.id in subject.chosen.others
            for head in subject.lake.rows(SESSIONS_TABLE, SessionHead)
        )


def _captures(homes: Iterable[Path]) -> Iterator[_Capture]:
    """Yield the folders of sessions and of training data in some ``.debrief`` folders."""
    for home in homes:
        for kind in ("sessions", "training_data"):
            for folder in sorted((home / kind).glob("*/")):
                if not folder.is_symlink():
                    named: tuple[str, ...] = ()
                    with suppress(OSError, ValueError):
                        named = session_ids_of(read_metadata(folder))
                    yield _Capture(folder, frozenset(named or (folder.name,)))


def sweep_captures(subject: Subject, act: bool) -> Iterator[Swept]:
    """Remove what was captured of the sessions in the repositories that they worked in.

    Of a folder that other sessions are in too, their copies of transcripts go, and their ids.
    """
    homes = {folder.parent for folder in repository_folders(subject.chosen.heads.values())}
    for capture in _captures(sorted(homes)):
        if not capture.is_theirs(subject):
            continue
        others = capture.of_others(subject)
        if not others:
            if act:
                shutil.rmtree(capture.folder)
            yield Swept(str(capture.folder), 1, "folder")
            continue
        copies = [
            Path(file.path)
            for entry in scan([capture.folder / TRANSCRIPTS]).entries
            if entry.session_id in subject.signs.ids
            for file in entry.files
        ]
        if act:
            for path in copies:
                path.unlink(missing_ok=True)
            metadata = read_metadata(capture.folder)
            left = [name for name in session_ids_of(metadata) if name in others]
            changed = metadata | {"session_id": left[0], "session_ids": left}
            write_durably(capture.folder / METADATA, metadata_bytes(changed))
        yield Swept(str(capture.folder), len(copies), "file")


def sweep_exports(subject: Subject, act: bool) -> Iterator[Swept]:
    """Make the exports anew that hold the sessions, from what the lake holds now.

    Where that cannot be done, as with records, trajectories, and sets that are empty now, lines go
    out of files of lines, and other files that hold them go as a whole.
    """
    for export in exports_of(subject.lake):
        place = Lake(export.target)
        theirs = _files_with(place, export, subject.signs) if export.is_here else []
        if theirs and act and not _is_made_anew(subject.lake, export):
            _take_out(place, theirs, subject.signs)
        if theirs:
            yield Swept(export.target, len(theirs), "file")


def exports_of(lake: Lake) -> list[KnownExport]:
    """Return the exports that a lake knows of, on whatever machine."""
    return list(lake.rows(EXPORTS, KnownExport))


def _is_made_anew(lake: Lake, export: KnownExport) -> bool:
    if export.options:
        with suppress(InputError):
            options = msgspec.json.decode(export.options, type=ExportOptions)
            return bool(publish(lake, export.target, options).files)
    return False


def _take_out(place: Lake, names: list[str], signs: Signs) -> None:
    for name in names:
        if name.endswith(".jsonl"):
            take_lines(place, name, signs, act=True)
    remove_files(place, (name for name in names if not name.endswith(".jsonl")))


def _files_with(place: Lake, export: KnownExport, signs: Signs) -> list[str]:
    """Return the files of an export that hold something of the sessions.

    Lines of some forms do not tell whose they are: there their words decide.
    """
    files = files_of(place)
    if export.form == "record":  # by an earlier version, without a list of its files
        files = set(place.names(suffix=".record.jsonl"))
    if export.form == ATIF:
        return sorted(files & {f"{slugify(name)}.json" for name in signs.ids})
    theirs = [name for name in sorted(files) if holds(place, name, signs)]
    if export.form == HARBOR:  # a task goes as a whole
        tops = {name.partition("/")[0] for name in theirs}
        return [name for name in sorted(files) if name.partition("/")[0] in tops]
    return theirs
