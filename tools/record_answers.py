"""Record a model's answers for the demo: reviews, rubrics, and judgments of its sessions.

``python -m tools.record_answers NAME --model claude-code`` asks that model all that the demo asks
and writes ``answers/NAME.jsonl``. With ``--by-hand FOLDER`` nobody is asked: each question is
written to FOLDER as ``….md``, and its answer is taken from ``….txt`` beside it. Run it again until
no question is left; questions of rubrics come once the reviews are there.

Answers that are recorded and still fit their form are kept; ``--anew`` asks for all of them again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from debrief.evaluators import Evaluators, make_evaluators
from debrief.lake import Lake
from debrief.models.recorded import PREFIX, SUFFIX, RecordedAnswer
from debrief.models.subject import question_about
from debrief.models.templates import FRICTION_CHECK, FRICTION_GROUPS, version_of
from debrief.questions.run import ask_about_lines
from debrief.rubrics.model import ALL
from debrief.samples import SCORE_NAMES
from debrief.samples import folder as samples
from debrief.settings import load_settings
from debrief.stages.evaluations import JUDGE_EVALUATIONS, SESSION_SCORES
from debrief.stages.friction import FRICTION_EVENTS, RECURRING_FRICTION
from debrief.stages.rubrics import (
    EXTRACTED_RUBRICS,
    FINAL_RUBRICS,
    RUBRIC_CANDIDATES,
    RUBRIC_EVALUATIONS,
    RUBRIC_TRIALS,
)
from debrief.stages.run import StageRun

_DEBRIEF = (sys.executable, "-m", "pipelines.command")


class _Recorder:
    """Asks for what is not recorded yet, and remembers it.

    Args:
        engine: of a model; None to ask by hand.
        by: who answers.
        by_hand: the folder of questions and answers; None to ask the model.
        kept: answers that are recorded.
    """

    def __init__(
        self, engine: Any, by: str, by_hand: Path | None, kept: Sequence[RecordedAnswer]
    ) -> None:
        self._engine, self._by, self._by_hand = engine, by, by_hand
        self.rows = {row.about: row for row in kept}
        self.used: set[str] = set()
        self.open: list[str] = []

    def complete(self, request: Any) -> Any:
        """Answer one request, from what is recorded where that has it."""
        from dspy import lm15

        about = question_about()
        if about in self.rows and about not in self.used:
            self.used.add(about)
            return _response(request, self.rows[about].answer)
        if self._by_hand is not None:
            text = self._answer_by_hand(about, request)
            if text is None:
                raise lm15.InvalidRequestError(f"no answer yet {about}")
        else:
            response = self._engine.complete(request)
            text = "\n".join(part.text for part in response.message.parts if part.type == "text")
        self.used.add(about)
        self.rows[about] = RecordedAnswer(
            about=about,
            answer=text,
            by=self._by,
            on=datetime.now(UTC).date().isoformat(),
            form=_form_of(about),
        )
        return _response(request, text)

    def _answer_by_hand(self, about: str, request: Any) -> str | None:
        assert self._by_hand is not None
        name = re.sub(r"[^a-z0-9]+", "-", about.lower()).strip("-")
        question, answer = self._by_hand / f"{name}.md", self._by_hand / f"{name}.txt"
        if answer.is_file() and about not in self.used:
            return answer.read_text(encoding="utf-8").strip()
        parts = [request.system] if isinstance(request.system, str) else [*(request.system or ())]
        parts += [part for message in request.messages for part in message.parts]
        texts = [part if isinstance(part, str) else str(part.text) for part in parts]
        question.write_text("\n\n".join(texts), encoding="utf-8")
        self.open.append(str(answer))
        return None


def _response(request: Any, text: str) -> Any:
    from dspy import lm15

    return lm15.Response(
        id=None,
        model=request.model,
        message=lm15.Message.assistant(text),
        finish_reason="stop",
        usage=lm15.Usage(input_tokens=0, output_tokens=0, total_tokens=0),
    )


_FORMS: dict[str, str] = {}


def _form_of(about: str) -> str:
    """Return the version of the prompt that a question is put in."""
    if "question " in about or "recurring friction" in about:
        return _FORMS["friction"]
    kind = "judge" if "rubric " in about else "miner" if "rubrics" in about else "review"
    return _FORMS[kind]


def main(arguments: Sequence[str]) -> int:
    """Record; return 1 while questions are open."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--model", default="", help="that is asked, such as claude-code")
    parser.add_argument("--by", default="", help="who answers; the model by default")
    parser.add_argument("--by-hand", type=Path, help="folder of questions and answers")
    parser.add_argument("--anew", action="store_true", help="ask for every answer again")
    given = parser.parse_args(arguments)
    path = Path(__file__).parents[1] / "answers" / f"{given.name}{SUFFIX}"
    path.parent.mkdir(exist_ok=True)
    lines = path.read_bytes().splitlines() if path.is_file() and not given.anew else []
    kept = [msgspec.json.decode(line, type=RecordedAnswer) for line in lines]
    path.touch()
    if given.by_hand is not None:
        given.by_hand.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"DEBRIEF_HOME": home, "DEBRIEF_SCORE_NAMES": ",".join(SCORE_NAMES)}
        os.environ |= {"DEBRIEF_LANGFUSE": "off", "DEBRIEF_WEBHOOK": "off"}
        lake = Lake(f"{home}/lake")
        run = ("run", "--no-model", "--sessions", str(samples()), "--lake", lake.url)
        subprocess.run([*_DEBRIEF, *run], check=True, stdout=subprocess.DEVNULL)
        name = given.model if given.by_hand is None else PREFIX + given.name
        evaluators = make_evaluators(load_settings().with_given(model=name), no_model=False)
        assert evaluators.models is not None
        model = evaluators.models.get(evaluators.name)
        recorder = _Recorder(model._route[0], given.by or name, given.by_hand, kept)
        # The engine that a model asks by, found once: the recorder stands before it.
        model.__dict__["_route"] = (recorder, "")
        failures = _ask_all(lake, evaluators)
    rows = sorted((recorder.rows[about] for about in recorder.used), key=lambda row: row.about)
    path.write_text("".join(f"{json.dumps(msgspec.to_builtins(row))}\n" for row in rows))
    print(f"{path}: {len(rows)} answers; {len(recorder.open)} questions are open")
    for line in [*recorder.open[:10], *failures[:20]]:
        print(line)
    return bool(recorder.open or failures)


def _ask_all(lake: Lake, evaluators: Evaluators) -> list[str]:
    """Fill the stages that ask, in their order, as far as answers are there; return failures."""
    weeks = lake.partitions("raw_sessions")
    by = evaluators
    _FORMS.update(
        review=by.scoring_fingerprint,
        friction=version_of(FRICTION_GROUPS, FRICTION_CHECK),
        miner=str(getattr(by.miner, "version", "")),
        judge=str(getattr(by.rubric_judge, "version", "")),
    )
    failures: list[str] = []

    def fill(stage: Any, partitions: Sequence[str]) -> bool:
        run = StageRun(lake, weeks, evaluators=lambda: by)
        rows = [row for key in partitions for row in stage.fill(run, key).rows]
        failed = [row for row in rows if getattr(row, "status", "ok") == "failed"]
        failures.extend(f"{stage.table}: {row.session_id}: {row.failure}" for row in failed)
        return not failed

    names = by.score_names
    order: tuple[tuple[Any, Sequence[str]], ...] = (
        (SESSION_SCORES, weeks),
        (JUDGE_EVALUATIONS, weeks),
        (FRICTION_EVENTS, weeks),
        (RECURRING_FRICTION, [ALL]),
        (EXTRACTED_RUBRICS, weeks),
        (RUBRIC_CANDIDATES, names),
        (RUBRIC_TRIALS, [ALL]),
        (FINAL_RUBRICS, names),
        (RUBRIC_EVALUATIONS, weeks),
    )
    try:
        all(fill(stage, partitions) for stage, partitions in order)
        ask_about_lines(lake, by)
    except Exception as error:
        failures.append(f"{type(error).__name__}: {error}")
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
