"""The recorder's own wheel: it records where nothing of Debrief is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.machine import clean_environment

RECORDER = Path(__file__).parents[2] / "recorder"
HEAVY = (
    *("alembic", "dagster", "dspy", "fastapi", "fsspec", "litellm", "numpy", "pandas", "psycopg2"),
    *("pyarrow", "scipy", "sqlalchemy", "tiktoken", "uvicorn", "yaml"),
)
OURS = ("agent_debrief", "debrief", "pipelines")
RUN = """
import sys
sys.path += {folders!r}
sys.argv[0] = "debrief"
from debrief.entry import main
main()
"""


@pytest.fixture(scope="module")
def debrief(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """The command of the built wheel beside the packages that it depends on."""
    folder = tmp_path_factory.mktemp("wheel")
    builder = WheelBuilder(str(RECORDER))
    (wheel,) = builder.build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "site")
    packages = folder / "packages"
    packages.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.lower().startswith((*HEAVY, *OURS)):
            (packages / path.name).symlink_to(path)
    script = RUN.format(folders=[str(folder / "site"), str(packages)])
    environment = clean_environment(DEBRIEF_HOME=str(folder / "home"), PATH=os.environ["PATH"])

    def typed(*arguments: str, cwd: Path) -> str:
        # -S: without the .pth files of packages, and so without this checkout.
        command = [sys.executable, "-S", "-E", "-P", "-c", script, *arguments]
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return typed


def test_a_session_is_recorded_checked_and_applied_without_debrief(
    debrief: Callable[..., str], tmp_path: Path
) -> None:
    shop, copy = tmp_path / "shop", tmp_path / "copy"
    shop.mkdir()
    (shop / "cart.py").write_text("total = 0\n")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "Begin"]):
        author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", *author, *arguments], cwd=shop, check=True)
    subprocess.run(["git", "clone", "-q", shop, copy], check=True)

    debrief("record", "start", "--task", "cart", "--prompt", "Count from one.", cwd=shop)
    (shop / "cart.py").write_text("total = 1\n")
    assert json.loads(debrief("record", "status", "--json", cwd=shop))["session"]["changes"]
    debrief("record", "stop", "--local", str(tmp_path / "cart.record.json"), cwd=shop)

    debrief("record", "check", str(tmp_path / "cart.record.json"), cwd=shop)
    debrief("record", "apply", str(tmp_path / "cart.record.json"), cwd=copy)
    assert (copy / "cart.py").read_text() == "total = 1\n"


def test_the_program_alone_has_the_recorders_commands(
    debrief: Callable[..., str], tmp_path: Path
) -> None:
    help = debrief("--help", cwd=tmp_path)
    assert "record" in help
    assert "agent-debrief" in help
    assert "serve" not in help, "its packages are those of debrief-recorder[server]"
