"""Records that tell what happened in its order: each patch gives the tree of its moment."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.git.scratch import FileState, scratch_of
from debrief.recorder.checks import problems_of
from debrief.recorder.contracts import AssistantMessage, Record
from debrief.recorder.encoding import decode_record, encode_record
from debrief.recorder.local_session import StopOptions
from debrief.recorder.messages import changes_of, files_of, patches_of
from debrief.recorder.patching import apply_operations
from debrief.recorder.verification import replay, round_trip, verify
from tests.recorder.repositories import run, tree_of_folder, trees_of
from tests.recorder.session_scenario import Shop, a_shop, add_pnpm
from tests.snapshots.scenario import git, write


def told(record: Record) -> list[str]:
    """Return the calls of a record: what was read, patched and run."""
    calls = [
        m.tool_calls[0].function
        for m in record.messages
        if isinstance(m, AssistantMessage) and m.tool_calls
    ]
    names = []
    for function in calls:
        arguments = json.loads(function.arguments)
        if function.name == "apply_patch":
            names.append(" ".join(["patch", *(op["path"] for op in arguments["ops"])]))
        else:
            names.append(arguments.get("path") or arguments["args"][0])
    return names


def test_the_kept_files_survive_a_repository_that_forgets_everything(
    shop: Shop, file: Path
) -> None:
    shop.start()
    write(shop.folder, {"src/cart.ts": "once\n"})
    git(shop.folder, "add", "-A")
    shop.run("pnpm", "test")
    git(shop.folder, "checkout", "-q", "HEAD", "--", "src/cart.ts")
    git(shop.folder, "gc", "-q", "--prune=now")
    write(shop.folder, {"src/cart.ts": "later\n"})
    record = shop.stop(file).record
    assert record.meta.verified
    assert told(record) == ["src/cart.ts", "patch src/cart.ts", "test", "patch src/cart.ts"]


def test_a_command_whose_end_nobody_saw_stands_where_it_was_started(shop: Shop, file: Path) -> None:
    shop.start()
    write(shop.folder, {"src/new.ts": "one\n"})
    shop.run("pnpm", "test")
    shop.home.query("UPDATE commands SET end = NULL")
    write(shop.folder, {"src/new.ts": "two\n"})
    record = shop.stop(file).record
    assert told(record) == ["patch src/new.ts", "test", "patch src/new.ts"]
    assert [command.exit_code for command in record.meta.commands or ()] == [None]
    assert verify(shop.folder, record) == []


def test_a_file_that_several_patches_changed_is_stated_as_what_they_come_to(
    shop: Shop, file: Path
) -> None:
    before = (shop.folder / "src/cart.ts").read_text().count("\n")
    shop.start()
    write(shop.folder, {"src/cart.ts": "once\n", "src/new.ts": "one\n"})
    shop.run("pnpm", "test")
    (shop.folder / "src/cart.ts").unlink()
    write(shop.folder, {"src/new.ts": "one\ntwo\n"})
    record = shop.stop(file).record
    deleted, created = changes_of(record)
    gone = before + 1  # each patch counts: the line that came between went, too
    assert (deleted.path, deleted.kind, deleted.removed) == ("src/cart.ts", "delete", gone)
    assert (created.path, created.kind, created.added) == ("src/new.ts", "create", 2)


def test_a_record_that_skipped_something_is_a_draft_until_its_owner_accepts_that(
    shop: Shop, tmp_path: Path
) -> None:
    for accepted in (False, True):
        shop.start()
        shop.change()
        write(shop.folder, {"picture": b"\0", "dist/made.js": "made\n"})
        shop.run("pnpm", "test")
        options = StopOptions(accept_skipped=accepted)
        done = shop.stop(tmp_path / f"{accepted}.json", options)
        assert done.record.meta.skipped_accepted is accepted
        assert [("1 changed path could not" in reason) for reason in done.not_ready] == (
            [] if accepted else [True]
        )
        git(shop.folder, "stash", "-q", "-u")


def test_what_ends_as_it_began_is_no_change_and_a_mode_alone_is_one(shop: Shop, file: Path) -> None:
    program, link, package = (shop.folder / name for name in ("run.sh", "here", "package.json"))
    program.write_text("true\n")
    program.chmod(0o755)
    link.symlink_to("x")
    git(shop.folder, "add", "-A")
    git(shop.folder, "commit", "-q", "-m", "more")
    begun = {name: (shop.folder / name).read_text() for name in ("src/cart.ts", "src/old.ts")}
    shop.start()
    program.chmod(0o644)
    package.chmod(0o755)
    link.unlink()
    write(shop.folder, {"src/cart.ts": "other\n", "here": "x", "src/gone.ts": "a while\n"})
    (shop.folder / "src/old.ts").unlink()
    shop.run("pnpm", "test")
    package.chmod(0o644)
    (shop.folder / "src/gone.ts").unlink()
    write(shop.folder, begun)
    record = shop.stop(file).record
    changes = [
        (change.path, change.kind, change.added, change.removed) for change in changes_of(record)
    ]
    assert changes == [("here", "update", 1, 1), ("run.sh", "update", 0, 0)]


NASTY: list[dict[str, bytes | None]] = [
    {
        "crlf": b"a\r\nb\r\n",
        "mixed": b"a\nb\r\nc\r",
        "open": b"no end",
        "empty": b"",
        "cr": b"a\rb\r",
    },
    {"u2028": "a\u2028b\n".encode(), "tab\tname": b"1\n", "line\nend": b"1\n", 'quo"te': b"1\n"},
    {
        ":(glob)*": b"1\n",
        "e\u0301": b"nfd\n",
        "\u00e9": b"nfc\n",
        "\U0001f600": b"1\n",
        "-q": b"1\n",
    },
    {
        "crlf": b"a\nb\n",
        "mixed": b"a\r\nb\nc\r",
        "open": b"no end\n",
        "empty": b"full\n",
        "cr": b"",
    },
    {"patch": b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"},
    {"dir": b"a file\n", "u2028": None, "tab\tname": b"2\n"},
    {"dir": None, "dir/inside": b"a folder now\n", "line\nend": None, 'quo"te': b""},
    {"open": b"no end again", "patch": b"@@ -1,2 +1,2 @@\n", "e\u0301": None, "\u00e9": b"both\n"},
    {"latin": "\u00e9".encode("latin-1"), "zeros": b"a\0b", "kept.bin": b"\0"},
]


def test_nasty_changes_in_several_steps_come_back(shop: Shop, file: Path, tmp_path: Path) -> None:
    shop.start()
    for number, files in enumerate(NASTY):
        for name, content in files.items():
            if content is None:
                (shop.folder / name).unlink()
            else:
                write(shop.folder, {name: content})
        if number == 3:
            (shop.folder / "empty").chmod(0o755)
            (shop.folder / "link").symlink_to("nowhere")
        if number == 5:
            (shop.folder / "link").unlink()
            write(shop.folder, {"link": "a file\n"})
            (shop.folder / "cr").unlink()
            (shop.folder / "cr").symlink_to("open")
            (shop.folder / "src/cart.ts").rename(shop.folder / "src/basket.ts")
        shop.run("pnpm", "test")
    record = decode_record(encode_record(shop.stop(file).record))
    assert (record.meta.verified, len(patches_of(record))) == (True, 8)
    assert (problems_of(record), verify(shop.folder, record)) == ([], [])
    trees = trees_of(record, shop.folder, tmp_path / "there")
    assert trees[-1] == record.meta.final_tree
    with scratch_of(shop.folder) as scratch:
        assert round_trip(scratch, record, steps=trees) == []
        [problem] = round_trip(scratch, record, steps=[*trees[:3], trees[4], *trees[4:]])
    assert problem == f"the operations make the tree {trees[3]} instead of {trees[4]}"
    for name in ("latin", "zeros", "kept.bin"):
        (shop.folder / name).unlink()
    assert record.meta.final_tree == tree_of_folder(shop.folder)
    elsewhere = tmp_path / "elsewhere"
    git(shop.folder, "worktree", "add", "-q", "--detach", str(elsewhere), record.meta.base_ref)
    replay(record, elsewhere)
    assert tree_of_folder(elsewhere) == record.meta.final_tree


EDITS = st.dictionaries(
    st.sampled_from(["a", "b", "d/e", "d/f", "kept.txt", "d"]),
    st.none() | st.sampled_from(["", "1\n", "1\n2\n", "1\n2\n3", "x\r\n", "\u2028\n"]),
    max_size=3,
)
ACTIONS = st.lists(
    st.tuples(st.sampled_from(["edit", "edit", "run", "run", "commit", "merge", "stash"]), EDITS),
    min_size=3,
    max_size=12,
)


def edit(folder: Path, files: dict[str, str | None]) -> None:
    for name, text in files.items():
        path = folder / name
        for above in path.parents[: name.count("/")]:
            if above.is_file():
                above.unlink()
        if text is not None and not path.is_dir():
            write(folder, {name: text})
        elif path.is_file():
            path.unlink()


def visible(folder: Path) -> dict[str, FileState]:
    """Return the files of a working tree that git knows or would add."""
    names = run(folder, "ls-files", "-z", "-c", "-o", "--exclude-standard").decode().split("\0")
    paths = {name for name in names if name and (folder / name).is_file()}
    return {
        name: FileState("100644", (folder / name).read_bytes().decode()) for name in sorted(paths)
    }


@settings(max_examples=12, deadline=None)
@given(ACTIONS)
def test_every_step_of_any_session_gives_the_files_of_its_moment(
    actions: list[tuple[str, dict[str, str | None]]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shop = a_shop(folder)
        path, os.environ["PATH"] = os.environ["PATH"], add_pnpm(folder)
        try:
            session(shop, folder, actions)
        finally:
            os.environ["PATH"] = path


def session(shop: Shop, folder: Path, actions: list[tuple[str, dict[str, str | None]]]) -> None:
    """Play a session with merges in between, and hold its record against what was seen."""
    moments: list[dict[str, FileState]] = []
    upstream = 0
    shop.start()
    for action, files in actions:
        if action == "edit":
            edit(shop.folder, files)
        elif action == "run":
            moments.append(visible(shop.folder))
            shop.run("pnpm", "test")
        elif action == "commit":
            git(shop.folder, "add", "-A")
            git(shop.folder, "commit", "-q", "--allow-empty", "-m", "mine")
        elif action == "merge":
            upstream += 1
            other = folder / f"other{upstream}"
            git(shop.folder, "worktree", "add", "-q", "--detach", str(other))
            write(other, {f"theirs{upstream}": "theirs\n"})
            git(other, "add", "-A")
            git(other, "commit", "-q", "-m", "theirs")
            git(shop.folder, "merge", "-q", "--no-edit", git(other, "rev-parse", "HEAD"))
        else:
            git(shop.folder, "stash", "-q", "-u")
    edit(shop.folder, {"end": "end\n"})
    record = shop.stop(folder / "record.json").record
    assert record.meta.verified, record.meta.warnings
    assert (problems_of(record), verify(shop.folder, record)) == ([], [])
    if record.meta.others and not record.meta.others.mixed:
        assert all("theirs" not in op.path for patch in patches_of(record) for op in patch)
    assert record.meta.final_tree == tree_of_folder(shop.folder)
    if upstream:
        return
    states = first_of(record)
    seen = [states := apply_operations(states, patch) for patch in patches_of(record)]
    changed = {op.path for patch in patches_of(record) for op in patch}
    expected: list[dict[str, FileState]] = []
    for moment in [*moments, visible(shop.folder)]:
        here = {path: state for path, state in moment.items() if path in changed}
        if here != (expected[-1] if expected else first_of(record)):
            expected.append(here)
    assert seen == expected


def first_of(record: Record) -> dict[str, FileState]:
    return {path: FileState("100644", text) for path, text in files_of(record).items()}


@pytest.mark.parametrize(("mode", "changed"), [(0o755, []), (0o644, ["src/run.sh"])])
def test_a_file_that_is_deleted_and_made_again_is_changed_if_its_mode_is(
    shop: Shop, file: Path, mode: int, changed: list[str]
) -> None:
    path = shop.folder / "src/run.sh"
    write(shop.folder, {"src/run.sh": "echo\n"})
    path.chmod(0o755)
    git(shop.folder, "add", "--all")
    git(shop.folder, "commit", "--quiet", "-m", "run")
    shop.start()
    path.unlink()
    shop.run("pnpm", "test")
    write(shop.folder, {"src/run.sh": "echo\n"})
    path.chmod(mode)
    record = shop.stop(file).record
    assert (record.meta.verified, problems_of(record)) == (True, [])
    assert [change.path for change in changes_of(record)] == changed
