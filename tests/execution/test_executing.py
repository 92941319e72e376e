"""From a session and its repository to what running says, and to the places that show it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.execution import executing
from debrief.execution.model import Execution
from debrief.execution.store import EXECUTIONS, execution_of, put_executions
from debrief.forgetting.choosing import Choice, Sources
from debrief.forgetting.forget import forget
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.outcomes.store import success_labels
from debrief.redaction.redactor import Redactor, key_of
from debrief.sessions.forgotten import Forgotten
from debrief.sessions.model import Session
from debrief.settings import Settings
from debrief.training.publishing.rewards import reward_of
from tests.execution.repositories import Repo, Work
from tests.execution.rows import ended, executed, ran
from tests.execution.sandboxes import sandbox_or_skip
from tests.training.scenario import line_of
from tests.view.shown import fill, served, settings_of, words

BROKEN, WHOLE = (f"def total(prices):\n    return {value}\n" for value in ("0", "sum(prices)"))
TOKEN = "ghp" + "_" + "4mTqZ8vRk2Lx9WsYc6Hn1Bd5Jf3Pg7Qa0UeK"
CHECK = f"""import unittest

from cart import total


class CartCase(unittest.TestCase):
    def test_a_sum(self):
        print("ghp" + "_" + "{TOKEN[4:]}")
        self.assertEqual(total([1, 2]), 3)

    def test_of_nothing(self):
        self.assertEqual(total([]), 0)
"""
COMMAND = "python3 -m unittest -v cart_case"


class Machine:
    """A repository, a session that worked in it elsewhere, and the lake that has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings: Settings = settings_of(folder)
        self.lake = Lake(self.settings.lake)
        self.repo = Repo(folder / "shop")
        self.repo.commit(-2, {"cart.py": BROKEN, "cart_case.py": CHECK, "notes.txt": "None.\n"})

    def works(self, name: str, before: str, after: str) -> Session:
        work = Work()
        work.reads("cart.py", before)
        work.edits("cart.py", before, after)
        work.runs(COMMAND, "OK")
        return replace(work.session(self.folder / name), id=name, repository="shop")

    def has(self, *sessions: Session) -> None:
        fill(self.lake, [(session, 0.9) for session in sessions])

    def row(self, session: Session) -> Execution | None:
        return execution_of(self.lake, week_of(session.started), session.id)

    def executes(self, *arguments: str) -> Result:
        given = ["--repositories", str(self.repo.folder), "--lake", self.lake.url, *arguments]
        environment = {"DEBRIEF_HOME": str(self.settings.home), "HOME": str(self.folder)}
        return CliRunner().invoke(app, ["execute", *given], env=environment)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    sandbox_or_skip()
    return Machine(tmp_path)


def test_a_session_is_run_once_it_is_agreed_to_and_what_comes_of_it_is_shown_everywhere(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = machine.works("mended", BROKEN, WHOLE)
    machine.has(session)
    asked = machine.executes()
    assert asked.exit_code == 1
    assert f"shop ({machine.repo.folder}): 1 session" in asked.output
    assert f"  {COMMAND}  (1)" in asked.output
    assert "Add --yes if these commands may run" in asked.output
    assert machine.row(session) is None

    done = machine.executes("--yes")
    assert done.exit_code == 0, done.output
    assert "1 session with an outcome, 1 done, 0 not." in done.output
    row = machine.row(session)
    assert row is not None
    assert (row.value, row.reason) == ("yes", "")
    assert row.tree is not None
    assert row.tree.files == ("cart.py",)
    check = next(check for check in row.checks if check.check.origin == "session")
    assert [[*run.tests.values()] for run in (*check.before, *check.after)] == [
        ["failed", "passed"], ["failed", "passed"], ["passed", "passed"], ["passed", "passed"],
    ]  # fmt: skip
    assert "<secret:github-token" in check.after[0].output
    assert TOKEN.encode() not in b"".join(
        path.read_bytes() for path in Path(machine.lake.url).rglob("*.zst")
    )

    success = success_labels(machine.lake)[session.id]
    assert success[:2] == (True, "execution")
    line = line_of(session, outcome=success)
    assert line.metadata.verdict == "complete_verified"
    assert reward_of(line.metadata, "execution") == 1.0
    with served(machine.settings) as client:
        page = words(client.get(f"/sessions/{session.id}").text)
    assert "before: 1 passed, 1 failed; after: 2 passed" in page
    assert "test_a_sum failed passed" in page
    assert "Its checks were run before and after its change, and say so." not in page, (
        "the verdict is of the last scoring: the next run makes it anew"
    )

    def never(*_: object) -> None:
        raise AssertionError("it was run again")

    with monkeypatch.context() as patched:
        patched.setattr(executing, "execute_check", never)
        again = machine.executes("--yes")
        assert again.exit_code == 0, again.output
        assert machine.row(session) == row

    forgotten = Forgotten.of(machine.lake, Redactor(key_of(machine.settings)))
    forget(
        Choice(sessions=(session.id,)),
        Sources(settings=machine.settings, lake=machine.lake, forgotten=forgotten),
    )
    assert machine.row(session) is None
    assert success_labels(machine.lake) == {}
    assert machine.lake.partitions(EXECUTIONS) == []


def test_a_session_that_changed_is_due_again_and_one_that_breaks_something_is_not_done(
    machine: Machine,
) -> None:
    machine.repo.commit(-1, {"cart.py": WHOLE})
    session = machine.works("broke", WHOLE, WHOLE)
    broken = machine.works("broke-it", WHOLE, BROKEN)
    machine.has(replace(broken, id="broke"))
    assert machine.executes("broke", "--yes").exit_code == 0
    row = machine.row(session)
    assert row is not None
    assert (row.value, row.reason) == ("no", "")
    assert success_labels(machine.lake)["broke"][:2] == (False, "execution")

    machine.has(replace(machine.works("other", WHOLE, f"{WHOLE}# As it was.\n"), id="broke"))
    said = machine.executes("--yes")
    assert "1 session: no test ends otherwise before and after its change" in said.output
    row = machine.row(session)
    assert row is not None
    assert (row.value, row.reason) == ("", "same_before")
    assert success_labels(machine.lake) == {}


def test_what_is_agreed_to_is_shown_whole(machine: Machine) -> None:
    work = Work()
    work.reads("cart.py", BROKEN)
    work.edits("cart.py", BROKEN, WHOLE)
    work.runs(f"python3 -m unittest 'cart_case\n{'x' * 120} \u202eend'")
    for checker in ("ruff check .", "mypy ."):
        work.runs(checker)
    for number in range(3):
        work.runs(f"cd /home/ann/shop/part && pytest test_{number}.py")
    machine.has(replace(work.session(machine.folder / "many"), id="many", repository="a\nb/shop"))
    shown = machine.executes().output
    assert f"  python3 -m unittest 'cart_case\\n{'x' * 120} \\u202eend'  (1)\n" in shown
    assert [f"  pytest test_{n}.py  (1 in part)" in shown for n in range(3)] == [True] * 3
    assert "a\\nb/shop (" in shown
    assert {"  ruff check .  (1)", "  mypy .  (1)"} <= set(shown.splitlines())


def test_what_breaks_on_a_tree_that_may_differ_says_nothing(machine: Machine) -> None:
    machine.repo.commit(-1, {"cart.py": WHOLE})
    work = Work()
    work.edits("cart.py", WHOLE, BROKEN)
    work.runs("sed -i s/0/42/ cart.py")
    work.runs(COMMAND, "OK")
    session = replace(work.session(machine.folder / "sed"), id="sed", repository="shop")
    machine.has(session)
    assert machine.executes("--yes").exit_code == 0
    row = machine.row(session)
    assert row is not None
    assert row.checks
    assert (row.value, row.reason, row.detail) == ("", "not_rebuilt", "cart.py")
    assert success_labels(machine.lake) == {}


def test_without_a_repository_or_a_session_it_says_so_in_one_line(machine: Machine) -> None:
    session = replace(machine.works("elsewhere", BROKEN, WHOLE), repository="another")
    machine.has(session)
    kept = executed("elsewhere", ran(ended(0), ended(1)), value="no")
    put_executions(machine.lake, week_of(session.started), [kept])
    said = machine.executes("--yes")
    assert said.exit_code == 0
    assert "1 session: its repository is not among those that were named" in said.output
    assert machine.row(session) == kept, "what was known stays"
    wrong = machine.executes("nothing-like-it", "--yes")
    assert wrong.exit_code == 1
    assert "is no session of" in wrong.output


def test_a_clone_without_a_file_that_no_check_needs_is_run_all_the_same(machine: Machine) -> None:
    blob = machine.repo.git("rev-parse", "HEAD:notes.txt")
    (machine.repo.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    machine.has(session := machine.works("mended", BROKEN, WHOLE))
    said = machine.executes("--yes")
    assert said.exit_code == 0, said.output
    row = machine.row(session)
    assert row is not None
    assert row.value == "yes"
