"""The whole road: plans, carried out, judged, filed, run, scored, mined, trained on.

Twelve plans of one form ask for different work. A stand-in agent edits a real git repository; a
model answers on loopback; scores go to a Langfuse stand-in; the recorder's service keeps a record
in a real Postgres.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import orjson
import pytest
from msgspec import Struct

from debrief.lake import Lake
from debrief.langfuse.outgoing import ScoreReceipt
from debrief.recorder.storage.store import RecordStore
from debrief.rubrics.model import RUBRICS, Rubric
from debrief.training.manifest import stored_sets
from tests.langfuse.server import LangfuseServer
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.pipelines.conftest import Home, Said
from tests.pipelines.test_model_run import answer as answer_of_a_run
from tests.recorder.service.helpers import ensure_task, running
from tests.snapshots.scenario import repository, write
from tests.training.test_optimisation import HABIT
from tests.training.test_optimisation import reply as answer_of_trials

MODEL = "openai/gpt-4o-mini"
START = date(2026, 3, 2)
WORK = {
    "slugs": ("slug", "title", "lower case letters and single hyphens"),
    "rounding": ("cents", "amount", "half to even, two digits"),
    "csv-export": ("table", "invoice", "one row, fields quoted where a comma is"),
    "retry-uploads": ("attempt", "upload", "three attempts with growing pauses"),
    "login-limit": ("window", "login", "five attempts a minute from one address"),
    "thumbnails": ("edge", "picture", "longest edge 320 pixels, proportions kept"),
    "search-index": ("posting", "document", "terms stemmed, stop words left out"),
    "mail-digest": ("digest", "newsletter", "one letter a day at seven, zone of the reader"),
    "feature-flags": ("flag", "rollout", "a share of accounts by a stable hash"),
    "cache-keys": ("key", "cache entry", "versioned, no personal data, at most 200 bytes"),
    "audit-log": ("entry", "change", "who, when, before and after, append only"),
    "date-ranges": ("span", "booking", "half-open, overlaps refused, leap days counted"),
}
REQUIREMENTS = 10
THANKS = "Perfect, thank you, this is just what I wanted."
AGENT = """
import json, os, pathlib, re, subprocess, sys, uuid
plan, cwd, id = sys.argv[-1], os.getcwd(), str(uuid.uuid4())
name = re.search(r"module `(\\w+)`", plan)[1]
lines = []
def say(role, *content):
    more = {"id": f"msg_{len(lines)}", "model": "claude-opus-4-5",
        "usage": {"input_tokens": 90, "output_tokens": 20}} if role == "assistant" else {}
    lines.append(json.dumps({"type": role, "uuid": str(uuid.uuid4()), "parentUuid": None,
        "isSidechain": False, "sessionId": id, "cwd": cwd, "version": "2.1.40", "gitBranch": name,
        "timestamp": f"{os.environ['AGENT_DAY']}T09:{len(lines):02}:00.000Z",
        "message": {"role": role, "content": list(content), **more}}))
def call(tool, result, **given):
    say("assistant", {"type": "tool_use", "id": f"toolu_{len(lines)}", "name": tool, "input": given})
    say("user", {"type": "tool_result", "tool_use_id": f"toolu_{len(lines) - 1}", "content": result})
say("user", {"type": "text", "text": plan})
files = {f"{name}.py": f"def {name}(value):\\n    return value\\n",
    f"test_{name}.py": f"import unittest\\nfrom {name} import {name}\\n\\n\\nclass Test(unittest.TestCase):"
    f"\\n    def test_it(self):\\n        self.assertEqual({name}(1), 1)\\n"}
for path, text in files.items():
    pathlib.Path(path).write_text(text)
    call("Write", "File created.", file_path=f"{cwd}/{path}", content=text)
command = ["python3", "-m", "unittest", f"test_{name}"]
ran = subprocess.run([sys.executable, *command[1:]], capture_output=True, text=True)
call("Bash", ran.stderr, command=" ".join(command))
say("assistant", {"type": "text", "text": f"Done: {name} is written and its test passes."})
say("user", {"type": "text", "text": "THANKS"})
say("assistant", {"type": "text", "text": "Glad to hear it."})
place = pathlib.Path.home() / ".claude" / "projects" / re.sub("[^A-Za-z0-9]", "-", cwd)
place.mkdir(parents=True, exist_ok=True)
(place / f"{id}.jsonl").write_text("\\n".join(lines) + "\\n")
sys.exit(ran.returncode)
"""
PLAIN_RECORD = {
    "task_id": "cart",
    "repo_name": "shop",
    "branch": "main",
    "base_ref": "3a3fc1db176108161accfda0d9eb229417f5d63f",
    "record": {
        "messages": [
            {"role": "system", "content": "You edit a shop."},
            {"role": "user", "content": "Write a price list of the cart's goods to prices.txt"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "call00001",
                        "type": "function",
                        "function": {
                            "name": "apply_patch",
                            "arguments": json.dumps(
                                {
                                    "ops": [
                                        {
                                            "type": "create_file",
                                            "path": "prices.txt",
                                            "diff": "tea 3\n",
                                        }
                                    ]
                                }
                            ),
                        },
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call00001", "content": '{"ok":true}'},
        ],
        "meta": {},
    },
}


def plan_of(plan_id: str) -> str:
    part, thing, rule = WORK[plan_id]
    module = plan_id.replace("-", "_")
    rules = [
        f"- {plan_id}/{number}: each {part} of the {thing} number {number} follows {rule}."
        for number in range(REQUIREMENTS)
    ]
    return "\n".join(
        [
            *("---", f"plan_id: {plan_id}", "status: ready", "---", ""),
            *(f"# {thing.capitalize()}", "", "## Objectives", ""),
            f"Write the module `{module}` with one public function, and a test beside it.",
            "Keep the public interface of other modules, and run the tests before you end.",
            *("", "## Requirements", "", *rules, ""),
        ]
    )


def requirements(text: str) -> set[str]:
    """Return the requirements that a text holds."""
    return {
        f"{plan_id}/{number}"
        for plan_id in WORK
        for number in range(REQUIREMENTS)
        if f"{plan_id}/{number}:" in text
    }


ALL = {f"{plan_id}/{number}" for plan_id in WORK for number in range(REQUIREMENTS)}


def reply(call: Call) -> Reply:
    """Answer as a model that read the session: what it quotes stands there."""
    asked = call.system + call.user
    signs = ("how well a coding agent would have", "course_of_work ## ]]", "standing prompt of a")
    if any(sign in asked for sign in signs):
        return answer_of_trials(call)
    said = answer_of_a_run(call)
    quoted = f'In turn 2 the user wrote "{THANKS}".'
    content = json.loads(said.content or "") if (said.content or "").startswith(("{", "[")) else {}
    if isinstance(content, list):
        for rubric in content:
            rubric["evidence"] = quoted
    elif "requests" in content:
        content["person"] = [{"turn": 2, "quote": THANKS, "says": "approval"}]
        content["tools"] = {"what": "Each call was of use.", "value": 0.7}
        content["effort"] = 0.6
    return Reply(json.dumps(content)) if content else said


class Road(Struct, frozen=True, kw_only=True):
    """A machine on which the twelve plans went the whole way."""

    home: Home
    shop: Path
    judged_by_eval: set[str]
    judged_in_the_run: set[str]
    evals: list[Said]
    ran: Said
    trained: Said
    langfuse: LangfuseServer
    sessions: dict[str, str]
    """Ids of sessions, by plan."""

    @property
    def lake(self) -> Lake:
        return Lake(str(self.home.path / "lake"))


@pytest.fixture(scope="module")
def road(tmp_path_factory: pytest.TempPathFactory, shared_store: RecordStore) -> Iterator[Road]:
    home = Home(tmp_path_factory.mktemp("road"))
    program = home.path / "agent.py"
    program.write_text(AGENT.replace("THANKS", THANKS))
    shop = repository(home.path / "shop")
    write(shop, {f".debrief/plans/{plan_id}.md": plan_of(plan_id) for plan_id in WORK})
    with OpenAIServer(reply) as model, LangfuseServer(wire="list") as langfuse:
        asks = {
            "DEBRIEF_MODEL_BASE_URL": model.url,
            "OPENAI_API_KEY": "sk-loopback",
            "OPENROUTER_API_KEY": "",
            "DEBRIEF_RETRY_PAUSE": "0.01",
        }
        evals = []
        for number, plan_id in enumerate(WORK):
            day = START + timedelta(weeks=number)
            carried_out = (home.debrief if number == 0 else home.typed)(
                *("code", plan_id, "--repo", str(shop), "--model", "opus"),
                DEBRIEF_CLAUDE_COMMAND=shlex.join([sys.executable, str(program)]),
                AGENT_DAY=day.isoformat(),
            )
            assert carried_out.code == 0, carried_out.all
            evals.append(
                (home.debrief if number == 0 else home.typed)(
                    *("eval", plan_id, "--repo", str(shop), "--model", MODEL), **asks
                )
            )
        judged_by_eval = requirements("".join(call.user for call in model.calls))
        at_eval = len(model.calls)
        sessions = {
            plan_id: json.loads(
                (shop / ".debrief/sessions" / plan_id / "metadata.json").read_bytes()
            )["session_id"]
            for plan_id in WORK
        }
        for number, (plan_id, session) in enumerate(sessions.items()):
            for turn in range(2):
                at = f"{START + timedelta(weeks=number)}T09:0{turn}:00.000Z"
                trace = f"trace-{plan_id}-{turn}"
                row = {"id": f"o-{trace}", "traceId": trace, "sessionId": session, "startTime": at}
                langfuse.observations.append(row)
                langfuse.traces.append({**row, "id": trace, "timestamp": at})
        ensure_task(shared_store)
        with running(shared_store) as api, api.client() as client:
            recorded = client.post("/sessions", json=PLAIN_RECORD)
            assert recorded.status_code == 201, recorded.text
        ran = home.typed(
            *("run", "--model", MODEL, "--yes", "--score-target", "trace"),
            *("--sessions", str(home.path / ".claude/projects")),
            *("--lake", str(home.path / "lake")),
            DATABASE_URL=shared_store._engine.url.render_as_string(hide_password=False),
            DEBRIEF_RECORDER="1",
            DEBRIEF_LANGFUSE="on",
            LANGFUSE_HOST=langfuse.host,
            LANGFUSE_PUBLIC_KEY=langfuse.public_key,
            LANGFUSE_SECRET_KEY=langfuse.secret_key,
            **asks,
        )
        judged_in_the_run = requirements("".join(call.user for call in model.calls[at_eval:]))
        trained = home.typed(
            *("train", "--ask", MODEL, "--repo", str(shop), "--yes", "--trials", "30"),
            *("--tool", "claude-code"),
            *("--lake", str(home.path / "lake")),
            DEBRIEF_TRAINING_EVAL_SHARE="0.4",
            **asks,
        )
        yield Road(
            home=home,
            shop=shop,
            judged_by_eval=judged_by_eval,
            judged_in_the_run=judged_in_the_run,
            evals=evals,
            ran=ran,
            trained=trained,
            langfuse=langfuse,
            sessions=sessions,
        )


def test_each_plan_is_judged_and_filed_with_its_prompts(road: Road) -> None:
    for said in road.evals:
        assert said.code == 0, said.all
    assert road.judged_by_eval == ALL
    for plan_id in WORK:
        folder = road.shop / ".debrief/training_data" / plan_id
        names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        assert {
            *("plan.md", "code_trace.md", "metadata.json", "prompts/main.md"),
            *("prompts/reviewer.md", "prompts/tester.md"),
            *("judge_code-reuse.json", "judge_plan-compliance.json"),
        } <= names
        assert requirements((folder / "plan.md").read_text()) == {
            f"{plan_id}/{number}" for number in range(REQUIREMENTS)
        }
        assert folder.name in road.evals[[*WORK].index(plan_id)].all


def test_judges_of_the_run_see_every_requirement(road: Road) -> None:
    assert road.ran.code == 0, road.ran.all
    assert road.judged_in_the_run == ALL


def test_seven_scores_and_the_verdict_are_on_the_first_trace_of_each_session(road: Road) -> None:
    scores = list(road.langfuse.scores.values())
    assert {score.get("sessionId") for score in scores} == {None}
    assert {score["traceId"] for score in scores} == {f"trace-{plan_id}-0" for plan_id in WORK}
    assert len(scores) == 8 * len(WORK)
    receipts = list(road.lake.rows("langfuse_scores", ScoreReceipt))
    there = set(road.sessions.values())
    assert {receipt.status for receipt in receipts if receipt.session_id in there} == {"written"}
    others = [receipt for receipt in receipts if receipt.session_id not in there]
    assert {receipt.status for receipt in others} <= {"kept"}, "the server has no such session"


def test_rubrics_come_out_of_good_sessions(road: Road) -> None:
    rubrics = list(road.lake.rows(RUBRICS, Rubric))
    assert 5 <= len(rubrics) <= 30
    assert {rubric.finding for rubric in rubrics} <= {"tells", "does_not_tell", "too_few"}


def test_every_plan_becomes_a_training_line_on_one_of_two_sides(road: Road) -> None:
    lines = [
        orjson.loads(line)
        for path in road.home.path.glob("lake/training/**/*.jsonl")
        for line in path.read_bytes().splitlines()
    ]
    of_plans = {line["metadata"]["session_id"]: line for line in lines}
    assert set(road.sessions.values()) <= set(of_plans)
    sides = [of_plans[session]["metadata"]["split"] for session in road.sessions.values()]
    assert sides.count("train") >= 9
    assert sides.count("eval") >= 2
    tasks = {row.task for row in stored_sets(road.lake).sets}
    assert set(WORK) <= tasks
    fingerprints = {of_plans[id]["metadata"]["prompt_fingerprint"] for id in road.sessions.values()}
    assert len(fingerprints) == 1


def test_the_prompts_of_the_samples_are_improved(road: Road) -> None:
    assert road.trained.code == 0, road.trained.all
    candidates = list((road.shop / ".debrief/prompts/candidates").rglob("*.md"))
    assert candidates
    assert HABIT in "".join(path.read_text() for path in candidates)


def test_nothing_is_lost_in_the_table_of_the_road(road: Road) -> None:
    """The numbers of the road, as a table; shown by ``pytest -s``."""
    samples = [path for path in (road.shop / ".debrief/training_data").iterdir() if path.is_dir()]
    lines = [row for row in stored_sets(road.lake).sets if row.task in WORK]
    table = {
        "plans": len(WORK),
        "samples": len(samples),
        "train lines": sum(row.train for row in lines),
        "eval lines": sum(row.eval for row in lines),
        "requirements seen by eval": len(road.judged_by_eval),
        "requirements seen in the run": len(road.judged_in_the_run),
        "scores on first traces": len(road.langfuse.scores),
    }
    print("\n".join(f"{name:32}{number:5}" for name, number in table.items()))
    assert table["train lines"] + table["eval lines"] == table["plans"] == table["samples"]
