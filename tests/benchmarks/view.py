"""The bars of the pages: the first answer of ``debrief view``, and its lists at 20,000 sessions.

``python -m tests.benchmarks.view`` makes the sessions, starts the command on them, first without an
index and then with one, and prints wall time to the first answer and processor time a page.
``--sessions 2000`` makes fewer; ``--lake DIR`` shows a lake that is there.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import psutil

from debrief.lake import Lake
from debrief.sessions.actions import described
from debrief.sessions.model import Message, Session, ToolCall, Turn
from tests.benchmarks.measuring import DEBRIEF, PROJECT, options, show
from tests.machine import clean_environment
from tests.view.shown import MONDAY, fill, session_of

PAGES = {
    "home": "/",
    "sessions, worst first": "/sessions",
    "sessions, the last page": "/sessions?page=400",
    "sessions, by tokens": "/sessions?sort=-tokens",
    "search for a common word": "/sessions?q=the",
    "search for a rare word": "/sessions?q=word4711",
    "search for a common word, best match first": "/sessions?q=the&sort=match",
    "search and filters": "/sessions?q=cart&task=task-3&model=model-1&tokens_max=90000",
    "weeks": "/weeks",
    "one week": f"/weeks/{MONDAY:%Y-%m-%d}",
    "prompts": "/prompts",
    "label next": "/labels/next",
    "one session": "/sessions/session-00007",
}
LONG = {
    "a session of 50,000 lines, opened (< 1 s)": "/sessions/long",
    "its last turns, by a link": "/sessions/long?at=turn-250",
    "its next part, scrolled to": "/sessions/long?part=1&fragment=1",
}
_WEEKS, _TURNS, _WORDS = 40, 6, 120
_REPEATS = 5


def main() -> None:
    """Print the table."""
    chosen = options(__doc__, sessions=20_000, lake="")
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        lake = chosen.lake or str(scratch / "lake")
        if not chosen.lake:
            fill(Lake(lake), list(_sessions(chosen.sessions)))
            fill(Lake(lake), [(_long_session(), 0.3)])
        show("sessions", f"{chosen.sessions:,}" if not chosen.lake else lake)
        with _served(lake, scratch) as (server, client, first):
            show("first answer without an index (< 1.5 s)", first_shown(server, first))
            while b"Reading the lake" in client.get("/weeks").content:
                time.sleep(0.5)
            show("index made", f"{_cpu(server):.1f} CPU s, {_size(scratch) / 1e6:.0f} MB")
        with _served(lake, scratch) as (server, client, first):
            show("first answer with an index (< 1.5 s)", first_shown(server, first))
            for name, address in PAGES.items():
                costs = [_cost(server, client, address) for _ in range(_REPEATS)]
                show(f"{name} (< 0.5 CPU s)", f"{statistics.median(costs):.3f} CPU s")
            for name, address in {} if chosen.lake else LONG.items():
                began = time.monotonic()
                cost = _cost(server, client, address)
                show(name, f"{time.monotonic() - began:.2f} s, {cost:.2f} CPU s")


def _sessions(count: int) -> Iterator[tuple[Session, float]]:
    chance = random.Random(7)
    words = [f"word{number}" for number in range(20_000)] + ["the", "cart", "test", "fix"] * 500

    def text() -> str:
        return " ".join(chance.choices(words, k=_WORDS))

    for number in range(count):
        turns = tuple(
            Turn(number=place, prompt=text(), messages=(_answer(text(), chance),))
            for place in range(1, _TURNS + 1)
        )
        session = session_of(
            f"session-{number:05}",
            turns=turns,
            title=text()[:80],
            task=f"task-{number % 30}",
            models=(f"model-{number % 8}",),
            started=MONDAY - timedelta(weeks=number % _WEEKS) + timedelta(seconds=number),
        )
        yield session, chance.random()


def _answer(text: str, chance: random.Random) -> Message:
    path = f"shop/module{chance.randrange(500)}.py"
    call = described(
        ToolCall(id="c1", name="Edit", input=f'{{"file_path": "{path}"}}', result=text, status="ok")
    )
    return Message(id="m", model="m", text=text, calls=(call,))


def _long_session() -> Session:
    """A session whose transcript has a line for each of 25,000 calls and one for each result."""

    def message(turn: int, place: int) -> Message:
        call = described(
            ToolCall(
                id=f"c{turn}-{place}",
                name="Bash",
                input=f'{{"command": "pytest tests/test_{place}.py"}}',
                result=f"test {place} passed\n" * 20,
                status="ok",
            )
        )
        text = f"Step **{place}** of turn {turn}."
        return Message(id=f"m{turn}-{place}", model="m", text=text, calls=(call,))

    turns = tuple(
        Turn(
            number=turn,
            prompt=f"Go on with {turn}.",
            messages=tuple(message(turn, place) for place in range(100)),
        )
        for turn in range(1, 251)
    )
    return session_of("long", turns=turns, started=MONDAY + timedelta(weeks=1))


@contextmanager
def _served(lake: str, scratch: Path) -> Iterator[tuple[psutil.Process, httpx.Client, float]]:
    """The command, a client of it, and the seconds until its first answer."""
    began = time.monotonic()
    process = subprocess.Popen(
        [*DEBRIEF, "view", "--lake", lake, "--port", "0"],
        cwd=PROJECT,
        env=clean_environment(HOME=str(scratch), DEBRIEF_HOME=str(scratch / "home")),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[0]
        with httpx.Client(base_url=address, timeout=600) as client:
            client.get("/").raise_for_status()
            yield psutil.Process(process.pid), client, time.monotonic() - began
    finally:
        process.terminate()
        process.wait()


def first_shown(server: psutil.Process, wall: float) -> str:
    """The time of an answer: of the clock, which other work prolongs, and of the processor."""
    return f"{wall:.2f} s, {_cpu(server):.2f} CPU s"


def _cpu(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


def _cost(server: psutil.Process, client: httpx.Client, address: str) -> float:
    before = _cpu(server)
    client.get(address, follow_redirects=True).raise_for_status()
    return _cpu(server) - before


def _size(scratch: Path) -> int:
    return sum(file.stat().st_size for file in (scratch / "home" / "view").glob("*.sqlite*"))


if __name__ == "__main__":
    main()
