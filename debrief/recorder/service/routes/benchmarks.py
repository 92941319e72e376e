"""Benchmarks: what versions of a trained adapter were measured at, beside the sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from msgspec import structs
from pydantic import Field, FiniteFloat, JsonValue, StringConstraints

from debrief.recorder.contracts import Contract, TaskId
from debrief.recorder.ingest import read_json, read_model
from debrief.recorder.service.auth import needs
from debrief.recorder.service.bodies import small_body
from debrief.recorder.service.documented import body, guarded, with_body
from debrief.recorder.service.state import Provided
from debrief.recorder.service.values import Cursor, PageSize, Text
from debrief.recorder.storage.rows import Benchmark, BenchmarkFilter, NewBenchmark

router = APIRouter(tags=["benchmarks"])

Name = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")
]


class NewFigure(Contract):
    """A figure that was measured on a version of a trained adapter."""

    adapter: Name
    version: Name
    metric: Name
    value: FiniteFloat
    n: Annotated[int | None, Field(ge=1, le=2**31 - 1)] = None
    """Of how many cases it is the figure."""
    task_id: TaskId | None = None
    session_id: UUID | None = None
    """The stored session that it was measured on, where it was one."""
    details: Annotated[dict[str, JsonValue], Field(max_length=100)] = {}


class Figure(NewFigure):
    """A stored benchmark."""

    id: int
    created_at: datetime


class FigurePage(Contract):
    """Some benchmarks, in the order in which they came in."""

    benchmarks: list[Figure]
    cursor: str | None
    more: bool


@router.post(
    "/benchmarks",
    status_code=201,
    dependencies=[Depends(needs("write"))],
    responses=with_body(404),
    openapi_extra=body(NewFigure),
    summary="Store a benchmark.",
)
async def store_benchmark(
    service: Provided,
    data: Annotated[bytes, Depends(small_body)],
) -> Figure:
    """Store a figure beside the sessions that the adapter was trained on, or measured by."""
    new = read_model(NewFigure, read_json(data))
    row = NewBenchmark(**new.model_dump())
    return _figure(await service.work.do(service.store.add_benchmark, row))


@router.get(
    "/benchmarks",
    dependencies=[Depends(needs("read"))],
    responses=guarded(),
    summary="List benchmarks.",
)
async def list_benchmarks(
    service: Provided,
    adapter: Annotated[Text | None, Query(description="Of this adapter.")] = None,
    version: Annotated[Text | None, Query(description="Of this version.")] = None,
    metric: Annotated[Text | None, Query(description="Of this metric.")] = None,
    task_id: Annotated[TaskId | None, Query(alias="taskId", description="Of this task.")] = None,
    session_id: Annotated[
        UUID | None, Query(alias="sessionId", description="Measured on this session.")
    ] = None,
    cursor: Cursor = None,
    limit: PageSize = 100,
) -> FigurePage:
    """Return a page of benchmarks, in the order in which they came in."""
    wanted = BenchmarkFilter(
        adapter=adapter, version=version, metric=metric, task_id=task_id, session_id=session_id
    )
    page = await service.work.do(service.store.benchmarks, wanted, cursor, limit)
    found = [_figure(item) for item in page.items]
    return FigurePage(benchmarks=found, cursor=page.cursor, more=page.more)


def _figure(stored: Benchmark) -> Figure:
    return Figure.model_validate(structs.asdict(stored))
