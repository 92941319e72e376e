"""A headless Chromium, driven over its own debugging protocol."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-port=0",
    "--window-size=1500,1000",
)


class Page:
    """One page of the browser."""

    def __init__(self, socket: ClientConnection, process: int) -> None:
        self._socket = socket
        self.process = process
        """The browser's own id among processes."""
        self._numbers = itertools.count(1)
        for domain in ("Page", "Runtime", "Network"):
            self.do(f"{domain}.enable")

    def do(self, method: str, seconds: float = 120.0, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=seconds))
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def run(self, script: str) -> Any:
        """Return what a JavaScript expression comes to.

        One that is asked while the browser goes from page to page may never be answered.
        """
        for last in (False, False, True):
            try:
                found = self.do("Runtime.evaluate", 5.0, expression=script, returnByValue=True)
            except TimeoutError:
                if last:
                    raise
            else:
                return found["result"].get("value")
        return None

    def text(self) -> str:
        """Return the words that are to be seen."""
        return self.run("document.body ? document.body.innerText : ''") or ""

    def open(self, url: str, *marks: str, gone: Sequence[str] = (), seconds: float = 60.0) -> float:
        """Go somewhere; return the seconds until ``wait`` has an end."""
        self.do("Page.navigate", url="about:blank")
        began = time.perf_counter()
        self.do("Page.navigate", url=url)
        self.wait(*marks, gone=gone, seconds=seconds)
        return time.perf_counter() - began

    def wait(self, *marks: str, gone: Sequence[str] = (), seconds: float = 60.0) -> None:
        """Wait until all ``marks`` are to be seen, and nothing of ``gone`` any more.

        Raises:
            TimeoutError: they are not, after so many seconds.
        """
        limit = time.perf_counter() + seconds
        while True:
            text = self.text()
            missing = [mark for mark in marks if mark not in text]
            missing += [f"the end of {mark}" for mark in gone if mark in text]
            if not missing:
                return
            if time.perf_counter() > limit:
                raise TimeoutError(f"{missing} not seen in: {text[:2_000]}")
            time.sleep(0.03)

    def click(self, words: str) -> None:
        """Click the innermost thing that bears these words.

        Raises:
            LookupError: nothing does.
        """
        script = f"""(() => {{
            const all = [...document.querySelectorAll('button, a, [role=button], [role=tab], span')];
            const found = all.filter(e => e.innerText && e.innerText.trim() === {json.dumps(words)});
            if (!found.length) return false;
            found[0].click();
            return true;
        }})()"""
        if not self.run(script):
            raise LookupError(words)

    def picture(self, path: Path) -> None:
        """Write what is to be seen as a PNG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.do("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browser() -> Iterator[Page]:
    """A page of a browser that has never been anywhere; it ends with the block."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        sys.exit(f"No browser: none of {', '.join(NAMES)} is on the PATH. Install Chromium.")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            told = Path(profile) / "DevToolsActivePort"
            limit = time.monotonic() + 60
            while not told.exists() or len(told.read_text().split()) < 2:
                if time.monotonic() > limit or process.poll() is not None:
                    sys.exit(f"{program} does not start")
                time.sleep(0.05)
            port = told.read_text().split()[0]
            targets = httpx.get(f"http://127.0.0.1:{port}/json", trust_env=False).json()
            address = next(t for t in targets if t["type"] == "page")["webSocketDebuggerUrl"]
            with connect(address, max_size=None, proxy=None, ping_interval=None) as socket:
                yield Page(socket, process.pid)
        finally:
            process.terminate()
            process.wait(20)
