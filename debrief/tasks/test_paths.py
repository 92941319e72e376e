"""Tell which files of a repository are its tests."""

from __future__ import annotations

from debrief.execution.checks import is_test_file

_FOLDERS = frozenset(
    ["test", "tests", "__tests__", "spec", "specs", "testdata", "fixtures", "__snapshots__"]
)


def is_of_tests(path: str) -> bool:
    """Return whether a file is a test, sets tests up, or lies in a folder of them.

    >>> [is_of_tests(path) for path in ("tests/data/a.json", "pkg/a_test.go", "src/testing.py")]
    [True, True, False]
    """
    *folders, name = path.split("/")
    return not _FOLDERS.isdisjoint(folders) or name == "conftest.py" or is_test_file(path)
