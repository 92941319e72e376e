"""Another account of the machine is not the owner of the pages: real sockets, real accounts."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from debrief.door.peers import account_of
from debrief.lake import Lake
from debrief.outcomes.giving import given_labels
from tests.view.shown import OWN, fill, served, session_of, settings_of

ASKS = 'exec 3<>"/dev/tcp/$1/$2"; printf %s "$3" | cat >&3; {then}'
ROOT_ONLY = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.getuid() != 0,
    reason="only root on Linux can ask as another account",
)


def as_nobody(address: str, request: str, then: str = "cat <&3") -> str:
    host, port = address.removeprefix("http://").split(":")
    done = subprocess.run(
        ["bash", "-c", ASKS.format(then=then), "bash", host, port, request],
        capture_output=True,
        text=True,
        check=True,
        user=pwd.getpwnam("nobody").pw_uid,
        cwd="/",
    )
    return done.stdout


def post(address: str, forwarded: str = "") -> str:
    body = "say=good"
    host = address.removeprefix("http://")
    return (
        f"POST /sessions/one/labels HTTP/1.1\r\nHost: {host}\r\nOrigin: {address}\r\n{forwarded}"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n"
        f"Connection: close\r\n\r\n{body}"
    )


@ROOT_ONLY
def test_another_account_reads_and_changes_nothing(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill(Lake(settings.lake), [(session_of("one"), 0.3)])
    with served(settings) as client:
        address = str(client.base_url).rstrip("/")
        host = address.removeprefix("http://")
        read = f"GET /sessions/one HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
        for request in (
            f"{read}\r\n",
            f"{read}X-Forwarded-For: 10.0.0.1\r\n\r\n",
            post(address),
            post(address, "X-Forwarded-For: 10.0.0.1\r\n"),
        ):
            answer = as_nobody(address, request)
            assert answer.startswith("HTTP/1.1 403"), answer
            assert "another account of this machine" in answer
        as_nobody(address, post(address), then="exec 3>&-")  # closed before anybody can look
        assert client.get("/sessions/one").status_code == 200
        assert not list(given_labels(Lake(settings.lake)))
        assert client.post("/sessions/one/labels", data={"say": "good"}, headers=OWN).is_redirect
    assert [label.value for label in given_labels(Lake(settings.lake))] == ["good"]


@pytest.mark.skipif(not Path("/proc/net/tcp").is_file(), reason="only Linux tells")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_an_open_connection_has_its_account_and_a_closed_one_has_none(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listening:
        client = socket.create_connection(listening.getsockname()[:2])
        served, _ = listening.accept()
        with served:
            ends = client.getsockname()[:2], served.getsockname()[:2]
            assert account_of(*ends) == os.getuid()
            assert account_of(ends[1], ("127.0.0.1", 1)) is None
            client.close()
            assert account_of(*ends) is None
