"""Code reuse and plan compliance, measured."""

from __future__ import annotations

from typing import Any

import pytest

from debrief.judging.evaluation import context_from_session
from debrief.judging.model import Judge, Judgement
from debrief.offline.evaluator import OfflineEvaluator
from debrief.sessions.model import Session
from tests.offline.scenario import Story

CODE = """def load_settings(path):
    text = path.read_text()
    values = parse_lines(text)
    check_required(values)
    return Settings(**values)"""
HELPERS = "\n".join(f"     {n}\t{line}" for n, line in enumerate(CODE.split("\n"), 1))
COPY = CODE.replace("load_settings", "read_config")
BLOCK = "\n".join(f"    value_{n} = compute_the_value({n})" for n in range(8))
CALL = "settings = load_settings(path)\nserver = make_server(settings)\nserver.serve_forever()"


def judged(name: str, session: Session) -> Judgement:
    judge = Judge(name=name, weight=0.5, model="offline", body="x")
    return OfflineEvaluator().judge(judge, context_from_session(session), session)


def start() -> Any:
    return Story().turn("Add a server").read("/home/ada/shop/settings.py", HELPERS)


def test_calling_what_exists_beats_copying_it() -> None:
    called = judged("code-reuse", start().edit("server.py", "pass", CALL).session())
    copied = judged("code-reuse", start().write("server.py", COPY).session())
    assert called.score > 0.65 > 0.4 > copied.score
    assert "load_settings" in called.feedback
    assert "copies of a file read (turn 1, shop/settings.py)" in copied.feedback


def test_writing_the_same_block_twice_is_seen() -> None:
    maker = start().edit("a.py", "pass", BLOCK)
    once = judged("code-reuse", maker.session())
    twice = judged("code-reuse", maker.edit("b.py", "pass", BLOCK).session())
    assert twice.score < once.score - 0.2
    assert "8 of 16 new lines were written twice" in twice.feedback


def test_rewriting_ones_own_block_is_no_copy() -> None:
    session = start().edit("a.py", "pass", BLOCK).edit("a.py", BLOCK, BLOCK).session()
    assert "twice" not in judged("code-reuse", session).feedback


def test_moving_code_is_no_copy() -> None:
    body = "\n".join(line.split("\t")[1] for line in HELPERS.split("\n"))
    session = start().edit("/home/ada/shop/settings.py", body, "").write("b.py", body).session()
    assert "copies of a file read" not in judged("code-reuse", session).feedback


def test_defining_a_known_name_again_is_named() -> None:
    again = "def load_settings(folder):\n    return Settings.from_folder(folder)"
    feedback = judged("code-reuse", start().edit("b.py", "pass", again).session()).feedback
    assert "load_settings stands in shop/settings.py already" in feedback


def test_writing_before_looking_costs() -> None:
    blind = Story().turn("Add a server").edit("server.py", "pass", CALL).session()
    assert "before any look around" in judged("code-reuse", blind).feedback


def test_without_code_the_score_says_nothing_either_way() -> None:
    answer = judged("code-reuse", Story().turn("Why?").say("Because.").session())
    prose = judged("code-reuse", Story().turn("x").edit("README.md", "a", "b").session())
    assert answer.score == prose.score == 0.5
    assert "nothing either way" in answer.feedback


PLAN = """Change the uploader:
- Retry uploads on status 429 in upload.py
- Log every retry with the logger
- Add unit tests in test_upload.py
"""
UPLOAD = "for attempt in retries(status=429):\n    logger.info('retry upload %s', attempt)"
TEST = "def test_upload_retries_on_429():\n    assert upload(unit) == 'ok'"


def test_doing_all_that_was_asked_beats_doing_half_and_doing_nothing() -> None:
    maker = Story().turn(PLAN).edit("/home/ada/shop/upload.py", "pass", UPLOAD)
    maker.write("/home/ada/shop/test_upload.py", TEST).run("pytest", "3 passed in 0.1s")
    whole = maker.say("Retries are logged and tested.").session()
    half = Story().turn(PLAN).edit("/home/ada/shop/other.py", "pass", "x = 1").say("Ok.").session()
    nothing = Story().turn(PLAN).say("What about it?").session()
    scores = [judged("plan-compliance", session).score for session in (whole, half, nothing)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 0.85
    assert scores[1] < 0.45
    assert scores[2] < 0.25
    assert "turn 1: all 3 tests passed (pytest)" in judged("plan-compliance", whole).feedback
    assert "not touched: upload.py, test_upload.py" in judged("plan-compliance", half).feedback
    assert "no editing tool changed anything" in judged("plan-compliance", nothing).feedback


def test_corrections_and_failing_tests_cost_compliance() -> None:
    def ending(prompt: str, result: str) -> Session:
        maker = Story().turn(PLAN).edit("/home/ada/shop/upload.py", "pass", UPLOAD).say("Done.")
        return maker.turn(prompt).run("pytest", result).say("Ok.").session()

    good = judged("plan-compliance", ending("thanks", "3 passed in 0.1s"))
    bad = judged("plan-compliance", ending("you forgot the log", "2 failed, 1 passed in 0.1s"))
    assert good.score > bad.score + 0.3
    assert "turn 2: 2 of 3 tests failed (pytest), and never passed afterwards" in bad.feedback
    assert "1 correction by the user (turn 2: “you forgot the log”)" in bad.feedback


def test_a_question_is_complied_with_by_an_answer() -> None:
    prompt = "What does the uploader in upload.py do on status 429?"
    maker = Story().turn(prompt)
    assert judged("plan-compliance", maker.session()).score < 0.1
    maker.read("/home/ada/shop/upload.py")
    maker.say("On status 429 the uploader in upload.py waits and tries again.")
    assert judged("plan-compliance", maker.session()).score > 0.6


def test_new_files_that_nobody_asked_for_are_named() -> None:
    prompt = "Fix the rounding of prices in the basket so that totals match the invoice exactly"
    maker = Story().turn(prompt).edit("basket.py", "round(x)", "round_price(x)")
    session = maker.write("deploy/kubernetes.py", "x = 1").say("Fixed.").session()
    feedback = judged("plan-compliance", session).feedback
    assert "1 new file that the plan does not speak of (kubernetes.py)" in feedback


def test_any_other_judge_gets_the_general_measure_and_is_told_so() -> None:
    session = Story().turn("Fix it").run("pytest", "2 failed, 1 passed in 1s").say("Hm.").session()
    answer = judged("kindness", session)
    assert "no measure for “kindness”" in answer.feedback
    assert "2 of 3 tests failed" in answer.feedback
    assert answer.score < 0.4


@pytest.mark.parametrize("name", ["code-reuse", "plan-compliance", "kindness"])
def test_nothing_is_spent_and_the_answer_is_the_same_every_time(name: str) -> None:
    session = start().write("server.py", COPY).session()
    first, second = judged(name, session), judged(name, session)
    assert first == second
    assert (first.cost_usd, first.input_tokens, first.output_tokens) == (0.0, 0, 0)
