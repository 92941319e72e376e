from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.langfuse.server import LangfuseServer


@pytest.fixture
def server() -> Iterator[LangfuseServer]:
    with LangfuseServer() as running:
        yield running
