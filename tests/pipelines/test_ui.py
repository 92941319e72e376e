"""The UI as a process among others."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from tests.pipelines.conftest import Home
from tests.ports import free_port
from tests.waiting import LONG, is_over, wait_until

IGNORES_CTRL_C = (
    "import os, signal, sys; signal.signal(2, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
)


def answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/server_info", timeout=LONG).is_success
    except httpx.TransportError:
        return False


def test_what_a_script_started_in_the_background_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")
    port = free_port()
    ports = ["--port", str(port), "--view-port", str(free_port())]
    ui = [sys.executable, "-m", "pipelines.command", "ui", *ports]
    process = subprocess.Popen(
        [sys.executable, "-c", IGNORES_CTRL_C, *ui],
        env=Home(tmp_path).environment(),
        cwd=Path(__file__).parents[2],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(lambda: answers(port))
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        process.wait(LONG)
        wait_until(lambda: all(is_over(child.pid) for child in children))
        assert children
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
