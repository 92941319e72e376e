"""Messages about real runs, as they arrive at a real webhook."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from assets.reports import SCHEDULE_TAG
from debrief.errors import InputError
from pipelines.definitions import defs
from pipelines.jobs import failed_runs, range_tags
from resources import WebhookResource
from tests.hooks import Hook, hook
from tests.pipelines.test_run import WEEK, conversation, write

UI = "https://debrief.example.org"
SAID = "Round amounts to cents in ledger/money.py"
"""What the user wrote in every one of these sessions."""
TOKEN = "ghp_" + "R7qLw2ZtVx9KdM4nBsYp8HcJf3GaUe6TiXoQ"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    """A webhook, on a machine where one session was recorded."""
    folder = tmp_path / "transcripts"
    folder.mkdir()
    write(folder, "one.jsonl", conversation("one"))
    with hook(200) as server:
        told = {
            "DEBRIEF_HOME": str(tmp_path / "home"),
            "DEBRIEF_LAKE": str(tmp_path / "lake"),
            "DEBRIEF_SESSIONS": str(folder),
            "DEBRIEF_NO_MODEL": "1",
            "DEBRIEF_MODEL": "",
            "DEBRIEF_MODEL_BASE_URL": "",
            "DEBRIEF_LANGFUSE": "off",
            "DEBRIEF_WEBHOOK": "on",
            "DEBRIEF_WEBHOOK_URL": server.url,
            "DEBRIEF_VIEW_URL": UI,
            "OPENAI_API_KEY": "",
        }
        for name, value in told.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def tick(instance: dg.DagsterInstance, cursor: str | None = None) -> str | None:
    """Look for failed runs as the daemon does; the first look takes none."""
    context = dg.build_sensor_context(
        instance,
        cursor,
        definitions=defs,
        repository_name="__repository__",
        resources={"webhook": WebhookResource()},
    )
    return failed_runs.evaluate_tick(context).cursor


def run_whole_graph(
    instance: dg.DagsterInstance, tags: dict[str, str]
) -> dg.ExecuteInProcessResult:
    return defs.resolve_job_def("whole_graph").execute_in_process(
        instance=instance, tags={**tags, **range_tags(WEEK, WEEK)}, raise_on_error=False
    )


def test_the_week_is_told_once_with_a_link_to_its_run(
    server: Hook, instance: dg.DagsterInstance
) -> None:
    run = run_whole_graph(instance, {SCHEDULE_TAG: "weekly"})
    assert run.success
    (told,) = server.got
    assert told["text"].startswith(f"Debrief: Week of {WEEK}: 1 session, not reviewed, ")
    assert told["text"].endswith(f"nothing failed, $0.00 spent. {UI}/dagster/runs/{run.run_id}")
    assert SAID not in told["text"]


def test_a_run_that_fails_tells_what_failed_why_and_where_to_look(
    server: Hook, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_NO_MODEL", "")
    monkeypatch.setenv("DEBRIEF_MODEL", "openai/gpt-4o-mini")
    begun = tick(instance)
    run = run_whole_graph(instance, {})
    assert not run.success
    tick(instance, begun)
    (message,) = server.got
    text = message["text"]
    assert re.match(
        "Debrief: (judge_evaluations|session_scores) failed: openai/gpt-4o-mini: ", text
    )
    assert "OPENAI_API_KEY is not set" in text
    assert text.endswith(f"{UI}/dagster/runs/{run.run_id}")
    assert SAID not in text


@dg.op
def quotes_a_transcript() -> None:
    raise ValueError(f"cannot read {SAID!r}")


@dg.op
def names_a_secret() -> None:
    raise InputError(f"token {TOKEN}", "was refused", "Make a new one.")


@dg.op
def names_a_secret_after_many_words() -> None:
    raise InputError(f"{'word ' * 97}token {TOKEN}", "was refused", "Make a new one.")


@pytest.mark.parametrize(
    ("op", "told"),
    [
        (quotes_a_transcript, "Debrief: quotes_a_transcript failed: ValueError "),
        (names_a_secret, "Debrief: names_a_secret failed: token <secret:"),
        (names_a_secret_after_many_words, "Debrief: names_a_secret_after_many_words failed: word"),
    ],
)
def test_no_message_holds_a_secret_or_a_transcripts_text(
    server: Hook, instance: dg.DagsterInstance, op: dg.OpDefinition, told: str
) -> None:
    @dg.job
    def failing() -> None:
        op()

    begun = tick(instance)
    failing.execute_in_process(instance=instance, raise_on_error=False)
    tick(instance, begun)
    (message,) = server.got
    assert message["text"].startswith(told)
    assert SAID not in message["text"]
    assert TOKEN[:8] not in message["text"]


def test_a_run_whose_process_was_killed_is_told_of_by_the_daemon(
    server: Hook, instance: dg.DagsterInstance
) -> None:
    begun = tick(instance)
    run = instance.create_run_for_job(defs.resolve_job_def("whole_graph"))
    instance.report_run_failed(run, "Process 7 on a host was killed.")
    tick(instance, begun)
    (message,) = server.got
    assert message["text"].startswith("Debrief: whole_graph failed: ")
    assert message["text"].endswith(f"{UI}/dagster/runs/{run.run_id}")
