from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.errors import ConfigurationError
from debrief.lake import Lake
from debrief.scoring.llm_review import SessionReview, TrainOn
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import VERDICT_LABELS, SessionVerdict, VerdictName
from debrief.sessions.model import Session
from debrief.settings import load_settings
from debrief.signals.schema import SessionSignals
from debrief.training.kinship import Kinship, SessionTraits, traits_of
from debrief.training.model import Exclusion
from debrief.training.options import TrainingOptions, options_chosen, training_options
from debrief.training.selection import (
    CONTRADICTED,
    NEAR_DUPLICATE,
    NO_ANSWER,
    NO_CHANGE,
    NO_METADATA,
    NO_REQUEST,
    NO_VALIDATION,
    NOT_REVIEWED,
    NOT_SUCCEEDED,
    OTHER_MODEL,
    OTHER_TOOL,
    OUT_OF_DATES,
    UNFIT,
    UNSURE,
    Candidate,
    SelectionResult,
    candidate_of,
    counted,
    resolve_unreviewed,
    select,
)
from debrief.training.splits import BY_WEEK
from tests.training.scenario import (
    MONDAY,
    call,
    checked,
    metadata,
    outcome,
    said,
    says,
    scores,
    session,
    signals,
    turn,
)

Given = tuple[Candidate, SessionTraits]


def candidate(of: Session, quality: float | None = 0.7, **fields: Any) -> Given:
    fields.setdefault("metadata", metadata(of))
    fields.setdefault("scores", scores(of, quality))
    known = traits_of(of)
    return candidate_of(known, **fields), known


def chosen(*given: Given, elsewhere: Sequence[Session] = (), **options: Any) -> SelectionResult:
    kinship = Kinship([*(known for _, known in given), *map(traits_of, elsewhere)])
    return select([one for one, _ in given], training_options(options), kinship)


CHECK = call(arguments={"command": "cd app && uv run pytest -q"})
TESTED = session("tested", turn("Fix it.", says("", CHECK), says("Ok.")))
REFUSED_CHECK = call(arguments={"command": "pytest"}, result=None, status="rejected")
REFUSED = session("s", turn("Go.", says("", REFUSED_CHECK), says("Fine.")))


@pytest.mark.parametrize(
    ("awkward", "options", "reason"),
    [
        pytest.param(candidate(session(), metadata=None), {}, NO_METADATA, id="no metadata"),
        pytest.param(candidate(session(), scores=None), {}, NOT_REVIEWED, id="nobody spoke"),
        pytest.param(candidate(session(), scores=None), {"verdicts": ()}, NOT_REVIEWED, id="nobody spoke, any verdict"),
        pytest.param(candidate(session("s", turn("Hello?"))), {}, NO_ANSWER, id="no answer"),
        pytest.param(candidate(session("s", turn("Go.", says("Done."), rewound=True))), {}, NO_ANSWER, id="all rewound"),
        pytest.param(candidate(session("s", turn("", says("On it."), number=0), turn("Bye.", number=2))), {}, NO_REQUEST, id="nobody asked for what was done"),
        pytest.param(candidate(session()), {"tools": ("droid",)}, OTHER_TOOL, id="another tool"),
        pytest.param(candidate(session()), {"models": ("haiku",)}, OTHER_MODEL, id="another model"),
        pytest.param(candidate(session()), {"since": date(2026, 1, 6)}, OUT_OF_DATES, id="too early"),
        pytest.param(candidate(session()), {"until": date(2026, 1, 4)}, OUT_OF_DATES, id="too late"),
        pytest.param(candidate(session(), 0.59), {"min_overall_quality": 0.6}, Exclusion("quality", "0.6"), id="not good enough"),
        pytest.param(candidate(session(), None), {"min_overall_quality": 0.1}, Exclusion("quality", "0.1"), id="no quality where one is asked for"),
        pytest.param(candidate(session()), {"require_change": True}, NO_CHANGE, id="no change"),
        pytest.param(candidate(session()), {"require_validation": True}, NO_VALIDATION, id="no test ran"),
        pytest.param(candidate(REFUSED), {"require_validation": True}, NO_VALIDATION, id="a refused call tested nothing"),
        pytest.param(candidate(session(unsure_redactions=1)), {}, UNSURE, id="unsure redaction"),
    ],
)  # fmt: skip
def test_a_session_is_left_out_for_a_reason(
    awkward: Given, options: dict[str, Any], reason: Exclusion
) -> None:
    outcome = chosen(awkward, **options)
    assert outcome.selected == ()
    assert outcome.left_out == {awkward[0].session_id: reason}


@pytest.mark.parametrize(
    ("fitting", "options"),
    [
        pytest.param(candidate(session()), {}, id="an ordinary session"),
        pytest.param(candidate(session(), 0.0), {}, id="the worst quality"),
        pytest.param(candidate(session(), None), {}, id="no overall quality"),
        pytest.param(candidate(session(), 0.6), {"min_overall_quality": 0.6}, id="just good enough"),
        pytest.param(candidate(session(lines_removed=1)), {"require_change": True}, id="a change"),
        pytest.param(candidate(TESTED), {"require_validation": True}, id="a test run"),
        pytest.param(candidate(session(unsure_redactions=1)), {"allow_unsure_redactions": True}, id="reviewed"),
        pytest.param(candidate(session()), {"since": date(2026, 1, 5), "until": date(2026, 1, 5)}, id="both days included"),
        pytest.param(candidate(session()), {"tools": ("claude-code",), "models": ("opus",)}, id="tool and model"),
    ],
)  # fmt: skip
def test_a_session_is_selected(fitting: Given, options: dict[str, Any]) -> None:
    assert chosen(fitting, **options).left_out == {}


OPEN = session("open", turn("Fix it.", says("On it.", call(arguments={"command": "make"}))))


YES, NO = outcome(True), outcome(False)
RELEASED = metadata(OPEN, status="ready")


def judged(verdict: VerdictName, **fields: Any) -> Given:
    """A session that a review gave a verdict, without a quality."""
    of = fields.pop("of", session())
    return candidate(of, scores=scores(of, None, verdict=said(verdict)), **fields)


@pytest.mark.parametrize(
    ("given", "options", "taken"),
    [
        (judged("complete_verified"), {}, True),
        (judged("complete_unverified"), {}, True),
        (judged("undetermined"), {}, False),
        (judged("undetermined"), {"verdicts": ("undetermined",)}, True),
        (judged("partial"), {}, False),
        (judged("failed"), {}, False),
        (judged("failed"), {"verdicts": ("partial", "failed")}, True),
        (judged("failed"), {"verdicts": ()}, True),
        (judged("complete_unverified"), {"verdicts": ("complete_verified",)}, False),
        (judged("partial", outcome=YES), {"verdicts": ("complete_verified",)}, True),
        (judged("complete_verified", outcome=NO), {}, False),
        (judged("failed", outcome=outcome(True, "view")), {}, True),
        (
            judged("undetermined", of=OPEN, metadata=RELEASED),
            {"verdicts": ("complete_verified",)},
            True,
        ),
        (judged("partial", of=OPEN, metadata=RELEASED), {}, False),
    ],
)
def test_what_is_not_complete_is_left_out_unless_it_is_asked_for(
    given: Given, options: dict[str, Any], taken: bool
) -> None:
    id_, verdict = given[0].session_id, given[0].verdict
    assert verdict is not None
    assert chosen(given, **options).left_out == (
        {} if taken else {id_: Exclusion("verdict", VERDICT_LABELS[verdict.verdict])}
    )


STOPPED = SessionVerdict(
    verdict="partial",
    basis="review",
    source="judge-1",
    stated="complete_verified",
    objection="failed_check",
)


@pytest.mark.parametrize("verdicts", [("complete_verified",), ("partial",), ()])
def test_a_review_that_a_failed_check_contradicts_is_never_trained_on(
    verdicts: tuple[VerdictName, ...],
) -> None:
    of = session()
    given = candidate(of, scores=scores(of, verdict=STOPPED))
    assert chosen(given, verdicts=verdicts).left_out == {"s1": CONTRADICTED}
    by_person = candidate(of, scores=scores(of, verdict=STOPPED), outcome=outcome(True, "view"))
    assert chosen(by_person, verdicts=("complete_verified",)).left_out == {}


def unreviewed(of: SessionSignals | None) -> Given:
    return candidate(session(), scores=None, signals=of)


@pytest.mark.parametrize(
    ("seen", "against"),
    [
        (signals(session()), ""),
        (signals(session(), "refusal", checks=checked(True)), ""),
        (signals(session(), "interruption", "correction"), "correction"),
        (signals(session(), "destructive"), "destructive"),
        (signals(session(), checks=checked(False)), "failed check"),
        (signals(session(), ending="limit"), "ending: limit"),
        (None, "no signals yet"),
    ],
)
def test_what_nobody_reviewed_is_taken_on_request_unless_a_signal_speaks_against_it(
    seen: SessionSignals | None, against: str
) -> None:
    assert chosen(unreviewed(seen)).left_out == {"s1": NOT_REVIEWED}
    expected = {"s1": Exclusion("signals", against)} if against else {}
    assert chosen(unreviewed(seen), unreviewed=True).left_out == expected


def test_signals_do_not_speak_where_somebody_has_spoken() -> None:
    of = session()
    given = candidate(of, scores=scores(of), signals=signals(of, "correction"))
    assert chosen(given).left_out == {}
    no = candidate(of, scores=scores(of, verdict=said("failed")), signals=signals(of))
    assert chosen(no, unreviewed=True).selected == ()


def test_what_its_owner_released_needs_no_verdict() -> None:
    assert chosen(candidate(OPEN, scores=None, metadata=RELEASED)).left_out == {}


def test_unreviewed_sessions_are_taken_only_while_no_model_has_reviewed_any(
    tmp_path: Path,
) -> None:
    lake, default = Lake(str(tmp_path)), TrainingOptions()
    assert resolve_unreviewed(lake, default).unreviewed is True
    failed = scores(session(), None, status="failed", verdict=None)
    lake.write("session_scores", "2026-01-05", [failed], SessionScores)
    assert resolve_unreviewed(lake, default).unreviewed is True
    lake.write("session_scores", "2026-01-05", [failed, scores(session("s2"))], SessionScores)
    assert resolve_unreviewed(lake, default).unreviewed is False
    for said_so in (True, False):
        asked = TrainingOptions(unreviewed=said_so)
        assert resolve_unreviewed(lake, asked) == asked


def test_a_review_may_say_that_nothing_is_to_be_learned() -> None:
    of = session()
    review = SessionReview(verdict="complete_unverified", train=TrainOn(what="none"))
    assert chosen(candidate(of, scores=scores(of, review=review))).left_out == {"s1": UNFIT}


def test_filters_by_outcome() -> None:
    known = candidate(session())
    assert chosen(known, outcome="succeeded").left_out == {"s1": NOT_SUCCEEDED}
    assert chosen(candidate(session(), outcome=YES), outcome="succeeded").left_out == {}


def test_of_a_repository_those_that_are_complete_and_verified_are_kept_first() -> None:
    checked = session("checked")
    outcome = chosen(
        candidate(
            session("good"), scores=scores(checked, 0.9, verdict=said("complete_unverified"))
        ),
        candidate(checked, scores=scores(checked, None)),
        max_per_repository=1,
    )
    assert [one.session_id for one in outcome.selected] == ["checked"]


def test_of_each_repository_the_best_are_kept() -> None:
    outcome = chosen(
        candidate(session("low"), 0.2),
        candidate(session("high"), 0.9),
        candidate(session("mid"), 0.5),
        candidate(session("other", repository="docs"), 0.1),
        max_per_repository=2,
    )
    assert [one.session_id for one in outcome.selected] == ["high", "mid", "other"]
    assert outcome.left_out == {"low": Exclusion("cap", "2")}


def test_the_later_of_two_copies_is_dropped() -> None:
    first = session("first")
    second = session("second", *first.turns, started=MONDAY + timedelta(minutes=1))
    assert chosen(candidate(second), candidate(first)).left_out == {"second": NEAR_DUPLICATE}
    kept = chosen(candidate(second), candidate(first), near_duplicates="keep")
    assert len(kept.selected) == 2


@st.composite
def crowds(draw: st.DrawFn) -> list[Given]:
    words = st.sampled_from(["fix the loop", "add a test", "rename it", "why is that", "undo"])
    made = []
    for number in range(draw(st.integers(1, 12))):
        prompts = draw(st.lists(words, min_size=1, max_size=3))
        of = session(
            f"s{number}",
            *(turn(text, says(f"{text}: done")) for text in prompts),
            started=MONDAY + timedelta(days=draw(st.integers(0, 80))),
            repository=draw(st.sampled_from(["shop", "docs", ""])),
        )
        made.append(candidate(of, draw(st.none() | st.floats(0, 1))))
    return made


@given(crowds(), st.sampled_from(["drop", "keep"]), st.sampled_from([None, 2]), st.randoms())
@settings(deadline=None, max_examples=20)
def test_everybody_is_selected_or_left_out_in_any_order(
    crowd: list[Given], near_duplicates: str, cap: int | None, random: Any
) -> None:
    options: dict[str, Any] = {"near_duplicates": near_duplicates, "max_per_repository": cap}
    outcome = chosen(*crowd, **options)
    names = [one.session_id for one in outcome.selected]
    assert sorted([*names, *outcome.left_out]) == sorted(one.session_id for one, _ in crowd)
    random.shuffle(crowd)
    assert chosen(*crowd, **options) == outcome
    assert sum(row.count for row in counted(outcome.left_out)) == len(outcome.left_out)


@given(crowds(), st.integers(0, 12), st.sampled_from(["drop", "keep"]))
@settings(deadline=None, max_examples=20)
def test_no_old_session_leaves_for_one_that_starts_later(
    crowd: list[Given], count: int, near_duplicates: str
) -> None:
    crowd.sort(key=lambda one: (one[0].traits.started, one[0].session_id))
    options: dict[str, Any] = {"near_duplicates": near_duplicates}
    before = {one.session_id for one in chosen(*crowd[:count], **options).selected}
    after = {one.session_id for one in chosen(*crowd, **options).selected}
    assert before <= after


def options(at_launch: Mapping[str, object], **values: str) -> TrainingOptions:
    named = {f"DEBRIEF_TRAINING_{name.upper()}": value for name, value in values.items()}
    return options_chosen(load_settings({"DEBRIEF_HOME": "/none", **named}), at_launch)


@pytest.mark.parametrize(
    ("values", "option", "value"),
    [
        ({"min_overall_quality": "0.6"}, "min_overall_quality", 0.6),
        ({"status": "ready"}, "status", "ready"),
        ({"require_change": "1"}, "require_change", True),
        ({"tools": "claude-code, codex,"}, "tools", ("claude-code", "codex")),
        ({"since": "2026-10-05"}, "since", date(2026, 10, 5)),
        ({"verdicts": "partial, failed"}, "verdicts", ("partial", "failed")),
        ({"unreviewed": "yes"}, "unreviewed", True),
        ({"unreviewed": "0"}, "unreviewed", False),
        ({"max_tokens": "8192"}, "max_tokens", 8192),
        ({"max_tokens": "0"}, "max_tokens", None),
        ({"eval_share": "0"}, "eval_share", 0.0),
        ({"status": " "}, "status", "any"),
    ],
)
def test_a_setting_chooses_for_every_launch(
    values: dict[str, str], option: str, value: object
) -> None:
    assert getattr(options({}, **values), option) == value


def test_what_is_given_at_launch_comes_before_a_setting() -> None:
    given: dict[str, Any] = {"status": "any", "max_tokens": 0, "tools": [], "models": None}
    chosen = options(given, status="ready", max_tokens="8192", tools="codex", models="opus")
    assert chosen == TrainingOptions(models=("opus",))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"max_token": "8192"}, "DEBRIEF_TRAINING_MAX_TOKEN: is no setting"),
        ({"status": "done"}, "status"),
        ({"verdicts": "done"}, "verdicts"),
        ({"since": "yesterday"}, "since"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"min_overall_quality": "1.1"}, "min_overall_quality"),
        ({"max_per_repository": "-1"}, "max_per_repository"),
        ({"eval_share": "1"}, "eval_share"),
    ],
)
def test_a_setting_that_makes_no_sense_is_told(values: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        options({}, **values)
    with pytest.raises(ConfigurationError, match="tool"):
        options({"tool": "droid"})


MOMENTS = st.integers(0, 10**8).map(lambda seconds: MONDAY + timedelta(seconds=seconds))


def test_a_repository_s_week_is_on_one_side_and_about_the_share_asked_for_on_the_other() -> None:
    assert (
        len({BY_WEEK.side_of("shop", MONDAY + timedelta(hours=hours)) for hours in range(150)}) == 1
    )
    sides = [BY_WEEK.side_of(f"repo{number}", MONDAY, 0.2) for number in range(5_000)]
    assert 0.18 < sides.count("eval") / len(sides) < 0.22


@given(st.text(), MOMENTS)
def test_a_greater_share_takes_from_training_alone(repository: str, moment: datetime) -> None:
    sides = [BY_WEEK.side_of(repository, moment, share) for share in (0.0, 0.1, 0.5, 0.9)]
    assert sides == sorted(sides, reverse=True)
    assert sides[0] == "train"
