"""Commands that would do harm, run for real: each ends in one reason, and nothing else changes."""

from __future__ import annotations

import json
import os
import pwd
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from debrief.errors import ConfigurationError
from debrief.execution import sandbox as sandboxes
from debrief.execution.sandbox import TREE, Mount, Ran, Sandbox, SandboxLimits
from debrief.execution.syscalls import refusals
from tests.execution.sandboxes import sandbox_or_skip
from tests.waiting import LONG

SMALL = SandboxLimits(seconds=LONG, memory_mb=200, processes=40, disk_mb=20, output_mb=1)
KEY = "planted-key-5f1d"
_FORKS = """python3 -c '
import os
while True:
    try: os.fork()
    except OSError: pass'"""


@pytest.fixture
def sandbox() -> Sandbox:
    return sandbox_or_skip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "code.py").write_text("print('hello')\n")
    (tmp_path / "key").write_text(KEY)
    (folder / "link").symlink_to(tmp_path / "key")
    return folder


@pytest.fixture(autouse=True)
def _nothing_left(tmp_path: Path, tree: Path) -> Iterator[None]:
    """After each test no process of it runs, and its folders are as they were."""
    files = _files(tmp_path)
    running = set(psutil.Process().children(recursive=True))
    yield
    assert set(psutil.Process().children(recursive=True)) <= running
    assert not [process for process in psutil.process_iter(["cmdline"]) if _is_ours(process)]
    assert _files(tmp_path) == files


def _files(folder: Path) -> dict[str, str]:
    return {
        str(path): path.read_text() if path.is_file() else "" for path in sorted(folder.rglob("*"))
    }


def _is_ours(process: psutil.Process) -> bool:
    return "98765" in (process.info["cmdline"] or ())


def _run(sandbox: Sandbox, tree: Path, command: str, limits: SandboxLimits = SMALL) -> Ran:
    return sandbox.run(command, copies={TREE: tree}, limits=limits)


@pytest.mark.parametrize(
    ("command", "limit"),
    [
        pytest.param("sleep 98765", "time", id="hangs"),
        pytest.param("trap '' TERM INT HUP; sleep 98765; sleep 98765", "time", id="will-not-end"),
        pytest.param(_FORKS, "processes", id="forks-without-end"),
        pytest.param(
            "python3 -c 'kept = []\nwhile True: kept.append(b\"x\" * 10**7)'", "memory", id="eats"
        ),
        pytest.param("cat /dev/zero > /app/large", "disk", id="fills-the-tree"),
        pytest.param("cat /dev/zero > /tmp/large", "disk", id="fills-the-rest"),
        pytest.param("yes", "output", id="prints-without-end"),
        pytest.param("kill -9 $PPID; sleep 98765", "time", id="kills-its-parent"),
        pytest.param("kill -9 $$; sleep 98765", "signal", id="kills-itself"),
        pytest.param("setsid sh -c 'kill -9 -1'; sleep 98765", "signal", id="kills-all"),
    ],
)
def test_a_run_that_takes_too_much_ends_with_the_limit_that_ended_it(
    sandbox: Sandbox, tree: Path, command: str, limit: str
) -> None:
    limits = SandboxLimits(seconds=1, memory_mb=200, processes=40, disk_mb=20, output_mb=1)
    started = time.monotonic()
    ran = _run(sandbox, tree, command, limits if limit == "time" else SMALL)
    assert (ran.limit, ran.exit_code) == (limit, None), ran.output[-500:]
    assert ran.end == ("timed_out" if limit == "time" else "killed")
    assert time.monotonic() - started < LONG
    assert len(ran.output) < 2_000_000


def test_what_a_run_leaves_running_ends_with_it(sandbox: Sandbox, tree: Path) -> None:
    ran = _run(sandbox, tree, "setsid sleep 98765 & nohup sleep 98765 >/dev/null 2>&1 & exit 4")
    assert (ran.end, ran.exit_code) == ("ended", 4)
    assert ran.seconds < LONG


def test_nothing_outside_is_written(
    sandbox: Sandbox, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    places = [
        Path.cwd(),
        Path("/usr"),
        Path("/etc"),
        Path("/dev"),
        Path("/"),
        Path("/run"),
        tmp_path,
    ]
    marks = [place / "debrief-was-here" for place in places]
    ran = _run(sandbox, tree, "\n".join(f"mkdir -p {mark}" for mark in marks) + "\nls -d /*")
    assert not [mark for mark in marks if mark.exists()]
    seen = {line for line in ran.output.splitlines() if line.startswith("/")}
    assert seen <= {
        f"/{name}"
        for name in [
            "app",
            "bin",
            "dev",
            "etc",
            "lib",
            "lib32",
            "lib64",
            "libx32",
            "proc",
            "sbin",
            "tmp",
            "usr",
        ]
    }

    remounted = "unshare -rm sh -c 'mount -o remount,rw,bind /usr; touch /usr/debrief-was-here'"
    assert _run(sandbox, tree, remounted).exit_code != 0
    assert not Path("/usr/debrief-was-here").exists()


def test_a_run_deletes_its_own_copy_alone(sandbox: Sandbox, tree: Path) -> None:
    ran = _run(sandbox, tree, "rm -rf /app/* && ls -A /app | wc -l")
    assert (ran.exit_code, ran.output.strip()) == (0, "0")
    assert (tree / "src" / "code.py").exists()


def test_no_key_is_seen_in_home_environment_links_or_other_processes(
    sandbox: Sandbox, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SERVICE_KEY", KEY)
    home = pwd.getpwuid(os.getuid()).pw_dir
    ran = _run(
        sandbox,
        tree,
        f"env; cat {tmp_path}/key $HOME/key /app/link ~/.ssh/* {home}/.* /home/*/.*; "
        "cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; ls -l /app/link; python3 src/code.py",
    )
    assert KEY not in ran.output
    assert "hello" in ran.output


def test_no_socket_of_the_machine_is_reached(sandbox: Sandbox, tree: Path, tmp_path: Path) -> None:
    names = {"abstract": "\0debrief-98765", "file": str(tmp_path / "socket")}
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as file,
    ):
        abstract.bind(names["abstract"])
        abstract.listen()
        file.bind(names["file"])
        file.listen()
        port = tcp.getsockname()[1]
        asked = [f"socket.create_connection(('127.0.0.1', {port}), 2)"]
        asked += [f"socket.socket(socket.AF_UNIX).connect({name!r})" for name in names.values()]
        asked += [
            "socket.getaddrinfo('pypi.org', 443)",
            "socket.create_connection(('1.1.1.1', 53), 2)",
        ]
        lines = [f"try: {each}; print('reached')\nexcept OSError: print('no')" for each in asked]
        (tree / "ask.py").write_text("import socket\n" + "\n".join(lines))
        ran = _run(sandbox, tree, "python3 ask.py")
        (tree / "ask.py").unlink()
    (tmp_path / "socket").unlink()
    assert ran.output.split() == ["no"] * 5


_ASKS_THE_KERNEL = """
import ctypes, os, socket, threading
kernel = ctypes.CDLL(None, use_errno=True)
asked = {
    "a user namespace": lambda: kernel.unshare(0x10000000),
    "memory of no process": lambda: os.memfd_create("x"),
    "memory of System V": lambda: kernel.shmget(0, 1 << 20, 0o1600),
    "the keyring": lambda: kernel.syscall({"x86_64": 250, "aarch64": 219}[os.uname().machine], 0, -3, 0),
    "the machine below": lambda: socket.socket(40, socket.SOCK_STREAM).close(),
}
for name, ask in asked.items():
    try:
        if ask() != -1: print(name)
    except OSError: pass
threading.Thread(target=print, args=("threads and loopback go on",)).start()
socket.create_server(("127.0.0.1", 0)).close()
"""


@pytest.mark.skipif(not refusals(), reason="the calls of this machine's kernel are not known")
def test_the_kernel_gives_a_run_nothing_beside_the_walls(sandbox: Sandbox, tree: Path) -> None:
    ran = sandbox.run(
        "python3 ask.py", copies={TREE: tree}, added={"/app/ask.py": _ASKS_THE_KERNEL}
    )
    assert ran.output.strip() == "threads and loopback go on"


@pytest.mark.skipif(not refusals(), reason="the calls of this machine's kernel are not known")
def test_a_run_with_network_reaches_no_desktop(sandbox: Sandbox, tree: Path) -> None:
    name = "\0debrief-98764"
    with socket.socket(socket.AF_UNIX) as desktop:
        desktop.bind(name)
        desktop.listen()
        ask = f"import socket; socket.socketpair(); socket.socket(socket.AF_UNIX).connect({name!r})"
        ran = sandbox.run(
            "python3 ask.py", copies={TREE: tree}, added={"/app/ask.py": ask}, network=True
        )
    assert ran.exit_code == 1
    assert "socket.AF_UNIX" in ran.output


def test_files_without_number_end_a_run(
    sandbox: Sandbox, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxes, "_MOST_FILES", 5_000)
    makes = "import itertools, os; [os.mknod(f'/tmp/{n}') for n in itertools.count()]"
    ran = _run(sandbox, tree, f'python3 -c "{makes}"')
    assert ran.limit == "disk"


def test_files_go_in_and_come_back(
    sandbox: Sandbox, tree: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kept = tmp_path_factory.mktemp("kept")
    kept.chmod(0o755)
    (kept / "scratch").mkdir()
    (kept / "data").write_text("kept\n")
    ran = sandbox.run(
        "cat /kept/data new.txt; touch /kept/data || touch /kept/scratch/x && echo done; "
        "mkdir /tmp/out; cp new.txt /tmp/out; ln -s /etc/passwd /tmp/out/link; exit 3",
        copies={TREE: tree},
        folder=f"{TREE}/src",
        added={f"{TREE}/src/new.txt": "brought\n"},
        mounts=[Mount(source=kept, target="/kept", scratch=("scratch",))],
        hand_back=["/tmp/out", "/tmp/nowhere"],
        limits=SMALL,
    )
    assert ran.exit_code == 3
    assert [line for line in ran.output.splitlines() if "touch" not in line] == [
        "kept",
        "brought",
        "done",
    ]
    assert ran.files == {"/tmp/out/new.txt": b"brought\n"}
    assert not (tree / "src" / "new.txt").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can become another user")
def test_a_plain_user_has_the_same_walls(tree: Path, tmp_path: Path) -> None:
    def run() -> list[object]:
        commands = f"touch /usr/x /x || echo walls; cat {tmp_path}/key; env", _FORKS
        runs = [
            sandboxes.find_sandbox().run(command, copies={}, folder="/tmp", limits=SMALL)
            for command in commands
        ]
        return [runs[0].output, runs[1].limit]

    said = as_plain_user(run)
    if said is None:
        pytest.skip("no sandbox for a plain user")
    output, limit = said
    assert "walls" in str(output)
    assert KEY not in str(output)
    assert limit == "processes"


def test_without_a_sandbox_it_is_refused_with_the_next_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sandboxes._found.cache_clear()
    monkeypatch.setattr(sandboxes, "_programs", list)
    try:
        with pytest.raises(
            ConfigurationError, match=r"bubblewrap is not installed.*Install bubblewrap"
        ):
            sandboxes.find_sandbox()
    finally:
        sandboxes._found.cache_clear()


_FORGERIES = {
    "a program before the system's": "mkdir -p /tmp/bin; for each in df awk tar sh mkdir; do "
    "printf '#!/bin/sh\\necho 0 >&3; exit 0\\n' > /tmp/bin/$each; chmod +x /tmp/bin/$each; done",
    "descriptors of other processes": "for each in /proc/[0-9]*/fd/*; do "
    "case $each in /proc/$$/*|/proc/self/*) ;; *) echo 0 > $each;; esac; done",
    "memory of the first process": "dd if=/dev/zero of=/proc/1/mem bs=1 count=1 conv=notrunc",
    "its own descriptors": 'for each in 3 4 5 6 7 8 9; do eval "echo 0 >&$each"; done',
    "the end of all others": "kill -9 1; kill -9 $PPID",
}


@pytest.mark.parametrize("forgery", _FORGERIES.values(), ids=_FORGERIES)
@pytest.mark.parametrize("user", ["root", "plain"])
def test_a_command_cannot_forge_how_it_ended(
    sandbox: Sandbox, tree: Path, forgery: str, user: str
) -> None:
    command = f"( {forgery} ) 2>/dev/null; exit 5"

    def run() -> list[object]:
        ran = sandboxes.find_sandbox().run(
            command, copies={}, folder="/tmp", path=["/tmp/bin"], limits=SMALL
        )
        return [ran.exit_code, ran.limit, sorted(ran.files)]

    if user == "root":
        assert run() == [5, "", []]
        return
    assert as_plain_user(run) in ([5, "", []], None)


def as_plain_user(run: Callable[[], list[object]]) -> list[object] | None:
    """Return what a function returns in a process without root's rights; None where a plain user
    has no sandbox here."""
    out, into = os.pipe()
    if os.fork() == 0:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(54_321)
            os.setuid(54_321)
        sandboxes._found.cache_clear()
        answer = None if sandboxes.why_unavailable() else run()
        os.write(into, json.dumps(answer).encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as file:
        said = json.loads(file.read())
    os.wait()
    return said  # type: ignore[no-any-return]


def test_what_is_handed_back_is_plain_and_bounded(sandbox: Sandbox, tree: Path) -> None:
    ran = sandbox.run(
        "mkdir -p /tmp/out/a/b; cd /tmp/out; truncate -s 1500M sparse; echo kept > a/b/kept; "
        "ln -s /etc/passwd link; mkfifo pipe; ln -s /proc/1 folder; "
        "mkdir -p 1/2/3/4/5/6/7/8/9/10; echo deep > 1/2/3/4/5/6/7/8/9/10/deep; "
        "head -c 900000 /dev/zero > large; head -c 900000 /dev/zero > second",
        copies={TREE: tree},
        hand_back=["/tmp/out", "/tmp/out/link", "/tmp/out/folder/environ"],
        limits=SMALL,
    )
    assert set(ran.files) == {"/tmp/out/a/b/kept", "/tmp/out/large"}
    assert sum(map(len, ran.files.values())) <= SMALL.output_mb * 2**20
