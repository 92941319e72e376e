"""The whole graph with a language model behind it: a real server on loopback."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from uuid import uuid4

import hypothesis
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import SessionScores
from debrief.state import State
from debrief.training.manifest import stored_sets
from tests.models.odd_answers import VALUES, spoiled
from tests.models.openai_server import Call, OpenAIServer, Reply, judged
from tests.pipelines.conftest import Home, Said
from tests.pipelines.test_run import WEEK, record, write

MODEL = "openai/gpt-4o-mini"
SCORING = "how a coding agent served the person it worked for"
"""Words of the question for a review."""


def conversation(session: str) -> list[str]:
    """A session that changes a file, for without a change no judge is asked."""
    given = {"file_path": "/home/kim/ledger/money.py", "content": "x = round(x, 2)\n"}
    wrote = {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": given}
    done = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "File created."}
    empty = '{"type": "text", "text": ""}'
    return [
        record("user", "Round amounts to cents in ledger/money.py", 0, session),
        record("assistant", "", 1, session).replace(empty, json.dumps(wrote)),
        record("user", "", 2, session).replace(empty, json.dumps(done)),
        record("assistant", "Done: amounts are rounded half to even.", 3, session),
    ]


def verdicts(score: float = 0.8, anchor: int = -1, judged: dict[str, float] | None = None) -> str:
    good = anchor == -1
    state, verdict = ("done_seen", "complete_verified") if good else ("not", "failed")
    return json.dumps(
        {
            "requests": [
                {"turn": 1, "asked": "round amounts as asked", "state": state, "proof": None}
            ],
            "claims": [],
            "verdict": verdict,
            "quality": score,
            "judges": {
                name: {"feedback": "It reuses `retry` from utils.", "score": value}
                for name, value in (judged or {}).items()
            },
        }
    )


def mined() -> str:
    quote = 'In turn 1 the user wrote "Round amounts to cents in ledger/money.py".'
    scale = "1: Never\n2: Seldom\n3: At times\n4: Mostly\n5: In every request"
    deeds = {
        "Names the File": "The user names the file to change.",
        "States the Unit": "The user says in which unit amounts are meant.",
        "Asks for One Thing": "The user keeps a request to a single change.",
        "Gives an Example": "The user shows what a correct value looks like.",
        "Sets a Limit": "The user says what must stay as it is.",
    }
    keys = ("name", "description", "scoring_criteria", "evidence")
    rows = [
        dict(zip(keys, (name, deed, scale, quote), strict=True)) for name, deed in deeds.items()
    ]
    return json.dumps(rows)


def consolidated() -> str:
    rows = [
        {**{key: value for key, value in row.items() if key != "evidence"}, "id": f"rubric_{n:03}"}
        for n, row in enumerate(json.loads(mined()), 1)
    ]
    return json.dumps({"rubrics": rows, "consolidation_notes": "Nothing overlapped."})


def riding(call: Call) -> list[str]:
    """The judges whose questions a call carries."""
    return re.findall(r'<judge name="([^"]+)">', call.system)


def answer(call: Call) -> Reply:
    text = call.system + call.user
    if "`feedback` (str)" in call.system:
        return Reply(judged(0.9))
    if SCORING in text:
        return Reply(verdicts(judged=dict.fromkeys(riding(call), 0.9)))
    if "Extract a list of evaluation rubrics" in text:
        return Reply(mined())
    if "synthesizing evaluation criteria" in text:
        return Reply(consolidated())
    return Reply("SCORE: 4\nREASONING: In turn 1 the user named the file to change.")


def run_with(
    home: Home, folder: Path, server: OpenAIServer, *more: str, agrees: bool = True
) -> Said:
    return home.typed(
        "run",
        "--sessions",
        str(folder),
        "--lake",
        str(home.path / "lake"),
        *(more or ("--model", MODEL)),
        *["--yes"] * agrees,
        DEBRIEF_MODEL_BASE_URL=server.url,
        OPENAI_API_KEY="sk-loopback",
        DEBRIEF_RETRY_PAUSE="0.01",
    )


def test_a_failed_session_never_costs_the_week_and_nothing_is_asked_twice(home: Home) -> None:
    folder = home.path / "transcripts"
    folder.mkdir()
    for name in ("one", "two"):
        lines = [line.replace("cents", f"{name} cents") for line in conversation(name)]
        write(folder, f"{name}.jsonl", lines)
    stubborn = [line.replace("cents", "whole euros") for line in conversation("stubborn")]
    write(folder, "stubborn.jsonl", stubborn)
    lake = Lake(str(home.path / "lake"))
    refusing = True

    def reply(call: Call) -> Reply:
        if refusing and "whole euros" in call.user:
            return Reply(status=400, error={"message": "no", "type": "invalid_request_error"})
        return answer(call)

    def judgements() -> list[JudgeEvaluation]:
        return list(lake.read("judge_evaluations", WEEK, JudgeEvaluation))

    with OpenAIServer(reply) as server:
        unasked = run_with(home, folder, server, agrees=False)
        assert unasked.code == 1
        assert "would be asked 3 questions on 3 sessions: about" in unasked.err
        assert "nobody agreed to it. Add --yes, or set DEBRIEF_MAX_CALLS=3." in unasked.err
        assert server.calls == []
        first = run_with(home, folder, server)
        assert first.code == 0, first.err
        spent, missing = first.out.splitlines()[1:3]
        known = r"Spent: \d+ calls, [\d,]+ tokens, at a price that is not known"
        assert re.fullmatch(known, spent)
        assert missing.startswith("1 not reviewed: openai/gpt-4o-mini: HTTP 400")
        failed = [row for row in judgements() if row.status == "failed"]
        assert {row.session_id for row in failed} == {"stubborn"}
        assert all(row.failure and row.score is None for row in failed)
        assert "stubborn" in first.out
        refusing = False
        asked = len(server.calls)
        again = run_with(home, folder, server)
        assert again.code == 0, again.err
        evaluations = [
            call.user
            for call in server.calls[asked:]
            if "`feedback` (str)" in call.system or SCORING in call.system
        ]
        assert len(evaluations) == 1
        assert all("whole euros" in question for question in evaluations)
        scored = list(lake.read("session_scores", WEEK, SessionScores))
        assert [row.score for row in judgements()] == [0.9] * 6
        assert {row.model for row in judgements()} == {row.model for row in scored} == {MODEL}
        assert all(row.overall_quality for row in scored)
        assert {row.input_tokens for row in judgements()} == {0}
        assert all(row.input_tokens > 0 for row in scored)
        asked = len(server.calls)
        before = judgements(), stored_sets(lake).sets
        without = run_with(home, folder, server, "--no-model")
        assert without.code == 0, without.err
        assert f"3 reviewed by {MODEL}: " in without.out, "what was made before stays"
        assert len(server.calls) == asked
    assert (judgements(), stored_sets(lake).sets) == before
    rubric_rows = list(lake.read("rubric_evaluations", WEEK, RubricEvaluation))
    assert all(row.status != "failed" for row in rubric_rows)


def about(call: Call) -> str:
    """The name of the session that a call is about, by the unit that its request names."""
    found = re.search(r"Round amounts to (\w+) in", call.user)
    return found[1] if found else ""


def test_half_of_an_emoji_in_the_answers_about_one_session_costs_nothing(home: Home) -> None:
    folder = home.path / "transcripts"
    folder.mkdir()
    for name in ("cents", "pence"):
        lines = [line.replace("cents", name) for line in conversation(name)]
        write(folder, f"{name}.jsonl", lines)

    def reply(call: Call) -> Reply:
        said = answer(call)
        if about(call) == "pence":
            for words in ("as asked", "from utils", "the file to"):
                said.content = (said.content or "").replace(words, f"{words} \\ud83d\\u0000")
        return said

    with OpenAIServer(reply) as server:
        done = run_with(home, folder, server)
    assert done.code == 0, done.err
    assert "Traceback" not in done.all
    lake = Lake(str(home.path / "lake"))
    rows = {row.session_id: row for row in lake.read("session_scores", WEEK, SessionScores)}
    assert {row.status for row in rows.values()} == {"ok"}
    asked = {name: row.review.requests[0].asked for name, row in rows.items() if row.review}
    assert asked["pence"] == asked["cents"].replace("as asked", "as asked \ufffd")
    judged_rows = list(lake.read("judge_evaluations", WEEK, JudgeEvaluation))
    assert {row.status for row in judged_rows} == {"ok"}
    assert any("\ufffd" in row.feedback for row in judged_rows if row.session_id == "pence")


@given(data=st.data())
@hypothesis.settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_a_model_answers_about_a_session_the_run_goes_to_its_end(
    home: Home, data: st.DataObject
) -> None:
    names = [f"unit{number}" for number in range(6)]
    odd = {
        name: data.draw(st.lists(ODD_REPLIES, min_size=4, max_size=4), label=name) for name in names
    }
    at = Home(home.path / uuid4().hex)
    folder = at.path / "transcripts"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("cents", *names):
        lines = [line.replace("cents", name) for line in conversation(name)]
        write(folder, f"{name}.jsonl", lines)

    def reply(call: Call) -> Reply:
        return odd[name][call.number % 4] if (name := about(call)) in odd else answer(call)

    with OpenAIServer(reply) as server:
        done = run_with(at, folder, server)
    assert done.code == 0, done.err
    assert "Traceback" not in done.all
    rows = Lake(str(at.path / "lake")).read("session_scores", WEEK, SessionScores)
    status = {row.session_id: row.status for row in rows}
    assert status.keys() == {"cents", *names}
    assert status["cents"] == "ok"


ODD_REPLIES = st.builds(
    Reply, spoiled(verdicts(judged={"x": 0.5})) | spoiled(mined()) | st.builds(json.dumps, VALUES)
)


def test_a_model_that_nobody_knows_is_asked_a_few_times_and_replaces_nothing(home: Home) -> None:
    folder = home.path / "transcripts"
    folder.mkdir()
    for name in ("one", "two", "three", "four"):
        lines = [line.replace("cents", f"{name} cents") for line in conversation(name)]
        write(folder, f"{name}.jsonl", lines)
    unknown = [line.replace("Round amounts to cents in", "Follow") for line in conversation("p")]
    write(
        folder,
        "p.jsonl",
        [line.replace("Follow ledger/money.py", "Follow plan.md") for line in unknown],
    )
    lake = Lake(str(home.path / "lake"))
    settings = home.path / ".debrief" / ".env"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("DEBRIEF_CONCURRENCY=1\n")
    settings.chmod(0o600)
    with OpenAIServer(answer) as server:
        assert run_with(home, folder, server).code == 0
        before = stored_sets(lake).sets
        assert before
        asked = len(server.calls)
        server.reply = lambda call: Reply(status=404, error={"message": "no such model"})
        wrong = ("--model", "openai/gpt-4o-mimi")
        done = run_with(home, folder, server, *wrong)
        assert done.code == 1
        assert "judging: every question failed (8); openai/gpt-4o-mimi: HTTP 404" in done.err
        assert "Check the name openai/gpt-4o-mimi, or the base URL." in done.err
        assert stored_sets(lake).sets == before
        rows = list(lake.read("judge_evaluations", WEEK, JudgeEvaluation))
        of_plan = [row for row in rows if row.session_id == "p"]
        assert {(row.status, row.score) for row in of_plan} == {("ok", None)}, "without a model"
        assert len(server.calls) - asked <= 4, "once a stage"
        server.reply = answer
        assert run_with(home, folder, server, *wrong).code == 0
    assert {row.fingerprint for row in stored_sets(lake).sets}.isdisjoint(
        row.fingerprint for row in before
    )


def test_sessions_whose_answers_never_fit_take_twice_the_announced_calls(home: Home) -> None:
    folder = home.path / "transcripts"
    folder.mkdir()
    for number in range(4):
        lines = [line.replace("cents", f"unit{number}") for line in conversation(f"s{number}")]
        write(folder, f"s{number}.jsonl", lines)
    with OpenAIServer(lambda call: Reply("It is sunny.")) as server:
        done = run_with(home, folder, server)
        assert len(server.calls) == 8
    assert "would be asked 4 questions on 4 sessions" in done.err
    assert "in 8 calls at most" in done.err
    assert done.code == 1
    assert "every question failed" in done.err
    rows = Lake(str(home.path / "lake")).read("session_scores", WEEK, SessionScores)
    why = "in 2 calls: it holds no object with requests, a verdict and a quality"
    assert [why in row.failure for row in rows] == [True] * 4


def test_every_kept_answer_is_known_by_its_sessions_and_goes_with_them(home: Home) -> None:
    folder = home.path / "transcripts"
    folder.mkdir()
    for name in ("one", "two", "three"):
        lines = [line.replace("cents", f"{name} cents") for line in conversation(name)]
        write(folder, f"{name}.jsonl", lines)
    with OpenAIServer(answer) as server:
        assert run_with(home, folder, server).code == 0
        state = State(home.path / ".debrief/cache/answers.sqlite")
        assert list(state.unattributed()) == []
        every = state.size().answers
        own = {name: state.about({name}) for name in ("one", "two", "three")}
        assert all(own.values())
        assert not own["one"] & own["two"] & own["three"]
        said = home.typed("forget", "two", "--yes", "--lake", str(home.path / "lake"))
        assert said.code == 0, said.all
        assert state.about({"two"}) == set()
        assert state.size().answers == every - len(own["two"])
        asked = len(server.calls)
        assert run_with(home, folder, server).code == 0
        assert not [call for call in server.calls[asked:] if "two cents" in call.user]
    state.close()


def test_a_repositorys_own_template_is_asked_with_and_another_one_asks_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, repository = home.path / "transcripts", home.path / "repository"
    prompts = repository / ".debrief" / "prompts"
    for each in (folder, prompts):
        each.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    monkeypatch.chdir(repository)
    for number in range(6):
        code = "".join(f"x = round(x, {place})\\n" for place in range(number + 1))
        lines = [line.replace("cents", f"unit{number}") for line in conversation(f"s{number}")]
        lines = [line.replace("x = round(x, 2)\\n", code) for line in lines]
        write(folder, f"s{number}.jsonl", lines)

    def put(words: str, name: str = "rubric_extractor_user_turn_efficiency") -> None:
        text = f"{words} {{chat_session}} {{extraction_min_rubrics}} {{extraction_max_rubrics}}"
        (prompts / f"{name}.txt").write_text(f"{text} Extract a list of evaluation rubrics.")

    def extractions(since: int) -> list[str]:
        return [c.user for c in server.calls[since:] if "Extract a list of eval" in c.user]

    with OpenAIServer(answer) as server:
        put("First wording.")
        done = run_with(home, folder, server)
        assert done.code == 0, done.err
        first = extractions(0)
        assert any("First wording. (It is the recording" in asked for asked in first)
        assert not any("difficult task" in asked for asked in first)
        since = len(server.calls)
        put("Second wording.")
        assert run_with(home, folder, server).code == 0
        again = extractions(since)
        assert again
        assert all("Second wording." in asked for asked in again), "the others are known"
        since = len(server.calls)
        put("Unknown.", "rubric_extractor_excelence")
        wrong = run_with(home, folder, server)
        assert wrong.code == 1
        assert "rubric_extractor_excelence.txt: replaces no template" in wrong.err
        assert len(server.calls) == since
