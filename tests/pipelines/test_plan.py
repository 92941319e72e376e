"""A plan on its whole way: carried out, captured, read, judged and trained on."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.training.lessons import LessonFilter, lessons_of
from tests.models.openai_server import OpenAIServer
from tests.pipelines.conftest import Home
from tests.pipelines.test_model_run import SCORING, answer, riding, run_with
from tests.pipelines.test_run import WEEK
from tests.snapshots.scenario import repository, write

AGENT = """
import json, os, pathlib, re, sys, uuid
id, cwd = str(uuid.uuid4()), os.getcwd()
def line(type, **message):
    return json.dumps({"type": type, "uuid": str(uuid.uuid4()), "parentUuid": None,
        "isSidechain": False, "sessionId": id, "cwd": cwd, "version": "2.1.40",
        "timestamp": "DAYT09:00:00Z", "message": message})
def call(number, name, result, **given):
    say("assistant", {"type": "tool_use", "id": f"t{number}", "name": name, "input": given})
    say("user", {"type": "tool_result", "tool_use_id": f"t{number}", "content": result})
def say(role, block):
    more = {"id": str(uuid.uuid4()), "model": "claude-opus-4-5"} if role == "assistant" else {}
    lines.append(line(role, role=role, content=[block], **more))
lines = [line("user", role="user", content=sys.argv[-1])]
if sys.argv[1] == "reads":
    plan = pathlib.Path("plan.md").read_text().split("\\n")
    call(1, "Read", "\\n".join(f"{n:6}\\u2192{text}" for n, text in enumerate(plan, 1)),
        file_path=f"{cwd}/plan.md")
call(2, "Write", "File created.", file_path=f"{cwd}/money.py", content="x = 1\\n")
say("assistant", {"type": "text", "text": "Done: amounts are rounded."})
place = pathlib.Path.home() / ".claude" / "projects" / re.sub("[^A-Za-z0-9]", "-", cwd)
place.mkdir(parents=True, exist_ok=True)
(place / f"{id}.jsonl").write_text("\\n".join(lines) + "\\n")
"""
SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" + "K1l2M3n4O5p6Q7r8"
OPENING = "Read plan.md in this folder and carry it out from beginning to end."


def plan_of(rules: int) -> str:
    lines = [f"- Requirement {n}: amount{n} is rounded to cents, mark{n}." for n in range(rules)]
    return "\n".join(["# Rounding", "", f"The token is {SECRET}.", *lines, ""])


def shop_with(home: Home, plan: str, agent: str) -> Path:
    program = home.path / "agent.py"
    program.write_text(AGENT.replace("DAY", WEEK))
    shop = repository(home.path / "shop")
    write(shop, {".debrief/plans/rounding.md": f"---\nplan_id: rounding\n---\n\n{plan}"})
    done = home.typed(
        *("code", "rounding", "--repo", str(shop)),
        DEBRIEF_CLAUDE_COMMAND=shlex.join([sys.executable, str(program), agent]),
    )
    assert done.code == 0, done.all
    return shop


def missing(text: str, rules: int) -> list[int]:
    return [n for n in range(rules) if f"mark{n}." not in text]


@pytest.mark.parametrize(("rules", "is_said"), [(200, True), (2_200, False)])
def test_all_who_judge_see_each_requirement_of_a_long_plan(
    home: Home, rules: int, is_said: bool
) -> None:
    plan = plan_of(rules)
    shop = shop_with(home, plan, "works")
    kept = shop / ".debrief/sessions/rounding/plan.md"
    assert plan in kept.read_text()
    assert ((shop / ".debrief/worktrees/rounding/plan.md").read_text()) == kept.read_text()
    transcripts = home.path / ".claude/projects"
    with OpenAIServer(answer) as server:
        done = run_with(home, transcripts, server)
        assert done.code == 0, done.all
    lake = Lake(str(home.path / "lake"))
    (session,) = lake.read("raw_sessions", WEEK, Session)
    assert (OPENING not in session.turns[0].prompt) == is_said
    assert SECRET not in f"{session.plan}{session.turns[0].prompt}"
    scoring = [call for call in server.calls if SCORING in call.system + call.user]
    assert scoring
    assert not any(SECRET in call.user for call in server.calls)
    judging = [call for call in scoring if riding(call)]
    judging += [call for call in server.calls if "`feedback` (str)" in call.system]
    assert judging
    assert all(not missing(call.user, rules) for call in judging)
    rows = list(lake.read("judge_evaluations", WEEK, JudgeEvaluation))
    assert rows
    assert all(row.score is not None for row in rows)


def test_a_session_that_was_given_the_opening_is_judged_by_the_plan_it_read_or_by_no_score(
    home: Home,
) -> None:
    shop = shop_with(home, plan_of(120), "reads")
    transcripts = home.path / ".claude/projects"
    (path,) = transcripts.rglob("*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["message"]["content"] = OPENING
    capture = shop / ".debrief/sessions/rounding"
    plan = (capture / "plan.md").read_text()
    (capture / "plan.md").unlink()
    lake = Lake(str(home.path / "lake"))

    def run() -> list[JudgeEvaluation]:
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        with OpenAIServer(answer) as server:
            done = run_with(home, transcripts, server)
        assert done.code == 0, done.all
        return list(lake.read("judge_evaluations", WEEK, JudgeEvaluation))

    read = {row.judge: row for row in run()}["plan-compliance"]
    assert read.score is not None
    (lesson,) = lessons_of(lake, LessonFilter())
    assert not missing(lesson.plan_content or "", 120)
    del lines[1:3]
    unread = run()
    assert unread
    assert all(row.score is None for row in unread)
    assert all(row.feedback.startswith("The plan is not known") for row in unread)
    (capture / "plan.md").write_text(plan)
    assert all(row.score is not None for row in run())
    (session,) = lake.read("raw_sessions", WEEK, Session)
    assert not missing(str(session.plan), 120)
    assert SECRET not in str(session.plan)
