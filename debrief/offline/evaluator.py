"""The offline evaluator: a judge and scorer without a model.

It is a baseline that model judges are measured against: deterministic, free, and built on what a
session shows (checks, errors, repeated work, reactions), never on how its code reads. Its model
name is ``offline``, so its rows and fingerprints never mix with a model's.
"""

from __future__ import annotations

import threading

from debrief.errors import ConfigurationError
from debrief.judging.model import WORKTREE, ChangeContext, Judge, Judgement
from debrief.offline.activity import activity_of, first_prompt
from debrief.offline.compliance import weigh_compliance
from debrief.offline.dimensions import (
    Setting,
    verdicts_of,
    weigh_completion,
    weigh_execution,
)
from debrief.offline.model import Signals
from debrief.offline.request_features import read_request
from debrief.offline.reuse import weigh_reuse
from debrief.offline.signals import read_signals
from debrief.offline.weighing import Weighing
from debrief.scoring.model import Chunk, ChunkVerdicts
from debrief.sessions.model import Session

OFFLINE = "offline"
VERSION = "ed8421e4"
"""Eight hex digits of one's own choice. Change them with whatever changes a score or its reason:
rows of another version are not comparable and are made again. Golden runs fail without it."""


class OfflineEvaluator:
    """Judges changes and scores chunks by signals alone; safe to share between threads."""

    model = OFFLINE

    def __init__(self) -> None:
        self.version = VERSION
        self._last = threading.local()

    def judge(self, judge: Judge, context: ChangeContext, session: Session) -> Judgement:
        """Judge one session.

        ``code-reuse`` and ``plan-compliance`` have measures of their own; every other judge gets
        the general one, and its feedback says so.

        Raises:
            ConfigurationError: the judge names a model; its row would pass for that model's.
        """
        if judge.model != OFFLINE:
            raise ConfigurationError(
                f"judge {judge.name}",
                f"names the model {judge.model} and would be answered offline",
                "Load the judges with the model set to offline.",
            )
        signals = self._signals(session)
        if judge.name == "code-reuse":
            weighing = weigh_reuse(
                activity_of(session), signals, exploration_recorded=session.source != WORKTREE
            )
            feedback = weighing.rationale(
                "No code was written with an editing tool, so nothing could be reused or copied: "
                "the score says nothing either way."
            )
        elif judge.name == "plan-compliance":
            request = read_request(context.plan_content)
            weighing = weigh_compliance(request, activity_of(session), signals)
            feedback = weighing.rationale("The plan names nothing that could be followed up.")
        else:
            setting = _setting(context.plan_content)
            weighing = _overall(signals, setting)
            feedback = (
                f"The offline evaluator has no measure for “{judge.name}”; this is its general "
                "one, of how the session went. "
                + weighing.rationale("Nothing in the session tells either way.")
            )
        return Judgement(score=weighing.score, feedback=feedback, cost_usd=0.0)

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkVerdicts:
        """Score one chunk by the signals of its own turns; a trace's number is its turn's."""
        numbers = {trace.number for trace in chunk.traces}
        whole = numbers >= {turn.number for turn in session.turns}
        signals = self._signals(session) if whole else read_signals(session, numbers)
        setting = _setting(first_prompt(session), last_part=chunk.index == chunk.count - 1)
        return ChunkVerdicts(
            index=chunk.index,
            tokens=chunk.tokens,
            own_tokens=chunk.own_tokens,
            verdicts=verdicts_of(signals, setting),
            cost_usd=0.0,
        )

    def _signals(self, session: Session) -> Signals:
        """Read a session's signals, or recall them when the last call was about it too."""
        if getattr(self._last, "session", None) is not session:
            self._last.signals = read_signals(session)
            self._last.session = session
        signals: Signals = self._last.signals
        return signals


def _setting(task: str, last_part: bool = True) -> Setting:
    request = read_request(task)
    return Setting(
        asked_for_change=request.change,
        asked_for_tests=request.tests,
        asked_for_docs=request.docs,
        last_part=last_part,
    )


def _overall(signals: Signals, setting: Setting) -> Weighing:
    weighing = Weighing()
    for part in (weigh_completion(signals, setting), weigh_execution(signals, setting)):
        weighing.add_half(part)
    return weighing
