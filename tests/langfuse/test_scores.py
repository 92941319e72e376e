"""Scores to Langfuse: written once, read back, and never lost without a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from debrief.langfuse import scores
from debrief.langfuse.client import LangfuseClient
from debrief.langfuse.outgoing import (
    LONGEST_COMMENT,
    NAMES,
    VERDICT,
    ScoreReceipt,
    ToScore,
    UnreviewedSession,
    evidence_link,
    outgoing_scores,
    plain_comment,
)
from debrief.langfuse.scores import WriteOptions
from debrief.redaction.redactor import Redactor
from debrief.scoring.dimensions import OVERALL
from debrief.scoring.verdict import VERDICT_NAMES, SessionVerdict
from debrief.sessions.model import Evidence
from tests.langfuse.scenario import START, Clock, client_of, failed, scored
from tests.langfuse.server import TAKEN, Json, LangfuseServer, Mode, Trouble, Wire

EVERYWHERE = WriteOptions(all_sessions=True, now=lambda: START)
ALL = len(NAMES)
KNOWN = replace(EVERYWHERE, all_sessions=False)


def write_scores(
    client: LangfuseClient,
    rows: Iterable[ToScore],
    previous: Sequence[ScoreReceipt] = (),
    **more: Any,
) -> list[ScoreReceipt]:
    return scores.write_scores(client, rows, previous, **{"options": EVERYWHERE, **more})


def after(days: float, options: WriteOptions = EVERYWHERE) -> WriteOptions:
    return replace(options, now=lambda: START + timedelta(days=days))


def holds(server: LangfuseServer, session: str = "s1", **fields: Any) -> None:
    """Let a server have an observation of a session."""
    at = f"2026-10-05T12:0{len(server.observations)}:00.000Z"
    row = {"id": "o1", "traceId": "t1", "sessionId": session, "startTime": at, **fields}
    server.observations.append(row)
    server.traces.append({**row, "id": row["traceId"], "timestamp": at})


def values_of(server: LangfuseServer) -> dict[str, object]:
    return {score["name"]: score["value"] for score in server.scores.values()}


@pytest.mark.parametrize("wire", ["object", "list"])
@pytest.mark.parametrize("mode", ["events_only", "dual", "old"])
def test_a_sessions_verdict_and_seven_scores_are_written_and_read_back(
    mode: Mode, wire: Wire
) -> None:
    with LangfuseServer(mode, wire, looks=2) as server:
        receipts = write_scores(client_of(server), [scored()])
    assert [receipt.name for receipt in receipts] == list(NAMES)
    assert {receipt.status for receipt in receipts} == {"written"}
    assert {receipt.host for receipt in receipts} == {server.host}
    kept = server.scores[receipts[1].score_id]
    assert (kept["sessionId"], kept["name"], kept["value"]) == ("s1", "task_completion", "complete")
    assert kept["metadata"]["week"] == "2026-10-05"
    assert "seen in turn 1" in kept["comment"]
    assert "Evidence: session s1, turn 1\n" in kept["comment"]
    assert kept["comment"].endswith(f"\n{server.host}/project/p1/sessions/s1")
    assert kept["metadata"]["uncertain"] is False
    assert server.scores[receipts[-1].score_id]["value"] == pytest.approx(0.698)


def test_a_server_that_takes_no_lists_is_asked_once(server: LangfuseServer) -> None:
    client = client_of(server)
    write_scores(client, [scored(f"s{n}") for n in range(20)])
    lists = [r for r in server.sent("POST", "/scores") if isinstance(r.body, list)]
    assert len(lists) == 1
    assert client.takes_lists is False
    assert len(server.scores) == 20 * ALL


def test_a_server_that_takes_lists_gets_few_requests() -> None:
    with LangfuseServer(wire="list") as server:
        receipts = write_scores(client_of(server), [scored(f"s{n}") for n in range(20)])
    assert len(server.sent("POST", "/scores")) == 4
    assert {receipt.status for receipt in receipts} == {"written"}


def test_configs_are_made_once_and_found_on_a_second_page(server: LangfuseServer) -> None:
    write_scores(client_of(server), [scored("s1")])
    ours, server.configs = server.configs, []
    for number in range(150):
        server.add_config(name=f"other {number}", dataType="NUMERIC")
    server.configs += ours
    write_scores(client_of(server), [scored("s2")])
    assert Counter(config["name"] for config in server.configs[150:]) == Counter(NAMES)


def test_a_changed_score_is_updated_in_place(server: LangfuseServer) -> None:
    first = write_scores(client_of(server), [scored()])
    row = scored()
    changed = replace(row.dimension_scores[1], value=0.1)
    row = replace(
        row, dimension_scores=(row.dimension_scores[0], changed, *row.dimension_scores[2:])
    )
    second = write_scores(client_of(server), [row], first)
    assert [r.score_id for r in second] == [r.score_id for r in first]
    assert values_of(server)["execution_quality"] == 0.1
    assert len(server.scores) == ALL


def test_an_update_that_is_not_shown_yet_is_not_confirmed_by_the_score_before_it(
    server: LangfuseServer,
) -> None:
    first = write_scores(client_of(server), [scored()])
    before = {identity: dict(kept) for identity, kept in server.scores.items()}
    write_scores(client_of(server), [scored(model="better")], first)
    server.scores = before
    options = replace(after(2), read_back_within=0)
    server.drops = set(NAMES)
    (receipt, *_) = write_scores(
        client_of(server), [scored(model="better")], first, options=options
    )
    assert (receipt.status, receipt.reason) == ("unconfirmed", "the server shows an earlier one")


def test_what_a_server_lost_is_noticed_once_a_day_and_written_again(server: LangfuseServer) -> None:
    first = write_scores(client_of(server), [scored()])
    del server.scores[first[2].score_id]
    asked = len(server.requests)
    same = write_scores(client_of(server), [scored()], first, options=after(0.9))
    assert (same, len(server.requests)) == (first, asked)
    again = write_scores(client_of(server), [scored()], first, options=after(1))
    assert (
        len(server.sent("POST", "/scores")) == ALL + 1 + 2
    )  # the first of each is tried as a list
    assert server.sent("POST", "/scores")[-1].body["name"] == NAMES[2]
    assert {r.status for r in again} == {"written"}
    assert len(server.scores) == ALL
    asked = len(server.requests)
    write_scores(client_of(server), [scored()], again, options=after(1.5))
    assert len(server.requests) == asked


def test_a_session_that_the_server_does_not_have_is_sent_once_it_does(
    server: LangfuseServer,
) -> None:
    holds(server, "s1")
    rows = [scored("s1"), scored("s2")]
    first = write_scores(client_of(server), rows, options=KNOWN)
    assert [r.status for r in first] == ["written"] * ALL + ["kept"] * ALL
    assert {kept["sessionId"] for kept in server.scores.values()} == {"s1"}
    asked = len(server.requests)
    assert write_scores(client_of(server), rows, first, options=KNOWN) == first
    assert len(server.requests) == asked
    holds(server, "s2")
    second = write_scores(client_of(server), rows, first, options=after(1, KNOWN))
    assert {r.status for r in second} == {"written"}


def test_a_setting_sends_what_was_kept(server: LangfuseServer) -> None:
    first = write_scores(client_of(server), [scored()], options=KNOWN)
    assert server.scores == {}
    assert {r.status for r in write_scores(client_of(server), [scored()], first)} == {"written"}


@pytest.mark.parametrize("mode", ["events_only", "dual", "old"])
def test_scores_stand_in_the_environment_of_their_session(mode: Mode) -> None:
    with LangfuseServer(mode) as server:
        holds(server, environment="staging")
        write_scores(client_of(server), [scored()], options=KNOWN)
        assert {kept["environment"] for kept in server.scores.values()} == {"staging"}


def test_two_who_make_a_config_at_once_come_to_use_the_same(server: LangfuseServer) -> None:
    theirs = {"name": "tool_mastery", "dataType": "NUMERIC", "createdAt": TAKEN}
    post = server.add_config

    def both(**config: Any) -> Json:
        if config["name"] == "tool_mastery":
            post(**theirs)
        return post(**config)

    server.add_config = both  # type: ignore[method-assign]
    write_scores(client_of(server), [scored()])
    first, second = (config for config in server.configs if config["name"] == "tool_mastery")
    assert (first["isArchived"], second["isArchived"]) == (False, True)
    (kept,) = (score for score in server.scores.values() if score["name"] == "tool_mastery")
    assert kept["configId"] == first["id"]


def test_a_dimension_without_a_value_writes_no_score(server: LangfuseServer) -> None:
    row = scored()
    nothing = replace(row.dimension_scores[2], value=None, category=None)
    given = replace(
        row, dimension_scores=(*row.dimension_scores[:2], nothing, *row.dimension_scores[3:])
    )
    written = {receipt.name for receipt in write_scores(client_of(server), [given])}
    assert len(written) == ALL - 1
    assert nothing.dimension not in written


TOLD = SessionVerdict(
    verdict="partial",
    basis="review",
    source="judge <b>",
    stated="complete_verified",
    objection="failed_check",
    evidence=(Evidence(3, "c1", "hush, 1 failed"), Evidence(4)),
)


def test_the_verdict_is_a_category_with_its_basis_beside_it(server: LangfuseServer) -> None:
    row = replace(scored(), verdict=TOLD)
    client = client_of(server)
    first = write_scores(client, [row], redact=lambda text: text.replace("hush", "****"))
    (kept,) = (score for score in server.scores.values() if score["name"] == VERDICT)
    assert (kept["value"], kept["dataType"]) == ("partial", "CATEGORICAL")
    assert kept["comment"].startswith(
        "Reviewed by judge ‹b›. It says complete, verified; the last check failed (turns 3, 4: "
        "“****, 1 failed”)."
    )
    assert kept["metadata"]["basis"] == "review"
    assert "Evidence: session s1, turns 3, 4\n" in kept["comment"]
    (config,) = (config for config in server.configs if config["name"] == VERDICT)
    assert {one["label"] for one in config["categories"]} == set(VERDICT_NAMES)
    later = replace(row, verdict=replace(TOLD, verdict="complete_verified"))
    second = write_scores(client, [later], first)
    assert [receipt.score_id for receipt in second] == [receipt.score_id for receipt in first]
    assert values_of(server)[VERDICT] == "complete_verified"


def test_a_persons_verdict_comes_before_the_reviews_and_names_no_reviewer(
    server: LangfuseServer,
) -> None:
    person = SessionVerdict(verdict="failed", basis="person", source="ann")
    row, client = replace(scored(), verdict=TOLD), client_of(server)
    first = write_scores(client, [row])
    second = write_scores(client, [row], first, verdicts={"s1": person})
    assert [receipt.score_id for receipt in second] == [receipt.score_id for receipt in first]
    (kept,) = (score for score in server.scores.values() if score["name"] == VERDICT)
    assert (kept["value"], kept["metadata"]["basis"]) == ("failed", "person")
    assert kept["metadata"]["scorer"] == ""
    assert "ann said so" in kept["comment"]
    assert "some-model" not in kept["comment"]
    assert values_of(server)["tool_mastery"] is not None, "the review's other scores stay"


BARE = UnreviewedSession(session_id="s1", started=START, task="shop", tool="codex")


def test_a_session_without_a_review_sends_the_verdict_of_a_person_and_nothing_more(
    server: LangfuseServer,
) -> None:
    client = client_of(server)
    assert write_scores(client, [BARE]) == []
    assert server.requests == []
    outcome = SessionVerdict(verdict="complete_verified", basis="outcome", source="ci")
    first = write_scores(client, [BARE], verdicts={"s1": outcome})
    assert values_of(server) == {VERDICT: "complete_verified"}
    (kept,) = server.scores.values()
    assert kept["comment"].startswith("Outcome: CI.\n")
    assert (kept["metadata"]["basis"], kept["metadata"]["task"]) == ("outcome", "shop")
    withdrawn = write_scores(client, [BARE], first)
    assert [receipt.score_id for receipt in withdrawn] == [receipt.score_id for receipt in first]
    (kept,) = server.scores.values()
    assert kept["metadata"]["outdated"] is True
    assert kept["comment"].startswith("Outdated: nobody gives this now.")


def test_a_mean_is_sent_only_where_there_is_one_and_says_of_how_few_it_is() -> None:
    row = scored()
    few = [replace(verdict, value=None, category=None) for verdict in row.dimension_scores[2:]]
    row = replace(row, dimension_scores=(*row.dimension_scores[:2], *few))
    *_, mean = outgoing_scores(row)
    assert (mean.name, mean.comment.splitlines()[0]) == (OVERALL, "Mean of 2 dimensions")
    assert "tool_mastery: –" in mean.comment
    without = {score.name for score in outgoing_scores(replace(row, overall_quality=None))}
    assert without == {VERDICT, "task_completion", "execution_quality"}


def test_a_session_whose_review_failed_sends_nothing(server: LangfuseServer) -> None:
    assert write_scores(client_of(server), [failed()]) == []
    assert server.requests == []


def test_a_server_that_is_away_leaves_failed_receipts_for_the_next_run() -> None:
    with LangfuseServer() as gone:
        pass
    clock = Clock()
    first = write_scores(client_of(gone, clock), [scored("s1"), scored("s2")])
    assert len(first) == 2 * ALL
    assert {receipt.status for receipt in first} == {"failed"}
    assert all("cannot be reached" in receipt.reason for receipt in first)
    assert 3 <= len(clock.waits) <= 6  # for both sessions at once
    with LangfuseServer() as server:
        second = write_scores(client_of(server), [scored("s1"), scored("s2")], first)
    assert {receipt.status for receipt in second} == {"written"}
    assert len(second) == 2 * ALL


def test_a_server_that_goes_away_midway_costs_only_what_was_not_sent() -> None:
    with LangfuseServer(wire="list") as server:
        write_scores(client_of(server), [scored("warm-up")])
        server.scores.clear()
        client = client_of(server)
        server.trouble = [Trouble(503, method="POST")] * 4
        receipts = write_scores(client, [scored("s1")])
        assert {receipt.status for receipt in receipts} == {"failed"}
        assert all("stayed busy: 503" in receipt.reason for receipt in receipts)
        again = write_scores(client, [scored("s1")], receipts)
    assert {receipt.status for receipt in again} == {"written"}


@pytest.mark.parametrize(("headers", "least"), [({"Retry-After": "7"}, 7.0), ({}, 0.0)])
def test_a_busy_server_is_waited_for_and_gets_each_score_once(
    server: LangfuseServer, headers: dict[str, str], least: float
) -> None:
    clock = Clock()
    server.trouble = [Trouble(429, headers, method="POST") for _ in range(3)]
    receipts = write_scores(client_of(server, clock), [scored()])
    assert {receipt.status for receipt in receipts} == {"written"}
    assert len(server.scores) == ALL
    assert all(wait >= least for wait in clock.waits[:3])


@pytest.mark.parametrize("wire", ["object", "list"])
def test_a_score_that_the_server_drops_in_silence_is_not_called_written(wire: Wire) -> None:
    with LangfuseServer(wire=wire) as server:
        server.drops = {"task_completion"}
        receipts = write_scores(client_of(server), [scored()])
    by_name = {receipt.name: receipt for receipt in receipts}
    assert by_name["task_completion"].status == "unconfirmed"
    assert "does not show it" in by_name["task_completion"].reason
    assert by_name["tool_mastery"].status == "written"


def test_a_dropped_score_is_waited_for_no_longer_than_agreed(server: LangfuseServer) -> None:
    server.looks = 10_000
    clock = Clock()
    options = replace(EVERYWHERE, read_back_within=12)
    receipts = write_scores(client_of(server, clock), [scored()], options=options)
    assert {receipt.status for receipt in receipts} == {"unconfirmed"}
    assert sum(clock.waits) == pytest.approx(12)


def test_an_unconfirmed_score_is_sent_again_by_the_next_run(server: LangfuseServer) -> None:
    server.looks = 10_000
    options = replace(EVERYWHERE, read_back_within=1)
    first = write_scores(client_of(server), [scored()], options=options)
    server.looks = 0
    second = write_scores(client_of(server), [scored()], first)
    assert {receipt.status for receipt in second} == {"written"}
    assert len(second) == len(server.scores) == ALL


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("task_completion", {"dataType": "NUMERIC"}),
        (
            "task_completion",
            {"dataType": "CATEGORICAL", "categories": [{"label": "failed", "value": 0}]},
        ),
        ("task_completion", {"dataType": "BOOLEAN"}),
        ("tool_mastery", {"dataType": "NUMERIC", "minValue": 0.5, "maxValue": 1}),
    ],
    ids=["type", "categories", "boolean", "range"],
)
def test_a_foreign_config_of_our_name_is_left_alone(
    server: LangfuseServer, name: str, config: dict[str, object]
) -> None:
    server.add_config(name=name, **config)
    receipts = {r.name: r for r in write_scores(client_of(server), [scored()])}
    assert receipts[name].status == "failed"
    assert "another type, range or categories" in receipts[name].reason
    assert receipts["overall_quality"].status == "written"
    assert len([c for c in server.configs if c["name"] == name]) == 1


def test_an_archived_config_is_made_anew(server: LangfuseServer) -> None:
    server.add_config(name="task_completion", dataType="BOOLEAN", isArchived=True)
    receipts = write_scores(client_of(server), [scored()])
    assert {receipt.status for receipt in receipts} == {"written"}


@pytest.mark.parametrize(
    ("category", "value"), [("amazing", 1.0), (None, 0.4)], ids=["category", "number"]
)
def test_a_score_that_is_none_is_not_sent(
    server: LangfuseServer, category: str | None, value: float
) -> None:
    row = scored()
    verdict = replace(row.dimension_scores[0], category=category, value=value)
    broken = replace(row, dimension_scores=(verdict, *row.dimension_scores[1:]))
    (receipt,) = write_scores(client_of(server), [broken])
    assert (receipt.status, receipt.name) == ("failed", "task_completion")
    assert receipt.reason.startswith("not sent: ")
    assert server.requests == []


def test_wrong_keys_are_named_and_the_secret_is_not(server: LangfuseServer) -> None:
    client = client_of(server, secret="sk-very-secret")
    receipts = write_scores(client, [scored()])
    assert {receipt.status for receipt in receipts} == {"failed"}
    assert "401 Invalid credentials" in receipts[0].reason
    assert "Check LANGFUSE_PUBLIC_KEY" in receipts[0].reason
    assert "sk-very-secret" not in repr(receipts)
    assert len(server.requests) == 1


@pytest.mark.parametrize("mode", ["events_only", "old"])
def test_scores_may_hang_on_the_first_trace(mode: Mode) -> None:
    with LangfuseServer(mode) as server:
        for trace in ("t-first", "t-second"):
            holds(server, traceId=trace)
        options = replace(EVERYWHERE, score_target="trace")
        rows = [scored("s1"), scored("s2")]
        receipts = write_scores(client_of(server), rows, options=options)
    assert {score["traceId"] for score in server.scores.values()} == {"t-first"}
    assert not any("sessionId" in score for score in server.scores.values())
    assert [receipt.status for receipt in receipts] == ["written"] * ALL + ["failed"] * ALL
    assert "no trace of session s2" in receipts[-1].reason
    link = f"\n{server.host}/project/p1/traces/t-first"
    assert server.scores[receipts[0].score_id]["comment"].endswith(link)


def test_scores_go_to_the_trace_once_that_is_chosen_and_the_earlier_ones_stay() -> None:
    with LangfuseServer() as server:
        for trace in ("t-first", "t-second"):
            holds(server, traceId=trace)
        client, on_trace = client_of(server), replace(KNOWN, score_target="trace")
        label = replace(next(outgoing_scores(scored())), id="label", source="ANNOTATION")
        said: dict[str, Any] = {"annotations": {"s1": [label]}}
        first = write_scores(client, [scored()], options=KNOWN, **said)
        second = write_scores(client, [scored()], first, options=on_trace, **said)
        assert Counter(receipt.status for receipt in second) == {"written": 2 * (ALL + 1)}
        targets = [(s.get("sessionId"), s.get("traceId")) for s in server.scores.values()]
        assert Counter(targets) == {("s1", None): ALL + 1, (None, "t-first"): ALL + 1}
        sent = len(server.requests)
        assert write_scores(client, [scored()], second, options=on_trace, **said) == second
        assert write_scores(client, [scored()], second, options=KNOWN, **said) != second
        assert len(server.requests) == sent
        nothing = replace(scored().dimension_scores[2], value=None, category=None)
        fewer = replace(scored(), dimension_scores=(*scored().dimension_scores[:2], nothing))
        write_scores(client_of(server), [fewer], options=on_trace)
        outdated = [s for s in server.scores.values() if s["metadata"].get("outdated")]
        assert {score.get("traceId") for score in outdated} == {"t-first"}
        assert nothing.dimension in {score["name"] for score in outdated}


def test_a_comment_holds_nothing_that_a_browser_acts_on() -> None:
    text = "<img src=x onerror=1> ![a](https://evil.example/x) `c`\u202e\u200b\x07 HTTP://evil"
    assert plain_comment(text) == (
        "‹img src=x onerror=1› !(a)(https ://evil.example/x) 'c' HTTP ://evil"
    )


def test_a_comment_is_redacted_and_bounded() -> None:
    row = scored()
    verdict = replace(row.dimension_scores[0], rationale="hush " * 5_000)
    row = replace(row, dimension_scores=(verdict, *row.dimension_scores[1:]))
    (_, first, *_) = outgoing_scores(row, redact=lambda text: text.replace("hush", "****"))
    assert len(first.comment) <= LONGEST_COMMENT
    assert "hush" not in first.comment
    assert first.comment.endswith(f"Reviewed by some-model ({row.scoring_fingerprint})")


def test_a_session_with_a_strange_id_is_linked_to_by_its_whole_id() -> None:
    link = evidence_link("https://host", "p 1", {"session_id": "a/b?c#d e"})
    assert link == "https://host/project/p%201/sessions/a%2Fb%3Fc%23d%20e"
    assert evidence_link("https://host", "", {"session_id": "s1"}) == ""


def test_what_should_be_looked_at_is_said_in_comment_and_metadata() -> None:
    row = replace(
        scored(), uncertain=True, chunk_agreement=0.41, injection_suspected=True, chunks=()
    )
    (first, *_) = outgoing_scores(row)
    assert "Uncertain: its 0 parts disagree (agreement 0.41)." in first.comment
    assert "words that look made for a judge" in first.comment
    assert first.metadata["uncertain"] is True
    assert first.metadata["injection_suspected"] is True


def test_a_secret_split_by_what_cannot_be_seen_is_still_taken_out() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    hidden = "\u200b".join((secret[:9], secret[9:]))
    row = scored()
    verdict = replace(row.dimension_scores[0], rationale=f"turn 1 shows {hidden} in a file")
    row = replace(row, dimension_scores=(verdict, *row.dimension_scores[1:]))
    redactor = Redactor(b"k" * 32)
    (_, first, *_) = outgoing_scores(row, redact=lambda text: redactor.redact(text).text)
    assert secret not in first.comment
    assert "‹secret:github-token:" in first.comment
