"""A task's instruction: the person's own words up to the change, without the answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from msgspec import Struct

from debrief.sessions.model import Session, Turn
from debrief.training.given import Request, requests_in

WORKDIR = "/app"
"""Where the repository is in a task's container."""
_SHORTEST = 16
"""Characters of an added line that is known again; shorter ones are said by chance."""
_MOST = 0.1
"""Share of the change's lines that a request may hold: a name or an import that it asks for."""
_DIFF = re.compile(r"^(?:diff --git |@@ -\d|\+\+\+ \S|--- a/)", re.MULTILINE)
_SPACE = re.compile(r"\s+")


class Instruction(Struct, frozen=True, kw_only=True):
    """What an agent is asked."""

    text: str
    """Empty where no person asked for the change."""
    requests: tuple[str, ...]
    """Those that it is made of."""
    share: float = 0.0
    """Of the lines that the change adds, those that it holds."""
    left_out: int = 0
    """Later requests that give the answer away."""
    images: int = 0
    """That the requests showed, and that it lacks."""
    gives_answer: bool = False
    """The first request does."""


def instruction_of(session: Session, added: Collection[str]) -> Instruction:
    """Return what a session's person asked for, up to the last edit.

    A request that holds a diff, or more than a tenth of the lines that the change adds, gives the
    answer away.

    Args:
        session: redacted.
        added: the lines that the change adds.
    """
    signs = {sign for line in added if len(sign := _plain(line)) >= _SHORTEST}
    asked = [request for request in _up_to_change(session) if request.text.strip()]
    kept = [
        request
        for request in asked
        if not _DIFF.search(request.text) and _share(request.text, signs) <= _MOST
    ]
    texts = tuple(_in_container(request.text.strip(), session.cwd) for request in kept)
    ending = f"The repository is in `{WORKDIR}`."
    return Instruction(
        text="\n\n".join([*texts, ending]) + "\n" if texts else "",
        requests=texts,
        share=_share("\n".join(request.text for request in kept), signs),
        left_out=len(asked) - len(kept),
        images=sum(request.images for request in kept),
        gives_answer=bool(asked) and asked[0] not in kept,
    )


def _up_to_change(session: Session) -> list[Request]:
    """Return the requests of a session up to the last one on which a file was edited."""
    found: list[Request] = []
    last = 0
    edited_by = {
        subagent.call_id
        for subagent in session.subagents
        if any(call.path for message in subagent.messages for call in message.calls)
    }
    for request in _requests(session.turns):
        found.append(request)
        calls = [call for message in request.answers for call in message.calls]
        if any(call.path or call.id in edited_by for call in calls):
            last = len(found)
    return found[:last]


def _requests(turns: Collection[Turn]) -> Iterator[Request]:
    for turn in turns:
        if turn.number and not turn.rewound:
            yield from requests_in(turn)


def _share(text: str, signs: Collection[str]) -> float:
    plain = _plain(text)
    return sum(sign in plain for sign in signs) / len(signs) if signs else 0.0


def _plain(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def _in_container(text: str, cwd: str) -> str:
    """Return a text with the container's folder in place of the person's."""
    return text.replace(cwd, WORKDIR) if len(cwd) > 1 else text
