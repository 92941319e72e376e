"""The pages with Dagster's UI below ``/dagster``, as one process on one port.

Dagster's own web server obeys any page of any site, even mutations sent by GET. So it is given no
port: its application is part of this one, behind the door.

``python -m pipelines.web --workspace FILE [--host HOST] [--port PORT]`` starts it, on the lake of
the settings and the instance in ``DAGSTER_HOME``.
"""

from __future__ import annotations

import logging
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster_webserver.webserver import DagsterWebserver
from graphql import FieldNode, GraphQLError, OperationDefinitionNode, OperationType, parse
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from debrief.door.app import Door
from debrief.door.people import Person
from debrief.lake import Lake
from debrief.recorder.service.running import ServiceLimits, listen, run
from debrief.settings import DAGSTER_PATH, load_settings
from debrief.view.app import make_app

_DATABASE = (15_000, 3_600, 20)
"""Milliseconds of a statement, seconds of a connection, further connections: as Dagster's own."""


class _Workspace(WorkspaceProcessContext):
    """Dagster's workspace, in which people may do what their role says."""

    def create_request_context(self, source: object | None = None) -> WorkspaceRequestContext:
        """Return what a request works with: read-only for whoever may not run."""
        state = source.state if isinstance(source, HTTPConnection) else None
        person = getattr(state, "person", None)
        return WorkspaceRequestContext(
            instance=self.instance,
            current_workspace=self.get_current_workspace(),
            process_context=self,
            version=self.version,
            source=source,
            read_only=not (isinstance(person, Person) and person.may("run")),
        )


class _WebServer(DagsterWebserver):  # type: ignore[type-arg]
    """Dagster's web server, which tells the door what a request changes.

    What it refuses to give out, or has not, is not found: the stock server fails on it.
    """

    async def download_captured_logs_endpoint(self, request: Request) -> Response:
        """Answer with a step's output; a path that leads out of the logs has none."""
        try:
            answer: Response = await super().download_captured_logs_endpoint(request)
        except ValueError:
            raise HTTPException(404) from None
        return answer

    async def download_debug_file_endpoint(self, request: Request) -> Response:
        """Answer with a run's events, if there is such a run."""
        with self.request_context(request) as context:
            if context.instance.get_run_by_id(request.path_params["run_id"]) is None:
                raise HTTPException(404)
        answer: Response = await super().download_debug_file_endpoint(request)
        return answer

    def graphql_execution_thread(
        self,
        request: Request,
        query: str,
        variables: dict[str, Any] | None,
        operation_name: str | None,
    ) -> JSONResponse:
        """Answer a GraphQL request."""
        if request.state.person.may("run"):
            request.state.change = ", ".join(mutations_in(query))
        return super().graphql_execution_thread(request, query, variables, operation_name)


def mutations_in(query: str) -> list[str]:
    """Return the fields that a GraphQL document asks to change.

    >>> mutations_in("mutation { stopRunningSchedule(scheduleOriginId: 1) { __typename } }")
    ['stopRunningSchedule']
    """
    try:
        document = parse(query)
    except GraphQLError:
        return []
    return [
        field.name.value
        for operation in document.definitions
        if isinstance(operation, OperationDefinitionNode)
        and operation.operation is OperationType.MUTATION
        for field in operation.selection_set.selections
        if isinstance(field, FieldNode)
    ]


@contextmanager
def dagster_ui(instance: dg.DagsterInstance, workspace: str) -> Iterator[ASGIApp]:
    """Give Dagster's UI as an application that has ``/dagster`` before its paths.

    Args:
        instance: whose runs it shows.
        workspace: the file that names where the code is.
    """
    instance.optimize_for_webserver(*_DATABASE)
    with _Workspace(instance, WorkspaceFileTarget([workspace]), version=dg.__version__) as served:
        yield _WebServer(served, DAGSTER_PATH).create_asgi_app()


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    options = ArgumentParser(prog="python -m pipelines.web")
    options.add_argument("--workspace", required=True)
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--port", type=int, default=3000)
    given = options.parse_args()
    logging.basicConfig(level=logging.WARNING)
    settings = load_settings()
    with (
        listen(given.host, given.port) as listener,
        dg.DagsterInstance.get() as instance,
        dagster_ui(instance, given.workspace) as dagster,
    ):
        lake = Lake(settings.lake)
        door = Door(make_app(lake, settings), settings, dagster, lake)
        run(door, ServiceLimits(), listener, websockets=True)


if __name__ == "__main__":
    main()
