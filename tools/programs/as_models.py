"""The real programs as models: tokens as the scripted model counted them, and nothing read back."""

from __future__ import annotations

import os
import shlex
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from debrief.models.language_model import LanguageModel
from debrief.models.usage import ModelUsage, total
from debrief.sessions.model import Usage
from debrief.sessions.sources import OWN_QUESTION, scan
from tools.programs.definitions import Program, filled
from tools.programs.protocols import Answer, Request
from tools.programs.running import Stage, environment_of, install, write_files
from tools.programs.server import ModelServer

QUESTIONS: Final = 10
NAMES: Final = {
    "claude": "claude-code/claude-opus-4-5",
    "codex": "codex/gpt-5.5",
    "gemini": "gemini-cli/gemini-2.5-pro",
}
"""Of the programs that answer for models, and what they are asked as."""


class AnsweringModel:
    """Answers every request with one text, and counts."""

    def __init__(self) -> None:
        self.counted = ModelUsage(cost_usd=0.0)
        self.tools: set[str] = set()
        """That were offered to it."""
        self._number = 0
        self._lock = threading.Lock()

    def answer(self, request: Request, *, caches_writes: bool = True) -> Answer:
        """Return an answer whose token counts no other has."""
        with self._lock:
            self._number += 1
            number = self._number
            usage = Usage(
                input=2000 + 13 * number,
                output=300 + 7 * number,
                cache_write=(400 + 3 * number) * caches_writes,
                cache_read=900 + 17 * number,
            )
            self.tools.update(tool.name for tool in request.tools)
            self.counted += ModelUsage(
                input_tokens=usage.input + usage.cache_read + usage.cache_write,
                output_tokens=usage.output,
                cost_usd=0.0,
            )
        return Answer(
            id=f"answer_{number:04}", text="Fine.", calls=(), usage=usage, reasoning=20 + number
        )


class AsModel(Struct, frozen=True, kw_only=True):
    """How a program did as a model."""

    name: str
    version: str
    at: datetime
    said: ModelUsage
    """Of ten answers, by the program."""
    counted: ModelUsage
    """By the model that it asked."""
    tools: tuple[str, ...]
    """That it offered all the same."""
    sessions: int
    """Of what it kept, read as sessions: none may be."""
    kept: int
    """Files that it kept of our questions."""

    @property
    def is_wrong(self) -> bool:
        """Whether tokens differ, or a question was read as a session."""
        tokens = [(each.input_tokens, each.output_tokens) for each in (self.said, self.counted)]
        return tokens[0] != tokens[1] or self.sessions > 0


def ask_as_model(stage: Stage, program: Program, version: str) -> AsModel:
    """Install a program, ask it ten questions, and look at what it kept."""
    installed = install(stage.prefix, program.package, version)
    model = AnsweringModel()
    with ModelServer(model) as server:
        values = {"url": server.url}
        shutil.rmtree(stage.home, ignore_errors=True)
        write_files(stage.home, filled(program.files, values))
        with _environment({**environment_of(stage), **filled(program.env, values)}):
            _point_codex(stage, server.url)
            asked = LanguageModel(NAMES[stage.name], api_key="", timeout=60, attempts=1)
            answers = [asked.ask(f"Is part {number} done?") for number in range(QUESTIONS)]
    entries = scan([stage.home]).entries
    return AsModel(
        name=NAMES[stage.name],
        version=installed,
        at=datetime.now(UTC),
        said=total(answer.usage for answer in answers),
        counted=model.counted,
        tools=tuple(sorted(model.tools)),
        sessions=sum(bool(entry.session_id) for entry in entries),
        kept=sum(entry.reason == OWN_QUESTION for entry in entries),
    )


def _point_codex(stage: Stage, url: str) -> None:
    """Lead Codex to the model: as a model it does not read the configuration of its home."""
    if stage.name != "codex":
        return
    (stage.home / ".codex" / "auth.json").write_text('{"OPENAI_API_KEY": "made-up"}')
    real = stage.prefix / "node_modules" / ".bin" / "codex"
    folder = stage.home / "bin"
    folder.mkdir(exist_ok=True)
    script = folder / "codex"
    script.write_text(
        f'#!/bin/sh\nexec {shlex.quote(str(real))} "$@" -c openai_base_url={url}/v1\n'
    )
    script.chmod(0o755)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    former = dict(os.environ)
    os.environ.clear()
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(former)


def lines_of(done: AsModel) -> str:
    """Return what came of it in a few words."""
    said, counted = done.said, done.counted
    cost = "no price" if said.cost_usd is None else f"${said.cost_usd:.4f}"
    return (
        f"{done.name} ({done.version}): {said.input_tokens:,} and {said.output_tokens:,} tokens, "
        f"counted {counted.input_tokens:,} and {counted.output_tokens:,}; {cost}; tools offered: "
        f"{', '.join(done.tools) or 'none'}; {done.kept} files kept, {done.sessions} read as "
        f"sessions{' WRONG' if done.is_wrong else ''}"
    )
