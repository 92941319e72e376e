"""``debrief run`` on a folder of one's own, with everything in it that goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import Struct

from debrief.lake import Lake
from debrief.sessions.model import Session, UnreadTranscript
from debrief.signals.schema import TABLE as SIGNALS
from debrief.signals.schema import SessionSignals
from debrief.summary import content_of
from tests.cli.reviewer import MODEL, review
from tests.langfuse.scenario import Recorder
from tests.langfuse.server import LangfuseServer
from tests.models.openai_server import OpenAIServer, Reply
from tests.pipelines.conftest import Home, Said, only_line

WEEK = "2026-11-02"


def record(kind: str, text: str, number: int, session: str, **more: object) -> str:
    role = {"user": "user", "assistant": "assistant"}.get(kind)
    message: dict[str, object] = {"role": role, "content": [{"type": "text", "text": text}]}
    if kind == "assistant":
        message |= {
            "id": f"msg_{session}_{number}",
            "model": "claude-sonnet-4-5-20250929",
            "usage": {"input_tokens": 10, "output_tokens": 20},
        }
    return json.dumps(
        {
            "type": kind,
            "uuid": f"{session}-{number}",
            "parentUuid": f"{session}-{number - 1}" if number else None,
            "sessionId": session,
            "timestamp": f"2026-11-03T10:00:{number:02}.000Z",
            "cwd": "/home/kim/ledger",
            "version": "2.1.0",
            "message": message,
            **more,
        }
    )


def call(number: int, session: str) -> str:
    read = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"n": number}}
    return record("assistant", "", 0, session, uuid=f"{session}-call-{number}").replace(
        '{"type": "text", "text": ""}', json.dumps(read)
    ).replace("msg_big_0", f"msg_big_{number + 9}")  # fmt: skip


def result(number: int, session: str, text: str) -> str:
    block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "TEXT"}
    line = record("user", "", 0, session, uuid=f"{session}-result-{number}")
    line = line.replace('{"type": "text", "text": ""}', json.dumps(block))
    return line.replace('"TEXT"', json.dumps(text))


def conversation(session: str) -> list[str]:
    return [
        record("user", "Round amounts to cents in ledger/money.py", 0, session),
        record("assistant", "Done: amounts are rounded half to even.", 1, session),
    ]


def write(folder: Path, name: str, lines: list[str] | bytes) -> None:
    data = lines if isinstance(lines, bytes) else "".join(f"{x}\n" for x in lines).encode()
    (folder / name).write_bytes(data)


class Run(Struct, frozen=True):
    said: Said
    lake: Lake
    home: Home
    folder: Path

    def log(self) -> str:
        return (self.home.path / ".debrief/logs/runs.log").read_text()

    def sessions(self) -> dict[str, Session]:
        return {row.id: row for row in self.lake.read("raw_sessions", WEEK, Session)}

    def unread(self) -> dict[str, UnreadTranscript]:
        rows = [
            row
            for week in self.lake.partitions("unread_transcripts")
            for row in self.lake.read("unread_transcripts", week, UnreadTranscript)
        ]
        return {Path(row.path).name: row for row in rows}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    home = Home(tmp_path_factory.mktemp("machine"))
    folder = home.path / "transcripts"
    folder.mkdir()
    good = conversation("good")
    write(folder, "good.jsonl", good)
    write(folder, "cut.jsonl", "\n".join([*conversation("cut"), good[0][:80]]).encode())
    doubled = conversation("doubled")
    write(folder, "doubled.jsonl", [doubled[0] + doubled[1]])
    latin = conversation("latin")
    write(folder, "latin.jsonl", ("\n".join(latin) + "\n").encode().replace(b"half", b"h\xe4lf"))
    unknown = conversation("unknown-type")
    unknown.insert(1, json.dumps({"type": "hologram", "beams": 3}))
    write(folder, "unknown.jsonl", unknown)
    write(folder, "empty.jsonl", b"")
    (folder / "a[").mkdir()  # a name that a terminal's markup would take for its own
    write(folder / "a[", "b].jsonl", b'{"type": "user", "sessionId": "broken", \x00\x00\n[[[\n')
    big = conversation("big")
    report = "".join(f"{n}: the amount was rounded to cents.\n" for n in range(23_000))
    for n in range(1, 14):
        big[-1:-1] = [call(n, "big"), result(n, "big", report)]
    write(folder, "big.jsonl", big)
    lake = home.path / "lake"
    said = home.typed("run", "--sessions", str(folder), "--no-model", "--lake", str(lake))
    return Run(said, Lake(str(lake)), home, folder)


def test_a_run_writes_scores_on_the_first_trace_where_that_is_asked_for(home: Home) -> None:
    folder = home.path / "transcripts"
    folder.mkdir()
    write(folder, "good.jsonl", conversation("good"))
    with LangfuseServer() as server, OpenAIServer(lambda call: Reply(review(call))) as model:
        for trace in ("t1", "t2"):
            Recorder(server, "good").trace(trace, "Round amounts to cents", "Done.")
        keys = {
            "DEBRIEF_LANGFUSE": "on",
            "LANGFUSE_HOST": server.host,
            "LANGFUSE_PUBLIC_KEY": server.public_key,
            "LANGFUSE_SECRET_KEY": server.secret_key,
            "DEBRIEF_MODEL_BASE_URL": model.url,
            "OPENAI_API_KEY": "sk-loopback",
        }
        lake = ("--lake", str(home.path / "lake"))
        chosen = ("run", "--sessions", str(folder), "--model", MODEL, "--yes", *lake)
        said = home.typed(*chosen, "--score-target", "trace", **keys)
        assert said.code == 0, said.all
        kept = list(server.scores.values())
    assert kept
    assert {(score.get("traceId"), score.get("sessionId")) for score in kept} == {("t1", None)}


def test_every_session_around_the_bad_ones_is_intact(run: Run) -> None:
    assert run.said.code == 0, run.said.err
    assert set(run.sessions()) == {"good", "cut", "doubled", "latin", "unknown-type", "big"}
    assert all(session.prompt_count == 1 for session in run.sessions().values())
    seen = run.lake.read(SIGNALS, WEEK, SessionSignals)
    assert {row.session_id for row in seen} == set(run.sessions())
    assert content_of(run.lake, [WEEK]).verdicts.not_reviewed == 6


@pytest.mark.parametrize(
    ("session", "line", "reason"),
    [("cut", 3, "cut short"), ("latin", 2, "not UTF-8")],
)
def test_a_bad_place_is_told_with_file_line_and_reason(
    run: Run, session: str, line: int, reason: str
) -> None:
    (problem,) = run.sessions()[session].problems
    assert (problem.line, Path(problem.path).stem) == (line, session)
    assert reason in problem.reason
    assert f"{session}.jsonl:{line}" in run.log()


@pytest.mark.parametrize("session", ["doubled", "unknown-type"])
def test_two_records_on_a_line_and_unknown_records_lose_nothing(run: Run, session: str) -> None:
    assert run.sessions()[session].problems == ()
    assert run.sessions()[session].api_calls == 1


def test_a_transcript_of_10_mb_is_one_session_like_any_other(run: Run) -> None:
    big = run.sessions()["big"]
    assert big.transcripts[0].size > 10_000_000
    assert len(big.turns[0].messages) == 14


def test_files_without_a_session_are_listed_with_the_reason(run: Run) -> None:
    unread = run.unread()
    assert set(unread) == {"empty.jsonl", "b].jsonl"}
    assert unread["empty.jsonl"].expected
    assert not unread["b].jsonl"].expected
    assert unread["b].jsonl"].reason
    assert "a[/b].jsonl" in run.said.out
    assert "a[/b].jsonl" in run.log()


def test_what_could_not_be_read_is_read_once_it_is_mended(home: Home) -> None:
    folder, lake = home.path / "transcripts", str(home.path / "lake")
    folder.mkdir()
    write(folder, "good.jsonl", conversation("good"))
    write(folder, "empty.jsonl", b"")
    write(folder, "broken.jsonl", b"[[[\n")
    command = ("run", "--sessions", str(folder), "--no-model", "--lake", lake)
    first = Run(home.typed(*command), Lake(lake), home, folder)
    assert set(first.unread()) == {"broken.jsonl", "empty.jsonl"}
    write(folder, "broken.jsonl", conversation("broken"))
    again = Run(home.typed(*command), Lake(lake), home, folder)
    assert again.said.code == 0, again.said.err
    assert set(again.sessions()) == {"good", "broken"}
    assert set(again.unread()) == {"empty.jsonl"}
    seen = again.lake.read(SIGNALS, WEEK, SessionSignals)
    assert {row.session_id for row in seen} == {"good", "broken"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        pytest.param(
            ["--sessions", "/no/such/folder", "--no-model"], "is not a folder", id="folder"
        ),
        pytest.param(["--week", "yesterday", "--no-model"], "not the date of a Monday", id="week"),
        pytest.param(["--no-model", "--model", "m"], "exclude each other", id="both"),
    ],
)
def test_a_wrong_option_ends_in_one_line_that_says_what_to_do(
    home: Home, arguments: list[str], reason: str
) -> None:
    said = home.typed("run", *arguments, "--lake", str(home.path / "lake"))
    assert said.code == 1
    assert reason in said.err
    assert len(said.err.strip().splitlines()) == 1


def test_a_model_that_is_named_needs_its_key_and_without_any_nothing_is_reviewed(
    home: Home,
) -> None:
    folder = home.path / "transcripts"
    folder.mkdir()
    write(folder, "good.jsonl", conversation("good"))
    run = ("run", "--sessions", str(folder), "--lake", str(home.path / "lake"))
    said = home.typed(*run, "--model", "x-ai/grok-4.1-fast", OPENROUTER_API_KEY="")
    assert said.code == 1
    assert "OPENROUTER_API_KEY" in said.err
    assert "--no-model" in said.err
    said = home.typed(*run, OPENROUTER_API_KEY="")
    assert said.code == 0, said.all
    assert "1 not reviewed.\n" in said.out
    assert "No model was asked, so nothing was reviewed in this run.\n" in said.out
    assert not Lake(str(home.path / "lake")).partitions("session_scores")


def test_a_run_over_nothing_that_can_be_read_says_what_it_found_and_never_loads_dagster(
    home: Home,
) -> None:
    folder, lake = home.path / "transcripts", home.path / "lake"
    folder.mkdir()
    write(folder, "notes.jsonl", b'{"temperature": 21}\n')
    run = ("run", "--sessions", str(folder), "--no-model", "--lake", str(lake))
    nothing = f"debrief: {folder}: no session is in it that can be read"
    assert only_line(home.typed(*run)).startswith(f"{nothing}. debrief sources FOLDER")
    # Its beginning is longer than what a scan looks at, and nobody says anything after it.
    rules = {"id": "0199-a", "cwd": "/shop", "base_instructions": {"text": "Be brief. " * 20_000}}
    start = {"timestamp": "2026-11-03T09:00:00Z", "type": "session_meta", "payload": rules}
    write(folder, "rollout-2026-11-03T09-00-00-0199-a.jsonl", [json.dumps(start)])
    write(
        folder, "s1.jsonl", [json.dumps({"type": "summary", "summary": "A cart.", "leafUuid": ""})]
    )
    line = only_line(home.typed(*run))
    assert line.startswith(f"{nothing}. Found 2 transcripts, 1 of them: ")
    assert line.endswith("debrief sources FOLDER lists what is there.")
    assert not (lake / ".dagster").exists()
