"""Configuration that would run a program: looking at its repository never does."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from debrief.errors import InputError
from debrief.git import find_commit, open_repository
from debrief.recorder.assembly import build_record
from debrief.recorder.comparison import snapshot_tree, uncommitted_paths
from debrief.recorder.repository import baseline_of, head_commit
from debrief.recorder.verification import verify
from tests.recorder.repositories import (
    REDACTOR,
    changes_between,
    commit,
    facts,
    head,
    kinds,
    recorded,
    repository,
    run,
    skips,
    untouched,
    write,
)
from tests.trap import Trap


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path / "trap")


def look_at_everything(work: Path, base: str) -> None:
    """Do all that the recorder does with a repository, whatever it answers."""
    looks: list[Callable[[], object]] = [
        lambda: uncommitted_paths(work),
        lambda: snapshot_tree(work),
        lambda: changes_between(work, base),
        lambda: verify(work, build_record(work, facts(base), REDACTOR)),
        lambda: open_repository(work),
        lambda: head_commit(work),
        lambda: baseline_of(work),
        lambda: find_commit(work, base),
    ]
    for look in looks:
        try:
            look()
        except InputError:
            continue


PROGRAMS = {
    "filters": [
        *("filter.evil.clean={trap}", "filter.evil.process={trap}", "filter.evil.smudge={trap}"),
        *("filter.evil.required=true", "filter.lfs.clean={trap}", "filter.lfs.process={trap}"),
    ],
    "drivers": [
        *("diff.evil.textconv={trap}", "diff.evil.cachetextconv=true", "diff.evil.command={trap}"),
        *("diff.external={trap}", "merge.evil.driver={trap}", "merge.default=evil"),
    ],
    "monitors, hooks, pagers, aliases": [
        *("core.fsmonitor={trap}", "core.fsmonitorHookVersion=2", "core.hooksPath={folder}"),
        *("core.pager={trap}", "core.editor={trap}", "sequence.editor={trap}"),
        *("pager.diff-index={trap}", "pager.rev-parse={trap}", "pager.config={trap}"),
        *("pager.add={trap}", "core.askPass={trap}", "alias.add=!{trap}"),
        *("alias.rev-parse=!{trap}", "alias.diff-index=!{trap}", "core.untrackedCache=true"),
    ],
    "signatures, transport, conversion": [
        *("gpg.program={trap}", "gpg.ssh.program={trap}", "log.showSignature=true"),
        *("core.sshCommand={trap}", "core.gitProxy={trap}", "credential.helper={trap}"),
        *("uploadpack.packObjectsHook={trap}", "core.alternateRefsCommand={trap}"),
        *("remote.origin.url=ext::{trap}", "remote.origin.uploadpack={trap}"),
        *("protocol.allow=always", "protocol.ext.allow=always", "core.bigFileThreshold=1"),
        *("core.checkRoundtripEncoding=UTF-16", "i18n.commitEncoding={trap}"),
    ],
}


EVERYTHING = [setting for settings in PROGRAMS.values() for setting in settings]


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        *(pytest.param(settings, "local", id=name) for name, settings in PROGRAMS.items()),
        pytest.param(EVERYTHING, "included", id="everything in a file that is included"),
        pytest.param(EVERYTHING, "worktree", id="everything in the worktree's own file"),
    ],
)
def test_no_program_of_the_configuration_is_run(
    tmp_path: Path, trap: Trap, settings: list[str], place: str
) -> None:
    work = repository(tmp_path / "work", {"a.txt": "1\n", "b.psd": "1\n", "gone": "1\n"})
    write(
        work,
        {".gitattributes": "*.txt filter=evil diff=evil merge=evil\n*.psd filter=lfs\n"},
    )
    base = commit(work)
    file = work / ".git/config"
    if place == "included":
        file = tmp_path / "included.config"
        run(work, "config", "includeIf.gitdir:**.path", str(file))
    if place == "worktree":
        run(work, "config", "extensions.worktreeConfig", "true")
        file = work / ".git/config.worktree"
    for setting in settings:
        key, _, value = setting.partition("=")
        told = value.format(trap=trap.program, folder=trap.folder)
        run(work, "config", "--file", str(file), key, told)
    for name in ("post-index-change", "reference-transaction", "post-checkout", "fsmonitor"):
        trap.named(name)
    write(work, {"a.txt": "2\n", "new.txt": "1\n", "b.psd": "2\n", "plain": "1\n"})
    (work / "gone").unlink()
    with untouched(work):
        look_at_everything(work, base)
    assert not trap.sprung


def test_the_trap_would_have_sprung(tmp_path: Path, trap: Trap) -> None:
    work = repository(tmp_path / "work", {"a.txt": "1\n", ".gitattributes": "*.txt filter=evil\n"})
    run(work, "config", "filter.evil.clean", str(trap.program))
    write(work, {"a.txt": "2\n"})
    run(work, "status")
    assert trap.sprung


def test_files_of_a_filter_that_is_not_run_are_skipped(tmp_path: Path, trap: Trap) -> None:
    work = repository(
        tmp_path / "work", {".gitattributes": "*.x filter=evil\n*.y filter=absent\n", "a.x": "1\n"}
    )
    run(work, "config", "filter.evil.clean", str(trap.program))
    assert uncommitted_paths(work) == []
    write(work, {"a.x": "2\n", "b.x": "1\n", "c.y": "1\n"})
    record = recorded(work)
    assert kinds(record) == {"c.y": "create"}
    assert skips(record) == dict.fromkeys(("a.x", "b.x"), "its filter 'evil' is not run")
    assert uncommitted_paths(work) == ["b.x", "c.y"]


def test_hooks_of_the_repository_are_not_run(tmp_path: Path, trap: Trap) -> None:
    work = repository(tmp_path / "work", {"a": "1\n"})
    hooks = work / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman"):
        (hooks / name).unlink(missing_ok=True)
        (hooks / name).symlink_to(trap.program)
    write(work, {"a": "2\n"})
    look_at_everything(work, head(work))
    assert not trap.sprung
    run(work, "add", "--all")
    assert trap.sprung


def test_configuration_of_a_repository_inside_is_not_in_force(tmp_path: Path, trap: Trap) -> None:
    library = repository(tmp_path / "library", {"lib": "1\n", ".gitattributes": "* filter=evil\n"})
    work = repository(tmp_path / "work")
    run(work, "submodule", "--quiet", "add", str(library), "sub")
    base = commit(work)
    nested = repository(work / "nested", {"n": "1\n", ".gitattributes": "* filter=evil\n"})
    for inside in (work / "sub", nested):
        for key in ("filter.evil.clean", "core.fsmonitor", "core.sshCommand", "diff.external"):
            run(inside, "config", key, str(trap.program))
        write(inside, {"lib": "2\n", "n": "2\n"})
        os.utime(inside / ".gitattributes", (1, 1))
    look_at_everything(work, base)
    assert not trap.sprung
    run(work, "status")
    assert trap.sprung


def test_missing_objects_are_not_fetched(tmp_path: Path, trap: Trap) -> None:
    work = repository(tmp_path / "work", {"a": "of the baseline alone\n"})
    base = head(work)
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{trap.program}",
        "protocol.ext.allow": "always",
        "protocol.allow": "always",
    }.items():
        run(work, "config", key, value)
    write(work, {"a": "2\n"})
    lost = run(work, "rev-parse", f"{base}:a").decode().strip()
    (work / ".git/objects" / lost[:2] / lost[2:]).unlink()
    with pytest.raises(InputError, match="is not in the repository"):
        changes_between(work, base)
    look_at_everything(work, base)
    assert not find_commit(work, "1" * 40)
    assert not trap.sprung
    subprocess.run(["git", "cat-file", "-p", lost], cwd=work, capture_output=True, check=False)
    assert trap.sprung


@pytest.mark.parametrize("elsewhere", ["home", "above"])
def test_a_working_tree_that_is_said_to_be_elsewhere_is_refused(
    tmp_path: Path, elsewhere: str
) -> None:
    (tmp_path / "home").mkdir()
    write(tmp_path / "home", {"diary": "private\n"})
    work = repository(tmp_path / "work")
    place = str(tmp_path / "home") if elsewhere == "home" else "../.."
    base = head(work)
    run(work, "config", "core.worktree", place)
    for folder in (work, work / ".git", tmp_path / "home"):
        with pytest.raises(InputError):
            changes_between(folder, base)


def test_a_link_is_recorded_as_a_link_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    write(tmp_path / "private", {"diary": "private\n"})
    work = repository(tmp_path / "work", {"folder/diary": "public\n"})
    (work / "folder/diary").unlink()
    (work / "folder").rmdir()
    (work / "folder").symlink_to(tmp_path / "private")
    (work / "file").symlink_to(tmp_path / "private" / "diary")
    record = recorded(work)
    assert "private\\n" not in record.model_dump_json()
    assert kinds(record) == {
        "folder/diary": "delete",
        "folder": "create 120000",
        "file": "create 120000",
    }


def test_pipes_in_the_place_of_files_make_nothing_wait(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"a": "1\n"})
    base = head(work)
    (work / ".git/info/exclude").unlink(missing_ok=True)
    os.mkfifo(work / ".git/info/exclude")
    os.mkfifo(work / ".git/info/attributes")
    (work / "a").unlink()
    os.mkfifo(work / "a")
    os.mkfifo(work / "pipe")
    found = changes_between(work, base)
    assert found.files == ()
    assert [(skipped.path, skipped.reason) for skipped in found.skipped] == [
        ("a", "cannot be read")
    ]
