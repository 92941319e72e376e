"""One running service for the stories that need no limits of their own."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from debrief.recorder.postgres import EmbeddedPostgres
from debrief.recorder.storage.store import RecordStore
from tests.postgres import TEMPLATE, execute
from tests.recorder.service.helpers import Api, ensure_task, running


@pytest.fixture(scope="session")
def api(postgres_server: EmbeddedPostgres) -> Iterator[Api]:
    execute(postgres_server, f"CREATE DATABASE service TEMPLATE {TEMPLATE}")
    with RecordStore(postgres_server.url_of("service")) as store:
        ensure_task(store)
        with running(store) as api:
            yield api


@pytest.fixture
def client(api: Api) -> Iterator[httpx.Client]:
    with api.client() as client:
        yield client
