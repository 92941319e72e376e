"""The pages as a server: what they answer, what they refuse, and the command that starts them."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from debrief.lake import Lake
from tests.view.shown import MONDAY, app_of, fill, served, serving, session_of, settings_of
from tests.waiting import LONG, wait_until

PAGES = (
    "/",
    "/sessions",
    "/sessions/one",
    "/prompts",
    "/prompts/0aaad855",
    "/prompts/0aaad855/diff/0aaad855",
    "/rubrics",
    "/weeks",
    f"/weeks/{MONDAY:%Y-%m-%d}",
    "/training",
    "/labels/next",
    "/labels.csv",
    "/friction",
    "/questions",
)


def test_each_page_answers_and_may_load_nothing_from_elsewhere(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill(Lake(settings.lake), [(session_of("one"), 0.3), (session_of("two", "Add a tax."), 0.9)])
    with served(settings) as client:
        for address in PAGES:
            answer = client.get(address, follow_redirects=True)
            assert answer.status_code == 200, address
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; style-src 'self'"), address
            assert " style=" not in answer.text, address


def test_an_empty_lake_says_what_to_do(tmp_path: Path) -> None:
    with served(settings_of(tmp_path)) as client:
        assert "debrief run" in client.get("/").text
        assert client.get("/sessions").status_code == 200


def test_another_sites_name_that_resolves_to_this_machine_reads_nothing(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, DEBRIEF_VIEW_URL="https://debrief.team.example")
    with served(settings) as client:
        port = client.base_url.port
        for host in ("evil.example", f"evil.example:{port}", "[", "127.0.0.1.evil.example"):
            assert client.get("/", headers={"Host": host}).status_code == 421, host
        for host in (f"localhost:{port}", "debrief.team.example"):
            assert client.get("/", headers={"Host": host}).status_code == 200, host


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {},
    ],
)
def test_another_site_cannot_post(tmp_path: Path, headers: dict[str, str]) -> None:
    with served(settings_of(tmp_path)) as client:
        answer = client.post("/sessions/one/labels", data={"value": "good"}, headers=headers)
    assert answer.status_code == 403


def test_what_is_not_there_says_so_in_a_page(tmp_path: Path) -> None:
    with served(settings_of(tmp_path)) as client:
        for address in ("/nowhere", "/sessions/x%2Fy", "/prompts/0", "/weeks/2026-11-03"):
            answer = client.get(address)
            assert (answer.status_code, "<h1>Not found</h1>" in answer.text) == (404, True), address


def test_a_damaged_table_is_named_with_the_next_move_and_costs_no_other_week(
    tmp_path: Path,
) -> None:
    settings = settings_of(tmp_path)
    fill(Lake(settings.lake), [(session_of("one"), 0.3)])
    damaged = Path(settings.lake) / "raw_sessions" / "2026-11-09.jsonl.zst"
    damaged.write_bytes(b"PAR1?")
    with served(settings) as client:
        text = client.get("/sessions").text
    assert str(damaged) in text
    assert "0 rows can be read and are used. Restore it from a backup." in text
    assert "/sessions/one" in text


def test_a_damaged_index_is_made_anew(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill(Lake(settings.lake), [(session_of("one"), 0.3)])
    app_of(settings).state.index.path.write_bytes(b"no database, " * 1_000)
    with served(settings) as client:
        assert "/sessions/one" in client.get("/sessions").text


def test_an_index_that_is_locked_or_taken_away_costs_one_page(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill(Lake(settings.lake), [(session_of("one"), 0.3)])
    with served(settings) as client:
        (path,) = (settings.home / "view").glob("*.sqlite")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")
            locked = client.get("/sessions")
        for each in path.parent.glob(f"{path.name}*"):
            each.unlink()
        wait_until(lambda: "/sessions/one" in client.get("/sessions").text)
    assert (locked.status_code, "Remove it: it is made anew." in locked.text) == (500, True)


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/sessions/..%2f..%2fetc%2fpasswd", 404),
        ("/sessions/%00%ED%A0%80", 404),
        ("/static/..%2f..%2fapp.py", 404),
        ("/training/..%2f..%2fx/y?raw=1", 404),
        ("/sessions/one?part=99999999999999999999999", 400),
        ("/labels/next?skip=99999999999999999999999", 400),
        (f"/sessions?q={'a+' * 20_000}", 200),
        ("/sessions?page=999999&tokens_min=1e14", 200),
        ("/sessions?tokens_min=1e400", 400),
    ],
)
def test_a_hostile_address_is_answered_like_any_other(
    tmp_path: Path, address: str, status: int
) -> None:
    settings = settings_of(tmp_path)
    fill(Lake(settings.lake), [(session_of("one"), 0.3)])
    with served(settings) as client:
        assert client.get(address).status_code == status


def test_a_session_that_leaves_the_lake_while_it_is_read_is_said_to_be_gone(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill(Lake(settings.lake), [(session_of("one"), 0.3)])
    app = app_of(settings)
    app.state.index.follow = bool
    (Path(settings.lake) / "raw_sessions" / f"{MONDAY:%Y-%m-%d}.jsonl.zst").unlink()
    with serving(app) as client:
        answer = client.get("/sessions/one")
    assert (answer.status_code, "is no longer in the lake" in answer.text) == (404, True)


def test_the_command_prints_its_address_and_ends_with_one_line_on_a_taken_port(
    tmp_path: Path,
) -> None:
    fill(Lake(str(tmp_path / "lake")), [(session_of("one", "Add a tax."), 0.9)])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = _view(tmp_path, "--port", port)
        assert refused.wait(LONG) == 1
        assert refused.stdout is not None
        (line,) = refused.stdout.read().splitlines()
        assert line.endswith("Name another: --host, --port")
    process = _view(tmp_path, "--port", "0")
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[0]
        # The first page may come before the lake is read: it says so, and fills in.
        sessions = f"{address}/sessions"
        wait_until(lambda: "Add a tax." in httpx.get(sessions, timeout=LONG).text)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(LONG)


def test_ctrl_c_while_the_command_is_imported_ends_it_without_a_traceback() -> None:
    script = """
import os, signal, sys
from debrief.entry import main

class Interrupts:
    def find_spec(self, name, *_):
        os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=LONG)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")
    ignored = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    words = "import sys; sys.argv = ['debrief', '--version']"
    done = subprocess.run([sys.executable, "-c", f"{ignored}{words}{script}"], timeout=LONG)
    assert done.returncode == 0, "a script's background command does not hear Ctrl-C"


def _view(home: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pipelines.command", "view", *options],
        env={**os.environ, "DEBRIEF_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
