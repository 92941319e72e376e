"""What stands on a server after several machines and scorers have written: one score each.

The same stories run against a real server, see ``sites``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from debrief.lake import Lake
from debrief.langfuse.outgoing import (
    NAMES,
    OutgoingScore,
    ScoreReceipt,
    score_id,
)
from debrief.langfuse.scores import WriteOptions, write_scores
from debrief.outcomes.labels import annotations_of, labels_from_langfuse
from debrief.outcomes.store import Label, Labels, Source, put_labels
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from tests.langfuse.scenario import scored
from tests.langfuse.sites import ENVIRONMENT, SITES, Site, open_site
from tests.scoring.scenario import session

ALL = len(NAMES)


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with open_site(request.param) as opened:
        yield opened


def row_of(site: Site, model: str = "some-model") -> SessionScores:
    return scored(site.session, model)


def later(days: float) -> WriteOptions:
    return WriteOptions(now=lambda: datetime.now(UTC) + timedelta(days=days))


def statuses(receipts: list[ScoreReceipt]) -> Counter[str]:
    return Counter(receipt.status for receipt in receipts)


def test_another_scorers_scores_take_the_place_of_the_old_and_may_come_back(site: Site) -> None:
    scores, other = row_of(site), replace(row_of(site, "better"), chunk_agreement=0.5)
    first = write_scores(site.client, [scores])
    second = write_scores(site.client, [other], first)
    assert {score["metadata"]["scorer"] for score in site.scores()} == {"better"}
    third = write_scores(site.client, [scores], second)
    assert statuses(third) == {"written": ALL}
    if site.stand_in:
        site.stand_in.two_minutes_pass(30)
    shown = site.scores()
    assert {score["id"] for score in shown} == {score_id(site.session, name) for name in NAMES}
    assert {score["metadata"]["scorer"] for score in shown} == {"some-model"}
    assert {score["metadata"]["chunk_agreement"] for score in shown} == {""}
    assert {score["environment"] for score in shown} == {ENVIRONMENT}
    assert {score["value"] for score in shown if score["name"] == "overall_quality"} == {0.698}


@pytest.mark.parametrize("is_known", [True, False])
def test_a_score_that_the_latest_scoring_does_not_give_says_so(site: Site, is_known: bool) -> None:
    first = write_scores(site.client, [row_of(site)])
    verdicts = tuple(
        replace(verdict, value=None, category=None, rationale="Nothing to go by.")
        if verdict.dimension == "security_compliance"
        else verdict
        for verdict in row_of(site).dimension_scores
    )
    fewer = replace(row_of(site, "another"), dimension_scores=verdicts)
    second = write_scores(site.client, [fewer], first if is_known else ())
    assert statuses(second) == {"written": ALL}
    outdated = [score for score in site.scores() if score["metadata"]["outdated"]]
    assert [(one["name"], one["value"]) for one in outdated] == [
        ("security_compliance", "adequate")
    ]
    assert outdated[0]["comment"].startswith("Outdated: nobody gives this now. Nothing to go by.")
    assert {score["metadata"]["scorer"] for score in site.scores()} == {"another"}
    assert write_scores(site.client, [fewer], second) == second
    write_scores(site.client, [row_of(site)], second)
    assert {score["metadata"]["outdated"] for score in site.scores()} == {False}


def test_machines_that_know_nothing_of_each_other_keep_one_score_each(site: Site) -> None:
    write_scores(site.client, [row_of(site)])
    write_scores(site.client, [row_of(site, "better")])
    assert Counter(score["name"] for score in site.scores()) == dict.fromkeys(NAMES, 1)


def test_what_is_claimed_is_asked_for_a_day_later_and_found(site: Site) -> None:
    first = write_scores(site.client, [row_of(site)])
    assert write_scores(site.client, [row_of(site)], first) == first
    second = write_scores(site.client, [row_of(site)], first, options=later(1.5))
    assert statuses(second) == {"written": ALL}
    assert all(a.checked != b.checked for a, b in zip(first, second, strict=True))


def test_a_session_that_the_server_does_not_have_is_not_sent(site: Site) -> None:
    assert statuses(write_scores(site.client, [scored("of-nobody")])) == {"kept": ALL}


def annotated(site: Site, folder: Path, *labels: Label) -> dict[str, list[OutgoingScore]]:
    lake = Lake(str(folder))
    lake.write("raw_sessions", "2026-10-05", [session(site.session)], Session)
    put_labels(lake, Labels(labels=labels, read={"csv": frozenset([""])}))
    return annotations_of(lake)


def test_peoples_labels_go_out_as_annotations_and_do_not_come_back(
    site: Site, tmp_path: Path
) -> None:
    def label(value: str, name: str, source: Source = "csv", line: int = 0) -> Label:
        return Label(
            session_id=site.session,
            name=name,
            value=value,
            source=source,
            rater="ada",
            line=line,
            loose=name == "thoughts",
        )

    given = (
        label("no", "success", line=1),
        label("yes", "success", line=2),
        label("complete", "task_completion", "person"),
        label("0.8", "score", "person"),
        label("4", "asks-for-proof"),
        label("very good", "asks-for-proof", "person"),
        label("3", "excellence/asks-for-proof"),
        label("7", "overall_quality"),
        label("5", "thoughts", "person"),
        label("yes", "success", "ci"),
        label("no", "success", "langfuse"),
    )
    sent = annotated(site, tmp_path, *given)
    receipts = write_scores(site.client, [row_of(site)], annotations=sent)
    assert statuses(receipts) == {"written": ALL + 4}
    shown = [score for score in site.scores() if score["source"] == "ANNOTATION"]
    assert {(one["name"], one["value"]) for one in shown} == {
        ("success", True),
        ("task_completion", "complete"),
        ("overall_quality", 0.8),
        ("asks-for-proof", 4.0),
    }
    assert {one["comment"].splitlines()[0] for one in shown} == {"Labelled by ada"}
    read = labels_from_langfuse(site.client).labels
    assert [label for label in read if label.session_id == site.session] == []
    now = annotated(site, tmp_path, label("no", "success"))
    again = write_scores(site.client, [row_of(site)], receipts, annotations=now)
    assert statuses(again) == {"written": ALL + 4}
    shown = site.scores()
    assert len(shown) == ALL + 4
    assert [one["value"] for one in shown if one["name"] == "success"] == [False]
