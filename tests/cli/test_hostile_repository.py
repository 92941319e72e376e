"""A repository made to run programs when somebody looks: no command does, that Debrief has."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.snapshots.licences import licence_at
from debrief.snapshots.rows import reconstruct
from tests.cli.shop import Shop, server, shop
from tests.judging.repository import git, write
from tests.recorder.session_scenario import add_pnpm
from tests.snapshots.scenario import agent_command
from tests.training.lakes import lake_of
from tests.training.scenario import call, says, session, turn
from tests.trap import Trap

__all__ = ["server", "shop"]

NOW = datetime.now(UTC)
HOOKS = (
    *(
        "applypatch-msg",
        "pre-commit",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
    ),
    *("prepare-commit-msg", "post-rewrite", "pre-auto-gc", "fsmonitor-watchman"),
)
UNCOMMITTED = "import util  # not committed\n"
PROCESS = "filter.long.process"
"""Git gives up where it does not do as it should."""
SIGNED = "tree {tree}\nparent {parent}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nSigned\n"


def settings(trap: Trap) -> dict[str, str]:
    """Every setting of a repository that names a program which looking at it may run."""

    def program(name: str) -> str:
        return str(trap.named(name))

    return {
        "filter.evil.clean": program("clean"),
        "filter.evil.smudge": program("smudge"),
        "filter.lfs.clean": program("lfs-clean"),
        "filter.lfs.smudge": program("lfs-smudge"),
        PROCESS: program("process"),
        "diff.external": program("external-diff"),
        "diff.evil.command": program("diff-command"),
        "diff.evil.textconv": program("textconv"),
        "diff.submodule": "diff",
        "merge.default": "evil",
        "merge.evil.driver": program("merge-driver"),
        "core.fsmonitor": program("fsmonitor"),
        "core.pager": program("pager"),
        "pager.log": program("log-pager"),
        "core.editor": program("editor"),
        "core.sshCommand": program("ssh"),
        "core.askPass": program("askpass"),
        "core.gitProxy": program("proxy"),
        "credential.helper": program("credentials"),
        "core.alternateRefsCommand": program("alternate-refs"),
        "gpg.program": program("gpg"),
        "log.showSignature": "true",
        "alias.status": f"!{program('alias')}",
        "uploadpack.packObjectsHook": program("pack-objects"),
        "remote.origin.url": f"ext::{program('remote')}",
        "protocol.ext.allow": "always",
        "protocol.allow": "always",
        # Of git 2.54 and newer:
        "hook.evil.command": program("configured-hook"),
    }


@pytest.fixture
def trap(tmp_path: Path, shop: Shop) -> Trap:
    """The shop, after somebody has set traps in it, in its worktree and in a submodule."""
    trap = Trap(tmp_path / "traps")
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "--quiet")
    write(library, {"lib.py": "one = 1\n", ".gitattributes": "* filter=evil diff=evil\n"})
    git(library, "add", ".")
    git(library, "commit", "--quiet", "-m", "Begin")
    for folder in (shop.root, shop.worktree):
        allowed = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
        git(folder, *allowed, str(library), "retry.py")
        write(
            folder,
            {".gitattributes": "*.py filter=evil diff=evil\n*.md filter=long\n*.bin filter=lfs\n"},
        )
        write(folder, {"CLAUDE.md": "Be brief.\n", "a.bin": "1\n", "LICENSE": "MIT License\n"})
        git(folder, "add", ".gitattributes", "CLAUDE.md", "a.bin", "LICENSE")
        git(folder, "commit", "--quiet", "-m", "Add a library")
        inner = folder / "retry.py"
        write(inner, {"lib.py": "two = 2\n"})
        git(inner, "commit", "--quiet", "-am", "Change it")
        git(folder, "add", "retry.py")
        git(folder, "commit", "--quiet", "-m", "Take the change")
    tree, parent = git(shop.root, "rev-parse", "HEAD^{tree}"), git(shop.root, "rev-parse", "HEAD")
    signed = shop.root / ".git/signed"
    signed.write_text(SIGNED.format(tree=tree, parent=parent))
    git(
        shop.root,
        "reset",
        "--quiet",
        "--soft",
        git(shop.root, "hash-object", "-tcommit", "-w", str(signed)),
    )
    inside = (shop.root / "retry.py", shop.worktree / "retry.py")
    for repository in (shop.root, *inside):
        for name, value in settings(trap).items():
            git(repository, "config", name, value)
        for event in HOOKS:
            git(repository, "config", "--add", "hook.evil.event", event)
        git_dir = Path(git(repository, "rev-parse", "--absolute-git-dir"))
        for event in HOOKS:
            (git_dir / "hooks").mkdir(exist_ok=True)
            (git_dir / "hooks" / event).unlink(missing_ok=True)
            (git_dir / "hooks" / event).symlink_to(trap.named(event))
    for folder in (shop.root, shop.worktree):
        write(
            folder,
            {
                "up.py": "import util  # changed\n",
                "CLAUDE.md": "Be short.\n",
                "a.bin": "2\n",
                "new.py": "x = 1\n",
            },
        )
        write(folder / "retry.py", {"lib.py": "three = 3\n"})
        os.utime(folder / "util.py", (1, 1))
    trap.forget()
    return trap


def as_typed(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def evaluated(shop: Shop, trap: Trap) -> list[Result]:
    tests = ("--export", "--tests", "test -f up.py && git log --oneline")
    return [shop.eval(), shop.eval(*tests)]


def coded(shop: Shop, trap: Trap) -> list[Result]:
    write(shop.root, {".debrief/plans/retries.md": "# Retries\n"})
    done = as_typed("code", "retries", "--repo", str(shop.root))
    worktree = shop.root / ".debrief/worktrees/retries"
    assert (worktree / "a.bin").read_text() == "1\n"
    assert "lfs was not run for 1 file" in done.stderr
    assert git(worktree, "rev-parse", "--abbrev-ref", "HEAD") == "retries"
    return [done]


def hooked(shop: Shop, trap: Trap) -> list[Result]:
    done = as_typed("hooks", "install", "--repo", str(shop.root))
    path = shop.root / ".claude/settings.local.json"
    hook = json.loads(path.read_bytes())["hooks"]["SessionStart"][0]["hooks"][0]
    event = {"hook_event_name": "SessionStart", "session_id": "s1", "cwd": str(shop.root)}
    subprocess.run(["sh", "-c", hook["command"]], input=json.dumps(event).encode(), check=True)
    assert (shop.root / ".debrief/sessions/s1/metadata.json").is_file()
    return [done]


def recorded(shop: Shop, trap: Trap) -> list[Result]:
    there = ("--repo", str(shop.root))
    program = git(shop.root, "config", PROCESS)
    git(shop.root, "config", "--unset", PROCESS)
    git(shop.root, "-c", "filter.lfs.clean=cat", "add", ".")
    git(shop.root, "commit", "--quiet", "-m", "All of it")
    git(shop.root, "config", PROCESS, program)
    trap.forget()
    begun = as_typed("record", "start", "--task", "cart", "--prompt", "Go.", *there)
    write(shop.root, {"new.txt": "2\n", "up.py": "import util\n", "a.bin": "3\n"})
    ran = as_typed("record", "run", *there, "--", "pnpm", "test")
    status = as_typed("record", "status", *there)
    record = str(shop.root.with_name("record.json"))
    return [begun, ran, status, as_typed("record", "stop", "--local", record, *there)]


def told(shop: Shop, trap: Trap) -> list[Result]:
    path = str(shop.root / "retry.py")
    patch = "@@ -0,0 +1 @@\n+one = 1\n"
    written = call("Write", {"file_path": path}, path=path, patch=patch, added=1)
    bump = git(shop.root, "rev-parse", "HEAD~1")
    committed = call(arguments={"command": "git commit"}, result=f"[main {bump[:9]}] Take it")
    days = {"started": NOW - timedelta(days=40), "ended": NOW - timedelta(days=39)}
    one = session("s1", turn("Go", says("Done.", written, committed)), cwd=str(shop.root), **days)
    lake = str(shop.root.with_name("lake"))
    lake_of(Path(lake), [one])
    done = as_typed("outcomes", "--lake", lake, "--json")
    assert "0 of 1 own lines were kept" in done.stdout
    return [done]


def migrated(shop: Shop, trap: Trap) -> list[Result]:
    folder = ".lw_coder/worktrees/retries"
    git(shop.root, "worktree", "add", "--quiet", "--no-checkout", folder)
    # By plumbing: commit may look at files, and then runs the filter that gives up.
    kept = git(shop.root, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "Keep a sample")
    git(shop.root, "update-ref", "HEAD", kept)
    write(shop.root, {f"{folder}/up.py": UNCOMMITTED, f"{folder}/plan.md": "# Retries\n"})
    write(shop.root, {".lw_coder/training_data/queue/code_trace.md": "# Trace\n"})
    trap.forget()
    done = as_typed("migrate", str(shop.root), "--apply")
    assert (shop.root / ".debrief/worktrees/retries/up.py").read_text() == UNCOMMITTED
    assert "training_data/queue/plan.md  (write it" in done.stdout
    return [done]


def read_from_history(shop: Shop, trap: Trap) -> list[Result]:
    found = reconstruct(shop.root, "claude-code", "main", NOW)
    assert found is not None
    assert found[0].main == "Be brief.\n"
    licence_at(shop.root, found[1].commit)
    return []


LOOKS: dict[str, Callable[[Shop, Trap], list[Result]]] = {
    "eval, and eval --tests": evaluated,
    "code": coded,
    "hooks": hooked,
    "migrate": migrated,
    "record": recorded,
    "outcomes": told,
    "prompts of the past": read_from_history,
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_no_program_of_a_repository_is_run(
    shop: Shop,
    trap: Trap,
    look: Callable[[Shop, Trap], list[Result]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in shop.environment.items():
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    (tmp_path / "user").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    monkeypatch.setenv("PATH", add_pnpm(tmp_path))
    monkeypatch.setenv("DEBRIEF_CLAUDE_COMMAND", agent_command(tmp_path))
    for done in look(shop, trap):
        assert done.exit_code == 0, done.output
    assert trap.sprung == []


CARELESS = (
    *(
        "status",
        "diff HEAD",
        "diff --no-ext-diff HEAD",
        "log -p -9",
        "worktree add -f ../other HEAD",
    ),
    *("log -p -9 --no-ext-diff --no-textconv --submodule=diff", "add ."),
)


def test_the_traps_would_have_sprung(shop: Shop, trap: Trap) -> None:
    for _ in range(2):
        for line in CARELESS:
            command = ["git", *line.split()]
            subprocess.run(command, cwd=shop.root, capture_output=True, check=False)
        subprocess.run(["git", "config", "--unset", PROCESS], cwd=shop.root, check=False)
    looked = {"fsmonitor", "clean", "process", "textconv", "external-diff", "diff-command", "gpg"}
    made = {"smudge", "post-checkout", "reference-transaction", "post-index-change"}
    assert (looked | made) - set(trap.sprung) == set()
