"""Let DSPy use an installed coding agent as its model: one process a question, with a timeout."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from debrief.errors import flat
from debrief.keys import digest_of
from debrief.models.plan_limits import seconds_until_reset
from debrief.models.programs import ProgramError, ProgramModel, environment_for
from debrief.opening import opened
from debrief.processes import stop_with_parent
from debrief.retry import WaitEndedError, current_wait, is_ended

if TYPE_CHECKING:
    from dspy.lm15 import LM15Error, Request, Response

LONGEST_WAIT = 6 * 3_600.0
"""Seconds that a plan is waited for: its windows are of five hours. A week is not waited for."""
_TIMES_LONGER = 3
"""A program says nothing before its answer is whole, so it has so many times the usual limit."""
_USUAL_WAIT = 900.0
"""Seconds to wait where a program does not say when its plan takes questions again."""
_LOOK = 0.2
"""Seconds between two looks at whether the run was stopped."""
_SHOWN = 300


class ProgramEngine:
    """Asks a program, a process a question; safe to use from threads.

    Args:
        program: what is asked.
        timeout: seconds, as of a call of a provider; a program has three times as many.
        environ: of this process by default.
    """

    def __init__(
        self, program: ProgramModel, *, timeout: float, environ: Mapping[str, str] | None = None
    ) -> None:
        self.program = program
        self._limit = timeout * _TIMES_LONGER
        self._environ = environment_for(program, os.environ if environ is None else environ)
        self._writing = Lock()
        # One for all questions: programs note each folder that they were started in.
        self._folder = tempfile.TemporaryDirectory(prefix="debrief-asks-")
        for name, text in program.files.items():
            path = Path(self._folder.name) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def complete(self, request: Request) -> Response:
        """Answer one request.

        Raises:
            LM15Error: there is no answer; its cause is the ``ProgramError``.
            WaitEndedError: the run was stopped.
        """
        from dspy.lm15 import Message, Response, Usage

        try:
            command = [*self.program.command_for(request.model), *self._form(request)]
            output, errors = self._run(command, opened(_question(request)))
            answer = self.program.read(output, errors)
        except ProgramError as error:
            raise self._failure(error) from error
        usage = answer.usage
        return Response(
            id=None,
            model=request.model,
            message=Message.assistant(answer.text),
            finish_reason="length" if answer.cut else "stop",
            usage=Usage(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                total_tokens=usage.input_tokens + usage.output_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
            ),
            provider_data={"usage": {"cost": usage.cost_usd}},
        )

    def _form(self, request: Request) -> list[str]:
        """Return the option that holds a program to the form of an answer, where it has one."""
        form = request.config.response_format
        if form is None or not self.program.schema_option:
            return []
        name = f"answer-{digest_of(form)[:16]}.json"
        path = Path(self._folder.name) / name
        with self._writing:
            if not path.exists():
                path.write_text(json.dumps(form["schema"]), encoding="utf-8")
        return [self.program.schema_option, name]

    def _run(self, command: Sequence[str], question: str) -> tuple[str, str]:
        path = shutil.which(command[0], path=self._environ.get("PATH"))
        if path is None:
            raise ProgramError("gone", f"the program {command[0]} is not on the search path")
        began = current_wait()
        try:
            process = subprocess.Popen(
                [path, *command[1:]],
                cwd=self._folder.name,
                env=self._environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # no terminal to ask on, and ended with all it started
                preexec_fn=stop_with_parent(signal.SIGTERM),
            )
        except OSError as error:
            raise ProgramError("gone", f"{path}: {error.strerror}") from error
        until = time.monotonic() + self._limit
        given: str | None = question
        with process:
            while True:
                try:
                    return process.communicate(given, timeout=_LOOK)
                except subprocess.TimeoutExpired:
                    given = None
                except BaseException:
                    _end(process)
                    raise
                if is_ended(began):
                    _end(process)
                    raise WaitEndedError("stopped while a program answered")
                if time.monotonic() > until:
                    _end(process)
                    raise ProgramError("hung", f"no answer came for {self._limit:g} s")

    def _failure(self, error: ProgramError) -> LM15Error:
        from dspy import lm15

        from debrief.models.transport import UnreadableReplyError

        said = flat(error.said)[:_SHOWN]
        if error.cause == "limit":
            wait = seconds_until_reset(error.said, datetime.now().astimezone())
            wait = _USUAL_WAIT if wait is None else wait
            is_short = wait <= LONGEST_WAIT
            return lm15.RateLimitError(said, retry_after=wait) if is_short else _spent(said)
        kinds: Mapping[str, Any] = {
            "logged out": lm15.AuthError,
            "asks": lm15.AuthError,
            "gone": lm15.AuthError,
            "too long": lm15.ContextLengthError,
            "hung": lm15.InvalidRequestError,  # not sent again: it took long enough
            "tool": UnreadableReplyError,
        }
        kind: type[LM15Error] = kinds.get(error.cause, lm15.ServerError)
        return kind(said)


def next_move(program: ProgramModel, error: ProgramError) -> str:
    """Return what a person can do about a failure; empty for one that may pass."""
    command = program.command
    return {
        "logged out": program.login,
        "asks": f"Run {command} once in a terminal and answer what it asks.",
        "gone": f"Install it: npm install -g {program.package}. {program.login}",
        "hung": f"Run {command} once in a terminal to see what it waits for.",
        "limit": "Wait until the plan takes questions again, or name another model.",
    }.get(error.cause, "")


def _spent(said: str) -> LM15Error:
    from dspy.lm15 import BillingError

    return BillingError(said)


def _question(request: Request) -> str:
    """Return a request as one text: programs have a system prompt of their own."""
    system = request.system
    parts = [system] if isinstance(system, str) else [_text(part) for part in system or ()]
    parts += [_text(part) for message in request.messages for part in message.parts]
    return "\n\n".join(filter(None, parts))


def _text(part: Any) -> str:
    return part if isinstance(part, str) else str(part.text)


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
