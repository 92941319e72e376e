"""A webhook's server on loopback."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.http_server import LoopbackServer, Reply, Request


@dataclass
class Hook:
    """What a webhook got, and its address."""

    url: str = ""
    got: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def hook(*statuses: int, delay: float = 0.0) -> Iterator[Hook]:
    """Answer with the given statuses in turn, the last one for good."""
    made, left = Hook(), list(statuses)

    def answer(request: Request) -> Reply:
        made.got.append(json.loads(request.body))
        time.sleep(delay)
        return Reply(left.pop(0) if len(left) > 1 else left[0])

    with LoopbackServer(answer) as server:
        made.url = f"{server.url}/services/T0/B0/secret-part"
        yield made
