"""Pairs: those that a session holds, and two runs of one task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from debrief.scoring.verdict import COMPLETE, INCOMPLETE, VERDICT_NAMES, VerdictName
from debrief.sessions.model import Message, Session, ToolCall, Turn
from debrief.training.formats import MOST_TOOLS, TOOLS
from debrief.training.model import LINES, LineRow, LineVerdict, ToolSchema
from debrief.training.publishing.form import StoredLine, decoded, encoded
from debrief.training.publishing.preferences import pair_line, pairs_of
from debrief.training.publishing.publish import ExportOptions, publish
from debrief.training.samples import encode_line
from tests.training.lakes import TASK, lake_of, stored
from tests.training.publishing.readers import problems
from tests.training.publishing.test_forms import LS, as_form
from tests.training.scenario import (
    FINGERPRINT,
    call,
    judgement,
    line_of,
    said,
    says,
    scores,
    session,
    turn,
)

GOOD = session("good", turn("Fix the loop.", says("Fixed, and the tests pass.")))
BAD = session("bad", turn("Fix the loop.", says("Somehow it does not work.")))


REFUSED = call(
    "Bash", {"command": "npm install"}, "The user doesn't want to do that.", status="rejected"
)
ACCEPTED = call("Bash", {"command": "pnpm install"}, "ok")


def line(
    of: Session, verdict: VerdictName, quality: float = 0.5, judged: float = 0.5, remark: str = ""
) -> StoredLine:
    rated = scores(of, None, verdict=said(verdict))
    first = replace(rated.dimension_scores[0], value=quality, rationale=remark)
    rated = replace(rated, dimension_scores=(first, *rated.dimension_scores[1:]))
    return decoded(encode_line(line_of(of, scores=rated, judgements=[judgement(of, score=judged)])))


def test_a_pair_says_why_the_one_is_better() -> None:
    made_line = pair_line(
        line(GOOD, "complete_verified", 0.9, 0.8, "turn 1 ends with\npassing tests"),
        line(BAD, "partial", 0.3, 0.2, "nothing was checked"),
    )
    assert made_line is not None
    assert problems("preference", encoded(made_line)) == []
    made = json.loads(encoded(made_line))
    assert made["reasons"] == [
        "complete, verified, against partial (better: Reviewed by judge-1.; worse: Reviewed by "
        "judge-1.)",
        "judge reuse 0.80 against 0.20 (better: uses what is there; worse: uses what is there)",
        "dimension task_completion 0.90 against 0.30 (better: turn 1 ends with passing tests; "
        "worse: nothing was checked)",
    ]
    assert made["chosen"][-1]["content"] == "Fixed, and the tests pass."
    assert (made["chosen_session"], made["rejected_session"]) == ("good", "bad")


def test_a_run_with_an_answer_that_is_not_trained_on_is_no_better_one_and_may_be_a_worse_one() -> (
    None
):
    refused = turn("Fix the loop.", says("", REFUSED), says("Fixed, and the tests pass."))
    unclean = session("unclean", refused)
    assert pair_line(line(unclean, "complete_verified"), line(BAD, "partial")) is None
    made = pair_line(line(GOOD, "complete_verified"), line(unclean, "partial"))
    assert made is not None
    assert [one["role"] for one in made["rejected"]] == ["assistant", "tool", "assistant"]


def test_a_pair_of_many_tools_has_as_many_as_a_line_may_have() -> None:
    def declaring(prefix: str, of: Session) -> StoredLine:
        whole = line(of, "complete_verified" if prefix == "a" else "partial")
        tools = [
            ToolSchema(function=replace(tool.function, name=f"{prefix}{number}"))
            for number in range(100)
            for tool in TOOLS.decode(whole.tools)[:1]
        ]
        return replace(whole, tools=msgspec.Raw(msgspec.json.encode(tools)))

    made = pair_line(declaring("a", GOOD), declaring("b", BAD))
    assert made is not None
    assert len(TOOLS.decode(made["tools"])) <= MOST_TOOLS
    assert problems("preference", encoded(made)) == []


def test_windows_are_in_no_pair_by_a_verdict_as_it_is_of_the_whole() -> None:
    of = line_of(BAD, scores=scores(BAD, None, verdict=said("partial")))
    window = decoded(encode_line(replace(of, metadata=replace(of.metadata, windows=2))))
    assert pair_line(line(GOOD, "complete_verified"), window) is None


def test_copies_of_which_other_things_are_said_are_no_pair() -> None:
    copy = session("copy", *GOOD.turns)
    assert pair_line(line(GOOD, "complete_verified"), line(copy, "partial")) is None


def lake_rows(folder: Path, *sessions: Session) -> list[LineRow]:
    lake = lake_of(folder, sessions)
    stored(lake, near_duplicates="keep")
    return list(lake.read(LINES, f"{TASK}/{FINGERPRINT}", LineRow))


def test_sessions_that_began_with_the_same_words_are_known_by_them(tmp_path: Path) -> None:
    spaced = session("spaced", turn("Fix  the\nloop. ", says("Done.")))
    elsewhere = session("elsewhere", *GOOD.turns, repository="other")
    rows = lake_rows(tmp_path, BAD, GOOD, spaced, elsewhere, session("third"))
    openings = {row.session_id: row.opening for row in rows}
    assert openings["bad"] == openings["good"] == openings["spaced"]
    assert len(set(openings.values())) == 3


@pytest.mark.parametrize("opening", [turn("", says("On it."), images=1), turn("", images=2)])
def test_openings_that_nobody_knows_are_not_the_same(tmp_path: Path, opening: Turn) -> None:
    made = [session(name, opening, turn("Go.", says("Ok."))) for name in ("one", "other")]
    row, other = lake_rows(tmp_path, *made)
    assert row.opening != other.opening


def entrant(number: int, verdict: LineVerdict, opening: str) -> LineRow:
    return LineRow(
        session_id=f"s{number}",
        window=1,
        split="train",
        verdict=verdict,
        offset=number,
        size=1,
        opening=opening,
        messages=2,
        tokens=1,
        digest="",
    )


VERDICTS: list[LineVerdict] = [*VERDICT_NAMES, ""]
ENTRANTS = st.lists(
    st.tuples(st.sampled_from(VERDICTS), st.sampled_from(["a", "b", "c"])),
    max_size=30,
).map(lambda drawn: [entrant(number, *one) for number, one in enumerate(drawn)])


@given(ENTRANTS)
def test_each_is_in_one_pair_at_most_and_the_better_one_is_complete(
    entrants: list[LineRow],
) -> None:
    pairs = pairs_of(entrants)
    used = [row.offset for pair in pairs for row in pair]
    assert len(used) == len(set(used))
    assert [better.offset for better, _ in pairs] == sorted(row.offset for row, _ in pairs)
    for better, worse in pairs:
        assert better.verdict in COMPLETE
        assert worse.verdict in INCOMPLETE
        assert better.opening == worse.opening
    for opening in "abc":
        free = {
            row.verdict for row in entrants if row.opening == opening and row.offset not in used
        }
        assert free.isdisjoint(COMPLETE) or free.isdisjoint(INCOMPLETE)
        taken = {row.verdict for pair in pairs for row in pair if row.opening == opening}
        assert "failed" not in free or "partial" not in taken, "what failed is taken first"
        assert "complete_verified" not in free or "complete_unverified" not in taken


def pairs(*turns: Turn) -> list[dict[str, Any]]:
    return as_form("preference", encode_line(line_of(session("s1", *turns))))


def refusing(words: str) -> ToolCall:
    return replace(REFUSED, result=f"{REFUSED.result} To proceed, the user said:\n{words}")


INSTALL = turn("Install it.", says("On it.", LS), says("Now.", REFUSED))
PNPM = turn("use pnpm", says("Sure.", ACCEPTED), says("Installed."), number=2)


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param((INSTALL, PNPM), id="said in the next prompt"),
        pytest.param(
            (
                turn(
                    "Install it.",
                    says("On it.", LS),
                    says("Now.", refusing("use pnpm")),
                    says("Sure.", ACCEPTED),
                    says("Installed."),
                ),
            ),
            id="said beside the refusal",
        ),
    ],
)
def test_a_refused_call_stands_against_the_one_that_was_accepted(turns: tuple[Turn, ...]) -> None:
    (pair,) = pairs(*turns)
    assert pair["kind"] == "refused"
    assert [one["role"] for one in pair["prompt"]] == ["user", "assistant", "tool", "user"]
    assert pair["prompt"][-1]["content"] == "use pnpm"
    (chosen,), (rejected,) = pair["chosen"], pair["rejected"]
    commands = [
        one["tool_calls"][0]["function"]["arguments"]["command"] for one in (chosen, rejected)
    ]
    assert commands == ["pnpm install", "npm install"]
    assert (chosen["content"], rejected["content"]) == ("Sure.", "Now.")
    assert pair["reasons"] == ["use pnpm"]


def test_words_on_a_refused_first_answer_stand_in_the_request() -> None:
    (pair,) = pairs(turn("Install it.", says("", REFUSED)), PNPM)
    (asked,) = pair["prompt"]
    assert asked["content"].endswith("Install it.\n\nuse pnpm")


READ = call("Read", {"file_path": "a.py"}, "x = 1")


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param((INSTALL, turn("use pnpm", says("Sure.", REFUSED), number=2)), id="refused again"),
        pytest.param((INSTALL, turn("use pnpm", says("Sure.", READ), says("Ok."), number=2)), id="another tool"),
        pytest.param((INSTALL, turn("go on", says("", replace(REFUSED, result="ok", status="ok")), says("Ok."), number=2)), id="the same call"),
        pytest.param((turn("Install it.", says("", LS, REFUSED)), PNPM), id="one of several calls"),
        pytest.param((turn("Install it.", says("", REFUSED), says("", ACCEPTED), says("Ok.")),), id="nobody said why"),
        pytest.param((INSTALL, turn("as here: [Image #1]", says("", ACCEPTED), says("Ok."), number=2)), id="a picture said it"),
        pytest.param((INSTALL,), id="nothing came after"),
    ],
)  # fmt: skip
def test_a_refusal_is_no_pair_where_nothing_says_what_would_have_been_right(
    turns: tuple[Turn, ...],
) -> None:
    assert pairs(*turns) == []


WRONG = turn("No, that is wrong. I meant the other one.", says("The other one is b.py."), number=2)


def asked(*answers: Message) -> tuple[Turn, Turn]:
    return turn("Which file?", *answers), WRONG


def test_an_answer_in_words_that_was_corrected_stands_against_the_one_after() -> None:
    (pair,) = pairs(*asked(says("It is a.py.")))
    assert pair["kind"] == "corrected"
    (question,) = pair["prompt"]
    assert question["content"].endswith("Which file?\n\nNo, that is wrong. I meant the other one.")
    assert [one["content"] for one in pair["chosen"]] == ["The other one is b.py."]
    assert [one["content"] for one in pair["rejected"]] == ["It is a.py."]


def test_work_that_was_corrected_is_no_pair_as_what_came_after_rests_on_it() -> None:
    assert pairs(*asked(says("", LS), says("It is a.py."))) == []


def test_words_are_held_against_words_and_not_against_work() -> None:
    looked = turn(WRONG.prompt, says("Let me look.", LS), says("It is b.py."), number=2)
    assert pairs(turn("Which file?", says("It is a.py.")), looked) == []


def test_a_session_that_nobody_corrected_holds_no_pair() -> None:
    assert pairs(turn("Go.", says("", LS), says("Gone."))) == []


def left(words: str, *answers: Message, number: int = 2) -> Turn:
    return turn(words, *answers, number=number, rewound=True)


BEGUN = turn("Look around.", says("", LS), says("There is a.py."))
STAYED = turn("Now fix it.", says("", ACCEPTED), says("Fixed, and it passes."), number=3)
AFTER = turn("Thanks. And why?", says("It counted one too many."), number=4)


def exported(folder: Path, *turns: Turn, **options: Any) -> list[dict[str, Any]]:
    lake = lake_of(folder / "lake", [session("s1", *turns)])
    stored(lake, eval_share=0.0)
    asked_for = ExportOptions(form="preference", one_file=True, **options)
    publish(lake, str(folder / "out"), asked_for)
    path = folder / "out" / "train.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    assert [
        problem for line in lines for problem in problems("preference", f"{line}\n".encode())
    ] == []
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("single_calls", [False, True])
def test_a_turn_that_was_left_stands_against_the_one_with_its_words_that_stayed(
    tmp_path: Path, single_calls: bool
) -> None:
    both = says("Let me see.", LS, call("Read", {"file_path": "a.py"}, "x = 1"))
    turns = (BEGUN, left("Now  fix it.", both, says("I removed the test.")), STAYED, AFTER)
    (pair,) = exported(tmp_path, *turns, single_calls=single_calls)
    assert pair["kind"] == "rewound"
    assert [one["role"] for one in pair["prompt"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert pair["chosen"][-1]["content"] == "Fixed, and it passes."
    assert pair["rejected"][-1]["content"] == "I removed the test."
    calls = [len(one.get("tool_calls", ())) for one in pair["rejected"] if one["role"] != "tool"]
    assert calls == ([1, 1, 0] if single_calls else [2, 0])


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param((BEGUN, left("Fix it, but differently.", says("Ok.")), STAYED), id="other words"),
        pytest.param((BEGUN, left("Now fix it."), STAYED), id="no answer"),
        pytest.param((BEGUN, left("Now fix it.", says("The key is q7Zr2Lx9Vw4Ty8Kb3Nf6Hd1Js5Gm0Pc.")), STAYED), id="what may be a secret"),
        pytest.param((BEGUN, left("Now fix it.", says("Ok.")), STAYED, replace(WRONG, number=4)), id="the one that stayed was corrected"),
    ],
)  # fmt: skip
def test_a_turn_that_was_left_is_no_pair_where_the_other_is_not_the_better_answer(
    tmp_path: Path, turns: tuple[Turn, ...]
) -> None:
    assert exported(tmp_path, *turns) == []
