"""The option ``--json`` of ``debrief record``: answers and errors for programs."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from debrief.cli.shared import print_json, without_secrets
from debrief.errors import DebriefError

_KEY = "debrief.record.json"


def _remember(context: typer.Context, is_given: bool) -> bool:
    context.meta[_KEY] = is_given
    return is_given


AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        callback=_remember,
        is_eager=True,
        help="Answer in JSON, for programs; an error as well, on the error output.",
    ),
]


class RecordGroup(TyperGroup):
    """Commands whose errors are JSON where their answers would be."""

    def invoke(self, ctx: Any) -> Any:
        """Invoke the command that the arguments name."""
        try:
            return super().invoke(ctx)
        except DebriefError as error:
            if not ctx.meta.get(_KEY):
                raise
            print_error(error)
            raise typer.Exit(1) from None


def print_error(error: DebriefError) -> None:
    """Print an error as one line of JSON to the error output, without secrets."""
    from debrief.recorder.answers import error_answer

    line = json_line({"error": error_answer(error)})
    print(without_secrets().redact_json(line).text, file=sys.stderr, flush=True)


def print_answer(answer: object) -> None:
    """Print an answer."""
    print_json(answer)


def json_line(value: object) -> str:
    """Return whatever msgspec encodes as one line of JSON, in ASCII."""
    import json

    import msgspec

    return json.dumps(msgspec.to_builtins(value))
