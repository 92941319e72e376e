"""Send scores and their configs to the server, and wait until it shows them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from msgspec import Struct

from debrief.errors import LangfuseError
from debrief.langfuse.client import LangfuseAwayError, LangfuseClient, RequestRefusedError, Row
from debrief.langfuse.outgoing import (
    CONTENT,
    NAMES,
    Destination,
    ScoreReceipt,
    config_request,
    id_on,
    score_id,
)
from debrief.settings import ScoreTarget


class Configs(Struct, frozen=True):
    """The configs of our scores on a server."""

    ids: Mapping[str, str]
    """By name of score."""
    problems: Mapping[str, str]
    """Why a score cannot be written, by its name."""
    project: str
    """The id of the project that the keys belong to; empty when the server does not say it."""


def score_configs(client: LangfuseClient, names: Iterable[str] = NAMES) -> Configs:
    """Return the configs of scores, made where they are missing.

    A config of the same name that was made for something else is left alone, and named as the
    reason why that score is not written: a server drops in silence what a config forbids. Of
    several that fit, all who ask take the oldest; who made a younger one at the same moment
    archives it.

    Raises:
        LangfuseAwayError: the server cannot be asked.
        RequestRefusedError: it refuses to list them.
    """
    requests = {name: config_request(name) for name in names}
    problems: dict[str, str] = {}
    made: dict[str, Row] = {}
    existing = _listed(client)
    for name, request in requests.items():
        if name in existing:
            if not any(_fits(config, request) for config in existing[name]):
                problems[name] = (
                    f"the score config {name!r} on the server has another type, range or "
                    "categories; archive it there and run again"
                )
            continue
        try:
            made[name] = client.post("/score-configs", request)
        except LangfuseError as error:
            problems[name] = f"the score config {name!r} could not be made: {error.reason}"
    existing = _listed(client) if made else existing
    ids, project = {}, ""
    for name in requests.keys() - problems.keys():
        known = [*existing.get(name, ()), *([made[name]] if name in made else ())]
        fitting = [config for config in known if _fits(config, requests[name])]
        oldest = min(fitting, key=lambda one: (str(one.get("createdAt")), str(one["id"])))
        ids[name] = str(oldest["id"])
        project = project or str(oldest.get("projectId") or "")
        if name in made and made[name]["id"] != oldest["id"]:
            client.patch(f"/score-configs/{made[name]['id']}", {"isArchived": True})
    return Configs(ids, problems, project)


def _listed(client: LangfuseClient) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for config in client.pages("/score-configs", limit=100):
        if not config.get("isArchived"):
            found.setdefault(str(config.get("name")), []).append(config)
    return found


def _fits(config: Row, request: Row) -> bool:
    if config.get("dataType") != request["dataType"]:
        return False
    if request["dataType"] == "NUMERIC":
        low, high = config.get("minValue"), config.get("maxValue")
        any_number = "minValue" not in request
        return any_number or ((low is None or low <= 0) and (high is None or high >= 1))
    labels = {c.get("label"): c.get("value") for c in config.get("categories") or ()}
    return all(labels.get(c["label"]) == c["value"] for c in request.get("categories", ()))


BATCH = 50
"""Scores in one request: with the longest comments well under a cloud's 5 MB."""
LACKING = (404, 501)
"""What a server answers for a path that its version or its mode does not have."""

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
        errors = "; ".join(str(e.get("message")) for e in answer.get("errors") or () if e)
        remarks.update(
            {str(body["id"]): f"of its batch the server said: {errors}" for body in batch}
        )


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


def read_back(client: LangfuseClient, sent: Sequence[ScoreReceipt], within: float) -> Failures:
    """Return which of the scores the server does not show as sent, and why.

    A server shows a score some time after it took it, and drops without a word what a config
    forbids, so it is asked again, in growing pauses of ``within`` seconds in all.
    """
    waited, pause = 0.0, _FIRST_LOOK
    missing = {receipt.score_id: "" for receipt in sent}
    while True:
        try:
            missing = differences(client, [r for r in sent if r.score_id in missing])
        except LangfuseError as error:
            return dict.fromkeys(missing, f"not read back: {explained(error)}")
        if not missing or waited >= within:
            return missing
        pause = min(pause, within - waited)
        client.sleep(pause)
        waited += pause
        pause = min(2 * pause, _LONGEST_LOOK)


def differences(client: LangfuseClient, claimed: Sequence[ScoreReceipt]) -> Failures:
    """Return which scores the server does not show now as they were sent, and how.

    Raises:
        LangfuseAwayError: the server cannot be reached or stays busy.
        RequestRefusedError: it refuses the request.
    """
    shown = shown_scores(client, [receipt.score_id for receipt in claimed])
    found = {
        receipt.score_id: _difference(receipt, shown.get(receipt.score_id)) for receipt in claimed
    }
    return {identity: reason for identity, reason in found.items() if reason}


def shown_scores(client: LangfuseClient, ids: Sequence[str]) -> dict[str, Row]:
    """Return the scores that the server shows, by id; errors as for ``differences``."""
    rows: list[Row] = []
    for start in range(0, len(ids), BATCH):
        joined = ",".join(ids[start : start + BATCH])
        try:
            rows += client.pages("/v3/scores", id=joined, fields="details", limit=100)
        except RequestRefusedError as error:
            if error.status not in LACKING:
                raise
            rows += client.pages("/v2/scores", scoreIds=joined, limit=100)
    return {str(row.get("id")): row for row in rows}


def _difference(receipt: ScoreReceipt, shown: Row | None) -> str:
    if shown is None:
        return "the server took it and does not show it"
    if shown.get("name") != receipt.name or not _same(shown, receipt.value):
        has = shown.get("stringValue") or shown.get("value")
        return f"the server shows {shown.get('name')} {has!r} instead"
    content = (shown.get("metadata") or {}).get(CONTENT, receipt.content_digest)
    return "" if content == receipt.content_digest else "the server shows an earlier one"


def _same(shown: Row, value: str) -> bool:
    has = shown.get("value")
    if value in (has, shown.get("stringValue")):
        return True
    try:
        return isinstance(has, int | float) and math.isclose(has, float(value), abs_tol=1e-6)
    except ValueError:
        return False


def explained(error: LangfuseError) -> str:
    """Return why something failed, and the next move."""
    return ". ".join(filter(None, (error.reason.rstrip("."), error.next_move)))


def standing_scores(
    client: LangfuseClient, session: str, place: Destination, target: ScoreTarget
) -> list[ScoreReceipt]:
    """Return the scores of a session that stand there, whichever machine wrote them.

    Raises:
        LangfuseAwayError: the server cannot be reached or stays busy.
        RequestRefusedError: it refuses the request.
    """
    parameters = {**place.subject, "name": ",".join(NAMES), "fields": "details"}
    try:
        rows = list(client.pages("/v3/scores", source="API", limit=100, **parameters))
    except RequestRefusedError as error:
        if error.status not in LACKING:
            raise
        return []
    return [
        ScoreReceipt(
            score_id=str(row["id"]),
            session_id=session,
            name=str(row["name"]),
            value=str(row.get("value")),
            status="written",
            host=client.host,
        )
        for row in rows
        if row["id"] == id_on(target, score_id(session, str(row["name"])))
    ]
