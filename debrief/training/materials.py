"""The rows of the stages before, brought together by session on a scratch file.

A training set may have more sessions than memory has room for their scores and feedback, and the
tables are by week and in no common order. So rows are put on a scratch file (SQLite) as they are
read and taken out again a session at a time; memory does not grow with the set.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec import Struct

from debrief.judging.model import JUDGE_SETS, Judge, JudgeEvaluation
from debrief.lake import Lake
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import SessionScores
from debrief.snapshots.fingerprint import eval_digest
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.training.pairs import Members
from debrief.training.writing import Material, best_scores

OFFLINE = "offline"

_TABLES: dict[str, type[Struct]] = {
    "judge_evaluations": JudgeEvaluation,
    "session_scores": SessionScores,
    "rubric_evaluations": RubricEvaluation,
    "prompt_snapshots": PromptSnapshotRow,
    "session_metadata": SessionMetadataRow,
}
_ENCODER = msgspec.msgpack.Encoder()
_DECODERS = {name: msgspec.msgpack.Decoder(row) for name, row in _TABLES.items()}


class Materials:
    """What a lake holds of a pair's sessions, beside the sessions themselves.

    Scores and rubric scores are those of the evaluator that the pair's judges belong to, so that
    the offline evaluator's never stand beside a model's.

    Args:
        lake: where the tables are.
        fingerprint: the pair's fingerprints.
        members: its session ids by week.
    """

    def __init__(self, lake: Lake, fingerprint: str, members: Members) -> None:
        self.eval_fingerprint = fingerprint.rpartition("-")[2]
        judges = list(lake.read(JUDGE_SETS, self.eval_fingerprint, Judge))
        self.eval_digest = eval_digest(judges) if judges else ""
        self.judged_by: set[str] = set()
        """Models that judged or scored."""
        # An empty name: SQLite keeps it in memory as long as it is small, then in a file that
        # goes away with the connection.
        self._scratch = sqlite3.connect("")
        self._scratch.execute("CREATE TABLE rows (session TEXT, kind TEXT, row BLOB)")
        self._fill(lake, members)
        self._scratch.execute("CREATE INDEX by_session ON rows (session)")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._scratch.close()

    def of(self, session_id: str) -> Material:
        """Return what is known of a session."""
        rows: dict[str, list[Any]] = {name: [] for name in _TABLES}
        for kind, data in self._rows(session_id):
            rows[kind].append(_DECODERS[kind].decode(data))
        judgements = {row.judge: row for row in rows["judge_evaluations"]}
        rubrics = {(row.score_name, row.rubric_key): row for row in rows["rubric_evaluations"]}
        return Material(
            metadata=rows["session_metadata"][-1] if rows["session_metadata"] else None,
            scores=best_scores(rows["session_scores"]),
            judgements=tuple(judgements.values()),
            rubric_evaluations=tuple(rubrics.values()),
            snapshot=rows["prompt_snapshots"][-1] if rows["prompt_snapshots"] else None,
        )

    def digest_of(self, session_id: str) -> str:
        """Return the SHA-256, in hex, of all that is known of a session."""
        digest = hashlib.sha256(self.eval_digest.encode())
        for kind, data in self._rows(session_id):
            digest.update(f"{kind} {len(data)} ".encode())
            digest.update(data)
        return digest.hexdigest()

    def _rows(self, session_id: str) -> Iterator[tuple[str, bytes]]:
        found: Iterator[tuple[str, bytes]] = self._scratch.execute(
            "SELECT kind, row FROM rows WHERE session = ? ORDER BY kind, row",
            (_storable(session_id),),
        )
        return found

    def _fill(self, lake: Lake, members: Members) -> None:
        offline = False
        for week, ids in sorted(members.items()):
            only = ("session_id", ids)
            for judged in lake.read("judge_evaluations", week, JudgeEvaluation, only=only):
                if judged.eval_fingerprint == self.eval_fingerprint:
                    offline = offline or judged.model == OFFLINE
                    self.judged_by.add(judged.model)
                    self._put("judge_evaluations", judged.session_id, judged)
        for week, ids in sorted(members.items()):
            only = ("session_id", ids)
            for scored in lake.read("session_scores", week, SessionScores, only=only):
                if (scored.model == OFFLINE) == offline:
                    self.judged_by.add(scored.model)
                    self._put("session_scores", scored.session_id, scored)
            for held in lake.read("rubric_evaluations", week, RubricEvaluation, only=only):
                if (held.model == OFFLINE) == offline:
                    self._put("rubric_evaluations", held.session_id, held)
            for prompts in lake.read("prompt_snapshots", week, PromptSnapshotRow, only=only):
                self._put("prompt_snapshots", prompts.session_id, prompts)
            for known in lake.read("session_metadata", week, SessionMetadataRow, only=only):
                self._put("session_metadata", known.session_id, known)

    def _put(self, kind: str, session_id: str, row: Struct) -> None:
        self._scratch.execute(
            "INSERT INTO rows VALUES (?, ?, ?)",
            (_storable(session_id), kind, _ENCODER.encode(row)),
        )


def _storable(session_id: str) -> str:
    return session_id.encode("utf-8", "replace").decode()
