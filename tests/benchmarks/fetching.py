"""How fast a session is fetched: run as ``python -m tests.benchmarks.fetching``.

Fetches 10,000 observations from a loopback server, with the fetcher and with bare requests, in
turns, and prints the ratio of the best times.
"""

from __future__ import annotations

import time

import httpx

from debrief.langfuse.client import LARGEST_PAGE
from debrief.langfuse.conversion import session_of
from debrief.langfuse.fetcher import FIELDS, fetch_rows
from tests.langfuse.scenario import client_of
from tests.langfuse.server import API, LangfuseServer
from tests.langfuse.test_fetcher import Recorder


def bare(server: LangfuseServer) -> int:
    """Read the pages with nothing around the requests."""
    rows = 0
    query = {"sessionId": "s1", "limit": str(LARGEST_PAGE), "fields": FIELDS}
    with httpx.Client(auth=(server.public_key, server.secret_key)) as http:
        while True:
            answer = http.get(f"{server.host}{API}/v2/observations", params=query).json()
            rows += len(answer["data"])
            if not (cursor := answer["meta"].get("cursor")):
                return rows
            query["cursor"] = cursor


def main() -> None:
    """Print the figures."""
    with LangfuseServer() as server:
        recorder = Recorder(server)
        for number in range(3_334):
            recorder.trace(f"t{number}", f"prompt {number}", "Done. " * 50)
        plain, fetched, converted = [], [], []
        for _ in range(5):
            began = time.perf_counter()
            rows = bare(server)
            plain.append(time.perf_counter() - began)
            began = time.perf_counter()
            observed = fetch_rows(client_of(server), "s1")
            fetched.append(time.perf_counter() - began)
            began = time.perf_counter()
            session = session_of("s1", observed)
            converted.append(time.perf_counter() - began)
        print(f"{rows} observations, {len(session.turns)} turns")
        print(f"bare {min(plain):.2f} s, fetched {min(fetched):.2f} s")
        print(f"ratio {min(fetched) / min(plain):.2f}, conversion {min(converted):.2f} s")


if __name__ == "__main__":
    main()
