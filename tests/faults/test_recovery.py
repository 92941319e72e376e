"""A run that is killed: nothing is paid twice, nothing half-written is seen, the next one ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.judging_faults import score_of, structs_with
from tests.faults.judging import Machine
from tests.models.openai_server import OpenAIServer
from tests.waiting import LONG, wait_until

SESSIONS = 6
QUESTIONS = 2 * SESSIONS
AT_ONCE = 4


@pytest.mark.parametrize("answered", [1, 5, 11])
def test_after_a_kill_no_finished_answer_is_paid_again(tmp_path: Path, answered: int) -> None:
    with OpenAIServer(lambda call: structs_with(score_of(call), 0.02)) as server:
        whole = Machine(tmp_path / "undisturbed", server)
        whole.write_sessions(SESSIONS)
        said, _ = whole.start().communicate(timeout=LONG)
        assert said.splitlines()[-1] == "succeeded", said
        asked = server.received
        assert asked == QUESTIONS
        machine = Machine(tmp_path / "killed", server)
        machine.write_sessions(SESSIONS)
        run = machine.start()
        wait_until(lambda: len(server.delivered) >= asked + answered)
        run.kill()
        run.wait()
        assert machine.rows() in ([], whole.rows())
        said, _ = machine.start().communicate(timeout=LONG)
        assert said.splitlines()[-1] == "succeeded", said
        under_way = server.received - asked - QUESTIONS
        assert under_way <= AT_ONCE, "only what was under way is asked again"
        assert machine.rows() == whole.rows()
