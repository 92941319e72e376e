"""A run that is killed: nothing is paid twice, nothing half-written is seen, the next one ends."""

from __future__ import annotations

from pathlib import Path

from tests.faults.judging import Machine, score_of
from tests.models.openai_server import Faults, OpenAIServer
from tests.waiting import LONG, wait_until

AT_ONCE = 4


def test_a_kill_and_a_server_that_fails_in_every_way_lose_nothing(tmp_path: Path) -> None:
    faults = Faults(busy=0.20, broken=0.05, hangs=0.02, garbage=0.03)
    questions = 36
    with OpenAIServer(score_of) as server:
        plain = Machine(tmp_path / "plain", server)
        plain.write_sessions(questions)
        plain.run_here()
    with OpenAIServer(lambda call: faults.of(call) or score_of(call, 0.02)) as server:
        machine = Machine(tmp_path / "faults", server, more={"DEBRIEF_TIMEOUT": "1"})
        machine.write_sessions(questions)
        run = machine.start()
        wait_until(lambda: len(server.delivered) >= questions // 2)
        run.kill()
        run.wait()
        assert machine.rows() in ([], plain.rows())
        assert machine.start().communicate(timeout=LONG)[0].endswith("succeeded\n")
        repeated = sum(server.delivered.values()) - len(server.delivered)
    assert server.received > questions
    assert repeated <= AT_ONCE, "only what was under way is asked again"
    assert {row.status for row in machine.rows()} == {"ok"}
    assert machine.rows() == plain.rows()
