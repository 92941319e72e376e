"""What holds for every test."""

from __future__ import annotations

import atexit
import gc
import os
import re
import resource
import shutil
import signal
import ssl
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pytest
import typer
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings

from tests.machine import lake_of_many_weeks
from tests.postgres import postgres_server, postgres_url, record_store, shared_store

# Here, and not beside the tests that use them, so that a worker has one server and not several.
__all__ = ["postgres_server", "postgres_url", "record_store", "shared_store"]

# A test is to fail for what it finds, not for what else the machine is doing.
settings.register_profile(
    "patient", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")

# What is set on the machine of the day leads no test to other places, keys, proxies or colours.
_ELSEWHERE = re.compile(
    r"(?!DEBRIEF_TEST_)(AWS|CLAUDE|DAGSTER|DEBRIEF|GIT|LANGFUSE)_\w+|PG[A-Z]+|DATABASE_URL|\w+_API_KEY|\w+_PROXY"
    r"|\w*COLOR\w*|PY_COLORS|GITHUB_ACTIONS|COLUMNS|LINES|XDG_CONFIG_\w+",
    re.IGNORECASE,
)
for _name in [name for name in os.environ if _ELSEWHERE.fullmatch(name)]:
    del os.environ[_name]

# Databases and git wait for the disk at every small write, which shows nothing here: in memory, tests
# do not. A folder that somebody names is taken all the same.
_IN_MEMORY = Path("/dev/shm")
_ENOUGH = 4_000_000_000
if (
    "TMPDIR" not in os.environ
    and os.access(_IN_MEMORY, os.W_OK)
    and shutil.disk_usage(_IN_MEMORY).free > _ENOUGH
):
    os.environ["TMPDIR"] = tempfile.tempdir = str(_IN_MEMORY)

# Nor does what the person at work keeps at home: transcripts, keys, the settings of git.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    _HOME = tempfile.mkdtemp(prefix="debrief-home-")
    atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
    os.environ["HOME"] = _HOME

# A thousand connections have two ends each here; many systems allow 1,024 files to begin with.
_SOFT, _HARD = resource.getrlimit(resource.RLIMIT_NOFILE)
_WANTED = 8_192 if _HARD == resource.RLIM_INFINITY else min(8_192, _HARD)
if _SOFT != resource.RLIM_INFINITY and _SOFT < _WANTED:
    resource.setrlimit(resource.RLIMIT_NOFILE, (_WANTED, _HARD))

# Whatever is started in the background of a shell ignores it, and so would all that is started here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _commands_in(app: typer.Typer) -> int:
    groups = [group.typer_instance for group in app.registered_groups]
    return len(app.registered_commands) + sum(1 + _commands_in(group) for group in groups if group)


@cache
def _command_line_of(app: typer.Typer, _: int) -> Any:
    return typer.main.get_command(app)


# A command line is made from some fifty functions, which takes longer than most tests of it: once
# is enough, until a module adds commands.
typer.testing._get_command = lambda app: _command_line_of(app, _commands_in(app))  # type: ignore


@cache
def _certificates_of(trust_env: bool, _: str | None, __: str | None) -> ssl.SSLContext:
    return _read_certificates(trust_env=trust_env)


def _certificates(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
    if verify is not True or cert is not None:
        return _read_certificates(verify=verify, cert=cert, trust_env=trust_env)
    named = (os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    return _certificates_of(trust_env, *named)


# Each client of HTTP reads the certificates of all authorities, which takes longer than what most
# tests ask with it.
_read_certificates = httpx.create_ssl_context
httpx._transports.default.create_ssl_context = _certificates  # type: ignore[attr-defined]

# Until all tests are imported, there is next to no garbage in what is made.
gc.disable()


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    """Take back what a command names in the settings of its process: the next test of the same
    worker would start its programs on that lake."""
    with patch.dict(os.environ):
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the examples of readers be written anew, to be looked at in the difference."""
    parser.addoption("--rewrite", action="store_true", help="write expected.json of the examples")


OF_THE_DEMO = tuple(f"tests/pipelines/test_{name}.py" for name in ("demo", "edges", "forget"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Give a worker a whole file at a time: what its tests share is made once.

    The files that look at the demo go to one worker together, for the same reason.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class FileByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "demo" if file in OF_THE_DEMO else file

    # Files come in their order and not by the number of their tests, which says nothing of the
    # time they take: the last ones are short.
    config.option.loadscopereorder = False
    return FileByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Import tests on a lake with a week of long ago: Dagster's partitions begin at the lake's
    first week when the code is loaded, and so all weeks of the samples are partitions."""
    with tempfile.TemporaryDirectory() as home, patch.dict(os.environ, DEBRIEF_HOME=home):
        lake_of_many_weeks(Path(home, "lake"))
        yield


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over what was imported: it would look through it often."""
    gc.freeze()
    gc.set_threshold(50_000)  # as the command does
    gc.enable()
