"""What a backfill is likely to take, held against the calls that a real server on loopback gets."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from msgspec import structs

from debrief.evaluators import make_evaluators
from debrief.lake import Lake
from debrief.redaction.redactor import Redactor
from debrief.rubrics.model import RUBRICS, Rubric
from debrief.scoring.dimensions import DIMENSIONS
from debrief.sessions.model import Message, Session, TranscriptRef, Turn
from debrief.sessions.sources import Scan
from debrief.settings import load_settings
from pipelines.definitions import defs
from pipelines.due import Outlook
from pipelines.estimates import Estimate, estimates
from pipelines.scoring_sizes import Chunks, Sizes
from pipelines.targets import Wanted, batches
from tests.benchmarks.judging import session_of
from tests.models.openai_server import Call, OpenAIServer, Reply, judged

FIRST, SECOND = "2026-03-02", "2026-03-09"
MODEL = "openai/gpt-4o-mini"
LONG = 25_000
"""Words of a session that does not fit into one question."""


def answer(call: Call) -> Reply:
    text = call.system + call.user
    if "[[ ## score ## ]]" in call.system:
        return Reply(judged(0.9))
    if "six dimensions" in text:
        said = {
            dimension.name: {
                "score": dimension.anchors[-1].label if dimension.kind == "categorical" else 0.8,
                "rationale": "In turn 1 it was done.",
            }
            for dimension in DIMENSIONS
        }
        return Reply(json.dumps(said))
    return Reply("SCORE: 4\nREASONING: In turn 1 the user named the place.")


def session(number: int, week: str, words: int = 0) -> Session:
    """A session, with so many words more in each of four turns."""
    start = dt.datetime.fromisoformat(f"{week}T09:00:00+00:00")
    made = session_of(number)
    more = tuple(
        Turn(
            number=at,
            prompt=f"Go on with part {at}.",
            messages=(Message(id=f"m{at}", model="m", text=f"part {at} of it " * (words // 4)),),
        )
        for at in range(2, 6 if words else 2)
    )
    whole = structs.replace(made, started=start, ended=start, turns=(*made.turns, *more))
    size = sum(len(m.text) for turn in whole.turns for m in turn.messages) + 8_000
    told = TranscriptRef(path=f"{number}.jsonl", digest="d", size=size, records=9)
    return structs.replace(whole, transcripts=(told,))


@dataclasses.dataclass
class Desk:
    """A lake with two weeks, and a model that counts what it is asked."""

    lake: Lake
    instance: dg.DagsterInstance
    server: OpenAIServer

    def estimate(self, stage: str, week: str) -> Estimate:
        wanted = Wanted(stage=stage, weeks=(week,))
        settings = load_settings()
        outlook = Outlook(
            lake=self.lake,
            instance=self.instance,
            evaluators=make_evaluators(settings, offline=False),
            scan=Scan(),
            redactor=Redactor(b"0" * 32),
        )
        (batch,) = batches(defs.resolve_asset_graph(), wanted, outlook)
        (found,) = estimates(batch.targets, wanted, outlook)
        return found

    def calls_of(self, stage: str, week: str) -> int:
        before = self.server.received
        result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=self.instance,
            asset_selection=[dg.AssetKey(stage)],
            partition_key=week,
            run_config={"loggers": {"quiet": {}}},
        )
        assert result.success
        return self.server.received - before


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with OpenAIServer(answer) as server, dg.DagsterInstance.ephemeral() as instance:
        told = {
            "DEBRIEF_HOME": str(tmp_path),
            "DEBRIEF_LAKE": str(tmp_path / "lake"),
            "DEBRIEF_MODEL": MODEL,
            "DEBRIEF_MODEL_BASE_URL": server.url,
            "DEBRIEF_OFFLINE": "",
        }
        for name, value in told.items():
            monkeypatch.setenv(name, value)
        lake = Lake(told["DEBRIEF_LAKE"])
        lake.write("raw_sessions", FIRST, [session(1, FIRST), session(2, FIRST, LONG)], Session)
        later = [session(3, SECOND), session(4, SECOND, LONG), session(5, SECOND, 2 * LONG)]
        lake.write("raw_sessions", SECOND, later, Session)
        yield Desk(lake, instance, server)


def test_chunks_are_counted_before_anything_was_scored_and_told_in_bounds_afterwards(
    desk: Desk,
) -> None:
    rehearsed = desk.estimate("session_scores", FIRST)
    assert desk.server.received == 0
    assert rehearsed.calls == desk.calls_of("session_scores", FIRST) > 2

    told = desk.estimate("session_scores", SECOND)
    assert told.fewest is not None
    assert told.most is not None
    assert f" calls ({told.fewest} to {told.most}), " in told.describe()
    asked = desk.calls_of("session_scores", SECOND)
    assert told.fewest <= asked <= told.most
    assert abs(told.calls - asked) <= 2
    assert asked > 3


def test_every_judge_is_asked_once_about_each_session(desk: Desk) -> None:
    rehearsed = desk.estimate("judge_evaluations", FIRST)
    assert rehearsed.calls == desk.calls_of("judge_evaluations", FIRST) == 4
    told = desk.estimate("judge_evaluations", SECOND)
    assert " to " not in told.describe()
    assert told.calls == desk.calls_of("judge_evaluations", SECOND) == 6


def test_every_rubric_is_asked_once_about_each_session(desk: Desk) -> None:
    final = [
        Rubric(
            id=f"r{number}",
            key=f"r{number}",
            score_name="excellence",
            name=f"Names the Place {number}",
            description="The user names the place to change.",
            scoring_criteria="1: Never\n5: Always",
        )
        for number in range(3)
    ]
    desk.lake.write(RUBRICS, "excellence", final, Rubric)
    rehearsed = desk.estimate("rubric_evaluations", FIRST)
    assert rehearsed.calls == desk.calls_of("rubric_evaluations", FIRST) == 6
    told = desk.estimate("rubric_evaluations", SECOND)
    assert told.calls == desk.calls_of("rubric_evaluations", SECOND) == 9


def test_a_session_that_was_scored_has_the_chunks_that_it_had(desk: Desk) -> None:
    desk.calls_of("session_scores", FIRST)
    from debrief.sessions.heads import SessionHead

    sizes = Sizes(desk.lake)
    heads = list(desk.lake.read("raw_sessions", FIRST, SessionHead))
    found = [sizes.of(head) for head in heads]
    assert found[0] == Chunks(1, 1, 1)
    assert found[1].fewest == found[1].likely == found[1].most > 1
    assert Sizes(Lake(str(desk.lake.url) + "-empty")).of(heads[1]) == Chunks(1, 1, 1)
