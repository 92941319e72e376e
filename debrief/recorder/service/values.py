"""Query values, each read strictly: what does not fit is refused and never guessed."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Literal
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant
from pydantic import AfterValidator, AwareDatetime, BeforeValidator, StringConstraints

from debrief.recorder.contracts import Status, TaskId
from debrief.recorder.service.problems import RefusedError
from debrief.recorder.storage.rows import SessionFilter

Text = Annotated[
    str, StringConstraints(min_length=1, max_length=300, pattern=r"^[^\x00-\x1f\x7f]+$")
]
CursorText = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9_.:=-]+$")
]
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]")
_LOST_PLUS = re.compile(r":[0-9.]+ [0-9]{2}:?[0-9]{2}$")
_NUMBER = re.compile(r"[0-9]{1,10}")
StatusChoice = Literal["any", "draft", "ready"]


def check_names(request: Request) -> None:
    """Refuse unknown and repeated names: a misspelt filter would filter nothing.

    What is not UTF-8 would be read as something else, and is refused as well.

    Raises:
        RefusedError: 422, naming them.
    """
    query = request.scope["query_string"]
    if not query:
        return
    try:
        unquote_to_bytes(query).decode()
    except UnicodeDecodeError:
        raise RefusedError(422, "query", "is not UTF-8", "Escape its values as UTF-8.") from None
    given = [name for name, _ in request.query_params.multi_items()]
    known = _names(request.scope["route"].dependant)
    reasons = [f"{name}: is not known" for name in dict.fromkeys(given) if name not in known]
    reasons += [f"{name}: is given twice" for name in known if given.count(name) > 1]
    if reasons:
        move = f"There are: {', '.join(known)}." if known else "There are none here."
        raise RefusedError(422, "query", reasons, move)


def _names(dependant: Dependant) -> list[str]:
    own = [field.alias for field in dependant.query_params]
    return own + [name for inner in dependant.dependencies for name in _names(inner)]


def _written_out(value: object) -> object:
    """Refuse numbers, which pydantic would read as seconds since 1970."""
    if isinstance(value, str) and not _MOMENT.match(value):
        raise ValueError("is no moment such as 2026-01-31T00:00:00Z")
    if isinstance(value, str) and _LOST_PLUS.search(value):
        raise ValueError("has a space for the + of its zone: write %2B")
    return value


def _in_digits(value: object) -> object:
    """Refuse what pydantic would read as a number as well: +5, 1_0, digits of other scripts."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise ValueError("is no number in plain digits")
    return value


def _storable(moment: datetime) -> datetime:
    if not 1 < moment.year < 9999:
        raise ValueError("is out of range: years 2 to 9998")
    return moment.astimezone(UTC)


Moment = Annotated[AwareDatetime, BeforeValidator(_written_out), AfterValidator(_storable)]
InDigits = BeforeValidator(_in_digits)
PageSize = Annotated[int, Query(ge=1, le=500, description="How many at most."), InDigits]
Cursor = Annotated[
    CursorText | None, Query(description="From an earlier answer: goes on where that ended.")
]


async def session_filter(
    task_id: Annotated[TaskId | None, Query(alias="taskId", description="Of this task.")] = None,
    since: Annotated[
        Moment | None, Query(description="Stopped then or later, as 2026-01-31T00:00:00Z.")
    ] = None,
    until: Annotated[Moment | None, Query(description="Stopped before then.")] = None,
    status: Annotated[StatusChoice, Query(description="Of this status.")] = "any",
    repo_name: Annotated[
        Text | None, Query(alias="repoName", description="Of this repository.")
    ] = None,
) -> SessionFilter:
    """Return which sessions a request means."""
    wanted: Status | None = None if status == "any" else status
    return SessionFilter(
        task_id=task_id, since=since, until=until, status=wanted, repo_name=repo_name
    )


Sessions = Annotated[SessionFilter, Depends(session_filter)]
