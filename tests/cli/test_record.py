from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.recorder.encoding import decode_record, schemas
from debrief.recorder.session import session_of
from debrief.recorder.state import RecorderHome
from tests.recorder.session_scenario import Records, a_repository, add_pnpm, records_server
from tests.snapshots.scenario import git, write
from tests.waiting import LONG, wait_until

runner = CliRunner()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", add_pnpm(tmp_path))
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    for name in ("URL", "TOKEN", "IGNORE"):
        monkeypatch.delenv(f"DEBRIEF_RECORDER_{name}", raising=False)
    folder = a_repository(tmp_path / "shop")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Records]:
    with records_server() as served:
        monkeypatch.setenv("DEBRIEF_RECORDER_URL", served.url)
        monkeypatch.setenv("DEBRIEF_RECORDER_TOKEN", "a-token")
        yield served


def record(*arguments: str, input: str | None = None) -> Result:
    return runner.invoke(app, ["record", *arguments], input=input)


def spawned(shop: Path, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start the command in a process of its own, which Ctrl-C ends."""
    return subprocess.Popen(
        [sys.executable, "-c", "from debrief.cli.app import app; app()", "record", *arguments],
        cwd=shop,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        # A shell that runs the tests in the background has them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **options,
    )


def started(*more: str) -> None:
    done = record("start", "--task", "cart", "--prompt", "Add a discount.", *more)
    assert done.exit_code == 0, done.output


def test_a_whole_session(shop: Path, server: Records) -> None:
    done = record("start", "--task", "cart", "--prompt", "Add a discount.")
    assert done.exit_code == 0, done.output
    assert f"Recording {shop} for task cart, from {git(shop, 'rev-parse', 'HEAD')[:12]} on." in (
        done.stdout
    )
    write(shop, {"src/cart.ts": "export const cart = [1];\n"})
    assert record("run", "--", "pnpm", "test").stdout == "2 passed\na warning\ndone\n"
    status = record("status")
    assert "pnpm test: exit code 0" in status.stdout
    assert "update src/cart.ts (+1 -2)" in status.stdout
    assert "Ready to train on: nothing is missing." in status.stdout
    done = record("stop", "--ready", "--keep")
    assert done.exit_code == 0, done.output
    (id,) = server.records
    assert f"Record {id}: " in done.stdout
    assert "stored as ready" in done.stdout
    assert set(server.tokens) == {"Bearer a-token"}
    assert (shop.parent / f"home/recorder/kept/{id}.json").read_bytes() == server.records[id]
    assert record("status").exit_code == 1


def test_a_commands_exit_code_is_passed_on(shop: Path) -> None:
    started()
    done = record("run", "--", "pnpm", "lint")
    assert done.exit_code == 3
    assert "recorded with exit code 3" in done.stderr
    done = record("run", "pnpm", "add", "-D", "left-pad")
    assert (done.exit_code, done.stdout) == (0, "add\n-D\nleft-pad\n")


def test_a_time_limit_is_said_and_has_its_own_exit_code(shop: Path) -> None:
    started()
    done = record("run", "--time-limit", "0.3", "--", "pnpm", "build")
    assert done.exit_code == 124
    assert "recorded as ended at its time limit of 0.3 s" in done.stderr
    assert "pnpm build: ended at its time limit of 0.3 s" in record("status").stdout
    done = record("stop", "--local", str(shop.parent / "record.json"))
    text = decode_record((shop.parent / "record.json").read_bytes())
    assert text.meta.commands
    assert text.meta.commands[0].exit_code is None


def test_a_command_that_is_not_allowed_is_refused_in_one_line(shop: Path) -> None:
    started()
    done = record("run", "--", "rm", "-rf", "src")
    assert done.exit_code == 1
    assert done.stderr.startswith("debrief: 'rm -rf src': the program is not pnpm. Allowed are")
    assert (shop / "src/cart.ts").is_file()


def test_a_prompt_comes_from_a_file_or_standard_input_exactly(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_bytes(b"  Zwei\r\nZeilen\n\n")
    (tmp_path / "system.md").write_text("Be brief.\n")
    for given, typed in ((tmp_path / "prompt.md", None), ("-", "  Zwei\r\nZeilen\n\n")):
        start = ["start", "--task", "cart", "--prompt-file", str(given)]
        start += ["--system-file", str(tmp_path / "system.md")]
        done = record(*start, input=typed)
        assert done.exit_code == 0, done.output
        told = session_of(RecorderHome(tmp_path / "home"), shop).started
        assert told.prompt.replace("\r", "") == "  Zwei\nZeilen\n\n"
        assert told.system == "Be brief.\n"
        assert record("discard").exit_code == 0


REFUSED = {
    "no prompt where nobody can be asked": ([], "--prompt: is missing"),
    "two prompts": (["--prompt", "a", "--prompt-file", "b"], "are both given"),
    "a file that is not there": (["--prompt-file", "nowhere"], "No such file"),
    "a file that is no text": (["--prompt-file", "binary"], "is not UTF-8 text"),
    "two system prompts": (["--prompt", "a", "--system", "a", "--system-file", "b"], "both given"),
    "a folder in no repository": (["--prompt", "a", "--repo", "/"], "lies in no git repository"),
    "a bad glob": (["--prompt", "a", "--ignore", "!"], "ignore"),
}


@pytest.mark.parametrize(("arguments", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_start_is_refused_in_one_line(
    shop: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    monkeypatch.chdir(shop.parent)
    (shop.parent / "binary").write_bytes(b"\xff\xfe\x00")
    repo = [] if "--repo" in arguments else ["--repo", str(shop)]
    done = record("start", "--task", "cart", *repo, *arguments)
    assert done.exit_code == 1, done.output
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "No session is under way" in record("status", "--all").stdout


def test_on_a_terminal_the_prompt_is_asked_for(shop: Path) -> None:
    ours, theirs = pty.openpty()
    ends = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    process = spawned(shop, "start", "--task", "cart", **ends, start_new_session=True)
    os.close(theirs)
    said = b""
    while b"What is to be done?" not in said:
        said += os.read(ours, 1024)
    os.write(ours, b"Add a discount.\n")
    assert process.wait(LONG) == 0
    os.close(ours)
    session = session_of(RecorderHome(shop.parent / "home"), shop)
    assert session.started.prompt == "Add a discount."


def test_who_pipes_a_repositorys_own_command_is_asked_beside_its_output(shop: Path) -> None:
    rules = '[[commands]]\nprogram = "git"\narguments = ["rev-parse", "HEAD"]\n'
    write(shop, {".debrief/recorder.toml": rules})
    git(shop, "add", "-A", "-f")
    git(shop, "commit", "-q", "-m", "rules")
    started()
    ours, theirs = pty.openpty()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = spawned(shop, "run", "--", "git", "rev-parse", "HEAD", stdin=theirs, **pipes)
    os.close(theirs)
    os.write(ours, b"y\n")
    out, err = process.communicate(timeout=LONG)
    os.close(ours)
    assert (process.returncode, out.decode()) == (0, f"{git(shop, 'rev-parse', 'HEAD')}\n")
    assert "beside pnpm:\n  git rev-parse HEAD\nDo you agree to that?" in err.decode()


def test_output_is_live_and_an_interruption_is_recorded(shop: Path) -> None:
    started()
    script = "#!/bin/sh\ntrap 'echo bye; exit 130' INT\necho hi\nwhile :; do sleep 0.02; done\n"
    add_pnpm(shop.parent, script)
    process = spawned(shop, "run", "--", "pnpm", "test", stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"hi\n"
    process.send_signal(signal.SIGINT)
    with process.stdout:
        assert process.stdout.read().endswith(b"bye\n")
    assert process.wait(LONG) == 130
    assert "pnpm test: exit code 130" in record("status").stdout


def test_without_a_server_the_session_goes_on(shop: Path) -> None:
    started()
    write(shop, {"src/cart.ts": "x\n"})
    done = record("stop")
    assert done.exit_code == 1
    assert "DEBRIEF_RECORDER_URL: is not set" in done.stderr
    assert "--local FILE" in done.stderr
    assert record("status").exit_code == 0


def test_a_record_that_waits_is_told_sent_and_forgotten(shop: Path, server: Records) -> None:
    server.tasks.clear()
    for number in range(2):
        started()
        write(shop, {f"src/{number}.ts": "x\n"})
        done = record("stop")
        assert done.exit_code == 1
        assert "refused (422):" in done.stderr
        assert "\n  taskId: there is no such task\n  taskId: make it first" in done.stderr
        git(shop, "add", "-A")
        git(shop, "commit", "-q", "-m", "work")
    waiting = record("status", "--all").stdout.splitlines()
    assert [line.split(" ", 1)[1].split(":")[0] for line in waiting] == ["waits to be sent"] * 2
    assert record("upload").exit_code == 1
    first, second = sorted(line.split(" ")[0] for line in waiting)
    assert record("discard", "--session", first).exit_code == 0
    done = record("discard", "--session", first)
    assert (done.exit_code, "is no session here" in done.stderr) == (1, True)
    done = record("upload", "--create-task", "The cart")
    assert done.exit_code == 0, done.output
    assert list(server.records) == [second]
    assert "No record waits." in record("upload").stdout


def test_a_start_tells_that_the_server_lacks_the_task_and_goes_on(
    shop: Path, server: Records
) -> None:
    done = record("start", "--task", "checkout", "--prompt", "Add a discount.")
    assert done.exit_code == 0
    assert "has no task checkout yet" in done.stderr
    assert "debrief record stop --create-task NAME" in done.stderr
    write(shop, {"src/cart.ts": "x\n"})
    assert record("stop", "--create-task", "Checkout").exit_code == 0
    assert "checkout" in server.tasks
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "done")
    assert record("start", "--task", "checkout", "--prompt", "More.").exit_code == 0
    write(shop, {"src/more.ts": "x\n"})
    assert record("stop", "--create-task", "Checkout").exit_code == 0
    assert len(server.records) == 2


def test_a_name_with_orders_for_the_terminal_is_shown_as_text(shop: Path, tmp_path: Path) -> None:
    started()
    write(shop, {"src/\x1b[2J\nname": "x\n", "src/\x1b[2J.bin": b"\0"})
    for told in (record("status"), record("stop", "--local", str(tmp_path / "record.json"))):
        assert told.exit_code == 0
        assert "create 'src/\\x1b[2J\\nname' (+1 -0)" in told.stdout
        assert "left out 'src/\\x1b[2J.bin': binary" in told.stdout
        assert "\x1b" not in told.output
    assert record("check", str(tmp_path / "record.json")).output.count("\x1b") == 0
    assert "\x1b" not in record("start", "--task", "cart", "--prompt", "x").output


def test_a_stop_that_is_interrupted_while_it_sends_leaves_a_record_that_waits(
    shop: Path, server: Records
) -> None:
    started()
    write(shop, {"src/cart.ts": "x\n"})
    server.hang.clear()
    process = spawned(shop, "stop", stderr=subprocess.PIPE)
    wait_until(lambda: "POST /sessions" in server.asked)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=LONG)[1].decode()
    server.hang.set()
    assert process.returncode == 1
    assert ": was not sent and waits: sending it: was interrupted. Later send it with" in said
    assert "waits to be sent" in record("status", "--all").stdout
    assert record("upload").exit_code == 0
    assert len(server.records) == 1


def test_a_record_file_is_checked_and_applied(shop: Path, tmp_path: Path) -> None:
    started("--system", "Be brief.")
    write(shop, {"src/cart.ts": "export const cart = [1];\n", "src/new.ts": "new\n"})
    file = tmp_path / "record.json"
    done = record("stop", "--local", str(file), "--summary", "Done.")
    assert done.exit_code == 0, done.output
    assert "Not ready: no validation command" in done.stdout
    git(shop, "stash", "-q", "-u")
    done = record("check", str(file))
    assert done.exit_code == 0, done.output
    assert "It rebuilds its tree" in done.stdout
    done = record("check", str(file), "--repo", str(tmp_path))
    assert "Not rebuilt: no repository here has its baseline" in done.stdout
    done = record("apply", str(file), "--to", str(shop))
    assert done.exit_code == 0, done.output
    assert "2 paths changed" in done.stdout
    assert (shop / "src/new.ts").read_text() == "new\n"
    done = record("apply", str(file))
    assert done.exit_code == 1
    assert "is not clean" in done.stderr
    told = json.loads(file.read_bytes())
    told["messages"] = told["messages"][:-2]
    file.write_text(json.dumps(told))
    done = record("check", str(file))
    assert done.exit_code == 1
    assert done.stderr.startswith("debrief: ")
    assert record("apply", str(file)).exit_code == 1
    file.write_text("{")
    assert "not JSON" in record("check", str(file)).stderr
    assert "cannot be read" in record("check", str(tmp_path / "nowhere")).stderr


def test_usual_globs_of_what_to_leave_out_come_from_a_setting(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_RECORDER_IGNORE", "'*.private notes' *.log")
    started("--ignore", "*.tmp")
    write(shop, {"a.private notes": "", "b.log": "", "c.tmp": "", "d.ts": "x\n"})
    status = record("status").stdout
    assert "create d.ts" in status
    for name in ("a.private notes", "b.log", "c.tmp"):
        assert f"left out {name}: ignored" in status


def test_schemas_are_written(shop: Path, tmp_path: Path) -> None:
    done = record("schemas", "--to", str(tmp_path / "schemas"))
    assert done.exit_code == 0, done.output
    written = {path.name: path.read_text() for path in (tmp_path / "schemas").iterdir()}
    assert written == schemas()
    assert json.loads(written["record.json"])["$schema"]


def test_an_answer_in_json_loads_nothing_that_it_does_not_need(shop: Path) -> None:
    script = (
        "import sys; sys.argv = ['debrief', 'record', 'status', '--json']\n"
        "from debrief.entry import main\n"
        "try: main()\n"
        "finally: print(*{'rich', 'httpx', 'sqlalchemy', 'fastapi', 'pydantic_settings', "
        "'debrief.redaction'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert json.loads(done.stdout)["session"] is None
    assert done.stderr == "\n"


def test_help_is_light() -> None:
    script = (
        "import sys; from debrief.cli import app; "
        "heavy = {'pydantic', 'httpx', 'fastapi', 'sqlalchemy', 'pathspec', 'msgspec', 'pyarrow'} & set(sys.modules); "
        "print(*heavy)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("\n", "")
