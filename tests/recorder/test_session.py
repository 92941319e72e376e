from __future__ import annotations

import os
import resource
import sqlite3
import stat
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from debrief.errors import ConfigurationError, InputError
from debrief.recorder.local_session import CommandStart
from debrief.recorder.session import discard, session_of, utc_now
from debrief.recorder.state import LocalSession, RecorderHome
from tests.machine import files_below
from tests.recorder.session_scenario import Shop, add_pnpm
from tests.snapshots.scenario import commit, git, write


def test_a_session_starts_at_the_last_commit_of_a_clean_worktree(shop: Shop) -> None:
    git(shop.folder, "remote", "add", "origin", "https://ann:pass@git.example.org/shop.git?x=1")
    started = shop.start(system="Be brief.", ignore=("*.log",))
    filed = session_of(shop.home, shop.folder / "src").started
    assert filed == started
    assert filed.base_ref == git(shop.folder, "rev-parse", "HEAD")
    assert (filed.repo_name, filed.branch) == ("shop", "main")
    assert filed.repo_remote == "https://git.example.org/shop.git"
    assert (filed.task_id, filed.prompt, filed.system) == ("cart", "Add a discount.", "Be brief.")


def test_a_session_leaves_no_trace_in_the_repository(shop: Shop) -> None:
    before = files_below(shop.folder)
    shop.start()
    shop.run("pnpm", "test")
    assert files_below(shop.folder) == before


def test_state_can_be_read_by_its_owner_alone_and_tells_its_version(shop: Shop) -> None:
    shop.start()
    shop.change()
    shop.run("pnpm", "test")
    paths = list(shop.home.path.rglob("*"))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_file()}
    folders = {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_dir()}
    assert (modes, folders) == ({0o600}, {0o700})
    with closing(sqlite3.connect(shop.home.file)) as state:
        assert state.execute("PRAGMA user_version").fetchall() == [(2,)]


UNCLEAN = {
    "a changed file": ({"src/cart.ts": "changed\n"}, (), "src/cart.ts"),
    "a new file": ({"src/new.ts": "new\n"}, (), "src/new.ts"),
    "a staged file": ({"src/new.ts": "new\n"}, ("add", "src/new.ts"), "src/new.ts"),
    "a deleted file": ({}, ("rm", "-q", "src/old.ts"), "src/old.ts"),
    "a file gone from the index alone": ({}, ("rm", "-q", "--cached", "src/old.ts"), None),
}


@pytest.mark.parametrize(("files", "arguments", "path"), UNCLEAN.values(), ids=UNCLEAN)
def test_a_worktree_that_is_not_clean_is_refused_with_what_is_not(
    shop: Shop, files: dict[str, str], arguments: tuple[str, ...], path: str | None
) -> None:
    write(shop.folder, files)
    if arguments:
        git(shop.folder, *arguments)
    if path is None:
        assert shop.start()
        return
    with pytest.raises(InputError) as caught:
        shop.start()
    assert f"\n  {path}\n" in str(caught.value)
    with pytest.raises(InputError, match="has no session"):
        session_of(shop.home, shop.folder)


def test_many_paths_that_are_not_clean_are_counted(shop: Shop) -> None:
    write(shop.folder, {f"new/{number:02}.ts": "" for number in range(30)})
    with pytest.raises(InputError, match="30 paths differ") as caught:
        shop.start()
    assert "new/19.ts" in str(caught.value)
    assert "new/20.ts" not in str(caught.value)
    assert "and 10 more" in str(caught.value)


def test_what_is_ignored_need_not_be_clean(shop: Shop) -> None:
    commit(shop.folder, {".gitignore": "*.tmp\n"})
    write(shop.folder, {"a.tmp": "", "node_modules/x/index.js": "", "notes.log": ""})
    with pytest.raises(InputError) as caught:
        shop.start()
    assert "1 path differs from the last commit\n  notes.log\n" in str(caught.value)
    shop.start(ignore=("*.log",))


def test_of_starts_at_once_one_wins(shop: Shop) -> None:
    go = threading.Barrier(6)

    def attempt(number: int) -> str:
        go.wait()
        try:
            return shop.start(task_id=f"task-{number}").task_id
        except InputError:
            return ""

    with ThreadPoolExecutor(6) as pool:
        won = [task for task in pool.map(attempt, range(6)) if task]
    assert won == [session_of(shop.home, shop.folder).started.task_id]


def test_two_worktrees_of_a_repository_have_a_session_each(shop: Shop, tmp_path: Path) -> None:
    git(shop.folder, "worktree", "add", "-q", "-b", "other", str(tmp_path / "beside"))
    beside = Shop(tmp_path / "beside", shop.home)
    first, second = shop.start(), beside.start(task_id="tests")
    assert (first.branch, second.branch) == ("main", "other")
    assert first.repo_name == second.repo_name == "shop"
    discard(shop.home, beside.folder)
    assert session_of(shop.home, shop.folder).started == first
    assert len(shop.home.opened()) == 1


def test_a_second_session_is_refused_whichever_way_leads_to_its_worktree(
    shop: Shop, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(shop.folder)
    shop.start()
    for way in (shop, Shop(tmp_path / "link/src", shop.home)):
        with pytest.raises(InputError, match=r"has a session already, of task cart, since 20\d\d-"):
            way.start(task_id="other")
    assert session_of(shop.home, shop.folder).started.task_id == "cart"


REFUSED = {
    "a task's id with capitals": ({"task_id": "Cart"}, "is no task's id"),
    "a task's id that leads elsewhere": ({"task_id": "../x"}, "is no task's id"),
    "a task's id with a line end": ({"task_id": "cart\n"}, "is no task's id"),
    "no prompt": ({"prompt": " \n"}, "the prompt: is empty"),
    "NUL in the prompt": ({"prompt": "a\0b"}, "characters that no text file has"),
    "half a surrogate pair": ({"system": "a\ud800b"}, "characters that no text file has"),
    "a prompt without end": ({"prompt": "a" * 1_000_001}, "is longer than 1,000,000"),
    "a glob that is none": ({"ignore": ("!",)}, "ignore"),
}


@pytest.mark.parametrize(("given", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_no_record_could_hold_is_refused_at_the_start(
    shop: Shop, given: dict[str, object], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        shop.start(**given)
    assert shop.home.opened() == []


def test_a_folder_in_no_repository_and_one_without_a_commit_are_refused(
    shop: Shop, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="lies in no git repository"):
        Shop(tmp_path, shop.home).start()
    with pytest.raises(InputError, match="is no folder"):
        Shop(tmp_path / "nowhere", shop.home).start()
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    with pytest.raises(InputError, match="has no commit yet"):
        Shop(tmp_path / "empty", shop.home).start()
    git(tmp_path, "init", "-q", "--bare", "bare")
    with pytest.raises(InputError, match="is in a bare repository"):
        Shop(tmp_path / "bare", shop.home).start()
    with pytest.raises(InputError, match="no files to record") as caught:
        Shop(shop.folder / ".git", shop.home).start()
    assert caught.value.culprit == str(shop.folder / ".git")
    assert "--repo FOLDER" in caught.value.next_move


def test_a_worktree_that_was_moved_has_no_session_and_the_way_to_it_is_told(
    shop: Shop, tmp_path: Path
) -> None:
    shop.start()
    shop.folder.rename(tmp_path / "moved")
    with pytest.raises(InputError, match="has no session") as caught:
        session_of(shop.home, tmp_path / "moved")
    assert "debrief record status --all" in caught.value.next_move
    (tmp_path / "moved").rename(shop.folder)
    assert session_of(shop.home, shop.folder).started.task_id == "cart"


def test_sessions_are_never_kept_in_the_worktree(shop: Shop) -> None:
    inside = Shop(shop.folder, RecorderHome(shop.folder / "src"))
    with pytest.raises(ConfigurationError, match="lies in the worktree"):
        inside.start()
    assert git(shop.folder, "status", "--porcelain") == ""


def test_commands_are_recorded_in_order_with_the_files_that_each_found(shop: Shop) -> None:
    shop.start()
    shown: list[bytes] = []
    shop.run("pnpm", "test", show=shown.append)
    assert b"".join(shown) == b"2 passed\na warning\ndone\n"
    shop.change()
    shop.run("pnpm", "--filter", "./src", "lint", folder="src")
    commands = session_of(shop.home, shop.folder).commands()
    assert [command.args[-1] for command in commands] == ["test", "lint"]
    assert commands[1].cwd == "src"
    assert commands[1].output == "--filter\n./src\nlint\n"
    assert commands[0].output == "2 passed\na warning\ndone\n"
    assert (commands[0].exit_code, commands[0].cut, commands[0].ending) == (0, False, "")
    found = [{file.path for file in ran.state.files} for ran in commands if ran.state]
    assert found == [set(), {"src/cart.ts", "src/discount.ts", "src/old.ts"}]


def test_no_command_and_no_session_are_refused(shop: Shop) -> None:
    with pytest.raises(InputError, match="has no session"):
        shop.run("pnpm", "test")
    shop.start()
    with pytest.raises(InputError, match="there is no command"):
        shop.run()
    with pytest.raises(InputError, match="Allowed are"):
        shop.run("pnpm", "run", "deploy")
    assert session_of(shop.home, shop.folder).commands() == []


def test_a_program_that_is_not_there_leaves_nothing_in_the_record(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.start()
    (tmp_path / "bin/pnpm").write_text("#!/nowhere/sh\n")
    with pytest.raises(ConfigurationError, match="cannot be started"):
        shop.run("pnpm", "test")
    git_folder = subprocess.run(["which", "git"], capture_output=True, text=True).stdout
    monkeypatch.setenv("PATH", str(Path(git_folder.strip()).parent))
    with pytest.raises(ConfigurationError, match="is not installed"):
        shop.run("pnpm", "test")
    assert session_of(shop.home, shop.folder).commands() == []


def test_while_a_command_runs_nothing_else_changes_the_session(shop: Shop) -> None:
    shop.start()
    seen: list[str] = []

    def meanwhile(piece: bytes) -> None:
        if seen:
            return
        assert shop.home.is_busy(shop.folder)
        for attempt in (
            lambda: shop.run("pnpm", "test"),
            lambda: shop.stop(shop.folder.parent / "record.json"),
            lambda: discard(shop.home, shop.folder),
        ):
            with pytest.raises(InputError, match="another process is at this worktree's session"):
                attempt()
        seen.append(session_of(shop.home, shop.folder).commands()[0].cmd)

    shop.run("pnpm", "test", show=meanwhile)
    assert seen == ["pnpm"]
    assert not shop.home.is_busy(shop.folder)


def test_a_command_whose_end_nobody_saw_is_recorded_as_far_as_it_came(shop: Shop) -> None:
    shop.start()
    shop.run("pnpm", "test")
    shop.home.query("UPDATE commands SET end = NULL")
    (command,) = session_of(shop.home, shop.folder).commands()
    assert command.output == "2 passed\na warning\ndone\n"
    assert command.exit_code is None
    assert command.ending == "(the recorder was ended while this ran)"
    assert command.duration_ms >= 0


def test_bytes_that_are_no_text_become_replacement_characters(shop: Shop, tmp_path: Path) -> None:
    add_pnpm(tmp_path, "#!/bin/sh\nprintf 'a\\377b\\000c\\r\\n\\033[1mx'\n")
    shop.start()
    shop.run("pnpm", "test")
    (command,) = session_of(shop.home, shop.folder).commands()
    assert command.output == "a\ufffdb\ufffdc\r\n\x1b[1mx"


def test_discarding_forgets_the_session_and_leaves_the_files(shop: Shop) -> None:
    shop.start()
    shop.change()
    discard(shop.home, shop.folder)
    assert shop.home.opened() == []
    assert (shop.folder / "src/discount.ts").is_file()
    with pytest.raises(InputError, match="has no session"):
        discard(shop.home, shop.folder)


def test_state_that_is_broken_or_of_a_newer_version_is_named(shop: Shop) -> None:
    shop.start()
    shop.home.query("PRAGMA user_version = 3")
    with pytest.raises(InputError, match=r"state.sqlite: has version 3\. Update debrief"):
        shop.run("pnpm", "test")
    shop.home.file.write_bytes(b"no database, but long enough to have been one" * 100)
    for attempt in (shop.start, lambda: shop.stop(shop.folder.parent / "record.json")):
        with pytest.raises(ConfigurationError, match="cannot be used: file is not a database"):
            attempt()
    shop.home.file.unlink()
    shop.start()


def test_a_full_disk_ends_the_command_and_the_session_is_as_it_was(shop: Shop) -> None:
    shop.start()
    shop.run("pnpm", "test")
    before = session_of(shop.home, shop.folder).commands()
    write(shop.folder, {"src/new.ts": "new\n" * 200_000})
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (shop.home.file.stat().st_size, unlimited[1]))
    try:
        with pytest.raises(ConfigurationError, match="cannot be used"):
            shop.run("pnpm", "lint")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert session_of(shop.home, shop.folder).commands() == before


def test_a_command_whose_output_could_not_be_stored_was_run_all_the_same(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.start()

    def full(piece: bytes) -> None:
        raise ConfigurationError("state.sqlite", "cannot be used: database or disk is full")

    monkeypatch.setattr(LocalSession, "output_of", lambda *_: nullcontext(full))
    with pytest.raises(ConfigurationError, match="disk is full"):
        shop.run("pnpm", "test")
    (command,) = session_of(shop.home, shop.folder).commands()
    assert (command.args, command.is_over, command.exit_code) == (("test",), False, None)


def test_only_of_a_file_that_is_broken_it_is_said_to_move_it_away(shop: Shop) -> None:
    shop.start()
    session = session_of(shop.home, shop.folder)
    with pytest.raises(ConfigurationError, match="cannot be used") as caught:
        shop.home.open(shop.folder, session.started)  # there is one, and the file is whole
    assert "away" not in caught.value.next_move
    shop.home.file.write_bytes(b"no database, but long enough to have been one" * 100)
    with pytest.raises(ConfigurationError, match="not a database") as caught:
        shop.home.opened()
    assert "away" in caught.value.next_move


def test_a_session_at_which_a_command_runs_is_not_forgotten(shop: Shop) -> None:
    shop.start()
    id_ = session_of(shop.home, shop.folder).id
    with shop.home.lock_worktree(shop.folder):
        assert shop.home.forget(id_, act=False) == 1
        with pytest.raises(InputError, match="another process"):
            shop.home.forget(id_, act=True)
    assert shop.home.forget(id_, act=True) == 1
    assert shop.home.opened() == []


def test_what_a_killed_recorder_left_is_removed_an_hour_later(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = [tmp_path / "debrief-record-old", tmp_path / "debrief-record-new"]
    for folder in left:
        write(folder, {"git/blob-0": "a secret"})
    os.utime(left[0], (0, 0))
    shop.start()
    assert [folder.exists() for folder in left] == [False, True]


def test_state_that_cannot_be_written_is_said_so(shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, not a folder")
    with pytest.raises(ConfigurationError, match="cannot be made"):
        shop.start()


def test_what_is_discarded_is_in_no_file_any_more(shop: Shop) -> None:
    shop.start(prompt="Say zanzibar.")
    write(shop.folder, {"src/new.ts": "zanzibar\n" * 1_000})
    shop.run("pnpm", "add", "zanzibar")
    assert b"zanzibar" in shop.home.file.read_bytes()
    with shop.home.connected():  # as a command that runs in another worktree
        discard(shop.home, shop.folder)
        for path in shop.home.path.rglob("*"):
            assert path.is_dir() or b"zanzibar" not in path.read_bytes()


def test_processes_at_once_wait_for_each_other(shop: Shop) -> None:
    shop.start()
    session = session_of(shop.home, shop.folder)

    def work(number: int) -> int:
        start = CommandStart(cmd="pnpm", args=(), cwd=".", started_at=utc_now(), time_limit=1)
        with session.output_of(session.add_command(start, {})) as store:
            for _ in range(20):
                store(b"x")
                assert session.commands()
        return number

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(work, range(6))) == 15
    assert [len(ran.output) for ran in session.commands()] == [20] * 6
