"""A model on loopback that reviews sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.models.openai_server import Call, OpenAIServer, Reply

MODEL = "openai/tiny"


def review(call: Call, verdict: str = "complete_unverified", quality: float = 0.8) -> str:
    """Return a review as short as it may be, with what the judges in the question say."""
    judges = re.findall(r'<judge name="([^"]+)">', call.system)
    return json.dumps(
        {
            "requests": [{"turn": 1, "asked": "it", "state": "done_unseen", "proof": None}],
            "claims": [],
            "verdict": verdict,
            "quality": quality,
            "judges": {name: {"feedback": "It reuses it.", "score": 0.9} for name in judges},
        }
    )


@contextmanager
def reviewer(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """Run the model within the block, with a key for it."""
    with OpenAIServer(lambda call: Reply(review(call))) as server:
        monkeypatch.setenv("DEBRIEF_MODEL_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")
        yield server
