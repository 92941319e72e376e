"""An object store that goes away while a run is under way."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.faults.judging import Machine, score_of
from tests.models.openai_server import OpenAIServer
from tests.object_store import known, object_store
from tests.waiting import LONG, wait_until

SESSIONS = 12
QUESTIONS = SESSIONS
"""Both judges ride in one."""


def test_a_run_waits_for_the_store_and_asks_nothing_again(tmp_path: Path) -> None:
    with (
        object_store() as store,
        known(store),
        OpenAIServer(lambda call: score_of(call, 0.3)) as server,
    ):
        url = f"s3://{store.bucket()}/lake"
        machine = Machine(tmp_path, server, lake=url, more=store.environment)
        machine.write_sessions(SESSIONS)
        server.most_answers = QUESTIONS // 2
        run = machine.start()

        def answered(count: int) -> bool:
            assert run.poll() is None
            return len(server.delivered) >= count

        wait_until(lambda: answered(QUESTIONS // 2))
        store.stop()
        server.most_answers = None
        wait_until(lambda: answered(QUESTIONS))
        with socket.create_server(("127.0.0.1", store.port)) as away:
            for _ in range(2):
                away.accept()[0].close()
        assert run.poll() is None
        store.start()
        said, _ = run.communicate(timeout=LONG)
        assert said.splitlines()[-1] == "succeeded", said
        assert server.received == QUESTIONS
        assert [row.status for row in machine.rows()] == ["ok"] * 2 * SESSIONS
