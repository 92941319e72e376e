"""Choose the sessions to forget: by id, person, repository, or age."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.keys import slugify
from debrief.lake import Lake
from debrief.langfuse.client import LangfuseClient
from debrief.outcomes.store import LABELS, Label
from debrief.recorder.storage.rows import SessionFilter
from debrief.recorder.storage.store import RecordStore
from debrief.sessions.forgotten import Forgotten
from debrief.sessions.model import SessionHead
from debrief.sessions.scanning import MIRRORED_FILES, MirrorOrigin, ScanEntry, origins_of
from debrief.sessions.store import (
    GONE_PARTITION,
    SCAN_PARTITION,
    SCAN_TABLE,
    SESSIONS_TABLE,
    only_one,
)
from debrief.settings import Settings
from debrief.snapshots.model import NAMES, PromptName
from debrief.state import existing_state

NOTHING = "nothing"
"""Code of the error that no session is old enough, which is as it should be."""
_PAGE = 500


class Choice(Struct, frozen=True, kw_only=True):
    """What is asked to be forgotten; one of the four."""

    sessions: tuple[str, ...] = ()
    """Ids, or beginnings of them."""
    person: str = ""
    repository: str = ""
    before: date | None = None
    """Sessions that ended before this day, in UTC."""


class Chosen(Struct, frozen=True, kw_only=True):
    """The sessions that are meant."""

    heads: Mapping[str, SessionHead]
    """Those that the lake holds, by id."""
    relatives: frozenset[str] = frozenset()
    """Of these, the ones that were not asked for and are copies or forks of those that were."""
    others: frozenset[str] = frozenset()
    """Ids of the lake's other sessions."""
    without_rows: frozenset[str] = frozenset()
    """Ids of sessions that the lake does not hold: records that it has not read yet, transcripts
    that it only knows of, sessions that were forgotten before."""
    person: str = ""
    """Whose labels are meant, too."""
    entries: tuple[ScanEntry, ...] = ()
    """Their transcripts, as all machines know them."""
    kept_entries: tuple[ScanEntry, ...] = ()
    """All other transcripts."""

    @property
    def ids(self) -> frozenset[str]:
        """All of them."""
        return frozenset({*self.heads, *self.without_rows})

    @property
    def paths(self) -> frozenset[str]:
        """Of their transcripts, those that hold nothing else."""
        own = {ref.path for head in self.heads.values() for ref in head.transcripts}
        own |= {entry.path for entry in self.entries}
        kept = (file.path for kept_entry in self.kept_entries for file in kept_entry.files)
        return frozenset(own.difference(kept, (entry.path for entry in self.kept_entries)))


class Sources(Struct, frozen=True):
    """What is asked beside the lake."""

    settings: Settings
    lake: Lake
    forgotten: Forgotten
    langfuse: LangfuseClient | None = None
    records: RecordStore | None = None


def choose(choice: Choice, sources: Sources) -> Chosen:
    """Return the sessions that are meant, with the copies and forks of them.

    Raises:
        InputError: nothing is known of what is asked for.
        DebriefError: a server that has to be asked is away.
    """
    lake = sources.lake
    heads = {head.id: head for head in lake.rows(SESSIONS_TABLE, SessionHead)}
    entries = [
        entry
        for partition in (SCAN_PARTITION, GONE_PARTITION)
        for entry in lake.read(SCAN_TABLE, partition, ScanEntry)
    ]
    ids = set(_asked_for(choice, sources, heads, entries))
    relatives = _relatives(lake, ids & heads.keys())
    taken = ids | relatives
    person = choice.person
    state = existing_state(sources.settings)
    is_known = person and (
        sources.forgotten.person(person)
        or has_labels_of(lake, person)
        or (state is not None and state.changes_of(person))
    )
    if not taken and not is_known:
        raise _unknown(choice)
    return Chosen(
        heads={name: head for name, head in heads.items() if name in taken},
        relatives=frozenset(relatives),
        others=frozenset(heads.keys() - taken),
        without_rows=frozenset(taken - heads.keys()),
        person=person,
        entries=tuple(entry for entry in entries if entry.session_id in taken),
        kept_entries=tuple(entry for entry in entries if entry.session_id not in taken),
    )


def _unknown(choice: Choice) -> InputError:
    if choice.person:
        move = "A home folder's name, a pushing user's, a Langfuse user id or a rater is meant."
        return InputError(
            f"--person {choice.person}", "has no session, no label and no change here", move
        )
    if choice.repository:
        return InputError(f"--repository {choice.repository}", "has no session in this lake")
    reason = "no session of this lake ended before that day"
    return InputError(f"--before {choice.before}", reason).known_as(NOTHING)


def _asked_for(
    choice: Choice,
    sources: Sources,
    heads: Mapping[str, SessionHead],
    entries: Iterable[ScanEntry],
) -> Iterator[str]:
    if choice.sessions:
        known = {*heads, *(entry.session_id for entry in entries if entry.session_id)}
        for given in choice.sessions:
            yield _one(given, sources, known)
        return
    for name, head in heads.items():
        if (
            (choice.repository and head.repository == choice.repository)
            or (choice.before and head.ended < _midnight(choice.before))
            or (choice.person and _is_of_person(head, choice.person, sources.settings))
        ):
            yield name
    if choice.person and sources.langfuse is not None:
        yield from heads.keys() & _sessions_of_user(sources.langfuse, choice.person)
    if sources.records is not None and not choice.person:
        yield from _records(choice, sources.records)


def _one(given: str, sources: Sources, known: set[str]) -> str:
    found = only_one(given, known)
    if found is None and sources.forgotten.session(given):
        return given
    if found is None and sources.records is not None:
        found = given if _is_stored(sources.records, given) else None
    if found is None:
        move = "debrief view lists them; six characters of an id are enough."
        raise InputError(given, "is no session of this lake", move)
    return found


def _is_stored(records: RecordStore, given: str) -> bool:
    try:
        records.session(UUID(given))
    except (ValueError, InputError):
        return False
    return True


def _records(choice: Choice, records: RecordStore) -> Iterator[str]:
    """Yield the ids of stored records that are meant, whether or not the lake has read them."""
    until = _midnight(choice.before) if choice.before else None
    only = SessionFilter(repo_name=choice.repository or None, until=until)
    cursor, more = None, True
    while more:
        page = records.sessions(only, cursor=cursor, limit=_PAGE)
        yield from (str(item.id) for item in page.items)
        cursor, more = page.cursor, page.more


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _is_of_person(head: SessionHead, person: str, settings: Settings) -> bool:
    """Return whether a session worked in a person's home folder, or was pushed by the person."""
    paths = [head.cwd, *(ref.path for ref in head.transcripts)]
    of_home = re.compile(rf"(?:^|[/\\:])(?:home|Users)[/\\]{re.escape(person)}(?:[/\\]|$)")
    if any(map(of_home.search, paths)):
        return True
    urls = [url.rstrip("/") for url in settings.sessions if "://" in url]
    urls += [origin.there.rstrip("/") for origin in mirrors_of(settings)]
    owned = tuple(f"{url}/{slugify(person)}/" for url in urls)
    return any(path.startswith(owned) for path in paths)


def mirrors_of(settings: Settings) -> tuple[MirrorOrigin, ...]:
    """Return the mirrors of object stores that this machine has."""
    return origins_of(sorted(settings.home.absolute().glob(f"mirror/*/{MIRRORED_FILES}")))


def _sessions_of_user(client: LangfuseClient, person: str) -> set[str]:
    """Return the ids of a server's sessions that have a user's id."""
    asked = [
        client.observations(userId=person, fields="core,basic"),
        client.traces(userId=person, fields="core"),
    ]
    return {str(row.get("sessionId") or "") for rows in asked for row in rows} - {""}


def has_labels_of(lake: Lake, person: str) -> bool:
    """Return whether somebody gave labels, or names to prompts."""
    raters = (row.rater for row in lake.rows(LABELS, Label))
    return person in raters or person in (row.rater for row in lake.rows(NAMES, PromptName))


class _Said(Struct, frozen=True):
    text: str = ""


class _Turn(Struct, frozen=True):
    prompt: str
    at: datetime | None = None
    messages: tuple[_Said, ...] = ()


class _Asked(Struct, frozen=True, kw_only=True):
    id: str
    turns: tuple[_Turn, ...] = ()


_ENOUGH = 2
"""Long messages of the model in common; a prompt of the same moment counts as enough."""
_LONG = 400
"""Characters from which a model hardly ever says the same twice."""


def _relatives(lake: Lake, ids: set[str]) -> set[str]:
    """Return the sessions that are copies or forks of some, or of which these are, and of those
    again: they hold a part of the same history, word for word."""
    if not ids:
        return set()
    marks = dict(_marks(lake))
    owners: dict[int, list[str]] = {}
    for name, own in marks.items():
        for mark in own:
            owners.setdefault(mark, []).append(name)
    found, waiting = set(ids), list(ids)
    while waiting:
        shared: Counter[str] = Counter()
        for mark, weight in marks.get(waiting.pop(), {}).items():
            shared.update(dict.fromkeys(owners[mark], weight))
        new = {name for name, weight in shared.items() if weight >= _ENOUGH} - found
        found |= new
        waiting += new
    return found - ids


def _marks(lake: Lake) -> Iterator[tuple[str, dict[int, int]]]:
    """Yield of each session the hashes of its prompts and of the model's messages, weighed."""
    for row in lake.rows(SESSIONS_TABLE, _Asked):
        marks = {
            hash((turn.at, turn.prompt)): _ENOUGH for turn in row.turns if turn.prompt and turn.at
        }
        texts = (message.text for turn in row.turns for message in turn.messages)
        yield row.id, {hash(text): 1 for text in texts if len(text) >= _LONG} | marks


def parts_of(chosen: Chosen, most: int) -> Iterator[Chosen]:
    """Yield the chosen sessions in parts whose transcripts have so many bytes together at most.

    Each part takes the others for sessions that are still there.

    Args:
        chosen: all of them.
        most: bytes; a larger session is a part of its own.
    """
    parts: list[set[str]] = [set()]
    room = most
    for name, head in chosen.heads.items():
        size = sum(ref.size for ref in head.transcripts)
        if parts[-1] and size > room:
            parts.append(set())
            room = most
        parts[-1].add(name)
        room -= size
    for number, ids in enumerate(parts):
        taken = ids | (chosen.without_rows if number == 0 else frozenset())
        yield replace(
            chosen,
            heads={name: chosen.heads[name] for name in ids},
            relatives=chosen.relatives & ids,
            others=chosen.others | (chosen.heads.keys() - ids),
            without_rows=chosen.without_rows if number == 0 else frozenset(),
            person=chosen.person if number == 0 else "",
            entries=tuple(entry for entry in chosen.entries if entry.session_id in taken),
            kept_entries=(
                *chosen.kept_entries,
                *(entry for entry in chosen.entries if entry.session_id not in taken),
            ),
        )
