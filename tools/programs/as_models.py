"""The real programs as models: a run that is killed and goes on, with tokens and money as the
scripted model counted them, nothing read back, and one line for each thing that goes wrong.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import DebriefError
from debrief.lake.tables import Lake
from debrief.models.language_model import LanguageModel
from debrief.models.programs import listed_name
from debrief.models.usage import ModelUsage, price_of, total
from debrief.opening import MARK
from debrief.samples import folder as samples
from debrief.sessions.model import Session, UnreadTranscript, Usage
from debrief.sessions.sources import OWN_QUESTION, read_week, scan
from tools.programs.definitions import Program, filled
from tools.programs.protocols import Answer, Request, SentCall
from tools.programs.running import Stage, environment_of, install, write_files
from tools.programs.server import ModelServer, RefusedError

SESSIONS: Final = 10
KILLED_AFTER: Final = 4
"""Answers that the first run has had when it is killed."""
_PATIENCE: Final = 15.0
"""Seconds that a program has in the scenes of what goes wrong; an engine gives it three times as
many."""
_LONGEST: Final = 600
NAMES: Final = {
    "claude": "claude-code/claude-opus-4-5",
    "codex": "codex/gpt-5.5",
    "gemini": "gemini-cli/gemini-2.5-pro",
}
"""Of the programs that answer for models, and what they are asked as."""
_READING: Final[Mapping[str, Any]] = {
    "requests": [{"turn": 1, "asked": "the change", "state": "done_unseen", "proof": None}],
    "claims": [],
    "verdict": "complete_unverified",
    "confidence": "medium",
    "quality": 0.6,
    "effort": 0.7,
    "incidents": [],
    "person": [],
    "frictions": [],
    "train": {"what": "all", "turns": []},
    "dimensions": {
        name: {"rationale": "Seen in turn 1.", "evidence": [], "score": score}
        for name, score in {
            "task_completion": "partial",
            "execution_quality": 0.55,
            "tool_mastery": 0.75,
            "resource_efficiency": 0.7,
            "security_compliance": "adequate",
            "user_satisfaction": None,
        }.items()
    },
}
_JUDGE = re.compile(r'^    "([\w-]+)": \{"feedback"', re.MULTILINE)
"""A judge's entry in the example of an answer that a question shows."""


class AnsweringModel:
    """Answers every request with a reading, and counts."""

    def __init__(self) -> None:
        self.counted: dict[str, ModelUsage] = {}
        """By question: what the last answer to it took."""
        self.answered: list[str] = []
        """The questions, in turn."""
        self.tools: set[str] = set()
        """That were offered to it."""
        self.goes_wrong: Callable[[Request], str | tuple[SentCall, ...] | None] | None = None
        """In place of an answer: raises, calls tools, or says something; None goes on."""
        self._lock = threading.Lock()

    def answer(self, request: Request, *, caches_writes: bool = True) -> Answer:
        """Return an answer whose token counts no other has.

        Raises:
            RefusedError: it is told to.
        """
        asked = "\n\n".join(said.text for said in request.said)
        question = asked[max(asked.find(MARK), 0) :]
        self.tools.update(tool.name for tool in request.tools)
        instead = self.goes_wrong(request) if self.goes_wrong else None
        with self._lock:
            self.answered.append(question)
            number = len(self.answered)
            usage = Usage(
                input=2000 + 13 * number,
                output=300 + 7 * number,
                cache_write=(400 + 3 * number) * caches_writes,
                cache_read=900 + 17 * number,
            )
            self.counted[question] = ModelUsage(
                input_tokens=usage.input + usage.cache_read + usage.cache_write,
                output_tokens=usage.output,
                cache_read_tokens=usage.cache_read,
                cache_write_tokens=usage.cache_write,
                cost_usd=0.0,
            )
        judges = {name: {"feedback": "Turn 1.", "score": 0.7} for name in _JUDGE.findall(question)}
        said = json.dumps({**_READING, **({"judges": judges} if judges else {})})
        return Answer(
            id=f"answer_{number:04}",
            text=instead if isinstance(instead, str) else "" if instead else said,
            calls=instead if isinstance(instead, tuple) else (),
            usage=usage,
            reasoning=20 + number,
        )


class _Spent(Struct, frozen=True):
    """Of a row, what it took."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class AsModel(Struct, frozen=True, kw_only=True):
    """How a program did as a model."""

    name: str
    version: str
    at: datetime
    scored: int
    """Sessions that a run, killed and taken up again, has scores of."""
    said: ModelUsage
    """Of the scores and judgements in the lake, by the program."""
    counted: ModelUsage
    """By the model that it asked; its cost by the price list."""
    twice: int
    """Questions that were answered more than once; those under way when the run was killed may."""
    tools: tuple[str, ...]
    """That it offered all the same."""
    sessions: int
    """Of what it kept, read as sessions: none may be."""
    kept: int
    """Files that it kept of our questions."""
    failures: dict[str, str]
    """What a person is told, by what goes wrong."""

    @property
    def is_wrong(self) -> bool:
        """Whether sessions, tokens or money differ, something was asked twice, or a question was
        read as a session."""
        said, counted = self.said, self.counted
        tokens = [(usage.input_tokens, usage.output_tokens) for usage in (said, counted)]
        money = abs((said.cost_usd or 0) - (counted.cost_usd or 0))
        differs = tokens[0] != tokens[1] or money > 0.0001  # rows hold rounded amounts
        lines = list(self.failures.values())
        return (
            differs
            or self.scored != SESSIONS
            or self.twice > 2
            or self.sessions > 0
            or any("\n" in line or not line for line in lines)
        )


def ask_as_model(stage: Stage, program: Program, version: str) -> AsModel:
    """Install a program, have ten sessions scored by it, and look at what it kept."""
    installed = install(stage.prefix, program.package, version)
    model = AnsweringModel()
    work = stage.truth.with_name("as-model")
    shutil.rmtree(work, ignore_errors=True)
    with ModelServer(model) as server:
        values = {"url": server.url, "repository": str(stage.repository)}
        shutil.rmtree(stage.home, ignore_errors=True)
        write_files(stage.home, filled(program.files, values))
        with _environment({**environment_of(stage), **filled(program.env, values)}):
            _point_codex(stage, server.url)
            _run_twice(NAMES[stage.name], work, model)
            counted, twice = dict(model.counted), len(model.answered) - len(model.counted)
            failures = dict(_failures(NAMES[stage.name], model, stage.home))
    lake = Lake(str(work / "lake"))
    scores = list(lake.rows("session_scores", _Spent))
    rows = [*scores, *lake.rows("judge_evaluations", _Spent)]
    price = price_of(listed_name(NAMES[stage.name]), Path("no-prices"))
    whole = total(counted.values())
    found = scan([stage.home])
    read = [one for week in found.weeks() for one in read_week(found, week)]
    return AsModel(
        name=NAMES[stage.name],
        version=installed,
        at=datetime.now(UTC),
        scored=len(scores),
        said=ModelUsage(
            input_tokens=sum(row.input_tokens for row in rows),
            output_tokens=sum(row.output_tokens for row in rows),
            cost_usd=sum(row.cost_usd or 0 for row in rows),
        ),
        counted=replace(whole, cost_usd=price.cost(whole) if price else None),
        twice=twice,
        tools=tuple(sorted(model.tools)),
        sessions=sum(isinstance(one, Session) for one in read),
        kept=sum(
            transcript.reason == OWN_QUESTION
            for transcript in read
            if isinstance(transcript, UnreadTranscript)
        ),
        failures=failures,
    )


def _run_twice(name: str, work: Path, model: AnsweringModel) -> None:
    """Run the pipeline on ten of the demo's sessions, kill it after some answers, and go on."""
    found = sorted((samples() / "claude" / "projects").glob("*/*.jsonl"))[:SESSIONS]
    for path in found:
        folder = work / "sessions" / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder)
    debrief = str(Path(sys.executable).with_name("debrief"))
    where = ["--sessions", str(work / "sessions"), "--lake", str(work / "lake")]
    environment = {**os.environ, "DEBRIEF_HOME": str(work / "home")}
    for kills in (True, False):
        with (
            (work / f"run-{1 if kills else 2}.log").open("wb") as log,
            subprocess.Popen(
                [debrief, "run", "--model", name, "--yes", *where],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            until = time.monotonic() + _LONGEST
            while process.poll() is None and time.monotonic() < until:
                if kills and len(model.answered) >= KILLED_AFTER:
                    break
                time.sleep(0.05)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _failures(name: str, model: AnsweringModel, home: Path) -> Iterator[tuple[str, str]]:
    """Yield what a person is told, by what goes wrong."""
    over = threading.Event()

    def hang(_: Request) -> None:
        over.wait(_LONGEST)

    def call(request: Request) -> tuple[SentCall, ...] | None:
        if any(said.role == "tool" for said in request.said):
            return None
        tool = next((tool.name for tool in request.tools), "Bash")
        patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** End Patch\n"
        return (SentCall("call_1", tool, patch if tool == "apply_patch" else {"command": "ls"}),)

    scenes: dict[str, Callable[[Request], Any]] = {
        "key refused": lambda _: _refuse(401, _REFUSED_KEY[name.partition("/")[0]]),
        "plan spent": lambda _: _refuse(429, *_limit(name.partition("/")[0])),
        "calls a tool": call,
        "hangs": hang,
    }
    for scene, goes_wrong in scenes.items():
        model.goes_wrong = goes_wrong
        yield scene, _line(name, f"What is said when it {scene}?")
    over.set()
    model.goes_wrong = scenes["key refused"]
    for key in _KEYS:
        os.environ.pop(key, None)
    (home / ".codex" / "auth.json").unlink(missing_ok=True)
    yield "logged out", _line(name, "Is a login needed?")


def _line(name: str, question: str) -> str:
    try:
        LanguageModel(name, api_key="", timeout=_PATIENCE, attempts=1).ask(question)
    except DebriefError as error:
        return str(error)
    return "it answered"


def _refuse(status: int, body: Mapping[str, Any], headers: Mapping[str, str] = {}) -> None:
    raise RefusedError(status, body, headers)


_KEYS: Final = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")
_REFUSED_KEY: Final[Mapping[str, Mapping[str, Any]]] = {
    "claude-code": {
        "type": "error",
        "error": {"type": "authentication_error", "message": "invalid x-api-key"},
    },
    "codex": {"error": {"type": "invalid_request_error", "message": "Incorrect API key provided"}},
    "gemini-cli": {
        "error": {"code": 401, "status": "UNAUTHENTICATED", "message": "API key not valid"}
    },
}
"""As the providers word that a key or a login does not hold."""


def _limit(name: str) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Return a provider's words and headers for a plan that is spent for two days."""
    again = datetime.now(UTC) + timedelta(days=2)
    seconds = str(int(again.timestamp()))
    if name == "claude-code":
        error = {"type": "rate_limit_error", "message": f"Claude AI usage limit reached|{seconds}"}
        limit = {"status": "rejected", "reset": seconds, "representative-claim": "five_hour"}
        headers = {f"anthropic-ratelimit-unified-{key}": value for key, value in limit.items()}
        return {"type": "error", "error": error}, {**headers, "x-should-retry": "false"}
    if name == "codex":
        spent = {"type": "usage_limit_reached", "plan_type": "plus", "resets_at": int(seconds)}
        return {"error": {"message": "The usage limit has been reached", **spent}}, {}
    words = "You exceeded your current quota. Your quota will reset after 48h0m0s."
    detail = {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}],
    }
    quota = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": words, "details": [detail]}
    return {"error": quota}, {}


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
    """Return what came of it in a few words, and a line for each thing that went wrong."""
    said, counted = done.said, done.counted
    tokens, truly = (
        f"{usage.input_tokens:,} and {usage.output_tokens:,} tokens, ${usage.cost_usd or 0:.4f}"
        for usage in (said, counted)
    )
    head = (
        f"{done.name} ({done.version}): {done.scored} sessions scored; {tokens}, counted {truly}; "
        f"{done.twice} asked twice; tools offered: {', '.join(done.tools) or 'none'}; "
        f"{done.kept} files kept, {done.sessions} read as sessions"
        f"{' WRONG' if done.is_wrong else ''}"
    )
    return "\n".join([head, *(f"- {name}: {line}" for name, line in done.failures.items())])
