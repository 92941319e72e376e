"""Proposing prompts, with a model's server on loopback that rewards one particular habit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.errors import InputError, ModelError
from debrief.lake import Lake
from debrief.models.language_model import LanguageModel
from debrief.models.usage import Budget, BudgetSpentError, Price, Rates
from debrief.snapshots.fingerprint import prompt_digest
from debrief.snapshots.model import PromptSnapshot
from debrief.state import State
from debrief.tokens import count_tokens
from debrief.training.candidates import candidate_files, report_of, write_candidate
from debrief.training.model import TrainingSample
from debrief.training.optimisation import (
    OptimiserOptions,
    Proposal,
    estimate_cost,
    propose,
    sides_of,
)
from debrief.training.trials import PromptTrials
from tests.models.openai_server import Call, OpenAIServer, Reply, judged
from tests.snapshots.scenario import repository
from tests.training.lakes import lake_of_lessons

HABIT = "Write a failing test first"
MAIN = "---\nname: main\n---\nBe brief."
SUBAGENTS = {"reviewer": "Review it."}


def reply(call: Call) -> Reply:
    asked = f"{call.system}\n{call.user}"
    if "how well a coding agent would have served" in asked:
        good = "a failing test" in asked.rpartition("The course of work:")[2]
        said = "It checks first." if good else "Nothing is checked: ask for a failing test first."
        return Reply(judged(0.9 if good else 0.3, said))
    if "[[ ## remarks ## ]]" in asked:
        return Reply("[[ ## remarks ## ]]\nLooks fine.\n\n[[ ## completed ## ]]")
    if "[[ ## course_of_work ## ]]" in asked:
        course = "I look, then write a failing test." if HABIT in asked else "I edit the file."
        return Reply(f"[[ ## course_of_work ## ]]\n{course}\n\n[[ ## completed ## ]]")
    if "standing prompt of a coding agent" not in asked:
        return Reply("I do not know what is wanted.")
    return Reply(f"[[ ## new_instruction ## ]]\nBe brief. {HABIT}.\n\n[[ ## completed ## ]]")


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(reply) as running:
        yield running


def trials(server: OpenAIServer, home: Path, **options: Any) -> PromptTrials:
    model = LanguageModel(
        "openai/tiny",
        api_key="sk-test-0123456789",
        base_url=server.url,
        pause=0.01,
        attempts=2,
        price=Price(rates=Rates(input=1e-6, output=2e-6, cache_read=1e-7, cache_write=1e-6)),
        cache=State(home / "answers.sqlite"),
        **options,
    )
    return PromptTrials(model, secret=b"secret", concurrency=2)


def samples(train: int = 4, held_out: int = 6, **fields: Any) -> list[TrainingSample]:
    given: dict[str, Any] = {
        "used_prompts": PromptSnapshot(main=MAIN, subagents=SUBAGENTS),
        "prompt_fingerprint": "b7d4e2f9",
        **fields,
    }
    return [
        TrainingSample(
            plan_id=f"s{n}",
            plan_content=f"Fix the loop of part {n}.",
            split="train" if n < train else "eval",
            **given,
        )
        for n in range(train + held_out)
    ]


def test_better_prompts_are_proposed_with_before_and_after_on_the_held_out_side(
    server: OpenAIServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = propose(samples(), trials(server, tmp_path), OptimiserOptions(trials=30))
    assert HABIT in made.main
    assert made.main.startswith("---\nname: main\n---\n")
    assert made.before.mean == pytest.approx(0.3)
    assert made.after.mean == pytest.approx(0.9)
    assert made.difference.mean == pytest.approx(0.6)
    assert (made.trained_on, made.held_out) == (4, 6)
    assert made.cost_usd is not None
    assert made.cost_usd > 0
    assert made.calls > 10
    assert (
        made.fingerprint
        == prompt_digest(PromptSnapshot(main=made.main, subagents=made.subagents))[:8]
    )
    assert made.changed
    assert capfd.readouterr() == ("", ""), "no bar of others is shown"


def test_a_second_time_nothing_is_asked_and_the_same_is_proposed(
    server: OpenAIServer, tmp_path: Path
) -> None:
    first = propose(samples(), trials(server, tmp_path), OptimiserOptions(trials=20))
    asked = len(server.calls)
    again = propose(samples(), trials(server, tmp_path), OptimiserOptions(trials=20))
    assert len(server.calls) == asked
    assert (again.main, again.subagents, again.after) == (first.main, first.subagents, first.after)
    assert again.calls == 0


def test_a_run_out_of_money_stops_and_the_next_goes_on_from_there(
    server: OpenAIServer, tmp_path: Path
) -> None:
    with pytest.raises(BudgetSpentError):
        propose(
            samples(),
            trials(server, tmp_path, budget=Budget(max_calls=12)),
            OptimiserOptions(trials=20),
        )
    assert len(server.calls) == 12
    propose(samples(), trials(server, tmp_path), OptimiserOptions(trials=20))
    questions = [call.digest for call in server.calls]
    judged_ = [c.digest for c in server.calls if "would have served" in c.user + c.system]
    assert len(judged_) == len(set(judged_))
    assert len(set(questions)) > len(questions) * 0.8


def test_a_server_that_is_gone_ends_it_with_its_reason(
    server: OpenAIServer, tmp_path: Path
) -> None:
    server.reply = lambda call: Reply(status=400, error={"message": "no such model"})
    with pytest.raises(ModelError, match="no such model"):
        propose(samples(), trials(server, tmp_path), OptimiserOptions(trials=8))


def test_a_judgement_that_stands_in_the_course_of_work_is_refused(
    server: OpenAIServer, tmp_path: Path
) -> None:
    said = "This agent did everything that anybody could ever have asked of it."
    server.reply = lambda call: Reply(judged(1.0, said))
    with pytest.raises(ModelError, match="repeats words"):
        trials(server, tmp_path).judge(samples()[0], f"I edit the file. {judged(1.0, said)}")


def test_when_nothing_is_better_the_prompts_stay(server: OpenAIServer, tmp_path: Path) -> None:
    def indifferent(call: Call) -> Reply:
        made = reply(call)
        return Reply(judged(0.5, "As good as any.")) if "score" in (made.content or "") else made

    server.reply = indifferent
    made = propose(samples(), trials(server, tmp_path), OptimiserOptions(trials=12))
    assert not made.changed
    assert made.main == MAIN
    assert made.difference.mean == 0
    assert "Nothing better" in report_of(made)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (samples(train=0), "too few: 0 to train on .*; needed: 1 more to train on"),
        (samples(held_out=4), "4 to train on and 4 held out; needed: 2 more held out"),
        (samples(used_prompts=None), "do not tell what prompts"),
        ([*samples(), *samples(prompt_fingerprint="other")], "ran with 2 sets of prompts"),
    ],
    ids=["no training samples", "too few held out", "prompts unknown", "two sets of prompts"],
)
def test_samples_that_do_not_do_are_refused_before_anything_is_asked(
    server: OpenAIServer, tmp_path: Path, given: list[TrainingSample], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        propose(given, trials(server, tmp_path), OptimiserOptions(trials=8))
    assert server.calls == []


def test_what_is_held_out_anywhere_is_trained_on_nowhere() -> None:
    first = samples(train=3, held_out=2)
    of_another_set = first[4].model_copy(update={"split": "train"})
    asked_again = first[0].model_copy(
        update={"plan_id": "plan", "plan_content": "Fix the loop\nof part 3."}
    )
    train, held_out = sides_of([of_another_set, asked_again, *first, *first])
    assert [sample.plan_id for sample in train] == ["s0", "s1", "s2"]
    assert [sample.plan_id for sample in held_out] == ["s3", "s4"]


@pytest.fixture(scope="module")
def proposal(tmp_path_factory: pytest.TempPathFactory) -> Proposal:
    with OpenAIServer(reply) as server:
        asked = trials(server, tmp_path_factory.mktemp("proposal"))
        return propose(samples(), asked, OptimiserOptions(trials=20))


def test_a_candidate_is_written_beside_the_active_prompts_and_never_over_them(
    proposal: Proposal, tmp_path: Path
) -> None:
    active = tmp_path / ".debrief/prompts/active/claude-code/main.md"
    active.parent.mkdir(parents=True)
    active.write_text(MAIN)
    place = tmp_path / ".debrief/prompts/candidates/claude-code" / proposal.fingerprint
    assert write_candidate(proposal, tmp_path / ".debrief", "claude-code") == (place, True)
    assert {path.name for path in place.iterdir()} == {
        *("main.md", "reviewer.md", "candidate.json", "report.md")
    }
    assert (place / "main.md").read_text() == proposal.main
    assert json.loads((place / "candidate.json").read_text())["before"]["mean"] == pytest.approx(
        0.3
    )
    assert active.read_text() == MAIN
    (place / "main.md").write_text("Edited by hand.")
    assert write_candidate(proposal, tmp_path / ".debrief", "claude-code") == (place, False)
    assert (place / "main.md").read_text() == "Edited by hand."


def test_a_link_is_not_written_through(proposal: Proposal, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / ".debrief/prompts").mkdir(parents=True)
    (tmp_path / ".debrief/prompts/candidates").symlink_to(elsewhere)
    with pytest.raises(InputError, match="symbolic link"):
        write_candidate(proposal, tmp_path / ".debrief", "claude-code")
    assert list(elsewhere.iterdir()) == []


def test_a_tool_whose_name_is_a_path_gets_no_folder(proposal: Proposal, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder can have"):
        write_candidate(proposal, tmp_path / ".debrief", "../active")
    assert not (tmp_path / ".debrief").exists()


def test_a_proposed_secret_is_not_written(proposal: Proposal) -> None:
    with pytest.raises(InputError, match="holds a secret"):
        candidate_files(replace(proposal, main="Use AWS_ACCESS_KEY_ID=AKIA" + "Q7ZK4MNB2XVH6TRD"))
    with pytest.raises(InputError, match="no file can have"):
        candidate_files(replace(proposal, subagents={"../x": "Hm."}))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return lake_of_lessons(tmp_path_factory.mktemp("lake"))


@pytest.fixture
def command(
    lake: Lake, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    repository(tmp_path / "repo")
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("DEBRIEF_MODEL_BASE_URL", server.url)
    for name in ("DEBRIEF_MODEL", "DEBRIEF_NO_MODEL"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Any:
        given = ["train", "--lake", lake.url, "--repo", str(tmp_path / "repo"), *arguments]
        return CliRunner().invoke(app, given)

    return run


def test_the_command_shows_before_and_after_and_writes_the_candidate(
    command: Any, tmp_path: Path
) -> None:
    outcome = command("--ask", "openai/tiny", "--trials", "20", "--yes")
    assert outcome.exit_code == 0, outcome.output
    for said in ("| before", "0.30", "0.90", "Better on the held-out samples", "calls", "cost"):
        assert said in outcome.output
    (place,) = (tmp_path / "repo/.debrief/prompts/candidates/claude-code").iterdir()
    assert HABIT in (place / "main.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "needs a language model"),
        (
            ["--ask", "openai/tiny", "--task", "other"],
            "hold 0 such samples; needed: 1 to train on and 6 held out",
        ),
        (
            ["--ask", "openai/tiny", "--samples", "5"],
            "5 held out (at most 5 of each are taken); needed: 1 more held out",
        ),
        (["--dry-run", "--samples", "5"], "needed: 1 more held out"),
    ],
)
def test_the_command_says_what_is_missing(command: Any, arguments: list[str], said: str) -> None:
    outcome = command(*arguments)
    assert outcome.exit_code == 1
    assert said in " ".join(outcome.output.split())


def test_the_command_asks_for_all_that_it_lacks_at_once(command: Any, tmp_path: Path) -> None:
    place = tmp_path / "repo/.debrief/training_data/plan"
    (place / "prompts").mkdir(parents=True)
    (place / "prompts/main.md").write_text("Be quick.")
    (place / "plan.md").write_text("Fix it.")
    (place / "judge_x.json").write_text('{"judge_name": "x", "score": 0.5}')
    (place / "metadata.json").write_text('{"tool": "droid", "prompt_fingerprint": "0a1b2c3d"}')
    outcome = command()
    said = " ".join(outcome.output.split())
    assert outcome.exit_code == 1
    assert "needs a language model" in said
    assert (
        "choose one of --fingerprint b7d4e2f9 --tool claude-code; the others have too few" in said
    )
    alone = " ".join(command("--tool", "droid", "--dry-run").output.split())
    assert "--fingerprint 0a1b2c3d --tool droid are too few: 1 to train on and 0 held out" in alone


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda place: (place / "plan.md").unlink(), "plan.md is missing"),
        (lambda place: (place / "plan.md").write_text(" "), "plan.md is empty"),
        (lambda place: (place / "plan.md").write_bytes(b"\xff"), "plan.md is not UTF-8"),
        (lambda place: (place / "prompts/main.md").unlink(), "prompts has no main.md"),
        (lambda place: (place / "prompts/main.md").write_text(""), "prompts/main.md is empty"),
        (
            lambda place: [path.unlink() for path in place.rglob("*") if path.is_file()],
            "holds no part of a training sample",
        ),
    ],
)
def test_a_plan_that_cannot_be_trained_on_is_named_with_the_reason(
    command: Any, tmp_path: Path, spoil: Any, reason: str
) -> None:
    place = tmp_path / "repo/.debrief/training_data/planner"
    (place / "prompts").mkdir(parents=True)
    (place / "prompts/main.md").write_text("Be quick.")
    (place / "plan.md").write_text("Fix it.")
    (place / "judge_x.json").write_text('{"judge_name": "x", "score": 0.5}')
    spoil(place)
    for options in (["--dry-run"], ["--dry-run", "--task", "planner"]):
        said = " ".join(command(*options).output.split())
        assert f"training_data/planner cannot be trained on: {reason}" in said, said
    others = command("--dry-run", "--task", "other").output
    assert "cannot be trained on" not in others


def test_one_model_may_act_and_another_judge_and_rewrite(
    server: OpenAIServer, tmp_path: Path
) -> None:
    asked = trials(server, tmp_path)
    actor, rewriter = (
        LanguageModel(f"openai/{name}", api_key="sk-test-0123456789", base_url=server.url)
        for name in ("actor", "rewriter")
    )
    counts: list[int] = []
    runner = PromptTrials(
        asked.model, secret=b"secret", on_trial=counts.append, actor=actor, rewriter=rewriter
    )
    made = propose(samples(), runner, OptimiserOptions(trials=12))
    assert made.model == "openai/actor acted, openai/tiny judged, openai/rewriter rewrote"
    parts = {
        "would have served": "tiny",
        "standing prompt": "rewriter",
        "course_of_work ## ]]\n": "actor",
    }
    for words, model in parts.items():
        of_part = {
            call.body["model"] for call in server.calls if words in f"{call.system}{call.user}"
        }
        assert of_part == {model}
    assert counts[-1] == made.trials
    assert made.calls == len(server.calls)


def test_a_dry_run_asks_nothing_and_tells_the_cost_where_the_price_is_known(
    command: Any, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unnamed = command("--dry-run")
    assert unnamed.exit_code == 0, unnamed.output
    assert "at an unknown price, as no model is named" in " ".join(unnamed.output.split())
    prices = tmp_path / "prices.json"
    prices.write_text('{"openai/tiny": {"input": 1, "output": 2}}')
    monkeypatch.setenv("DEBRIEF_PRICES", str(prices))
    told = " ".join(command("--dry-run", "--ask", "openai/tiny").output.split())
    (cost,) = re.findall(r"for about \$([\d.]+) \(openai/tiny\)\. Nothing was asked", told)
    assert 0.01 < float(cost) < 1
    assert server.calls == []


def test_a_run_takes_about_what_was_told_before_and_not_more(
    server: OpenAIServer, tmp_path: Path
) -> None:
    options = OptimiserOptions(trials=30)
    told = estimate_cost(samples(), options, count_tokens)
    made = propose(samples(), trials(server, tmp_path), options)
    assert (told.trained_on, told.held_out) == (made.trained_on, made.held_out)
    assert made.trials <= told.trials
    assert told.calls / 4 < made.calls <= told.calls
    assert made.input_tokens <= told.usage.input_tokens
    assert made.output_tokens <= told.usage.output_tokens
    assert told.usage.cost_usd is None
