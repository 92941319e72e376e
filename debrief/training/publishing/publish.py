"""Export of stored training sets, line by line, and of whole sessions as trajectories in ATIF."""

from __future__ import annotations

import hashlib
import io
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain, groupby, product
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.keys import slugify
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.reports import Markdown, report
from debrief.scoring.verdict import VERDICT_LABELS, VerdictName
from debrief.sessions.atif import as_trajectory
from debrief.sessions.model import Session
from debrief.sessions.store import sessions_of_lake
from debrief.training.cards import HOW_TO_LOAD
from debrief.training.contamination import read_problems
from debrief.training.given import without_reminder
from debrief.training.held import decisions
from debrief.training.kinship import read_kinship
from debrief.training.manifest import current_pairs, stored_sets
from debrief.training.model import (
    LINES,
    ExclusionKind,
    LineRow,
    SampleLine,
    Split,
    Status,
    TrainingSetRow,
    training_path,
)
from debrief.training.options import EVAL_SHARE, TrainingOptions
from debrief.training.publishing.account import SessionAccount
from debrief.training.publishing.folder import (
    ALL,
    SIDES,
    OwnFolder,
    Published,
    PublishedFolder,
    PublishedSet,
)
from debrief.training.publishing.form import (
    Form,
    RewardKind,
    StoredLine,
    decoded,
    one_by_one,
    with_single_calls,
    without_reasoning,
)
from debrief.training.publishing.forms import form_named
from debrief.training.publishing.labels import LabelCounts
from debrief.training.publishing.narrowing import (
    Decontamination,
    SidesInTime,
    composition,
    decontaminate,
    resplit,
    session_of,
    sides_in_time,
)
from debrief.training.publishing.preferences import PairCounts, pairs_of
from debrief.training.publishing.rewards import RewardCounts
from debrief.training.publishing.rewound import rewound_pairs
from debrief.training.publishing.rows import Messages, RowCounts
from debrief.training.samples import encode_line
from debrief.training.selection import Members, Pair
from debrief.training.short import left_out_lines
from debrief.training.splits import BY_WEEK, parse_split
from debrief.training.windows import HEADER, ContextTable, line_row, samples_of

_UNREVIEWED = {True: "included", False: "as the sets have them"}
_SINGLE_CALLS = "Calls made at once stand one after the other, each before its result."
_SHOWN = 3
_AGAIN = "Make the training set again: debrief run --select training_sets."


class ExportOptions(Struct, frozen=True, kw_only=True):
    """Which sets and lines are exported, and how."""

    form: str = "messages"
    task: str = ""
    """Lines of these tasks: names or patterns with ``*`` and ``?``, commas between; empty: every
    one. So are the four after it."""
    fingerprint: str = ""
    """Of a pair, or of the person's prompts alone."""
    tool: str = ""
    """``claude-code``, or with a version ``claude-code/2.1.*``."""
    model: str = ""
    kind: str = ""
    """Of work: ``coding``, ``service``, ``unknown``."""
    since: datetime | None = None
    """Sessions that began then or later."""
    split: str = "week"
    """As ``parse_split`` takes it; ``week`` is as the lines are stored."""
    eval_share: float = EVAL_SHARE
    """Of repositories, where the split goes by them."""
    decontaminate: str = ""
    """A file with benchmarks' problems, whose sessions are left out; empty for none."""
    parquet: bool = False
    """Parquet files beside the JSONL."""
    one_file: bool = False
    """The lines of all sets in one file of each side."""
    verdicts: tuple[VerdictName, ...] = ()
    """Lines of these verdicts; empty for any that the sets hold."""
    min_overall_quality: float = 0.0
    """With it, lines without an overall quality are left out."""
    status: Status | None = None
    """None: lines of any status."""
    reasoning: bool = False
    """What the model thought is in the lines."""
    subagents: bool = False
    """Lines of subagents' own conversations, too."""
    max_tokens: int = 0
    """Longer lines are cut into windows; 0 for no limit."""
    single_calls: bool = False
    """Calls made at once become one after the other."""
    unreviewed: bool = False
    """Also sessions that nobody gave a verdict and that no signal speaks against."""
    reward: RewardKind = "verdict"
    """The kind of all rewards, where the form has some."""
    licence: str = ""
    """Of the whole, as an SPDX identifier."""
    refuse_undecided: bool = False
    """Refuse lines of sessions with redactions that nobody has decided on."""

    @property
    def choices(self) -> Iterator[tuple[str, str]]:
        """What was chosen, in words."""
        for name in ("task", "fingerprint", "tool", "model", "kind"):
            yield name, getattr(self, name) or "all"
        yield "began", f"{self.since:%Y-%m-%d %H:%M} UTC or later" if self.since else "any time"
        yield "split", self.split
        yield "verdicts", "; ".join(VERDICT_LABELS[name] for name in self.verdicts) or "any"
        yield "not reviewed, no signal against it", _UNREVIEWED[self.unreviewed]
        yield "least overall quality", f"{self.min_overall_quality:g}"
        yield "status", self.status or "any"
        yield "what the model thought", "included" if self.reasoning else "left out"
        yield "subagents' own conversations", "included" if self.subagents else "left out"
        yield "most tokens of a line", f"{self.max_tokens:,}" if self.max_tokens else "no limit"


class _Chosen(Struct, frozen=True):
    """The lines of one set that are exported, and the file that holds them."""

    of: TrainingSetRow
    rows: list[LineRow]
    cut: IO[bytes] | None
    """Where they were joined with others or cut into windows; None: in the lake."""


def publish(
    lake: Lake,
    target: str,
    options: ExportOptions,
    before: Callable[[ContextTable, dict[str, int]], None] = lambda kept, left_out: None,
    training: TrainingOptions | None = None,
) -> Published:
    """Export stored training sets to a folder that ``load_dataset`` takes as splits.

    Args:
        lake: with the training sets.
        target: a folder or an fsspec URL (``s3://…``).
        options: which sets, in which form.
        before: called before anything is written, with what contexts keep of the chosen lines, and
            how many were left out as they cannot be cut, by reason.
        training: with which the sets are made, for sessions that they leave out for their verdict
            and that a form of scores takes; the defaults when None.

    Raises:
        InputError: there is no such form or set, the folder holds something else, a stored file
            is not what was written, or a line breaks the rules of who reads it.
    """
    form = form_named(options.form)
    if options.reasoning and not form.takes_reasoning:
        raise InputError(f"form {form.name}", "has no place for what the model thought")
    if options.subagents and not form.of_conversations:
        raise InputError(f"form {form.name}", "is of scores, and nobody scored a subagent alone")
    if options.single_calls:
        form = replace(form, note=f"{form.note} {_SINGLE_CALLS}")
    left_out: dict[str, int] = {}
    with ExitStack() as stack:
        scratch, joined = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        stored, earlier = _asked_sets(lake, options)
        account = SessionAccount(stored)
        kinds: list[ExclusionKind] = ["not_reviewed"] if options.unreviewed else []
        kinds += [] if form.of_conversations else ["verdict"]
        short, reasons = left_out_lines(lake, stored, kinds, training or TrainingOptions(), joined)
        account.explain(reasons)
        asked = _chosen(lake, stored, options, short, joined, account)
        narrowed = _narrowed(lake, asked, options, left_out, account)
        chosen = narrowed.chosen
        lengths = [row.lengths[options.reasoning] for one in chosen for row in one.rows]
        kept = ContextTable(sum(length.trained for length in lengths))
        if options.max_tokens:
            chosen = [_cut(lake, one, options, left_out, scratch, account) for one in chosen]
        for one in chosen:
            for row in one.rows:
                kept.add(row.lengths[options.reasoning])
        before(kept, left_out)
        said = _counts_of(form, options)
        observed = current_pairs(lake) if form.pair is not None else {}
        counts = RowCounts(form.rows) if form.rows is not None else None
        folder = stack.enter_context(
            PublishedFolder(
                target,
                form,
                parquet=options.parquet,
                one_file=options.one_file,
                licence=options.licence,
            )
        )
        for one in chosen:
            lines = _made_lines(lake, one, form, options, counts, account)
            if observed:
                members = observed.get((one.of.task, one.of.fingerprint), {})
                lines = chain(lines, _rewound(lake, one, options, members, account))
            lines = said.counted(lines) if said else lines
            made = folder.write_set(one.of.task, one.of.fingerprint, lines)
            path = training_path(made.task, made.fingerprint, ".card.md")
            card = lake.read_bytes(path) if made.count else None
            if card is not None:
                text = _published_card(card.decode(), made, options)
                folder.write(f"{made.task}/{made.fingerprint}/card.md", text.encode())
        notes = report(
            "export_notes",
            choices=options.choices,
            composition=narrowed.composition,
            sides=narrowed.sides,
            benchmarks=narrowed.searched,
            contexts_head=HEADER,
            contexts=kept.rows(),
            account=account,
            as_text=folder.as_text,
            left_out=[(reason, str(count)) for reason, count in sorted(left_out.items())],
            earlier=_earlier_text(earlier) if earlier else "",
            short=sum(bool(row.verdict) for rows in short.values() for row in rows),
            labels=said if form.of_labels else None,
            rewards=said if form.of_rewards else None,
            pairs=said if form.pair is not None else None,
            rows=counts,
        )
        published = folder.finish(Markdown(notes))
        warnings = [
            *(said.warnings() if said else ()),
            *([_as_text(folder.as_text)] if folder.as_text else []),
            *([_earlier_text(earlier)] if earlier else []),
        ]
        return replace(
            published,
            warnings=(*published.warnings, *warnings),
            unlicensed=sum(not row.licence for one in chosen for row in one.rows),
            decontaminated=narrowed.searched.summary() if narrowed.searched else "",
            account=account.summary(),
        )


def _as_text(count: int) -> str:
    return f"{counted(count, 'number')} of more than 64 bits written as text"


def _counts_of(
    form: Form, options: ExportOptions
) -> LabelCounts | RewardCounts | PairCounts | None:
    """Return what counts the lines of a form that says what was good."""
    if form.of_labels:
        return LabelCounts()
    if form.of_rewards:
        return RewardCounts(options.reward)
    return PairCounts() if form.pair is not None else None


def _published_card(card: str, made: PublishedSet, options: ExportOptions) -> str:
    """Return the card of an exported set, made from that of the stored one."""
    of_the_set, _, _ = card.partition(HOW_TO_LOAD)
    sides = " and ".join(f"{count} {side}" for side, count in made.lines.items())
    least, status = options.min_overall_quality, options.status
    chosen = [f"of at least {least:g} overall quality"] if least else []
    chosen += [f"that are {' or '.join(VERDICT_LABELS[name] for name in options.verdicts)}"] * bool(
        options.verdicts
    )
    chosen += [f"that are `{status}`"] if status else []
    only = f", those {' and '.join(chosen)} alone" if chosen else ""
    name = ALL if options.one_file else made.name
    return report(
        "exported_card",
        of_the_set=Markdown(of_the_set),
        form=Markdown(options.form),
        sides=sides,
        only=Markdown(only),
        how_to_load=Markdown(HOW_TO_LOAD),
        loaded=Markdown(name),
    )


def _earlier_text(pairs: Sequence[Pair]) -> str:
    named = ", ".join(map(" ".join, pairs[:_SHOWN])) + ", …" * (len(pairs) > _SHOWN)
    are = f"{counted(len(pairs), 'set')} that an earlier version made"
    return f"{are}, left out until debrief run makes them anew: {named}"


def _asked_sets(lake: Lake, options: ExportOptions) -> tuple[list[TrainingSetRow], list[Pair]]:
    """Return the sets that are asked for, and those of them that an earlier version made."""
    stored = stored_sets(lake)
    asked = partial(_is_asked, options)
    sets = [row for row in stored.sets if asked(row.task, row.fingerprint)]
    earlier = [pair for pair in stored.earlier if asked(*pair)]
    if not sets:
        chosen = f"{options.task or 'any task'}, {options.fingerprint or 'any fingerprint'}"
        reason, move = f"holds no training set of {chosen}", "Make some with debrief run."
        if earlier:
            reason = f"of {chosen} it holds only what an earlier version made"
            move = "debrief run makes training sets anew."
        raise InputError(lake.url, reason, move)
    return sets, earlier


def _chosen(
    lake: Lake,
    sets: Sequence[TrainingSetRow],
    options: ExportOptions,
    short: Mapping[Pair, Sequence[LineRow]],
    joined: IO[bytes],
    account: SessionAccount,
) -> list[_Chosen]:
    """Return the lines that are asked for.

    Args:
        lake: with the sets.
        sets: those that are asked for.
        options: what else is asked for.
        short: lines that the sets leave out, and this export does not, by set.
        joined: the file that holds these; the other lines of their sets are copied behind them.
        account: of what becomes of the sessions.
    """
    found = []
    for row in sets:
        beside = short.get((row.task, row.fingerprint), ())
        if not row.samples and not beside:
            continue
        own = list(lake.read(LINES, f"{row.task}/{row.fingerprint}", LineRow))
        if beside:
            own = list(_copied(lake, row, own, joined))
        every = (*own, *beside)
        began = {line.session_id: line.started for line in every}
        lines = [
            line
            for line in every
            if _is_line_asked(options, line)
            and (options.since is None or began[session_of(line)] >= options.since)
        ]
        account.offer(every)
        account.choose(lines)
        undecided = sum(line.undecided > 0 for line in lines)
        if undecided and options.refuse_undecided:
            reason = f"{undecided} lines are of sessions with redactions that nobody has decided on"
            move = "Make the set without them: allow_unsure_redactions off."
            raise InputError(f"{row.task} {row.fingerprint}", reason, move)
        found.append(_Chosen(row, lines, joined if beside else None))
    return found


def _copied(
    lake: Lake, of: TrainingSetRow, rows: Sequence[LineRow], target: IO[bytes]
) -> Iterator[LineRow]:
    path = training_path(of.task, of.fingerprint)
    with lake.open_bytes(path) as file:
        for row in rows:
            target.seek(0, io.SEEK_END)
            yield replace(row, offset=target.tell())
            target.write(_stored(lake, path, file or io.BytesIO(), row))


def _is_line_asked(options: ExportOptions, line: LineRow) -> bool:
    return (
        (line.quality or 0.0) >= options.min_overall_quality
        and (
            not options.verdicts
            or line.verdict in options.verdicts
            or (options.unreviewed and not line.verdict)
        )
        and options.status in (None, line.status)
        and (options.subagents or not line.parent_session)
        and _fits(options.tool, line.tool, f"{line.tool}/{line.tool_version}".strip())
        and _fits(options.model, line.model)
        and _fits(options.kind, line.kind)
    )


def _is_asked(options: ExportOptions, task: str, fingerprint: str) -> bool:
    prompts, _, _ = fingerprint.rpartition("-")
    return _fits(options.task, task) and _fits(options.fingerprint, fingerprint, prompts)


def _fits(patterns: str, *values: str) -> bool:
    """Return whether one of some patterns fits one of the values; without any, all fit."""
    asked = [pattern.strip() for pattern in patterns.split(",") if pattern.strip()]
    return not asked or any(fnmatchcase(*pair) for pair in product(values, asked))


class _Narrowed(Struct, frozen=True, kw_only=True):
    """Lines without those that hold benchmarks' problems, on the sides that were asked for."""

    chosen: list[_Chosen]
    composition: list[tuple[str, str, str, str]]
    sides: SidesInTime
    searched: Decontamination | None
    """None where no benchmarks' problems were looked for."""


def _narrowed(
    lake: Lake,
    chosen: list[_Chosen],
    options: ExportOptions,
    left_out: dict[str, int],
    account: SessionAccount,
) -> _Narrowed:
    rule, searched = parse_split(options.split), None
    if options.decontaminate:
        problems = read_problems(Path(options.decontaminate))
        searched = decontaminate(_lines_of(lake, chosen), problems)
        chosen = _without(chosen, searched.reasons, left_out, account)
    if rule != BY_WEEK:
        rows = [row for one in chosen for row in one.rows]
        sides, reasons = resplit(rows, rule, options.eval_share, read_kinship(lake))
        chosen = [
            replace(one, rows=[replace(row, split=sides[session_of(row)]) for row in one.rows])
            for one in _without(chosen, reasons, left_out, account)
        ]
    lines = [(one.of.task, one.of.fingerprint, row) for one in chosen for row in one.rows]
    return _Narrowed(
        chosen=[one for one in chosen if one.rows],
        composition=composition(lines),
        sides=sides_in_time((row for *_, row in lines), rule),
        searched=searched,
    )


def _without(
    chosen: Iterable[_Chosen],
    reasons: Mapping[str, str],
    left_out: dict[str, int],
    account: SessionAccount,
) -> list[_Chosen]:
    """Return the lines but those of some sessions, which are counted."""
    rest = []
    for one in chosen:
        kept = [row for row in one.rows if session_of(row) not in reasons]
        for row in one.rows:
            if reason := reasons.get(session_of(row)):
                left_out[reason] = left_out.get(reason, 0) + 1
                account.leave(row, reason)
        rest.append(replace(one, rows=kept))
    return rest


def _lines_of(lake: Lake, chosen: Iterable[_Chosen]) -> Iterator[tuple[LineRow, bytes]]:
    for one in chosen:
        path = training_path(one.of.task, one.of.fingerprint)
        with ExitStack() as stack:
            file = one.cut or stack.enter_context(lake.open_bytes(path)) or io.BytesIO()
            for row in one.rows:
                yield row, _stored(lake, path, file, row)


def _cut(
    lake: Lake,
    chosen: _Chosen,
    options: ExportOptions,
    left_out: dict[str, int],
    scratch: IO[bytes],
    account: SessionAccount,
) -> _Chosen:
    """Return lines with those that are too long cut into windows, in a scratch file."""
    rows: list[LineRow] = []
    path = training_path(chosen.of.task, chosen.of.fingerprint)
    with ExitStack() as stack:
        file = chosen.cut or stack.enter_context(lake.open_bytes(path))
        for _, group in groupby(chosen.rows, key=attrgetter("session_id")):
            windows: list[tuple[LineRow, SampleLine]] = []
            for row in group:
                line = _stored(lake, path, file or io.BytesIO(), row)
                try:
                    windows += [(row, window) for window in _windows(line, row, options)]
                except InputError as refusal:
                    left_out[refusal.reason] = left_out.get(refusal.reason, 0) + 1
                    account.leave(row, refusal.reason)
            for number, (row, sample) in enumerate(windows, 1):
                numbered = replace(
                    sample.metadata, window=number, windows=len(windows), split=row.split
                )
                sample = replace(sample, metadata=numbered)
                data = encode_line(sample)
                made = line_row(sample, data, scratch.tell())
                rows.append(replace(made, undecided=row.undecided))
                scratch.write(data)
    return _Chosen(chosen.of, rows, scratch)


_SAMPLE = msgspec.json.Decoder(SampleLine)


def _windows(line: bytes, row: LineRow, options: ExportOptions) -> Sequence[SampleLine]:
    sample = _SAMPLE.decode(line)
    if not options.reasoning:
        messages = tuple(replace(message, reasoning_content="") for message in sample.messages)
        sample = replace(sample, messages=messages)
    if row.lengths[options.reasoning].tokens <= options.max_tokens:
        return (sample,)
    prompt = next(message.content for message in sample.messages if message.role == "user")
    reminder = prompt.removesuffix(without_reminder(prompt))
    return samples_of(sample, options.max_tokens, reminder, thinking=True)


def _made_lines(
    lake: Lake,
    chosen: _Chosen,
    form: Form,
    options: ExportOptions,
    counts: RowCounts | None,
    account: SessionAccount,
) -> Iterator[tuple[Split, dict[str, Any]]]:
    """Yield the lines of one stored set that are exported, converted, with their sides."""
    path = training_path(chosen.of.task, chosen.of.fingerprint)
    with ExitStack() as stack:
        file = chosen.cut or stack.enter_context(lake.open_bytes(path)) or io.BytesIO()
        if form.convert is not None:
            for row in chosen.rows:
                source = _line(lake, path, file, row, options)
                if counts:
                    counts.add(source.messages)
                try:
                    for made in form.convert(source):
                        account.make(row)
                        yield row.split, made
                except ValueError as error:
                    culprit = f"session {row.session_id} as {form.name}"
                    raise InputError(culprit, str(error)) from error
        if form.pair is not None:
            if not chosen.cut:  # pairs are read from anywhere, which an object store is slow at
                copy = stack.enter_context(tempfile.TemporaryFile())
                file.seek(0)
                shutil.copyfileobj(file, copy)
                file = copy
            for side in SIDES:
                for one, other in pairs_of(row for row in chosen.rows if row.split == side):
                    better = _line(lake, path, file, one, options)
                    worse = _line(lake, path, file, other, options)
                    pair = form.pair(better, worse)
                    if pair is not None:
                        account.make(one, other)
                        yield side, pair


def _rewound(
    lake: Lake, chosen: _Chosen, options: ExportOptions, members: Members, account: SessionAccount
) -> Iterator[tuple[Split, dict[str, Any]]]:
    """Yield the pairs of turns that were left in a stored set's sessions, with their sides."""
    of, decided = chosen.of, decisions(lake)
    path = training_path(of.task, of.fingerprint)
    sides = {row.session_id: row.split for row in chosen.rows}
    rows = {
        row.session_id: row
        for row in lake.read(LINES, f"{of.task}/{of.fingerprint}", LineRow)
        if row.window == 1 and row.session_id in sides and not row.parent_session
    }
    with ExitStack() as stack:
        file = stack.enter_context(lake.open_bytes(path)) or io.BytesIO()
        for week, ids in members.items():
            asked = ids & rows.keys()
            for session in lake.read("raw_sessions", week, Session, only=("id", asked)):
                if any(turn.rewound for turn in session.turns):
                    row = rows[session.id]
                    sample = _SAMPLE.decode(_stored(lake, path, file, row))
                    shaped = partial(_shaped, options)
                    for pair in rewound_pairs(session, sample, decided, shaped):
                        account.make(row)
                        yield sides[session.id], pair


def _shaped(options: ExportOptions, messages: Messages) -> Messages:
    """Return the messages of a line as they are asked for."""
    if not options.reasoning:
        messages = [replace(message, reasoning_content="") for message in messages]
    return list(one_by_one(messages)) if options.single_calls else messages


def _line(
    lake: Lake, path: str, file: IO[bytes], row: LineRow, options: ExportOptions
) -> StoredLine:
    line = decoded(_stored(lake, path, file, row))
    line = line if options.reasoning else without_reasoning(line)
    line = replace(line, reward=options.reward)
    if options.split != "week" and line.about.split != row.split:
        about = replace(line.about, split=row.split)
        line = replace(line, metadata=msgspec.Raw(msgspec.json.encode(about)))
    return with_single_calls(line) if options.single_calls else line


def _stored(lake: Lake, path: str, file: IO[bytes], row: LineRow) -> bytes:
    """Return a stored line, as it was searched for secrets.

    Raises:
        InputError: it is another.
    """
    file.seek(row.offset)
    data = file.read(row.size)
    if hashlib.sha256(data).hexdigest() != row.digest:
        raise InputError(lake.path(path), "is not what was written", _AGAIN)
    return data


ATIF = "atif"


class PublishedTrajectories(Struct, frozen=True, kw_only=True):
    """What was exported."""

    sessions: int
    withheld: dict[str, str]
    """By the ids of sessions that were left out, why."""
    changed: bool


def publish_trajectories(lake: Lake, target: str, task: str = "") -> PublishedTrajectories:
    """Export a lake's sessions to a folder, each as ``<session's id>.json``.

    Files that another export left there, of sessions that are no longer among these, are removed.

    Args:
        lake: with the sessions.
        target: a folder or an fsspec URL.
        task: of which sessions, as ``ExportOptions`` takes it; of all by default.

    Raises:
        InputError: there is no such session, or the folder holds something else.
    """
    folder, count = OwnFolder(target, ATIF), 0
    withheld: dict[str, str] = {}
    for session in sessions_of_lake(lake):
        if _fits(task, session.task):
            data = msgspec.json.format(msgspec.json.encode(as_trajectory(session)), indent=1)
            try:
                folder.write(f"{slugify(session.id)}.json", data + b"\n")
            except InputError as refusal:
                withheld[session.id] = refusal.reason
            else:
                count += 1
    if not (count or withheld):
        of_task = f" of task {task}" if task else ""
        raise InputError(lake.url, f"holds no session{of_task}", "Read some with debrief run.")
    folder.close()
    return PublishedTrajectories(sessions=count, withheld=withheld, changed=folder.changed)
