"""Programs that are logged in as models, with executables that behave as they do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from debrief.cli.asking import agree, estimate_of, estimate_text
from debrief.errors import ConfigurationError, ModelError
from debrief.evaluation import evaluate
from debrief.evaluators import make_evaluators
from debrief.judging.evaluation import evaluate_week
from debrief.judging.model import litellm_name
from debrief.models.answers import Question
from debrief.models.choosing import Models
from debrief.models.language_model import LanguageModel, TooLongError
from debrief.models.plan_limits import is_limit, seconds_until_reset
from debrief.models.programs import PROGRAMS
from debrief.opening import OPENING
from debrief.permitted import permitted_model
from debrief.scoring.scorer import score_week
from debrief.settings import load_settings
from tests.faults.judging import session_of
from tests.models import stand_ins
from tests.models.stand_ins import StandIn, printed
from tests.waiting import LONG, is_over, wait_until

Ask = Callable[..., LanguageModel]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder at the front of the search path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


@pytest.fixture
def claude(here: Path) -> StandIn:
    return StandIn(here, "claude")


def model(name: str = "claude-code", **options: Any) -> LanguageModel:
    return LanguageModel(name, api_key="", **{"timeout": LONG, "pause": 0.01, **options})


def test_a_program_answers_without_a_key_and_says_what_it_took(claude: StandIn) -> None:
    claude.says(stand_ins.claude("Four."))
    asked = model("claude-code/opus")
    answer = asked.ask("2 + 2?")
    assert (answer.text, answer.model) == ("Four.", "claude-code/opus")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (3303, 301)
    assert (answer.usage.cache_read_tokens, answer.usage.cache_write_tokens) == (901, 401)
    assert answer.usage.cost_usd == 0.0162092
    assert asked.meter.spent.usage == answer.usage


FORM = {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}


def test_a_form_goes_to_the_program_that_takes_one_and_the_question_to_both(here: Path) -> None:
    question = Question(constant="Answer in the form.", text="Is it done?", form=FORM)
    codex, claude = StandIn(here, "codex"), StandIn(here, "claude")
    codex.does(f"cat answer-*.json > {codex.folder}/form", printed(stand_ins.codex()))
    claude.says(stand_ins.claude())
    for name in ("codex", "codex", "claude-code"):
        assert model(name).ask(question).text == "Fine."
    option, file = codex.read("arguments").splitlines()[-2:]
    assert (option, json.loads(codex.read("form"))) == ("--output-schema", FORM)
    assert file in codex.read("files")
    assert "schema" not in claude.read("arguments")
    whole = f"{OPENING}\n\nAnswer in the form.\n\nIs it done?"
    assert codex.asked == [whole, whole]
    assert claude.asked == [whole]


def test_questions_at_once_share_a_form(here: Path) -> None:
    codex = StandIn(here, "codex")
    codex.does("cat answer-*.json > /dev/null || exit 1", printed(stand_ins.codex()))
    asked = model("codex", concurrency=8, attempts=1)
    questions = [Question(text=f"{number}?", form=FORM) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert [answer.text for answer in pool.map(asked.ask, questions)] == ["Fine."] * 8


def test_it_is_asked_in_an_empty_folder_by_standard_input_and_not_as_if_nested(
    claude: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "of the login")
    claude.says(stand_ins.claude())
    model("claude-code/opus").ask("Is the würfel thrown?")
    assert claude.asked == [f"{OPENING}\n\nIs the würfel thrown?"]
    arguments = claude.read("arguments")
    assert "würfel" not in arguments
    assert "--no-session-persistence" in arguments
    assert arguments.splitlines()[-2:] == ["--model", "opus"]
    assert claude.read("files") == ""
    assert Path(claude.read("place").strip()) != Path.cwd()
    environment = claude.read("environment").splitlines()
    assert "CLAUDECODE=1" not in environment
    assert "CLAUDE_CODE_OAUTH_TOKEN=of the login" in environment


def test_without_a_name_the_program_chooses_its_model(claude: StandIn) -> None:
    claude.says(stand_ins.claude())
    model("claude-code").ask("x")
    assert "--model" not in claude.read("arguments").splitlines()


@pytest.mark.parametrize(
    ("name", "command", "said", "tokens"),
    [
        ("codex/gpt-5.5", "codex", stand_ins.codex(), (3306, 302, 902)),
        ("gemini-cli/gemini-2.5-pro", "gemini", stand_ins.gemini(), (3006, 309, 903)),
    ],
)
def test_the_others_answer_as_well(
    here: Path, tmp_path: Path, name: str, command: str, said: object, tokens: tuple[int, ...]
) -> None:
    program = StandIn(here, command)
    program.says(said)
    answer = Models(load_settings({"DEBRIEF_HOME": str(tmp_path / "home")})).get(name).ask("x")
    usage = answer.usage
    assert answer.text == "Fine."
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == tokens
    assert program.asked == [f"{OPENING}\n\nx"]


def test_what_a_program_does_not_price_has_its_providers_price(here: Path, tmp_path: Path) -> None:
    StandIn(here, "gemini").says(stand_ins.gemini())
    models = Models(load_settings({"DEBRIEF_HOME": str(tmp_path / "home")}))
    cost = models.get("gemini-cli/gemini-2.5-pro").ask("x").usage.cost_usd
    assert cost == pytest.approx((3006 - 903) * 1.25e-6 + 903 * 0.125e-6 + 309 * 10e-6)
    assert models.get("gemini-cli").ask("y").usage.cost_usd is None


_COMMAND = {"id": "item_1", "type": "command_execution", "command": "ls"}


@pytest.mark.parametrize(
    ("name", "command", "said"),
    [
        ("claude-code", "claude", stand_ins.claude(num_turns=2)),
        ("claude-code", "claude", stand_ins.claude(permission_denials=[{"tool_name": "Bash"}])),
        ("codex", "codex", stand_ins.codex(_COMMAND)),
        ("gemini-cli", "gemini", stand_ins.gemini(calls=1)),
    ],
)
def test_an_answer_in_which_a_tool_was_called_is_refused(
    here: Path, name: str, command: str, said: object
) -> None:
    program = StandIn(here, command)
    program.says(said)
    with pytest.raises(ModelError, match="instead of answering"):
        model(name).ask("x")
    assert len(program.asked) == 2


@pytest.mark.parametrize(
    ("name", "command", "said"),
    [
        ("claude-code", "claude", stand_ins.claude("Fi\x1b[2Jne \ud83d.")),
        (
            "codex",
            "codex",
            stand_ins.codex({"id": "1", "type": "agent_message", "text": "Fi\x00ne \ud83d."}),
        ),
        ("gemini-cli", "gemini", stand_ins.gemini("Fi\x00ne \ud83d.")),
    ],
)
def test_half_a_surrogate_pair_and_control_characters_cost_no_answer(
    here: Path, name: str, command: str, said: object
) -> None:
    StandIn(here, command).says(said)
    text = model(name).ask("x").text
    assert text.removeprefix("Fi").replace("[2J", "") == "ne \ufffd."


def test_a_spent_plan_is_waited_for_as_it_says(claude: StandIn) -> None:
    limit = printed(stand_ins.claude_failure("You've hit your usage limit. Try again in 1 second."))
    fine = printed(stand_ins.claude())
    claude.does(f'if [ "$number" = 1 ]; then {limit}; exit 1; fi', fine)
    began = time.monotonic()
    assert model().ask("x").text == "Fine."
    assert time.monotonic() - began >= 1
    assert len(claude.asked) == 2


def test_a_week_is_not_waited_for_and_nothing_more_is_asked(claude: StandIn) -> None:
    words = "You've hit your weekly limit. Try again in 3 days."
    claude.says(stand_ins.claude_failure(words), code=1)
    asked = model()
    for question in "xy":
        with pytest.raises(ModelError, match=r"weekly limit.*Wait until the plan"):
            asked.ask(question)
    assert len(claude.asked) == 1


@pytest.mark.parametrize(
    ("command", "name", "does", "move"),
    [
        (
            "claude",
            "claude-code",
            printed(stand_ins.claude_failure("Not logged in · Please run /login")),
            "Run claude and log in with /login.",
        ),
        (
            "codex",
            "codex",
            printed({"type": "turn.failed", "error": {"message": "401 Unauthorized"}}),
            "Run codex login.",
        ),
        (
            "gemini",
            "gemini-cli",
            printed({"error": {"message": "Please set an Auth method", "code": 41}}) + " >&2",
            "Run gemini and log in.",
        ),
        (
            "claude",
            "claude-code",
            "echo 'Do you trust the files in this folder? (y/n)'; read answer",
            "Run claude once in a terminal and answer what it asks.",
        ),
    ],
)
def test_what_needs_a_person_is_one_line_and_asked_once(
    here: Path, command: str, name: str, does: str, move: str
) -> None:
    program = StandIn(here, command)
    program.does(does, "exit 1")
    asked = model(name)
    for question in "xy":
        with pytest.raises(ModelError) as failure:
            asked.ask(question)
        assert move in failure.value.next_move
        assert "\n" not in str(failure.value)
    assert len(program.asked) == 1


def test_a_program_that_hangs_is_ended_with_what_it_started(claude: StandIn) -> None:
    claude.does('sleep 600 & echo $! > "$at/child"', "wait")
    for times, timeout in enumerate((0.5, 5.0, 50.0), 1):  # a busy machine may not have begun it
        after = rf"no answer came for {timeout + 1:g} s.*once in a terminal"
        with pytest.raises(ModelError, match=after):
            model(timeout=timeout).ask("x")
        assert len(claude.asked) <= times
        if (claude.folder / "child").is_file():
            break
    for name in ("pid", "child"):
        wait_until(lambda name=name: is_over(int(claude.read(name))))  # type: ignore[misc]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone ends a child with its parent")
def test_a_program_ends_with_whoever_asks_it(claude: StandIn) -> None:
    claude.does("exec sleep 600")
    code = (
        "from debrief.models.language_model import LanguageModel\n"
        "LanguageModel('claude-code', api_key='', timeout=600).ask('x')"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as asking:
        wait_until(lambda: (claude.folder / "pid").is_file() and claude.read("pid"))
        asking.kill()
    wait_until(lambda: is_over(int(claude.read("pid"))))


def test_a_crash_that_passes_is_tried_again(claude: StandIn) -> None:
    claude.does(
        'if [ "$number" = 1 ]; then echo "Segmentation fault" >&2; exit 139; fi',
        printed(stand_ins.claude()),
    )
    assert model().ask("x").text == "Fine."


def test_a_prompt_that_is_too_long_says_so(claude: StandIn) -> None:
    claude.says(stand_ins.claude_failure("Prompt is too long"), code=1)
    with pytest.raises(TooLongError):
        model().ask("x")


def test_a_program_that_is_not_there_is_said_before_anything_is_asked(
    here: Path, tmp_path: Path
) -> None:
    models = Models(load_settings({"DEBRIEF_HOME": str(tmp_path / "home")}))
    with pytest.raises(ConfigurationError, match=r"claude is not on the search path.*npm install"):
        models.get("claude-code/opus")


def test_a_missing_key_names_the_program_that_needs_none(claude: StandIn, tmp_path: Path) -> None:
    claude.says(stand_ins.claude())
    models = Models(load_settings({"DEBRIEF_HOME": str(tmp_path / "home")}))
    with pytest.raises(ConfigurationError, match=r"claude-code answers without a key"):
        models.get("openrouter/acme/tiny")


@pytest.mark.parametrize(("set_to", "most"), [("", 2), ("4", 4)])
def test_two_questions_at_a_time_unless_a_setting_says_otherwise(
    claude: StandIn, tmp_path: Path, set_to: str, most: int
) -> None:
    running = 'ls "$at" | grep -c "^on"'
    claude.does(
        f'touch "$at/on.$$"; until [ $({running}) -ge {most} ] || [ -s "$at/together" ]',
        f'do sleep 0.05; done; sleep 0.4; {running} >> "$at/together"',
        'rm "$at/on.$$"',
        printed(stand_ins.claude()),
    )
    settings = load_settings(
        {"DEBRIEF_HOME": str(tmp_path / "home"), "DEBRIEF_CONCURRENCY": set_to}
    )
    asked = Models(settings).get("claude-code")
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(asked.ask, "abcdef"))
    assert max(map(int, claude.read("together").split())) == most


def test_ctrl_c_ends_the_wait_for_a_plan_and_a_program_that_answers(claude: StandIn) -> None:
    limit = printed(stand_ins.claude_failure("You've hit your limit. Try again in 2 hours."))
    claude.does(f'if [ "$number" = 1 ]; then {limit}; exit 1; fi', "sleep 600")
    asked = model(timeout=600)

    def groups() -> Any:
        yield ["x"]
        yield ["y"]
        wait_until(lambda: len(claude.asked) == 2)
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(evaluate(groups(), lambda item: None, lambda item: asked.ask(item), workers=2))
    assert time.monotonic() - began < LONG
    assert is_over(int(claude.read("pid")))


def test_its_name_is_a_models_name_everywhere(claude: StandIn, tmp_path: Path) -> None:
    claude.says(stand_ins.claude())
    assert [litellm_name(f"{name}/x") for name in PROGRAMS] == [f"{name}/x" for name in PROGRAMS]
    settings = load_settings(
        {"DEBRIEF_HOME": str(tmp_path / "home"), "DEBRIEF_MODEL": "claude-code/opus"}
    )
    assert make_evaluators(settings, no_model=False).name == "claude-code/opus"
    named = load_settings({"DEBRIEF_HOME": str(tmp_path), "DEBRIEF_MODELS": "codex,claude-code"})
    assert permitted_model("model", "codex", named) == "codex"
    with pytest.raises(ConfigurationError):
        permitted_model("model", "gemini-cli", named)


NOON = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Claude AI usage limit reached|1795700000", 1795700000 - NOON.timestamp()),
        ("You've hit your session limit · resets 3:50pm (Asia/Tokyo)", 67_800),
        ("You've hit your limit · resets 1am (Europe/Oslo)", 43_200),
        ("You've hit your limit · resets Nov 27, 11am (Europe/Berlin)", 79_200),
        ("You've hit your usage limit. Ask your admin or try again at 12:16 PM.", 960),
        ("You've hit your usage limit. Try again at Nov 30th, 2026 3:04 PM.", 356_640),
        ("You've hit your usage limit, try again in 2 days 17 hours 14 minutes.", 234_840),
        ("You have exhausted your capacity. Your quota will reset after 15h58m57s.", 57_537),
        ("You've hit your limit · resets Jan 2, 11am (Europe/Berlin)", 3_189_600),
        ("You've hit your usage limit.", None),
    ],
)
def test_when_a_plan_takes_questions_again_is_read_from_its_words(
    said: str, seconds: float | None
) -> None:
    assert is_limit(said)
    assert seconds_until_reset(said, NOON) == seconds


@pytest.mark.parametrize(
    ("answer", "calls", "why"),
    [
        (stand_ins.claude("It is sunny."), 4, "in 2 calls: it holds no object with a verdict"),
        (stand_ins.claude(num_turns=3), 4, "it called a tool instead of answering"),
        (stand_ins.claude_failure("Not logged in"), 1, "Not logged in. Run claude and log in"),
    ],
)
def test_a_program_is_asked_twice_as_often_as_announced_at_most(
    claude: StandIn, tmp_path: Path, answer: dict[str, Any], calls: int, why: str
) -> None:
    claude.says(answer)
    settings = load_settings({"DEBRIEF_HOME": str(tmp_path), "DEBRIEF_MODEL": "claude-code"})
    settings = settings.with_given(retry_pause=0.01, concurrency=1)
    sessions = [session_of(0), session_of(1)]
    counting = make_evaluators(settings, offline=False, dry_run=True)
    list(score_week(sessions, counting.chunk_scorer))
    estimate = estimate_of("claude-code", counting.spent)
    assert "2 questions: about" in estimate_text(estimate, settings)
    assert "of its plan, in 4 calls at most" in estimate_text(estimate, settings)
    by = make_evaluators(agree(estimate, settings, yes=True), offline=False)
    rows = list(score_week(sessions, by.chunk_scorer))
    list(evaluate_week(sessions, by.judges, by.session_judge, by.eval_fingerprint))
    assert all(why in row.failure for row in rows), rows[0].failure
    assert len(claude.asked) == calls
