"""Make a task from an executed session: files, instruction, tests and solution."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec.structs import replace

from debrief.errors import InputError
from debrief.execution.model import Execution, RebuiltTree
from debrief.execution.trees import lay_out
from debrief.git import scratch_into
from debrief.redaction import contains_secret, refuse_secrets
from debrief.redaction.gate import refuse_random
from debrief.sessions.model import Session
from debrief.signals.request import request_of, spelled_out
from debrief.snapshots.licences import licence_at
from debrief.tasks.archive import files_in
from debrief.tasks.choosing import checks_of, slowest
from debrief.tasks.files import TaskSource, TestFile
from debrief.tasks.instruction import instruction_of
from debrief.tasks.model import HarborTask, NotProvenReason
from debrief.tasks.test_paths import is_of_tests

_DIFF = ("diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-textconv",
         "--no-ext-diff")  # fmt: skip


class HeldBack(Exception):  # noqa: N818
    """A session makes no task, for a reason that is found while its task is made."""

    def __init__(self, reason: NotProvenReason, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason: NotProvenReason = reason
        self.detail = detail


def source_of(
    session: Session,
    execution: Execution,
    tree: RebuiltTree,
    store: Path,
    folder: Path,
) -> TaskSource:
    """Return what a task of a session is made of.

    Args:
        session: redacted.
        execution: what running says of it.
        tree: the session's change, rebuilt.
        store: where the trees' objects are.
        folder: for the files of both trees; the source is good as long as they are there.

    Raises:
        HeldBack: the session makes no task.
    """
    clone = Path(tree.clone)
    base, final = folder / "base", folder / "final"
    try:
        lacking = lay_out(tree.base_tree, clone, store, base)
        lay_out(tree.final_tree, clone, store, final)
    except InputError as error:  # the clone lacks a file of the tree
        raise HeldBack("not_rebuilt", error.reason) from error
    secret = _take_secrets_out(base, final, tree.files)
    with scratch_into(clone, store) as scratch:
        patch = scratch.git(*_DIFF, tree.base_tree, tree.final_tree)
    asked = request_of(session)
    if asked is not None and asked.unknown:
        raise HeldBack("no_request")
    instruction = instruction_of(spelled_out(session), _added_lines(patch))
    if instruction.gives_answer:
        raise HeldBack("answer_given")
    if not instruction.text:
        raise HeldBack("no_request")
    checks = checks_of(execution)
    tests = dict(_tests_in(final))
    for check in checks:
        tests |= {path: TestFile(text.encode()) for path, text in check.added.items()}
    return TaskSource(
        session_id=session.id,
        repository=session.repository,
        base=tree.base,
        base_source=tree.base_source,
        exact=tree.exact,
        licence=licence_at(clone, tree.base),
        tool=session.tool,
        started=session.started.isoformat(),
        instruction=instruction.text,
        requests=instruction.requests,
        share=instruction.share,
        left_out=instruction.left_out,
        images=instruction.images,
        clone=clone,
        base_folder=base,
        final_folder=final,
        lacking=len(lacking) + secret,
        checks=tuple(replace(check, added={}) for check in checks),
        tests=dict(sorted(tests.items())),
        removed=tuple(sorted({path for path, _ in _tests_in(base)} - tests.keys())),
        patch=patch,
        seconds=slowest(execution),
    )


def check_secrets(task: HarborTask) -> None:
    """Refuse a task that holds a secret in one of its files.

    Its words, its settings and its solution may hold nothing made by chance either; the
    repository's own files hold digests and test data of that kind. The archive's files have been
    searched one by one when they were laid out.

    Raises:
        HeldBack: names the file and line.
    """
    try:
        for name, data in task.files.items():
            if name != "environment/repository.tar":
                refuse_secrets(name, data)
        refuse_random("instruction.md", task.files["instruction.md"])
    except InputError as error:
        raise HeldBack("secret", f"{error.culprit}: {error.reason}") from error


def _take_secrets_out(base: Path, final: Path, changed: Collection[str]) -> int:
    """Remove files that hold a secret from both trees; return how many they are.

    The proof shows whether the task can do without them.

    Raises:
        HeldBack: the session changed one of them.
    """
    found = {
        path.relative_to(base).as_posix(): secrets[0].kind
        for path in list(files_in(base))
        if not path.is_symlink() and (secrets := contains_secret(path.read_bytes()))
    }
    for name, kind in found.items():
        if name in changed:
            raise HeldBack("secret", f"{name}: holds a secret ({kind})")
        (base / name).unlink()
        (final / name).unlink(missing_ok=True)
    return len(found)


def _added_lines(patch: bytes) -> set[str]:
    """Return the lines that a patch adds and does not take away elsewhere."""
    lines = patch.decode("utf-8", "replace").split("\n")
    added = {line[1:] for line in lines if line.startswith("+") and not line.startswith("+++ ")}
    return added - {line[1:] for line in lines if line.startswith("-")}


def _tests_in(folder: Path) -> Iterator[tuple[str, TestFile]]:
    for path in files_in(folder):
        name = path.relative_to(folder).as_posix()
        if is_of_tests(name) and not path.is_symlink():
            yield name, TestFile(path.read_bytes(), os.access(path, os.X_OK))
