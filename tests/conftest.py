"""What holds for every test."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

from tests.postgres import postgres_server, postgres_url, record_store, shared_store

# Here, and not beside the tests that use them, so that a worker has one server and not several.
__all__ = ["postgres_server", "postgres_url", "record_store", "shared_store"]

# A test is to fail for what it finds, not for what else the machine is doing.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

TOGETHER = {"tests/pipelines/test_staleness.py": "tests/pipelines/test_demo.py"}
"""Files that share what is made for a session: the worker of the one has the other too."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Give a worker a whole file at a time: what its tests share is made once."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class FileByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return TOGETHER.get(file, file)

    # Files come in their order and not by the number of their tests, which says nothing of the
    # time they take: the last ones are short.
    config.option.loadscopereorder = False
    return FileByFile(config, log)
