"""The pictures of the docs: home, a session's page and the lineage, as the demo shows them.

``python -m tools.pictures FOLDER`` installs playwright-core and sharp from npm into FOLDER, runs
the demo there, and photographs them in Chromium into ``docs/pictures``. ``make pictures`` does the
same; CHROMIUM names the browser.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from debrief.lake import Lake
from debrief.sessions.store import SESSIONS_TABLE
from debrief.summary import sessions_to_look_at
from debrief.view import links

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
_DEBRIEF = (sys.executable, "-m", "pipelines.command")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_NAMES = ("home", "session", "lineage")


def main(folder: Path) -> int:
    """Take the pictures; return the exit code."""
    browser = browser_with(folder, "sharp@0.35.5", "playwright-core@1.65.1")
    if browser is None:
        return 1
    home = folder / "home"
    environment = {**os.environ, "DEBRIEF_HOME": str(home), "DEBRIEF_RATER": "sam"}
    subprocess.run([*_DEBRIEF, "demo"], env=environment, check=True)
    lake = Lake(str(home / "demo"))
    first, *_ = sessions_to_look_at(lake, lake.partitions(SESSIONS_TABLE))
    with ExitStack() as stack:
        pages = stack.enter_context(_started("view", environment))
        ui = stack.enter_context(_started("ui", environment))
        work = {
            "browser": browser,
            "home": pages,
            "session": pages + links.session_path(first.session_id),
            "lineage": f"{ui.rstrip('/')}/dagster/asset-groups",
            "to": str(folder),
        }
        script = str(Path(__file__).with_suffix(".mjs"))
        command = ["node", script, str(folder / "node_modules"), json.dumps(work)]
        subprocess.run(command, check=True)
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in _NAMES:
        shutil.copy(folder / f"{name}.png", PICTURES)
    return 0


def browser_with(folder: Path, *packages: str) -> str | None:
    """Install packages of npm into a folder, and return the browser; None where one is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _BROWSERS)), None)
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    missing += [] if browser else ["Chromium (or name one: CHROMIUM=/path)"]
    if missing:
        print(f"Needed and not found: {', '.join(missing)}")
        return None
    if not (folder / "node_modules" / packages[-1].partition("@")[0]).is_dir():
        install = ["npm", "install", "--silent", "--no-save", *packages]
        subprocess.run(install, cwd=folder, check=True)
    return browser


@contextmanager
def _started(command: str, environment: dict[str, str]) -> Iterator[str]:
    """Start a server on the demo's lake; yield its address when it answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [*_DEBRIEF, command, "--demo", "--port", str(port)],
        env={**environment, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield next(line.split()[0] for line in server.stdout if line.startswith("http://"))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
