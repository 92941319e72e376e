"""Which commands show whether a session's work is right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from debrief.execution.checks import checks_of, future_tests, is_test_file, own_checks
from tests.signals.scenario import Story
from tests.snapshots.scenario import commit, git, write

HOME = "/home/ada/shop"


def _own(*commands: str) -> list[tuple[str, str]]:
    story = Story().turn("Mend the cart").edit(f"{HOME}/src/cart.py", "a", "b")
    for command in commands:
        story.run(command)
    return [
        (own_check.folder, own_check.command)
        for own_check in own_checks(story.session(), ["src/cart.py"])
    ]


@pytest.mark.parametrize(
    ("ran", "check"),
    [
        ("pytest -q 2>&1 | tail -20", ("", "pytest -q")),
        (f"cd {HOME}/api && source .venv/bin/activate && pytest tests", ("api", "pytest tests")),
        ("cd api; timeout 60 uv run pytest -k 'cart and not slow'", ("api", "pytest -k 'cart and not slow'")),
        ("cd api && pytest ../tests/test_cart.py", ("api", "pytest ../tests/test_cart.py")),
        (".venv/bin/python -m pytest tests/test_*.py", ("", "python3 -m pytest tests/test_*.py")),
        (f"{HOME}/env/bin/pytest {HOME}/tests/test_cart.py", ("", "pytest tests/test_cart.py")),
        (f"cd web && npx vitest run {HOME}/web/a.test.ts", ("web", "vitest run ../web/a.test.ts")),
        ("FOO=1 go test ./... -run 'TestA|TestB'", ("", "go test ./... -run 'TestA|TestB'")),
        ("ruff check src", ("", "ruff check src")),
    ],
)  # fmt: skip
def test_a_check_is_what_the_session_ran_without_what_was_around_it(
    ran: str, check: tuple[str, str]
) -> None:
    assert _own(ran) == [check]


@pytest.mark.parametrize(
    "ran",
    [
        pytest.param("pytest $TESTS", id="a-variable"),
        pytest.param("pytest /home/ada/other/tests", id="a-path-elsewhere"),
        pytest.param("pytest --rootdir=/srv/shop", id="an-option's-path-elsewhere"),
        pytest.param("cd ../other && pytest", id="another-folder"),
        pytest.param("pytest ../../other", id="a-path-that-leads-out"),
        pytest.param("gh pr checks 12", id="another-machine"),
        pytest.param("tox", id="an-environment-over-the-network"),
        pytest.param("grep pytest README.md", id="no-check"),
        pytest.param("python -m build", id="a-build"),
    ],
)
def test_what_the_sandbox_could_not_run_is_no_check(ran: str) -> None:
    assert _own(ran) == []


def test_the_latest_tests_come_first_and_a_few_are_enough() -> None:
    ran = [f"pytest tests/test_{number}.py" for number in range(8)]
    found = [command for _, command in _own("ruff check .", *ran, "pytest tests/test_3.py")]
    assert found == [*(f"pytest tests/test_{number}.py" for number in (3, 7, 6, 5)), "ruff check ."]


def test_written_tests_and_the_repository_s_own_are_checks(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "[tool.pytest.ini_options]\n",
            "src/cart.py": "",
            "tests/test_cart.py": "def test_cart(): pass\n",
            "tests/data.json": "{}\n",
            "web/package.json": json.dumps(
                {"scripts": {"test": "vitest"}, "devDependencies": {"vitest": "3"}}
            ),
            "web/src/cart.ts": "",
            "web/src/cart.test.ts": "test\n",
            "service/go.mod": "module shop\n",
            "service/cart/cart_test.go": "package cart\n",
        },
    )
    changed = [
        *("src/cart.py", "tests/test_cart.py", "tests/data.json", "web/src/cart.ts"),
        *("web/src/cart.test.ts", "service/cart/cart_test.go", "gone.py"),
    ]
    session = Story().turn("Mend the cart").session()
    found = checks_of(session, tmp_path, changed)
    assert [(check.origin, check.folder, check.command) for check in found] == [
        ("written", "", "pytest tests/test_cart.py"),
        ("written", "web", "vitest run src/cart.test.ts"),
        ("repository", "", "pytest"),
        ("repository", "web", "npm test"),
    ]
    # What else a session changed beside its tests is laid over the base with them.
    assert set(found[0].added) == {*changed[1:3], *changed[4:6]}
    assert not found[2].added


@pytest.mark.parametrize(
    ("script", "command"),
    [
        ("bun test src/", "bun test src/cart.test.ts"),
        ("node --test --test-reporter=spec", "node --test src/cart.test.ts"),
    ],
)
def test_a_runner_without_a_package_is_known_by_the_script(
    tmp_path: Path, script: str, command: str
) -> None:
    package = json.dumps({"scripts": {"test": script}})
    write(tmp_path, {"package.json": package, "src/cart.test.ts": "test\n"})
    session = Story().turn("Mend the cart").session()
    found = checks_of(session, tmp_path, ["src/cart.test.ts"])
    assert [(check.origin, check.command) for check in found] == [
        ("written", command),
        ("repository", "npm test"),
    ]


def test_a_makefile_s_test_is_the_repository_s_own_where_nothing_else_is(tmp_path: Path) -> None:
    write(tmp_path, {"Makefile": "test: build\n\t./run\n", "cart.c": ""})
    found = checks_of(Story().turn("Mend it").session(), tmp_path, ["cart.c"])
    assert [(check.origin, check.command) for check in found] == [("repository", "make test")]


def test_tests_of_later_commits_that_touch_the_same_files_are_checks(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    base = commit(tmp_path, {"cart.py": "one\n", "pyproject.toml": ""})
    commit(tmp_path, {"cart.py": "two\n"})
    commit(tmp_path, {"other.py": "one\n", "test_other.py": "other\n"})
    commit(tmp_path, {"cart.py": "three\n", "tests/test_cart.py": "later\n", "readme.md": "x\n"})
    commit(tmp_path, {"tests/test_cart.py": "latest\n"})
    (check,) = future_tests(tmp_path, base, ["cart.py"])
    assert (check.origin, check.command) == ("future", "pytest tests/test_cart.py")
    assert check.added == {"tests/test_cart.py": "later\n"}
    assert future_tests(tmp_path, base, ["tests/test_cart.py"]) == []
    assert future_tests(tmp_path, "HEAD", ["cart.py"]) == []


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("tests/test_cart.py", True),
        ("cart_test.go", True),
        ("src/cart.spec.tsx", True),
        ("src/__tests__/cart.js", True),
        ("crate/tests/whole.rs", True),
        ("src/contest.py", False),
        ("src/latest.ts", False),
        ("tests/data.json", False),
    ],
)
def test_files_of_tests_are_known_by_their_names(path: str, is_test: bool) -> None:
    assert is_test_file(path) == is_test
