"""The UI of an instance that has grown: ``python -m tests.benchmarks.ui_scale [--pictures DIR]``.

Starts the whole (``debrief up``) over a lake of 200 weeks, 2,000 observed pairs of 100 tasks and
100 fingerprints, and 20,000 sessions, and tells for each page how long a headless browser takes
until its content is to be seen: the first time, and the median of three later ones. The ratio is
to a page of the same UI that asks for nothing of ours.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx
import psutil

from debrief.lake import Lake
from debrief.settings import load_settings
from pipelines import instance_care
from pipelines.instance import (
    URL,
    dagster_database_url,
    make_schema,
    open_instance,
    prepare_team_home,
)
from tests.benchmarks.browser import Page, browser
from tests.benchmarks.grown import Grown, Size, fill_instance, fill_lake, shown_in

LAST = "2026-11-09"
MOST = 3.0
"""Seconds that a page may take."""
UI, API, METRICS = 3917, 3918, 3919


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser()
    options.add_argument("--pictures", type=Path, help="Write a PNG of each page there.")
    options.add_argument("--few", action="store_true", help="A tenth of it all.")
    chosen = options.parse_args()
    few = Size(weeks=20, tasks=10, fingerprints=10, pairs=80, sessions=2_000, runs=100)
    size = few if chosen.few else Size()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        home = Path(scratch) / "home"
        os.environ |= {"DEBRIEF_HOME": str(home), "DEBRIEF_OFFLINE": "1", "DEBRIEF_LANGFUSE": "off"}
        os.environ |= {"DEBRIEF_SESSIONS": scratch, "DAGSTER_DISABLE_TELEMETRY": "1"}
        grown = _grown(size)
        command = [sys.executable, "-m", "pipelines.command", "up", "--port", str(UI)]
        command += ["--api-port", str(API), "--metrics-port", str(METRICS)]
        whole = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _wait_for(f"http://127.0.0.1:{UI}/server_info", whole)
            _wait_for(f"http://127.0.0.1:{METRICS}/health", whole)
            with browser() as page:
                worst = _measured(page, grown, size, chosen.pictures, whole.pid)
            _scrapes()
        finally:
            whole.terminate()
            whole.wait(120)
    if worst > MOST:
        sys.exit(f"A page takes {worst:.1f} s, more than {MOST:.0f} s.")


def _grown(size: Size) -> Grown:
    """Make the lake and the instance."""
    command = [sys.executable, "-m", "pipelines.command", "demo"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    settings = load_settings()
    os.environ["DEBRIEF_LAKE"] = str(settings.home / "demo")
    with open_instance(load_settings()) as demo:
        shown = shown_in(demo)
    for name in ("DEBRIEF_LAKE", "DAGSTER_HOME"):
        del os.environ[name]
    prepare_team_home(settings, {"python_module": "pipelines.definitions"})
    began = time.perf_counter()
    fill_lake(Lake(settings.lake), size, LAST)
    # Nobody would miss what a crash loses here, and every event is a commit.
    os.environ[URL] = f"{dagster_database_url(settings)}%20-csynchronous_commit%3Doff"
    make_schema(os.environ[URL])
    with open_instance(settings) as instance:
        instance_care.set_pool_limits(instance)
        grown = fill_instance(instance, size, LAST, shown)
    for name in ("DAGSTER_HOME", URL):
        del os.environ[name]
    print(f"made it all in {time.perf_counter() - began:.0f} s", flush=True)
    return grown


def _measured(page: Page, grown: Grown, size: Size, pictures: Path | None, whole: int) -> float:
    """Print a line a page; return the slowest median.

    On a busy machine the seconds of processor time, of the web server and of the browser with all
    its processes, tell more than the clock.
    """
    (server,) = (
        each for each in psutil.Process(whole).children() if "dagster_webserver" in each.cmdline()
    )
    worst, bare = 0.0, 0.0
    for name, take in _pages(page, grown, size).items():
        busy = _busy(server), _busy(psutil.Process(page.process))
        try:
            first, later = take(), [take() for _ in range(3)]
        except TimeoutError as error:
            print(f"{name:34} {error}", flush=True)
            worst = 60.0
            continue
        median = statistics.median(later)
        bare = bare or median
        worst = max(worst, median)
        served = (_busy(server) - busy[0]) / 4
        drawn = (_busy(psutil.Process(page.process)) - busy[1]) / 4
        told = f"first {first:5.2f} s   then {median:5.2f} s   {median / bare:4.1f} × the UI alone"
        told += f"   CPU s: server {served:4.2f}, browser {drawn:4.2f}"
        print(f"{name:34} {told}", flush=True)
        if pictures is not None:
            time.sleep(1)
            page.picture(pictures / f"{name.replace(' ', '-').replace(',', '')}.png")
    return worst


def _busy(process: psutil.Process) -> float:
    """Return the seconds of processor time of a process and all below it."""
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            total += sum(each.cpu_times()[:2])
    return total


def _pages(page: Page, grown: Grown, size: Size) -> dict[str, Callable[[], float]]:
    """Return what opens each page, until what people come for is to be seen."""
    at = f"http://127.0.0.1:{UI}"
    asset = f"{at}/assets"
    group = f"{at}/locations/debrief/asset-groups/scoring/lineage"
    playground = f"{at}/locations/debrief/jobs/whole_graph/playground"
    made = "ASSET_MATERIALIZATION"
    weeks = f"Materialized ({size.weeks})"

    def dialog() -> float:
        page.open(f"{asset}/session_scores?view=partitions", "Materialize", f"({size.weeks})")
        began = time.perf_counter()
        page.run(_OPEN_DIALOG)
        page.wait("Launch runs to materialize session_scores")
        return time.perf_counter() - began

    def opened(url: str, *marks: str, gone: tuple[str, ...] = ()) -> Callable[[], float]:
        return lambda: page.open(url, *marks, gone=gone)

    return {
        "the UI alone (its frame)": opened(f"{at}/deployment/config", "Hide navigation"),
        "overview": opened(f"{at}/overview", "Now", gone=("Loading",)),
        "assets": opened(asset, "training_sets", gone=("Loading", "\n- partitions")),
        "lineage of all": opened(f"{at}/asset-groups", "Materialize all", "snapshots", "training"),
        "lineage of a group": opened(group, "session_scores", "langfuse_scores"),
        "raw_sessions, overview": opened(f"{asset}/raw_sessions", "Latest materialization"),
        "raw_sessions, its partitions": opened(f"{asset}/raw_sessions?view=partitions", weeks),
        "raw_sessions, a partition": opened(
            f"{asset}/raw_sessions?view=partitions&partition={LAST}", weeks, "secrets_replaced"
        ),
        "raw_sessions, its events": opened(f"{asset}/raw_sessions?view=events", LAST),
        "raw_sessions, its checks": opened(f"{asset}/raw_sessions?view=checks", "no_lost_sessions"),
        "training_sets, overview": opened(f"{asset}/training_sets", "Latest materialization"),
        "training_sets, its partitions": opened(
            f"{asset}/training_sets?view=partitions", f"Materialized ({size.pairs})", "task-0"
        ),
        "training_sets, its automation": opened(
            f"{asset}/training_sets?view=automation", "Evaluation result"
        ),
        "runs": opened(f"{at}/runs", grown.week[:8]),
        "a run over a week": opened(f"{at}/runs/{grown.week}", made),
        "a run over half a year": opened(f"{at}/runs/{grown.large}", made),
        "backfills": opened(f"{at}/runs?view=backfills", grown.backfill),
        "a backfill over all weeks": opened(
            f"{at}/runs/b/{grown.backfill}", "weekly_report", gone=("Loading",)
        ),
        "backfill dialog": dialog,
        "launchpad": opened(playground, "find_sessions", "Scaffold missing config"),
        "schedules and sensors": opened(f"{at}/automation", "weekly", "new_sessions"),
    }


_OPEN_DIALOG = """(() => {
    const all = [...document.querySelectorAll('button')];
    all.find(e => /^Materialize/.test(e.innerText.trim())).click();
})()"""


def _scrapes() -> None:
    began = time.perf_counter()
    answer = httpx.get(f"http://127.0.0.1:{METRICS}/metrics", trust_env=False)
    took = time.perf_counter() - began
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    look = next(line for line in lines if line.startswith("debrief_look_seconds"))
    print(f"{'a scrape of the metrics':34} {took:.2f} s, {len(lines)} series; {look}")


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    limit = time.monotonic() + 180
    while time.monotonic() < limit and process.poll() is None:
        try:
            httpx.get(url, trust_env=False, timeout=60).read()
            return
        except httpx.HTTPError:
            time.sleep(0.2)
    sys.exit(f"nothing answers at {url}")


if __name__ == "__main__":
    main()
