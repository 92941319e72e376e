"""The page of a session, loaded in parts or saved as one file.

The page, the saved file and ``debrief show`` ask the same ``SessionView`` how much is shown, what
is unfolded and what links where; a file has no other pages to lead to, and shows more.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from markupsafe import Markup
from msgspec import Struct

from debrief.errors import InputError, without_controls
from debrief.execution.comparing import compared_tests
from debrief.execution.shown import ORIGINS_SHOWN, check_shown, reason_shown, tree_shown
from debrief.execution.store import EXECUTIONS
from debrief.markdown import counted, shorten
from debrief.outcomes.verdicts import SCORES
from debrief.rubrics.model import EVALUATIONS
from debrief.scoring.model import FACETS
from debrief.sessions.model import ContextSource, Session, ToolCall
from debrief.sessions.store import SESSIONS_TABLE
from debrief.signals.schema import TABLE as SIGNALS
from debrief.training.manifest import manifest_pairs
from debrief.training.model import LINES, LineRow
from debrief.view.assessment import label_words, read_assessment
from debrief.view.calls import DiffLine, ShownCall, shown_call
from debrief.view.figures import Figure, figure_of
from debrief.view.following import about
from debrief.view.indexed import SessionRow
from debrief.view.links import page_path, session_path
from debrief.view.marks import EvidenceMark, Gap, clipped
from debrief.view.templating import Page, PageContext, environment, markdown
from debrief.view.transcript import Part, ShownAgent, ShownTranscript, Step
from debrief.view.values import refused
from debrief.view.wording import verdict_shown

router = APIRouter()
_STATIC = Path(__file__).parent / "static"
_TABLES = (
    *(SESSIONS_TABLE, SIGNALS, SCORES, "judge_evaluations"),
    *(EVALUATIONS, EXECUTIONS, FACETS),
)
_KEPT = 4
"""Sessions that stay in memory, so that the parts of a long one need not read it again."""
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r(?=\n)")
DEEDS = {
    "interruption": "Interrupted",
    "rejection": "Refused",
    "answer": "Answered",
    "remark": "Said meanwhile",
    "slash_command": "Command",
}
"""What a person did, in words."""
GIVEN: Mapping[ContextSource, str] = {
    "command": "output of a command that the person ran",
    "task": "notice of work in the background",
    "agent": "words of another agent",
    "hook": "output of a hook",
    "program": "note of the agent’s program",
}
"""What the model was given that no person wrote, in words."""
environment().globals |= {"deeds": DEEDS, "given_as": GIVEN, "origins": ORIGINS_SHOWN}


def given_shown(step: Step) -> str:
    """Return what the model was given before its answer, each kind once, with how many there are.

    >>> note = ContextText(said_by="program", text="a")
    >>> given_shown(Step(key="1", kind="context", given=(note, note)))
    'Given to the model: note of the agent’s program (2)'
    """
    kinds = Counter(GIVEN[given.said_by] for given in step.given)
    each = (f"{name} ({count})" if count > 1 else name for name, count in kinds.items())
    return f"Given to the model: {', '.join(each)}"


environment().filters |= {
    "given_shown": given_shown,
    "compared_tests": compared_tests,
    "check_shown": check_shown,
    "reason_shown": reason_shown,
    "tree_shown": tree_shown,
    "verdict_shown": verdict_shown,
}
_OPEN_LINES = 40
"""Lines of a diff, or of what a failed call printed, that are shown without a click."""
_LONGEST_LINE = 2_000
_FIRST_WORDS = 110
_MOST_PROSE, _LEAST_PROSE = 4, 1_000
"""How often the most of one text's Markdown is shown on a page, and characters of any after it."""


class Limits(Struct, frozen=True, kw_only=True):
    """How much is shown of what may be of any length."""

    head: int = 4_000
    """Characters of the beginning of an output or a prompt."""
    tail: int = 2_000
    """Characters of its end."""
    prose: int = 30_000
    """Characters of Markdown."""
    lines: int = 400
    """Lines of a diff."""
    steps: int = 60
    """Steps of a subagent within the session that it worked for."""


OF_A_PAGE = Limits()
OF_A_FILE = Limits(head=30_000, tail=20_000, prose=200_000, lines=5_000, steps=100_000)


class SessionView:
    """A session for the templates.

    Args:
        transcript: what is shown.
        path: of its page, up to where the query goes on; empty in a file.
        part: the number of the part that is on the page; None: all are.
        limits: how much is shown.
    """

    def __init__(
        self,
        transcript: ShownTranscript,
        path: str = "",
        part: int | None = None,
        limits: Limits = OF_A_PAGE,
    ) -> None:
        self.transcript = transcript
        self.session = transcript.session
        self.path = path
        self._part = part
        self.limits = limits
        self._prose_left = _MOST_PROSE * limits.prose
        self.marks_of = transcript.marks_of
        self.agents_of = transcript.agents_of

    def call(self, call: ToolCall) -> ShownCall:
        """Return what is shown of a call beside its result."""
        return shown_call(call, self.session.cwd, has_agent=bool(self.agents_of(call)))

    def is_open(self, call: ToolCall, shown: ShownCall) -> bool:
        """Return whether a call is unfolded from the start: what people want to see of it is
        short, and not the usual."""
        if shown.kind in ("todo", "plan", "question"):
            return len(shown.items) != 1
        if shown.kind == "edit":
            return len(shown.diff) <= _OPEN_LINES
        is_wrong = call.status in ("failed", "rejected") or bool(call.exit_code)
        return is_wrong and (call.result or "").count("\n") <= _OPEN_LINES

    def clip(
        self, text: str, marks: Sequence[EvidenceMark], head: int | None = None
    ) -> list[str | Gap]:
        """Return what is shown of a long text, and how much of it is not.

        Args:
            text: however long.
            marks: in it.
            head: characters of its beginning; None: as the limits say.
        """
        quotes = [mark.quote for mark in marks]
        return clipped(text, head or self.limits.head, self.limits.tail, quotes)

    def plain(self, output: str) -> str:
        """Return what a command printed without what colours a terminal."""
        return _ANSI.sub("", output) if "\x1b" in output or "\r" in output else output

    def markdown(self, text: str) -> Markup:
        """Return Markdown as HTML, cut where it is very long."""
        most = min(self.limits.prose, max(self._prose_left, _LEAST_PROSE))
        left = len(text) - most
        self._prose_left -= min(len(text), most)
        note = f"\n\n… {counted(left, 'character')} left out …" if left > 0 else ""
        return markdown(text[:most] + note)

    def lines(self, diff: Sequence[DiffLine]) -> list[DiffLine]:
        """Return the lines of a diff that are shown."""
        return [
            line
            if len(line.text) <= _LONGEST_LINE
            else DiffLine(line.kind, f"{line.text[:_LONGEST_LINE]}…")
            for line in diff[: self.limits.lines]
        ]

    def first_line(self, text: str) -> str:
        """Return the beginning of a text on one line."""
        return shorten(text[: 4 * _FIRST_WORDS], _FIRST_WORDS)

    def work(self, agent: ShownAgent) -> str:
        """Return how much a subagent did."""
        calls = sum(len(message.calls) for message in agent.agent.messages)
        messages = counted(len(agent.agent.messages), "message")
        return f"{messages}, {counted(calls, 'call')}"

    def has_marks(self, agent: ShownAgent) -> bool:
        """Return whether a reason cites a subagent's work."""
        return any(map(self.marks_of, agent.steps))

    def shown_of(self, agent: ShownAgent) -> Sequence[Step]:
        """Return the steps of a subagent that are shown at its call: the first, and on to the last
        that a reason cites."""
        cited = (place for place, step in enumerate(agent.steps, 1) if self.marks_of(step))
        return agent.steps[: max(self.limits.steps, *cited, 0)]

    def href(self, anchor: str) -> str:
        """Return the address of an anchor, on this page or in another part of the transcript."""
        part = self.transcript.part_with(anchor)
        if not self.path or part is None or part.number == self._part:
            return f"#{anchor}"
        return f"{self.path}at={anchor}#{anchor}"

    def turn_href(self, number: int) -> str:
        """Return the address of a turn; empty for one that is not in the transcript."""
        anchor = f"turn-{number}"
        return self.href(anchor) if self.transcript.part_with(anchor) else ""

    def part_href(self, part: Part) -> str:
        """Return the address of a page that begins with a part."""
        return f"{self.path}part={part.number}"

    def whole_href(self, anchor: str) -> str:
        """Return the address of a call's or a prompt's whole text; empty in a file."""
        return f"{self.path}whole={anchor}" if self.path else ""


def file_of(transcript: ShownTranscript, figure: Figure | None) -> str:
    """Return a session as one HTML file, which loads nothing and needs no script."""
    styles = "\n".join((_STATIC / name).read_text("utf-8") for name in ("style.css", "session.css"))
    template = environment().get_template("session/file.html")
    return template.render(
        title=transcript.title,
        view=SessionView(transcript, limits=OF_A_FILE),
        figure=figure,
        styles=styles,
        agent=0,
    )


_NO_PLACE = "is no place in this session, such as turn-1"


@router.get("/sessions/{session_id:path}")
def session(
    page: Page,
    session_id: str,
    at: str = "",
    part: Annotated[int, Query(ge=0)] = 0,
    agent: Annotated[int, Query(ge=0)] = 0,
    whole: str = "",
    fragment: bool = False,
    save: bool = False,
) -> Response:
    """Show a session turn by turn.

    Args:
        page: made by the application.
        session_id: whose page it is.
        at: an anchor in the part that is shown.
        part: which part is shown, from 0.
        agent: show the work of this subagent instead, from 1.
        whole: the anchor of a call or of a turn whose text is given out in full.
        fragment: give out the part alone, for the page to take in.
        save: give out one file that holds everything.
    """
    row = page.index.find(session_id)
    if row.id != session_id:  # only its beginning was written
        query = page.request.url.query
        return RedirectResponse(session_path(row.id) + f"?{query}" * bool(query), 307)
    transcript, figure = _opened(page, row)
    if save:
        name = re.sub(r"[^\w-]", "-", session_id, flags=re.ASCII)
        headers = {"Content-Disposition": f'attachment; filename="debrief-{name}.html"'}
        return HTMLResponse(file_of(transcript, figure), headers=headers)
    if agent:
        if agent > len(transcript.agents):
            reason = f"is no subagent of this session, which has {len(transcript.agents)}"
            raise refused("agent", str(agent), reason)
        work = transcript.as_session(transcript.agents[agent - 1])
        transcript, figure = ShownTranscript(work, transcript.assessment, marks=False), None
    if whole:
        text = transcript.text_at(whole)
        if text is None:
            raise refused("whole", whole, _NO_PLACE)
        return PlainTextResponse(without_controls(text))
    parts = transcript.parts
    here = transcript.part_with(at) if at else next((p for p in parts if p.number == part), None)
    if here is None and at:
        raise refused("at", at, _NO_PLACE)
    if here is None and (parts or part):
        raise refused("part", str(part), f"is no part of this session, which has {len(parts)}")
    number = here.number if here else 0
    query = f"agent={agent}&" if agent else ""
    values: dict[str, Any] = {
        "view": SessionView(transcript, f"{session_path(session_id)}?{query}", number),
        "part": here,
        "next": parts[number + 1 : number + 2],
    }
    if fragment:
        return HTMLResponse(environment().get_template("session/part.html").render(values))
    known = (row.task, msgspec.to_builtins(row.started), row.id)
    earlier, later = (f"task = ? AND (started, id) {sign} (?, ?)" for sign in "<>")
    return page.render(
        "session/page.html",
        title=transcript.title,
        row=row,
        agent=agent,
        about=about(row),
        before=parts[:number],
        figure=figure,
        previous_rows=page.index.sessions(earlier, known, "started DESC, id DESC", 1),
        next_rows=page.index.sessions(later, known, "started, id", 1),
        relatives=_relatives(page, row),
        lines=_lines(page, row),
        **values,
    )


def _opened(page: PageContext, row: SessionRow) -> tuple[ShownTranscript, Figure | None]:
    """Return a session as the lake has it now, from memory where nothing of it has changed."""
    stamps = [page.lake.stamp(table, row.week) for table in _TABLES]
    said = page.index.select(
        "SELECT name, value, source, rater FROM labels WHERE session_id = ?", (row.id,)
    )
    labels = label_words(tuple(each) for each in said)
    decided = row.verdict, row.basis, row.reviewer
    key = (row.id, labels, decided, *(stamp and stamp.digest for stamp in stamps))
    kept: OrderedDict[object, tuple[ShownTranscript, Figure | None]]
    kept = page.request.app.state.__dict__.setdefault("opened", OrderedDict())
    one = kept.get(key)
    if one is None:
        found = next(page.lake.read(SESSIONS_TABLE, row.week, Session, ("id", {row.id})), None)
        if found is None:
            raise InputError(row.id, "is no longer in the lake", "Search the list of sessions.")
        assessment = read_assessment(page.lake, row.week, row.id, labels)
        transcript = ShownTranscript(found, assessment)
        one = kept[key] = transcript, figure_of(transcript, page.settings.prices)
        while len(kept) > _KEPT:
            kept.popitem(last=False)
    return one


def _relatives(page: PageContext, row: SessionRow) -> list[SessionRow]:
    """Return the session that a fork is of, its other forks, and the session's own, as far as the
    lake has them."""
    root = row.relative_of or row.id
    condition = "(id = ? OR relative_of IN (?, ?)) AND id != ?"
    return page.index.sessions(condition, (root, root, row.id, row.id), "started, id")


def _lines(page: PageContext, row: SessionRow) -> list[tuple[str, str, str]]:
    """Return where a session is in training sets, one line for each set: address, split, pair."""
    found: list[tuple[str, str, str]] = []
    for task, pair in manifest_pairs(page.lake) or ():
        if task == row.task:
            rows = page.lake.read(LINES, f"{task}/{pair}", LineRow)
            for number, line in enumerate(rows, 1):
                if line.session_id == row.id and not line.parent_session:
                    href = f"{page_path('training', task, pair)}?line={number}#line-{number}"
                    found.append((href, line.split, pair))
                    break
    return found
