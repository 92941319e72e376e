"""How fast sessions of a Langfuse server are fetched and made: ``python -m tests.benchmarks.langfuse``.

Fetches 10,000 observations from a loopback server, with the fetcher and with bare requests, in
turns, and prints the ratio of the best times. Then makes a session of requests that each repeat
all that was said before, and prints how much longer that takes than decoding the same inputs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import httpx
import orjson

from debrief.langfuse.client import LARGEST_PAGE
from debrief.langfuse.fetcher import FIELDS, fetch_rows, session_of
from tests.langfuse.scenario import (
    READ,
    TEST,
    DropIn,
    Recorder,
    call,
    calls,
    client_of,
    says,
    tool,
    user,
)
from tests.langfuse.server import API, LangfuseServer

ROUNDS, STEPS = 3, 10


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=3_334, help="of three observations each")
    parser.add_argument("--turns", type=int, default=40, help="of the conversation")
    options = parser.parse_args()
    with LangfuseServer() as server:
        recorder = Recorder(server)
        for number in range(options.traces):
            recorder.trace(f"t{number}", f"prompt {number}", "Done. " * 50)
        rows = fetch_rows(client_of(server), "s1")
        plain, fetched, made = best(
            lambda: fetch_bare(server),
            lambda: fetch_rows(client_of(server), "s1"),
            lambda: session_of("s1", rows),
        )
    print(f"{len(rows)} observations: bare {plain:.2f} s, fetched {fetched:.2f} s, "
          f"ratio {fetched / plain:.2f}, conversion {made:.2f} s")  # fmt: skip
    requests = conversation(options.turns)
    inputs = [row["input"] for row in requests]
    decoded, made = best(
        lambda: [orjson.loads(text) for text in inputs], lambda: session_of("s1", requests)
    )
    print(f"{len(requests)} requests, {sum(map(len, inputs)) / 1e6:.0f} MB: decoded "
          f"{decoded:.2f} s, made {made:.2f} s, ratio {made / decoded:.1f}")  # fmt: skip


def best(*tasks: Callable[[], object]) -> list[float]:
    """Return the least seconds of each task, all measured in turns."""
    seconds = [float("inf")] * len(tasks)
    for _ in range(ROUNDS):
        for number, task in enumerate(tasks):
            began = time.perf_counter()
            task()
            seconds[number] = min(seconds[number], time.perf_counter() - began)
    return seconds


def fetch_bare(server: LangfuseServer) -> None:
    """Read the pages with nothing around the requests."""
    query = {"sessionId": "s1", "limit": str(LARGEST_PAGE), "fields": FIELDS}
    with httpx.Client(auth=(server.public_key, server.secret_key)) as http:
        while True:
            page = http.get(f"{server.host}{API}/v2/observations", params=query).json()
            if not (cursor := page["meta"].get("cursor")):
                return
            query["cursor"] = cursor


def conversation(turns: int) -> list[dict[str, str]]:
    """Return the requests of a long session, each with the whole history."""
    with LangfuseServer() as server:
        agent = DropIn(server, tools=[READ, TEST])
        new = [user("Begin.")]
        for turn in range(turns):
            for step in range(STEPS):
                identity = f"c{turn}-{step}"
                made = call(identity, "read_file", path=f"{turn}/{step}.py", note="n" * 100)
                agent.asks(*new, answers=calls(made, text="Looking."))
                new = [tool(identity, "line of code\n" * 100)]
            agent.asks(*new, answers=says("Done."))
            new = [user(f"Go on with {turn}.")]
        return server.observations


if __name__ == "__main__":
    main()
