"""Send scores and their configs to the server, and wait until it shows them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from debrief.errors import LangfuseError
from debrief.langfuse.client import LangfuseClient, Row
from debrief.langfuse.errors import LACKING, LangfuseAwayError, RequestRefusedError
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

if TYPE_CHECKING:
    from langfuse.api.commons.types.score_config import ScoreConfig
    from langfuse.api.scores.types.create_score_request import CreateScoreRequest
    from langfuse.api.scores.types.score_v3 import ScoreV3


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
    made: dict[str, ScoreConfig] = {}
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
            with client.sdk() as sdk:
                made[name] = sdk.score_configs.create(**request)
        except LangfuseError as error:
            problems[name] = f"the score config {name!r} could not be made: {error.reason}"
    existing = _listed(client) if made else existing
    ids, project = {}, ""
    for name in requests.keys() - problems.keys():
        known = [*existing.get(name, ()), *([made[name]] if name in made else ())]
        fitting = [config for config in known if _fits(config, requests[name])]
        oldest = min(fitting, key=lambda one: (one.created_at, one.id))
        ids[name] = oldest.id
        project = project or oldest.project_id
        if name in made and made[name].id != oldest.id:
            with client.sdk() as sdk:
                sdk.score_configs.update(made[name].id, is_archived=True)
    return Configs(ids, problems, project)


def _listed(client: LangfuseClient) -> dict[str, list[ScoreConfig]]:
    found: dict[str, list[ScoreConfig]] = {}
    for config in client.sdk_pages(lambda sdk, **page: sdk.score_configs.get(limit=100, **page)):
        if not config.is_archived:
            found.setdefault(config.name, []).append(config)
    return found


def _fits(config: ScoreConfig, request: Mapping[str, Any]) -> bool:
    if config.data_type != request["data_type"]:
        return False
    if request["data_type"] == "NUMERIC":
        low, high = config.min_value, config.max_value
        any_number = "min_value" not in request
        return any_number or ((low is None or low <= 0) and (high is None or high >= 1))
    labels = {category.label: category.value for category in config.categories or ()}
    return all(labels.get(c["label"]) == c["value"] for c in request.get("categories", ()))


BATCH = 50
"""Scores in one request: with the longest comments well under a cloud's 5 MB."""

_AT_ONCE = 4
_FIRST_LOOK, _LONGEST_LOOK = 0.2, 5.0

Failures = dict[str, str]
"""Reason by score id."""


def send(
    client: LangfuseClient, requests: Sequence[CreateScoreRequest]
) -> tuple[Failures, Failures]:
    """Send scores; return what was refused, and what the server said of batches.

    Newer servers take lists and nothing else is asked of them; servers up to 4.16 answer a list
    with 400 and are sent objects from then on. A batch that was taken in part is not repeated:
    what it lacks shows when it is read back.
    """
    refused: Failures = {}
    remarks: Failures = {}
    for start in range(0, len(requests), BATCH):
        batch = requests[start : start + BATCH]
        try:
            if client.takes_lists is not False:
                _send_list(client, batch, refused, remarks)
            if client.takes_lists is False:
                refused.update(_send_objects(client, batch))
        except LangfuseAwayError as away:
            refused.update({str(request.id): away.reason for request in requests[start:]})
            break
    return refused, remarks


def _send_list(
    client: LangfuseClient,
    batch: Sequence[CreateScoreRequest],
    refused: Failures,
    remarks: Failures,
) -> None:
    try:
        with client.sdk() as sdk:
            answer = sdk.scores.create(request=batch)
    except RequestRefusedError as error:
        if error.status == 400 and "array" in error.reason.casefold():
            client.takes_lists = False
        elif error.status == 400 and len(batch) > 1:
            for request in batch:
                _send_list(client, [request], refused, remarks)
        else:
            refused.update({str(request.id): error.reason for request in batch})
        return
    client.takes_lists = True
    if getattr(answer, "rejected", 0):
        errors = "; ".join(error.message for error in answer.errors)
        remark = f"of its batch the server said: {errors}"
        remarks.update({str(request.id): remark for request in batch})


def _send_objects(client: LangfuseClient, batch: Sequence[CreateScoreRequest]) -> Failures:
    refused: Failures = {}

    def one(request: CreateScoreRequest) -> None:
        try:
            client.post("/scores", json.loads(request.json()))
        except RequestRefusedError as error:
            refused[str(request.id)] = error.reason

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


def shown_scores(client: LangfuseClient, ids: Sequence[str]) -> dict[str, ScoreV3]:
    """Return the scores that the server shows, by id; errors as for ``differences``."""
    found: list[ScoreV3] = []
    for start in range(0, len(ids), BATCH):
        joined = ",".join(ids[start : start + BATCH])
        older = {"scoreIds": joined}
        found += stored_scores(client, older, id=joined, fields="details")
    return {score.id: score for score in found}


def stored_scores(
    client: LangfuseClient, older: Mapping[str, str] | None, **filters: str
) -> Iterator[ScoreV3]:
    """Yield scores that a server shows.

    Args:
        client: of the server.
        older: what a server is asked for that has scores in an older form alone; None: nothing.
        filters: of the scores, as the SDK names them.

    Raises:
        LangfuseAwayError: the server cannot be reached or stays busy.
        RequestRefusedError: it refuses the request.
    """
    try:
        yield from client.sdk_pages(
            lambda sdk, **page: sdk.scores.get_many(limit=100, **filters, **page)
        )
    except RequestRefusedError as error:
        if error.status not in LACKING:
            raise
        if older is not None:
            for row in client.pages("/v2/scores", limit=100, **older):
                with client.sdk():
                    score = _newer_form(row)
                yield score


def _newer_form(row: Row) -> ScoreV3:
    """Return a score that a server of version 3 shows, as newer ones do."""
    from langfuse.api.core.pydantic_utilities import parse_obj_as
    from langfuse.api.scores.types.score_v3 import ScoreV3

    subject: dict[str, Any] | None = None
    if row.get("sessionId"):
        subject = {"kind": "session", "id": row["sessionId"]}
    elif row.get("traceId"):
        subject = {"kind": "trace", "id": row["traceId"]}
    is_number = row.get("dataType") in ("NUMERIC", "BOOLEAN")
    value = row.get("value") if is_number else row.get("stringValue") or str(row.get("value"))
    newer = {**row, "value": value, "subject": subject}
    form: Any = ScoreV3
    score: ScoreV3 = parse_obj_as(form, {"environment": "default", **newer})
    return score


def _difference(receipt: ScoreReceipt, shown: ScoreV3 | None) -> str:
    if shown is None:
        return "the server took it and does not show it"
    if shown.name != receipt.name or not _same(shown.value, receipt.value):
        return f"the server shows {shown.name} {shown.value!r} instead"
    content = (shown.metadata or {}).get(CONTENT, receipt.content_digest)
    return "" if content == receipt.content_digest else "the server shows an earlier one"


def _same(shown: str | float | bool, value: str) -> bool:
    if isinstance(shown, str):
        return shown == value
    try:
        return math.isclose(shown, float(value), abs_tol=1e-6)
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
    asked = {"source": "API", "name": ",".join(NAMES), "fields": "details"}
    return [
        ScoreReceipt(
            score_id=score.id,
            session_id=session,
            name=score.name,
            value=str(score.value),
            status="written",
            host=client.host,
        )
        for score in stored_scores(client, None, **asked, **place.subject)
        if score.id == id_on(target, score_id(session, score.name))
    ]
