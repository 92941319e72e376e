"""The pages in a real browser: whether everybody can use them, and a story of reading and labelling.

``python -m tests.view.browser FOLDER`` installs playwright-core and axe-core from npm into FOLDER,
runs the demo there, and opens every page in Chromium, light and dark, wide and narrow: axe finds
nothing serious, nothing is wider than the window, nothing is asked of any other host, no script
fails. Then sessions are found, filtered, read and labelled by keys, in a lake with a hostile one.
``make test-pages`` does the same; CHROMIUM names the browser.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import ExitStack
from datetime import timedelta
from itertools import islice
from pathlib import Path

import httpx
from msgspec.structs import replace

from debrief.lake import Lake
from debrief.rubrics.model import TRIALS, RubricTrial
from debrief.sessions.model import Session, Turn
from debrief.settings import load_settings
from debrief.training.model import INDEX, TrainingSetRow
from debrief.view import links
from debrief.view.index import Index
from tests.friction.scenario import day
from tests.friction.test_failures import wrong_runner
from tests.machine import clean_environment
from tests.view.every_kind import fill_every_kind
from tests.view.shown import fill, served, session_of, settings_of
from tests.view.test_home import write_friction
from tests.view.test_session import EVIL, hostile_session
from tools.pictures import browser_with

PACKAGES = ("playwright-core@1.65.1", "axe-core@4.14.1")
_SCRIPT = Path(__file__).with_suffix(".mjs")


def main(folder: Path) -> int:
    """Do all of it; return the exit code."""
    browser = browser_with(folder, *PACKAGES)
    if browser is None:
        return 1
    demo = folder / "home" / "demo"
    if not (demo / "reports").is_dir():
        home = clean_environment(HOME=str(folder), DEBRIEF_HOME=str(folder / "home"))
        debrief = [sys.executable, "-m", "pipelines.command", "demo"]
        subprocess.run(debrief, env=home, check=True, stdout=subprocess.DEVNULL)
    with ExitStack() as stack:
        settings = settings_of(folder, DEBRIEF_LAKE=str(demo))
        shown = stack.enter_context(served(settings))
        story = settings_of(folder / "story", DEBRIEF_RATER="ada")
        shutil.rmtree(folder / "story", ignore_errors=True)
        tax = session_of("tax", "Add a tax to the invoice.", task="billing")
        others: list[tuple[Session, float | None]] = [
            (hostile_session(EVIL), 0.2),
            (session_of("cart", "Fix the cart's total."), 0.4),
            (session_of("carts", "Rename the cart."), 0.6),
        ]
        fill(Lake(story.lake), [*others, (tax, 0.9)])
        told = stack.enter_context(served(story))
        read = settings_of(folder / "read")
        shutil.rmtree(folder / "read", ignore_errors=True)
        fill_every_kind(Lake(read.lake))
        friction = write_friction(
            Lake(read.lake), [day(number, wrong_runner()) for number in range(3)]
        )
        reading = str(stack.enter_context(served(read)).base_url)
        of_reading = [
            "/",
            links.page_path("friction", friction.id),
            *("/sessions?reviewer=openai%2Freader", links.session_path("every-kind")),
            links.session_path("later"),
        ]
        work = {
            "browser": browser,
            "pages": [
                *(str(shown.base_url) + path for path in _addresses(demo, settings.home, shown)),
                *(reading + path for path in of_reading),
            ],
            "story": str(told.base_url),
            "reading": reading,
        }
        command = ["node", str(_SCRIPT), str(folder / "node_modules"), json.dumps(work)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as opened:
            for line in opened.stdout or ():
                print(line, end="", flush=True)
                if line == "reads a session that runs\n":
                    turns = (*tax.turns, Turn(number=2, prompt="Round the tax too."))
                    ended = tax.ended + timedelta(minutes=2)
                    goes_on = replace(tax, turns=turns, ended=ended, digest="goes on")
                    fill(Lake(story.lake), [*others, (goes_on, None)])
        return opened.returncode


def _addresses(lake: Path, home: Path, client: httpx.Client) -> list[str]:
    """Return the path of one page of each kind."""
    rows = Index(Lake(str(lake)), home / "view").sessions()
    known = [row.fingerprint for row in rows if row.fingerprint != "unknown"]
    before, after = list(dict.fromkeys(known))[:2]
    made = next(Lake(str(lake)).rows(INDEX, TrainingSetRow))
    trials = Lake(str(lake)).rows(TRIALS, RubricTrial)
    return [
        "/",
        "/sessions",
        "/sessions?q=the&turns_min=1&sort=-tokens",
        links.session_path(rows[0].id),
        "/prompts",
        links.page_path("prompts", before),
        links.page_path("prompts", before, "diff", after),
        "/rubrics",
        *(links.page_path("rubrics", trial.score_name, trial.key) for trial in islice(trials, 1)),
        "/weeks",
        links.page_path("weeks", rows[0].week),
        "/training",
        links.page_path("training", made.task, made.fingerprint),
        "/labels",
        "/labels/next",
        "/friction",
        "/questions",
        "/nowhere",
    ]


if __name__ == "__main__":
    load_settings()
    sys.exit(main(Path(sys.argv[1])))
