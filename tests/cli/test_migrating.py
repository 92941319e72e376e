"""``debrief migrate`` on real repositories: worktrees that git moves, and keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.settings import load_settings
from tests.machine import files_below
from tests.models.openai_server import OpenAIServer, Reply, judged
from tests.snapshots.scenario import commit, git, repository, write

JUDGE = "---\nweight: 1\nmodel: openai/tiny\n---\nYou judge tidiness.\n"
PLAN = "---\nplan_id: retries\n---\n# Retries\n\nRetry uploads three times.\n"
KEY = "sk-or-v1-0123456789abcdef"
FILES = {
    "up.py": "def upload(file):\n    file.send()\n",
    ".gitignore": "*.log\n.lw_coder/worktrees/\n",
    ".lw_coder/judges/tidiness.md": JUDGE,
}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(lambda call: Reply(judged(0.7, "Tidy."))) as running:
        yield running


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("DEBRIEF_HOME", "OPENAI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    shop = repository(tmp_path / "shop", FILES)
    monkeypatch.chdir(shop)
    return shop


def add_worktree(shop: Path, plan_id: str, *options: str) -> Path:
    """Make a worktree as the earlier tool did, with work that is not committed."""
    worktree = shop / ".lw_coder/worktrees" / plan_id
    git(shop, "worktree", "add", "--quiet", *options, str(worktree))
    write(worktree, {"plan.md": PLAN, "up.py": "import retry\n", "new.py": "x = 1\n"})
    write(worktree, {"trace.log": "ignored"})
    return worktree


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments])


def worktrees(shop: Path) -> list[str]:
    """Return the worktrees that git lists, relative to the repository."""
    listing = git(shop, "worktree", "list", "--porcelain").splitlines()
    places = [Path(line[9:]) for line in listing if line.startswith("worktree ")]
    return [place.relative_to(shop).as_posix() for place in places if place != shop]


def test_a_worktree_with_changes_is_moved_and_then_judged(
    shop: Path, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    worktree = add_worktree(shop, "retries", "-b", "work/retries")
    before, status = files_below(worktree), git(worktree, "status", "--porcelain", "--ignored")

    done = run("eval", "retries")
    assert done.exit_code == 1
    assert f"Run: debrief migrate --apply {shop}, which moves {worktree} over." in done.stderr
    assert "debrief code" not in done.stderr

    lines = run("migrate").stdout.splitlines()
    assert lines[1].startswith("  move    worktrees/retries  (from .lw_coder/worktrees/retries")
    assert "branch work/retries" in lines[1]
    assert worktrees(shop) == [".lw_coder/worktrees/retries"]
    assert files_below(worktree) == before

    done = run("migrate", "--apply")
    assert done.exit_code == 0, done.output
    assert "1 worktree moved" in done.stdout
    moved = shop / ".debrief/worktrees/retries"
    assert worktrees(shop) == [".debrief/worktrees/retries"]
    assert not worktree.exists()
    after = files_below(moved)
    assert {**after, ".git": b""} == {**before, ".git": b""}
    assert git(moved, "status", "--porcelain", "--ignored") == status
    assert git(moved, "branch", "--show-current") == "work/retries"
    assert "worktrees" not in git(shop, "status", "--porcelain", "--untracked-files=all")

    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("DEBRIEF_MODEL_BASE_URL", server.url)
    report = json.loads(run("eval", "retries", "--yes", "--json").stdout)
    assert (report["worktree"], report["weighted_average"]) == (str(moved), 0.7)
    assert "Retry uploads three times." in server.calls[0].user
    assert run("eval", "retries").exit_code == 0
    assert "There is nothing to do." in run("migrate").stdout


def locked(shop: Path) -> str:
    git(shop, "worktree", "lock", "--reason", "on a stick", str(add_worktree(shop, "stays")))
    return r"left    worktrees/stays  (is locked (on a stick); run git worktree unlock"


def taken(shop: Path) -> str:
    add_worktree(shop, "stays")
    write(shop, {".debrief/worktrees/stays/mine.txt": "mine"})
    return "differs worktrees/stays  (is there already, and stays as it is"


def with_submodule(shop: Path) -> str:
    other = repository(shop.parent / "other", {"a.txt": "a"})
    add = ("-c", "protocol.file.allow=always", "submodule")
    worktree = add_worktree(shop, "stays")
    git(worktree, *add, "--quiet", "add", str(other), "other")
    return "left    worktrees/stays  (has submodules, and git moves no such worktree"


def with_another_in_it(shop: Path) -> str:
    worktree = add_worktree(shop, "stays")
    git(shop, "worktree", "add", "--quiet", str(worktree / ".claude/worktrees/inner"))
    return "left    worktrees/stays  (has another worktree in it"


def plain(shop: Path) -> str:
    write(shop, {".lw_coder/worktrees/stays/plan.md": PLAN})
    return "left    worktrees/stays  (is no git worktree)"


def of_a_moved_repository(shop: Path) -> str:
    worktree = add_worktree(shop, "stays")
    (worktree / ".git").write_text("gitdir: /nowhere/.git/worktrees/stays\n")
    git_folder = shop / ".git/worktrees/stays/gitdir"
    git_folder.write_text("/nowhere/.lw_coder/worktrees/stays/.git\n")
    return (
        "left    worktrees/stays  (is no worktree of this repository; if the repository was moved"
    )


def without_its_git_file(shop: Path) -> str:
    (add_worktree(shop, "stays") / ".git").unlink()
    return "left    worktrees/stays  (has lost its .git file; run git worktree repair"


def linked(shop: Path) -> str:
    (shop / ".lw_coder/worktrees").mkdir(exist_ok=True)
    write(shop.parent, {"away/plan.md": PLAN})
    (shop / ".lw_coder/worktrees/stays").symlink_to(shop.parent / "away")
    return "left    worktrees/stays  (is a symbolic link)"


STAY = (
    *(locked, taken, with_submodule, with_another_in_it, plain, of_a_moved_repository),
    *(without_its_git_file, linked),
)


@pytest.mark.parametrize("make", STAY, ids=[make.__name__ for make in STAY])
def test_a_worktree_that_cannot_be_moved_stays_with_the_reason(shop: Path, make: object) -> None:
    assert callable(make)
    reason = make(shop)
    goes = add_worktree(shop, "goes", "--detach")
    before = files_below(shop / ".lw_coder/worktrees/stays")
    assert reason in run("migrate").stdout
    done = run("migrate", "--apply")
    assert done.exit_code == 0, done.output
    assert reason in done.stdout
    assert files_below(shop / ".lw_coder/worktrees/stays") == before
    assert not goes.exists()
    assert (shop / ".debrief/worktrees/goes/new.py").is_file()
    assert reason in run("migrate").stdout


def test_a_repository_that_was_moved_has_its_worktrees_back_by_the_named_command(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_worktree(shop, "retries")
    shop = shop.rename(shop.parent / "elsewhere")
    monkeypatch.chdir(shop)
    said = run("migrate").stdout
    assert "run git worktree repair .lw_coder/worktrees/retries, then migrate again" in said
    git(shop, "worktree", "repair", ".lw_coder/worktrees/retries")
    assert run("migrate", "--apply").exit_code == 0
    assert worktrees(shop) == [".debrief/worktrees/retries"]


def test_a_worktree_whose_folder_is_gone_is_named_and_its_branch_stays(shop: Path) -> None:
    import shutil

    shutil.rmtree(add_worktree(shop, "retries"))
    reason = "left    worktrees/retries  (is gone; git worktree prune forgets it, branch retries"
    assert reason in run("migrate", "--apply").stdout
    assert worktrees(shop) == [".lw_coder/worktrees/retries"]
    assert git(shop, "branch", "--list", "retries")


def test_what_git_refuses_is_said_and_everything_else_is_done(shop: Path) -> None:
    add_worktree(shop, "retries")
    queue = add_worktree(shop, "queue")
    repository(queue / "vendored", {"a.txt": "a"})
    git(queue, "add", "vendored")
    done = run("migrate", "--apply")
    assert done.exit_code == 1
    assert "working trees containing submodules cannot be moved" in done.stderr
    assert set(worktrees(shop)) == {".lw_coder/worktrees/queue", ".debrief/worktrees/retries"}
    assert (queue / "new.py").is_file()
    assert (shop / ".debrief/judges/tidiness.md").read_text() == JUDGE


def test_a_folder_outside_of_git_is_copied_without_worktrees(
    tmp_path: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "bare", {".lw_coder/worktrees/retries/plan.md": PLAN})
    write(tmp_path / "bare", {".lw_coder/judges/tidiness.md": JUDGE})
    monkeypatch.chdir(tmp_path / "bare")
    done = run("migrate", "--apply")
    assert done.exit_code == 0, done.output
    assert "worktrees/retries  (is no git worktree)" in done.stdout
    assert (tmp_path / "bare/.debrief/judges/tidiness.md").is_file()


def test_a_worktree_is_not_moved_through_a_link(shop: Path, tmp_path: Path) -> None:
    add_worktree(shop, "retries")
    (tmp_path / "away").mkdir()
    (shop / ".debrief").mkdir()
    (shop / ".debrief/worktrees").symlink_to(tmp_path / "away")
    done = run("migrate", "--apply")
    assert done.exit_code == 1
    assert "is a symbolic link" in done.stderr
    assert list((tmp_path / "away").iterdir()) == []


def environment(name: str) -> Path:
    return Path.home() / name / ".env"


def test_known_keys_are_named_first_and_copied_once(shop: Path) -> None:
    write(
        Path.home(), {".lw_coder/.env": f"OPENROUTER_API_KEY={KEY}\nLW_DEBUG=1\nEMPTY_API_KEY=\n"}
    )
    write(Path.home(), {".weft/.env": "export LANGFUSE_PUBLIC_KEY='pk it\\'s \\\\ # mine'\n"})
    done = run("migrate")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert f"key .env (OPENROUTER_API_KEY from {environment('.lw_coder')})" in lines
    assert f"key .env (LANGFUSE_PUBLIC_KEY from {environment('.weft')})" in lines
    assert f"left {environment('.lw_coder')} (LW_DEBUG is no setting of Debrief)" in lines
    assert not environment(".debrief").exists()

    applied = run("migrate", "--apply")
    assert "2 keys added" in applied.stdout
    assert environment(".debrief").stat().st_mode & 0o777 == 0o600
    settings = load_settings({})
    assert settings.variable("OPENROUTER_API_KEY") == KEY
    assert settings.langfuse_public_key == "pk it's \\ # mine"
    written = environment(".debrief").read_bytes()
    again = run("migrate", "--apply")
    assert "0 keys added" in again.stdout
    assert environment(".debrief").read_bytes() == written
    for said in (done, applied, again):
        assert KEY not in said.output
        assert "# mine" not in said.output


def test_keys_that_are_set_stay_and_a_file_without_a_last_line_end_is_continued(shop: Path) -> None:
    write(Path.home(), {".lw_coder/.env": f"OPENROUTER_API_KEY={KEY}\nOPENAI_API_KEY=sk-new\n"})
    write(Path.home(), {".debrief/.env": "# mine\nOPENROUTER_API_KEY=sk-mine"})
    environment(".debrief").chmod(0o600)
    done = run("migrate", "--apply")
    assert "differs .env  (OPENROUTER_API_KEY is set already, and stays" in done.stdout
    text = "# mine\nOPENROUTER_API_KEY=sk-mine\nOPENAI_API_KEY='sk-new'\n"
    assert environment(".debrief").read_text() == text
    assert environment(".debrief").stat().st_mode & 0o777 == 0o600


def test_keys_are_not_written_through_a_link_nor_taken_from_a_repository(
    shop: Path, tmp_path: Path
) -> None:
    write(shop, {".lw_coder/.env": f"OPENROUTER_API_KEY={KEY}\n"})
    write(Path.home(), {".lw_coder/.env": f"OPENROUTER_API_KEY={KEY}\n"})
    write(tmp_path, {"elsewhere.env": ""})
    (tmp_path / "elsewhere.env").chmod(0o600)
    environment(".debrief").parent.mkdir()
    environment(".debrief").symlink_to(tmp_path / "elsewhere.env")
    done = run("migrate", "--apply")
    assert done.exit_code == 0, done.output
    assert "is a symbolic link; no key is written to it" in done.stdout
    assert "left    .env  (holds keys, which are taken over one by one from the home" in done.stdout
    assert (tmp_path / "elsewhere.env").read_text() == ""


def test_the_earlier_tools_own_home_folder_is_no_sample(shop: Path) -> None:
    write(Path.home(), {".lw_coder/.env": f"OPENROUTER_API_KEY={KEY}\n"})
    write(Path.home(), {".lw_coder/dspy_cache/1/2.val": "x"})
    done = run("migrate", str(Path.home()), "--apply")
    assert done.exit_code == 0, done.output
    assert (
        "left    dspy_cache  (is a cache of answers; Debrief keeps its own: 1 file)" in done.stdout
    )
    assert load_settings({}).variable("OPENROUTER_API_KEY") == KEY
    assert not (Path.home() / ".debrief/dspy_cache").exists()


def test_a_sample_takes_its_plan_from_the_worktree_that_is_moved(shop: Path) -> None:
    add_worktree(shop, "retries")
    commit(shop, {".lw_coder/training_data/retries/code_trace.md": "# Trace\n"})
    said = "training_data/retries/plan.md  (from .lw_coder/worktrees/retries/plan.md)"
    assert said in run("migrate", "--apply").stdout
    assert (shop / ".debrief/training_data/retries/plan.md").read_text() == PLAN
    assert "There is nothing to do." in run("migrate").stdout
