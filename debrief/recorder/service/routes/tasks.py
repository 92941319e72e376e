"""Tasks: the buckets of work that sessions belong to."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from debrief.recorder.contracts import Contract, NewTask, Task, TaskId
from debrief.recorder.ingest import read_json, read_model
from debrief.recorder.service.auth import needs
from debrief.recorder.service.bodies import small_body
from debrief.recorder.service.documented import body, guarded, with_body
from debrief.recorder.service.state import Provided

router = APIRouter(tags=["tasks"])


class Tasks(Contract):
    """All tasks, by id."""

    tasks: list[Task]


@router.get(
    "/tasks",
    dependencies=[Depends(needs("read"))],
    responses=guarded(),
    summary="List the tasks.",
)
async def list_tasks(service: Provided) -> Tasks:
    """Return all tasks."""
    return Tasks(tasks=list(await service.work.do(service.store.tasks)))


@router.get(
    "/tasks/{id}",
    dependencies=[Depends(needs("read"))],
    responses=guarded(404),
    summary="One task.",
)
async def show_task(service: Provided, id: TaskId) -> Task:
    """Return a task; 404 when there is none of that id."""
    return await service.work.do(service.store.task, id)


@router.post(
    "/tasks",
    status_code=201,
    dependencies=[Depends(needs("write"))],
    responses=with_body(409),
    openapi_extra=body(NewTask),
    summary="Make a task.",
)
async def make_task(
    service: Provided,
    data: Annotated[bytes, Depends(small_body)],
) -> Task:
    """Make a task; 409 when there is one of that id."""
    new = read_model(NewTask, read_json(data))
    return await service.work.do(service.store.add_task, new)
