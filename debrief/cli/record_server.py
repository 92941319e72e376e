"""``debrief record``: what concerns the server, such as tasks, the history of uploads, exports."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.record_output import AsJson, RecordGroup, server_for, settings_and_home
from debrief.cli.shared import chosen, console, print_json, warn
from debrief.errors import InputError, first_problem
from debrief.markdown import counted

if TYPE_CHECKING:
    from debrief.recorder.contracts import Status

tasks_app = typer.Typer(cls=RecordGroup, no_args_is_help=True, help="The server's tasks.")
_STATUSES: Mapping[str, Status | None] = {"any": None, "ready": "ready", "draft": "draft"}
CreateTask = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Make the task on the server if it is not there, so named."),
]


@tasks_app.command("list")
def tasks_list(as_json: AsJson = False) -> None:
    """Show the server's tasks."""
    from debrief.recorder.answers import plain

    with server_for("read") as server:
        tasks = server.tasks()
    if as_json:
        print_json({"tasks": [plain(task) for task in tasks]})
        return
    for task in tasks:
        console().print(f"{task.id}  {task.name}")
    if not tasks:
        console().print("There is no task yet. Make one: debrief record tasks create ID NAME")


@tasks_app.command("create")
def tasks_create(
    id: Annotated[str, typer.Argument(help="Lower-case letters, digits and hyphens.")],
    name: Annotated[str, typer.Argument(help="What people call it.")],
    description: Annotated[str | None, typer.Option(help="What belongs to it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a task on the server; the same one again changes nothing."""
    from pydantic import ValidationError

    from debrief.recorder.answers import plain
    from debrief.recorder.storage.rows import NewTask

    try:
        task = NewTask(id=id, name=name, description=description)
    except ValidationError as error:
        place, reason = first_problem(error)
        raise InputError(f"the task's {place}", reason).known_as("task-wrong") from error
    with server_for("write") as server:
        server.add_task(task)
    if as_json:
        print_json(plain(task))
    else:
        console().print(f"Task {task.id} is there.")


def record_upload(create_task: CreateTask = None, as_json: AsJson = False) -> None:
    """Send the records that wait; exit code 1 if one still does."""
    from debrief.recorder.answers import error_answer
    from debrief.recorder.stopping import send_waiting

    _, home = settings_and_home()
    out, errors = console(), console(stderr=True)
    results: list[dict[str, object]] = []
    if home.unsent():
        with server_for("write") as server:
            for sent in send_waiting(home, server, create_task):
                result: dict[str, object] = {
                    "sessionId": sent.session_id,
                    "status": sent.receipt.status,
                    "notReady": sent.receipt.not_ready,
                    "error": error_answer(sent.error) if sent.error else None,
                }
                results.append(result)
                if not as_json and sent.error:
                    errors.print(f"{sent.session_id}: {sent.error}", style="red")
                elif not as_json:
                    out.print(f"{sent.session_id}: sent, stored as {sent.receipt.status}")
    left = len(home.unsent())
    if as_json:
        print_json({"sent": results, "waiting": left})
        return
    if not results:
        out.print("No record waits.")
    if left:
        wait = "waits" if left == 1 else "wait"
        line = f"debrief: {left} still {wait}. Again with: debrief record upload"
        errors.print(line, style="red")
        raise typer.Exit(1)


def record_history(
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many at most.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show this machine's records, with the status that the server has for them by now."""
    from debrief.recorder.answers import history_answer

    settings, home = settings_and_home()
    is_set = settings.recorder_url and settings.recorder_token
    with server_for("read") if is_set else nullcontext() as server:
        answer = history_answer(home, server, limit)
    if as_json:
        print_json(answer)
        return
    out = console()
    for entry in answer["sessions"]:
        state = entry["status"] or "waits to be sent"
        when = f"{entry['stoppedAt']:%F %R}"
        out.print(f"{entry['sessionId']}  {when}  {entry['taskId']}  {state}")
    if not answer["sessions"]:
        out.print("No record was sent, and none waits.")
    if answer["error"] is not None:
        warn(f"as they were when they were sent: {answer['error']['message']}")


def record_mark(
    session: Annotated[str, typer.Argument(metavar="ID", help="The stored session.")],
    draft: Annotated[bool, typer.Option("--draft", help="Make it a draft again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Mark a record on the server as ready for training, or with **--draft** as a draft again."""
    from uuid import UUID

    from debrief.recorder.client import RecorderRefusedError

    try:
        id = str(UUID(session))
    except ValueError:
        raise InputError(session, "is no session's id", "See: debrief record history") from None
    with server_for("write") as server:
        try:
            receipt = server.mark(id, "draft" if draft else "ready")
        except RecorderRefusedError as error:
            if error.code == "conflict":
                error.known_as("not-ready", reasons=error.reasons)
            raise
    if as_json:
        print_json({"sessionId": id, "status": receipt.status, "notReady": receipt.not_ready})
    else:
        console().print(f"{id} is {receipt.status}.")


def record_export(
    task: Annotated[str, typer.Option(help="Of this task.")],
    to: Annotated[Path, typer.Option(metavar="FILE", help="A new file.")],
    form: Annotated[
        str, typer.Option("--form", help="messages, for trainers, or record, as it is stored.")
    ] = "messages",
    status: Annotated[str, typer.Option(help="any, ready or draft.")] = "ready",
    as_json: AsJson = False,
) -> None:
    """Write a task's records to a file of JSON lines, as trainers read them.

    All other forms are made of sessions: **debrief run** reads the records with
    **DEBRIEF_RECORDER=1**, or from a file *NAME.record.jsonl*, and **debrief export** writes them.
    """
    from debrief.files import write_durably
    from debrief.recorder.exporting import FORMS
    from debrief.recorder.storage.rows import SessionFilter

    chosen_form = chosen("--form", form, {name: name for name in FORMS})
    only = SessionFilter(task_id=task, status=chosen("--status", status, _STATUSES))
    if to.exists() or to.is_symlink():
        error = InputError(str(to), "is there already", "Name another file.")
        raise error.known_as("file-exists")
    withheld: dict[str, str] = {}
    with server_for("export") as server:
        write_durably(to, server.lines(chosen_form, only, withheld))
    size = to.stat().st_size
    with to.open("rb") as file:
        count = sum(1 for _ in file)
    if as_json:
        answer = {"file": str(to.absolute()), "lines": count, "bytes": size, "withheld": withheld}
        print_json(answer)
        return
    console().print(f"{counted(count, 'line')}, {size:,} bytes: {to}")
    for id, reason in withheld.items():
        warn(f"{id} is left out: {reason}")
