"""A real object store for tests: a server of S3's protocol on loopback, one a worker."""

from __future__ import annotations

import logging
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from wsgiref.types import StartResponse, WSGIEnvironment

import fsspec
import httpx
import pytest
from msgspec import Struct
from werkzeug.serving import BaseWSGIServer, make_server

from tests.ports import free_port

KEY, SECRET = "tests-key", "tests-secret"


class ObjectStoreServer:
    """Serves until it is stopped; can be away for a while and come back with what it had."""

    def __init__(self) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server: BaseWSGIServer | None = None
        self._thread: threading.Thread | None = None
        self.requests: Counter[str] = Counter()
        """By method, since the start."""
        self.port = free_port()

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to be told to use it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def start(self) -> None:
        """Begin to answer."""

        def counted(environ: WSGIEnvironment, start_response: StartResponse) -> object:
            self.requests[environ["REQUEST_METHOD"]] += 1
            return self._app(environ, start_response)

        self._server = make_server("127.0.0.1", self.port, counted, threaded=True)  # type: ignore[arg-type]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Answer no more."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def bucket(self) -> str:
        """Make a bucket; return its name."""
        name = f"bucket-{uuid.uuid4().hex}"
        httpx.put(f"{self.url}/{name}", headers={"Authorization": _signed_as()}).raise_for_status()
        return name


class Bucket(Struct, frozen=True):
    """A bucket of a test's own."""

    server: ObjectStoreServer
    name: str

    def url(self, *parts: str) -> str:
        """Return the address of something in it."""
        return "/".join(["s3:/", self.name, *parts])

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to be told to use it."""
        return self.server.environment


def _signed_as() -> str:
    return f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/us-east-1/s3/aws4_request"


@contextmanager
def object_store() -> Iterator[ObjectStoreServer]:
    """A server of its own, as a benchmark needs one."""
    server = ObjectStoreServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def object_store_server() -> Iterator[ObjectStoreServer]:
    """The worker's server."""
    with object_store() as server:
        yield server


@contextmanager
def known(server: ObjectStoreServer) -> Iterator[ObjectStoreServer]:
    """Let this process know how to reach a server, and forget those that it knew."""
    client = fsspec.get_filesystem_class("s3")
    with pytest.MonkeyPatch.context() as told:
        for name, value in server.environment.items():
            told.setenv(name, value)
        client.clear_instance_cache()
        yield server
    client.clear_instance_cache()


@pytest.fixture
def bucket(object_store_server: ObjectStoreServer) -> Iterator[Bucket]:
    """An empty bucket, which this process knows how to reach."""
    with known(object_store_server):
        yield Bucket(object_store_server, object_store_server.bucket())
