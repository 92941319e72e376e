"""What a judge is shown of a session: requests, changes, how it went, and the last message.

The plan is all that the person asked for, each with its turn, and the file that the first request
points to. A change is seen in the session's own
edits, as far as git printed it, or in the command that a shell ran, which names what it changed and
does not show it. What the person refused is no change. Where nothing was changed there is nothing
to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from posixpath import join, normpath

from msgspec import Struct

from debrief.judging.fitting import (
    FileDiff,
    count_lines,
    cut_middle,
    fit,
    left_out_note,
    plan_room,
    split_hunks,
)
from debrief.judging.model import WORKTREE, ChangeContext, Judge
from debrief.sessions.model import Evidence, InterventionKind, Session, ToolCall, Turn, calls_of
from debrief.sessions.readers.patches import edits_of_call, from_unified
from debrief.signals.check_commands import language_of
from debrief.signals.display import check_sentence
from debrief.signals.excerpts import label
from debrief.signals.extract import Activity, session_activity, session_signals
from debrief.signals.request import spelled_out
from debrief.signals.schema import SessionSignals
from debrief.signals.shell import commands_in, folder_of
from debrief.signals.workplace import Workplace

MAX_SIZE = 240_000
_SHARE = 8
"""What commands, outcomes and the closing answer may each take: an eighth of the room."""
_COMMAND = 1_000
"""Characters of a command that are shown."""
_LISTED = 20
_SAID: Mapping[InterventionKind, str] = {
    "remark": "said during the work",
    "rejection": "said with a refusal",
    "answer": "said to a question",
}
_COMMITTED = re.compile(r"^\[[^\]\n]*?(?P<id>[0-9a-f]{7,40})\] .*(?:\n .*)*", re.MULTILINE)
"""What git prints of a commit: branch and id, and a line or more of what changed."""
_STAT = re.compile(r"^ \S.* \| +(?:\d+|Bin).*(?:\n .*)*", re.MULTILINE)
_DIFF = re.compile(r"^diff --git a/(?P<path>.+?) b/.*$", re.MULTILINE)


class SessionChange(Struct, frozen=True, kw_only=True):
    """All that a session changed, as far as its record tells."""

    files: tuple[FileDiff, ...] = ()
    """By the session's own edits, then as git printed them."""
    commands: tuple[str, ...] = ()
    """Each with its turn and the files that it changed, as far as it names them."""
    printed: tuple[str, ...] = ()
    """Git's lines on commits, and its counts of changed lines."""
    refused: tuple[str, ...] = ()
    """Calls that the person refused."""


def has_change(session: Session) -> bool:
    """Return whether a session changed anything of its work, by whatever means; a worktree that
    somebody asks about counts as a change."""
    return session.source == WORKTREE or bool(session_activity(session).change)


def nothing_to_judge(judge: Judge, session: Session) -> str:
    """Return why a session has nothing that a judge could look at; empty where it has."""
    if not has_change(session):
        return "The session changed nothing."
    if judge.needs == "code" and not any(map(_adds_code, change_of(session).files)):
        return "The session added no code."
    return ""


def _adds_code(file: FileDiff) -> bool:
    return bool(language_of(file.path)) and count_lines(file, "+") > 0


def context_from_session(session: Session, max_size: int = MAX_SIZE) -> ChangeContext:
    """Return the requests and the changes of a session, both bounded.

    Args:
        session: with or without changes.
        max_size: characters of requests and changes together; notes, and at most half of it for
            what is beside the diffs, come on top.
    """
    change, facts = change_of(session), session_activity(session)
    files, part = change.files, max_size // _SHARE
    beside = "\n\n".join(
        [
            *_named_only(change, part),
            _outcomes(facts, session_signals(session), part),
            _closing(session, facts, part),
        ]
    )
    plan = requests_of(session, plan_room(files, max_size))
    room = max_size - len(plan) - len(beside)
    text, left_out = fit(files, max(room, max_size // 2))
    return ChangeContext(
        plan_content=plan,
        git_changes=f"{_shown(files, text, left_out)}\n{beside}\n",
        shrink=lambda size: context_from_session(session, size),
    )


def requests_of(session: Session, room: int) -> str:
    """Return all that the person asked for and said, each with its turn, in so many characters.

    Where that is too little, the longest texts lose their middle first.
    """
    texts = [each for turn in spelled_out(session).turns for each in _said_in(turn)]
    if not texts:
        return "(The session holds no human prompt.)"
    room -= sum(len(mark) + 3 for mark, _ in texts)
    most = _cap([len(text) for _, text in texts], room)
    what = "characters of the plan left out for size"
    return "\n\n".join(f"{mark}\n{cut_middle(text, most, what)}" for mark, text in texts)


def _said_in(turn: Turn) -> Iterator[tuple[str, str]]:
    """Yield the person's texts of a turn, each with its mark."""
    back = ", taken back later" if turn.rewound else ""
    if prompt := turn.prompt.strip():
        pictures = f", with {turn.images} pictures" if turn.images else ""
        text = f"{prompt}\nThe command stands for:\n{turn.expansion}" if turn.expansion else prompt
        yield f"[turn {turn.number}{pictures}{back}]", text
    for deed in turn.interventions:
        if deed.kind in _SAID and (text := deed.text.strip()):
            yield f"[turn {turn.number}, {_SAID[deed.kind]}{back}]", text


def _cap(lengths: Iterable[int], room: int) -> int:
    """Return the greatest length for each, so that all together fit into the room."""
    ordered = sorted(lengths)
    for number, length in enumerate(ordered):
        share = max(0, room) // (len(ordered) - number)
        if length > share:
            return share
        room -= length
    return ordered[-1]


def change_of(session: Session) -> SessionChange:
    """Return what a session changed, and what the person did not let it change."""
    work, own = Workplace(session), changes_of(session)
    places = {_placed(session, file.path) for file in own}
    named = _named_by_call(session_activity(session))
    calls = [(turn, call) for turn, call in _numbered(session) if not _is_elsewhere(work, call)]
    in_shell = (path for _, call in calls if not call.path for path in named.get(call.id, ()))
    unseen = {_placed(session, path) for path in in_shell}
    commands, printed, refused = list[str](), dict[str, None](), list[str]()
    diffs: dict[str, FileDiff] = {}
    commits: set[str] = set()
    changed = False
    for turn, call in calls:
        if call.status == "rejected":
            refused.append(f"turn {turn}: {label(call)}")
        if call.status in ("rejected", "unanswered"):
            continue
        changed = changed or bool(call.path and call.patch)
        if call.action != "run" or call.path:
            continue
        if (paths := named.get(call.id)) is not None:
            changed = True
            commands.append(_command_shown(turn, call, paths.values()))
        text = call.result or ""
        for found in _COMMITTED.finditer(text) if _runs_git(call, "commit") else ():
            commits.add(found["id"])
            changed = True
            printed[f"turn {turn}, git commit: {found[0]}"] = None
        if changed and _shows_own(call, commits):
            for found in _STAT.finditer(text):
                printed[f"turn {turn}, {label(call)}:\n{found[0]}"] = None
            for path, hunks in _diffs_in(text):
                place = _placed(session, path)
                if work.holds(path) and (place in unseen or place not in places):
                    where = f"As git printed it in turn {turn}"
                    diffs[path] = FileDiff(path=path, hunks=hunks, printed=where)
    return SessionChange(
        files=(*own, *diffs.values()),
        commands=tuple(commands),
        printed=tuple(printed),
        refused=tuple(refused),
    )


def changes_of(session: Session) -> list[FileDiff]:
    """Return the changes of each file of the work by the session's own edits, in the order in which
    files were first touched.

    Hunks of one file follow each other as the edits did, so a later one may change what an
    earlier one wrote. Failed and rejected edits are not among them, nor are notes and plans of the
    agent's own.
    """
    hunks: dict[str, list[str]] = {}
    work = Workplace(session)
    made = (call for call in calls_of(session) if call.path and call.patch and call.status == "ok")
    for edit in (edit for call in made for edit in edits_of_call(call)):
        if work.holds(edit.path):
            hunks.setdefault(work.shorten(edit.path), []).extend(split_hunks(edit.patch))
    return [
        FileDiff(path=path, hunks=tuple(found), created=found[0].startswith("@@ -0,0 "))
        for path, found in hunks.items()
        if found
    ]


def _numbered(session: Session) -> Iterator[tuple[int, ToolCall]]:
    """Yield all calls with their turns; a subagent's are of the turn that started it."""
    started: dict[str, int] = {}
    for turn in session.turns:
        for call in (call for message in turn.messages for call in message.calls):
            started[call.id] = turn.number
            yield turn.number, call
    last = session.turns[-1].number if session.turns else 0
    for agent in session.subagents:
        number = started.get(agent.call_id, last)
        yield from ((number, call) for message in agent.messages for call in message.calls)


def _named_by_call(facts: Activity) -> dict[str, dict[str, str]]:
    """Return the files that calls changed or removed, by call, and each in words, and the
    commands that changed files which they do not name."""
    found: dict[str, dict[str, str]] = {}
    for place in facts.edits:
        found.setdefault(place.call, {})[place.quote] = place.quote
    for place in facts.deleted:
        found.setdefault(place.call, {})[place.quote] = f"{place.quote} (removed)"
    for place in facts.commands:
        found.setdefault(place.call, {})[place.quote] = f"files by `{place.quote}`"
    return found


def _command_shown(turn: int, call: ToolCall, paths: Iterable[str]) -> str:
    command = cut_middle(call.command.strip(), _COMMAND).replace("\n", "\n      ")
    return f"turn {turn}: {', '.join(paths)}\n    $ {command}"


def _is_elsewhere(work: Workplace, call: ToolCall) -> bool:
    """Return whether a command went to a folder that is none of the work's."""
    folder = folder_of(call.command) if call.command else ""
    return bool(folder) and not work.holds(f"{folder}/")


def _runs_git(call: ToolCall, command: str) -> bool:
    return any(words[:2] == ("git", command) for words, _ in commands_in(call.command))


def _shows_own(call: ToolCall, commits: set[str]) -> bool:
    """Return whether a call has git print what the session itself did: the folder as it is now, or
    a commit of the session's."""
    return any(_is_own(words, commits) for words, _ in commands_in(call.command))


def _is_own(words: tuple[str, ...], commits: set[str]) -> bool:
    if words[:2] not in (("git", "diff"), ("git", "show")):
        return False
    given = takewhile(lambda word: word != "--", words[2:])
    names = [word for word in given if not word.startswith("-")]
    if words[1] == "show":
        known = (
            any(commit.startswith(name) for commit in commits) for name in names if name != "HEAD"
        )
        return bool(commits) and all(known)
    return all(name == "HEAD" or _is_file(name) for name in names)


def _is_file(name: str) -> bool:
    return ".." not in name and "." in name.rpartition("/")[2]


def _diffs_in(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield path and hunks of each file of a diff that git printed."""
    heads = list(_DIFF.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    for head, end in zip(heads, ends, strict=False):
        if hunks := split_hunks(from_unified(head["path"], text[head.end() : end]).patch):
            yield head["path"], hunks


def _placed(session: Session, path: str) -> str:
    return normpath(join(session.cwd, path))


def _shown(files: Sequence[FileDiff], text: str, left_out: list[str]) -> str:
    if not files:
        return "The session's own editing tools changed no file.\n"
    added = sum(count_lines(file, "+") for file in files)
    removed = sum(count_lines(file, "-") for file in files)
    noun = "file" if len(files) == 1 else "files"
    lines = [
        f"{len(files)} {noun} changed, {added} lines added, {removed} removed.",
        "Reconstructed from the session's own edits, file by file in the order in which they "
        "were made; a later hunk may change what an earlier one wrote.",
        *(
            ["Files marked so are as git printed them."]
            if any(file.printed for file in files)
            else []
        ),
    ]
    note = left_out_note(left_out)
    return "\n".join([*lines, *([note] if note else []), text])


def _named_only(change: SessionChange, room: int) -> Iterator[str]:
    """Yield what a shell changed, what git printed of it, and what the person refused."""
    lists = {
        "Changed by commands. The files are named; how they changed is not shown, unless git "
        "printed it": change.commands,
        "What git printed of the change": change.printed,
        "Refused by the person, so not done": change.refused,
    }
    for title, rows in lists.items():
        if rows:
            yield f"{title}:\n{_last_of([f'- {row}' for row in rows], room)}"


def _last_of(rows: Sequence[str], room: int) -> str:
    """Return as many of the last rows as fit, and how many came before them."""
    kept: list[str] = []
    for row in reversed(rows):
        room -= len(row) + 1
        if kept and room < 0:
            break
        kept.append(row)
    missing = len(rows) - len(kept)
    return "\n".join([*([f"- ({missing} before these)"] if missing else []), *reversed(kept)])


def _outcomes(facts: Activity, signals: SessionSignals, room: int) -> str:
    """Return what was run and how it ended, for a judge who sees no transcript."""
    lists: dict[str, list[str]] = {
        "Checks, the last of each kind and target": list(map(check_sentence, signals.checks)),
        "Calls that failed": _places(facts.errors),
        "Assertions of older tests that were rewritten": _places(facts.rewritten),
    }
    parts = ["What was run, and how it ended; of each the last ones."]
    for title, rows in lists.items():
        shown = [f"- {row}" for row in rows[-_LISTED:]] or ["- none seen"]
        parts.append(f"{title}:\n{_last_of(shown, room // len(lists))}")
    return "\n\n".join(parts)


def _places(places: Sequence[Evidence]) -> list[str]:
    return [f"turn {place.turn}: {place.quote}" for place in places]


def _closing(session: Session, facts: Activity, room: int) -> str:
    """Return the agent's last words whole, and how the session ends where it has none."""
    end = facts.end
    parts = []
    if end.ending != "answered" and end.evidence is not None:
        calls = {call.id: call for call in calls_of(session)}
        call = calls.get(end.evidence.call)
        refused = ", which the person refused" if call and call.status == "rejected" else ""
        words = {
            "open": "It breaks off at",
            "interrupted": "The person stopped it at",
            "limit": "Its program stopped it at",
            "refused": "It ends with the only change",
        }[end.ending]
        parts.append(f"{words}: {end.evidence.quote or 'a message without text'}{refused}")
    turns = [turn for turn in session.turns if not turn.rewound]
    said = [(turn.number, message.text.strip()) for turn in turns for message in turn.messages]
    number, text = next((each for each in reversed(said) if each[1]), (0, ""))
    if text:
        parts.append(f"The agent's last words (turn {number}):\n{cut_middle(text, room)}")
    else:
        parts.append("The agent said nothing.")
    return "\n\n".join(parts)
