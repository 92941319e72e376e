"""Sending scores in the form that the server takes, and checking that it kept them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from debrief.errors import LangfuseError
from debrief.langfuse.client import LangfuseAwayError, LangfuseClient, RequestRefusedError
from debrief.langfuse.outgoing import OutgoingScore

BATCH = 50
"""Scores in one request: with the longest comments well under a cloud's 5 MB."""

_AT_ONCE = 4
_FIRST_LOOK, _LONGEST_LOOK = 0.2, 5.0

Failures = dict[str, str]
"""Reason by score id."""
Body = Mapping[str, Any]


def send(client: LangfuseClient, bodies: Sequence[Body]) -> tuple[Failures, Failures]:
    """Send score bodies; return what was refused, and what the server said of batches.

    Newer servers take lists and nothing else is asked of them; servers up to 4.16 answer a list
    with 400 and are sent objects from then on. A batch that was taken in part is not repeated:
    what it lacks shows when it is read back.
    """
    refused: Failures = {}
    remarks: Failures = {}
    for start in range(0, len(bodies), BATCH):
        batch = bodies[start : start + BATCH]
        try:
            if client.takes_lists is not False:
                _send_list(client, batch, refused, remarks)
            if client.takes_lists is False:
                refused.update(_send_objects(client, batch))
        except LangfuseAwayError as away:
            refused.update({str(body["id"]): away.reason for body in bodies[start:]})
            break
    return refused, remarks


def _send_list(
    client: LangfuseClient, batch: Sequence[Body], refused: Failures, remarks: Failures
) -> None:
    try:
        answer = client.post("/scores", list(batch))
    except RequestRefusedError as error:
        if error.status == 400 and "array" in error.reason.casefold():
            client.takes_lists = False
        elif error.status == 400 and len(batch) > 1:
            for body in batch:
                _send_list(client, [body], refused, remarks)
        else:
            refused.update({str(body["id"]): error.reason for body in batch})
        return
    client.takes_lists = True
    if isinstance(answer, dict) and answer.get("rejected"):
        said = "; ".join(str(e.get("message")) for e in answer.get("errors") or () if e)
        remarks.update({str(body["id"]): f"of its batch the server said: {said}" for body in batch})


def _send_objects(client: LangfuseClient, batch: Sequence[Body]) -> Failures:
    refused: Failures = {}

    def one(body: Body) -> None:
        try:
            client.post("/scores", body)
        except RequestRefusedError as error:
            refused[str(body["id"])] = error.reason

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="langfuse") as pool:
        try:
            list(pool.map(one, batch))
        finally:
            pool.shutdown(cancel_futures=True)
    return refused


def read_back(client: LangfuseClient, sent: Sequence[OutgoingScore], within: float) -> Failures:
    """Return which of the scores the server does not show as sent, and why.

    A server shows a score some time after it took it, and drops without a word what a config
    forbids, so it is asked again, in growing pauses of ``within`` seconds in all.
    """
    missing = {score.id: "the server took it and does not show it" for score in sent}
    waited, pause = 0.0, _FIRST_LOOK
    while True:
        pending = [score for score in sent if score.id in missing]
        try:
            for start in range(0, len(pending), BATCH):
                _check(client, pending[start : start + BATCH], missing)
        except LangfuseError as error:
            return dict.fromkeys(missing, f"not read back: {error.reason}")
        if not missing or waited >= within:
            return missing
        pause = min(pause, within - waited)
        client.sleep(pause)
        waited += pause
        pause = min(2 * pause, _LONGEST_LOOK)


def _check(client: LangfuseClient, pending: Sequence[OutgoingScore], missing: Failures) -> None:
    shown = {str(item.get("id")): item for item in _shown(client, pending)}
    for score in pending:
        item = shown.get(score.id)
        if item is None:
            continue
        if item.get("name") == score.name and _same(item, score.value):
            del missing[score.id]
        else:
            has = item.get("stringValue") or item.get("value")
            missing[score.id] = f"the server shows {item.get('name')} {has!r} instead"


def _shown(client: LangfuseClient, pending: Sequence[OutgoingScore]) -> list[Mapping[str, Any]]:
    ids = ",".join(score.id for score in pending)
    try:
        return list(client.pages("/v3/scores", id=ids, limit=100))
    except RequestRefusedError as error:
        if error.status != 404:
            raise
    return list(client.pages("/v2/scores", scoreIds=ids, limit=100))


def _same(item: Mapping[str, Any], value: str | float) -> bool:
    if isinstance(value, str):
        return value in (item.get("value"), item.get("stringValue"))
    shown = item.get("value")
    return isinstance(shown, int | float) and math.isclose(shown, value, abs_tol=1e-9)
