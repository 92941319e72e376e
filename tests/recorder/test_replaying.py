"""Records applied to a checkout by themselves."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from debrief.errors import InputError
from debrief.recorder.contracts import Record
from debrief.recorder.encoding import decode_record
from debrief.recorder.verification import replay, verify
from tests.recorder.repositories import untouched
from tests.recorder.session_scenario import REDACTOR, Shop
from tests.snapshots.scenario import git, write


def test_a_record_is_replayed_where_line_ends_are_converted(
    shop: Shop, file: Path, tmp_path: Path
) -> None:
    write(shop.folder, {".gitattributes": "*.ts text eol=crlf\n"})
    git(shop.folder, "add", "-A")
    git(shop.folder, "commit", "-q", "-m", "attributes")
    shop.start()
    write(shop.folder, {"src/cart.ts": b"export const cart = [1];\r\nexport const total = 0;\r\n"})
    write(shop.folder, {"src/new.ts": b"created\r\n"})
    (shop.folder / "src/old.ts").unlink()
    record = shop.stop(file).record
    elsewhere = tmp_path / "elsewhere"
    git(tmp_path, "clone", "-q", str(shop.folder), str(elsewhere))
    assert b"\r\n" in (elsewhere / "src/cart.ts").read_bytes()
    assert replay(record, elsewhere) == ["src/cart.ts", "src/new.ts", "src/old.ts"]
    assert (elsewhere / "src/cart.ts").read_bytes() == (shop.folder / "src/cart.ts").read_bytes()
    assert git(elsewhere, "diff", "--stat", "HEAD").endswith(
        "2 files changed, 1 insertion(+), 2 deletions(-)"
    )


def test_a_file_that_git_ignores_and_that_was_added_by_force_is_replayed(
    shop: Shop, file: Path, tmp_path: Path
) -> None:
    write(shop.folder, {".gitignore": "*.log\n"})
    git(shop.folder, "add", "-A")
    git(shop.folder, "commit", "-q", "-m", "ignored")
    shop.start()
    write(shop.folder, {"kept.log": "kept\n"})
    git(shop.folder, "add", "--force", "kept.log")
    record = shop.stop(file).record
    elsewhere = tmp_path / "elsewhere"
    git(tmp_path, "clone", "-q", str(shop.folder), str(elsewhere))
    assert replay(record, elsewhere) == ["kept.log"]
    assert (elsewhere / "kept.log").read_text() == "kept\n"


def test_a_record_in_which_secrets_are_replaced_leaves_a_checkout_alone(
    shop: Shop, file: Path, tmp_path: Path
) -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0xL1oR4"
    write(shop.folder, {"src/cart.ts": f"const key = '{secret}';\n" + "line\n" * 20})
    git(shop.folder, "commit", "-q", "-a", "-m", "a secret")
    shop.start()
    write(shop.folder, {"src/cart.ts": f"const key = '{secret}';\n" + "line\n" * 21})
    record = shop.stop(file).record
    assert record.meta.redactions.count
    elsewhere = tmp_path / "elsewhere"
    git(tmp_path, "clone", "-q", str(shop.folder), str(elsewhere))
    with pytest.raises(InputError, match="secrets are replaced in its texts") as caught:
        replay(record, elsewhere)
    assert caught.value.next_move
    assert git(elsewhere, "status", "--porcelain") == ""


def test_a_record_is_replayed_on_a_clean_checkout_of_its_baseline(
    shop: Shop, file: Path, tmp_path: Path
) -> None:
    started = shop.start()
    shop.change()
    record = shop.stop(file).record
    elsewhere = tmp_path / "elsewhere"
    git(tmp_path, "clone", "-q", str(shop.folder), str(elsewhere))
    assert verify(elsewhere, record, REDACTOR) == []
    assert replay(record, elsewhere) == ["src/cart.ts", "src/discount.ts", "src/old.ts"]
    assert not (elsewhere / "src/old.ts").exists()
    with pytest.raises(InputError):
        replay(record, elsewhere)
    git(elsewhere, "add", "-A")
    git(elsewhere, "commit", "-q", "-m", "done")
    with pytest.raises(InputError, match="is not at the record's baseline"):
        replay(record, elsewhere)
    with pytest.raises(InputError, match="is not the top of its worktree"):
        replay(record, elsewhere / "src")
    with pytest.raises(InputError, match="--to FOLDER"):
        replay(record, tmp_path)
    assert verify(tmp_path, record, REDACTOR) is None
    git(elsewhere, "checkout", "-q", started.base_ref)
    broken = json.loads(file.read_bytes())
    broken["meta"]["finalTree"] = "0" * 40
    other = decode_record(json.dumps(broken).encode())
    assert verify(elsewhere, other, REDACTOR)


@pytest.fixture
def record(shop: Shop, file: Path) -> Record:
    """A record with a link, a mode, odd names, ignored files, and a file that became a folder."""
    shop.start(ignore=("!dist/",))
    shop.change()
    (shop.folder / "src/cart.ts").chmod(0o755)
    (shop.folder / "link").symlink_to("src/cart.ts")
    write(shop.folder, {"dist/made.js": "made\n", "src/old.ts/a/folder.ts": "1\n", "odd \n": "x\n"})
    return shop.stop(file).record


@pytest.fixture
def elsewhere(shop: Shop, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "-q", str(shop.folder), "elsewhere")
    (tmp_path / "elsewhere/.git/info/exclude").write_text("dist\n")
    return tmp_path / "elsewhere"


@pytest.mark.parametrize("name", ["dist/made.js", "dist/made.js/below", "dist"])
def test_ignored_files_in_the_way_of_a_record_are_kept(
    record: Record, elsewhere: Path, name: str
) -> None:
    write(elsewhere, {name: "of this machine\n"})
    with pytest.raises(InputError, match=r"is in the way of 'dist/made.js'") as caught:
        replay(record, elsewhere)
    assert caught.value.culprit == repr(name)
    assert (elsewhere / name).read_text() == "of this machine\n"
    assert git(elsewhere, "status", "--porcelain") == ""


def test_replaying_changes_the_files_alone(record: Record, elsewhere: Path) -> None:
    (elsewhere / ".git/info/exclude").unlink()
    with untouched(elsewhere):
        replay(record, elsewhere)
    assert (elsewhere / "link").readlink() == Path("src/cart.ts")
    assert (elsewhere / "src/cart.ts").stat().st_mode & 0o111
    assert (elsewhere / "odd \n").read_text() == "x\n"


def test_a_failure_half_way_is_taken_back(
    record: Record, elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = shutil.which("git")
    script = f'#!/bin/sh\n{program} "$@" || exit\ncase "$*" in *"read-tree -u -m"*) exit 1;; esac\n'
    with monkeypatch.context() as patch:
        write(tmp_path, {"bin/git": script})
        (tmp_path / "bin/git").chmod(0o755)
        patch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        with pytest.raises(InputError, match="git read-tree failed"):
            replay(record, elsewhere)
    assert git(elsewhere, "status", "--porcelain", "--ignored") == ""
