"""Shell commands taken apart, and which of them check the work."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.sessions.model import ToolCall
from debrief.signals.shell import arguments, check_of, folder_of, simple_commands, writes_of


def call(name: str, input: object) -> ToolCall:
    return ToolCall(id="c", name=name, input=json.dumps(input))


def test_an_input_that_is_no_json_holds_no_arguments() -> None:
    assert arguments(ToolCall(id="c", name="Bash", input='{"command": "ls')) == {}


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("cd a && B=1 sudo make -j2; ls | wc", ["cd a", "make -j2", "ls", "wc"]),
        ("timeout -k 5 60 uv run --with x pytest -q", ["pytest -q"]),
        ("echo 'a && b; c' > out.txt 2>&1", ["echo a && b; c"]),
        ("make test 2>&1 | tail -5", ["make test", "tail -5"]),
        ("make >log 2>err &", ["make"]),
        ("python - <<'EOF'\npytest.main()\nEOF\nls", ["python -", "ls"]),
        ('git commit -m "$(cat <<EOF\nrun pytest; make test\nEOF\n)"', None),
        ("tr a b <<< abc\npytest -q", ["tr a b", "pytest -q"]),
        ('cat <<<"$a" | wc\nmake', ["cat", "wc", "make"]),
        ("echo $((1<<2))\npytest -q", ["echo $", "pytest -q"]),
        ("cat > a.py <<-\t'END'\nx\n\tEND\nmake", ["cat", "make"]),
        ("cat <<EOF", ["cat"]),
        ("FOO=1 sudo env BAR=2 timeout 9 xargs -n 1 uv run -- pytest", ["pytest"]),
        ("if true; then npm test; fi", ["true", "npm test"]),
        ("(cd a; make)", ["cd a", "make"]),
        ("sed -n 1,5p src/(shop)/[id]/a.ts && ls", ["sed -n 1,5p src/(shop)/[id]/a.ts", "ls"]),
        ("git log --format=%(refname) a", ["git log --format=%(refname) a"]),
        ("if true; then(rm -rf ~/); fi", ["true", "rm -rf ~/"]),
        ("!(rm -rf ~/)", ["rm -rf ~/"]),
        ("build() { make; }; build", ["build", "make", "}", "build"]),
        ("names=(a b); diff <(sort a) b", ["a b", "diff", "sort a", "b"]),
        ("env", ["env"]),
        ("# only a remark", []),
        ("", []),
    ],
)
def test_a_command_is_taken_apart(command: str, parts: list[str] | None) -> None:
    found = [" ".join(words) for words in simple_commands(command)]
    if parts is None:
        assert not any(check_of(words) for words in simple_commands(command))
    else:
        assert [part for part in found if part not in ("if", "fi")] == parts


@given(st.text(max_size=200))
def test_no_text_breaks_the_taking_apart(text: str) -> None:
    for words in simple_commands(text):
        assert words
        check_of(words)


@pytest.mark.parametrize("program", ["python", "bash", "python@3", "sudo", "timeout 5", "xargs"])
def test_programs_that_run_each_other_by_thousands_are_read(program: str) -> None:
    for words in simple_commands(f"{program} " * 20_000 + "test.py"):
        assert check_of(words) in (None, ("test", "test.py"))


CHECKS = {
    "test": (
        "pytest -q tests, python -m pytest, python3.11 -m unittest discover, .venv/bin/pytest, "
        "uv run pytest, npx jest --ci, npx vitest run, npm test, npm run test:unit, "
        "pnpm --filter web test, bun run test, yarn e2e, go test ./..., cargo test --all, "
        "cargo nextest run, mix test, ./gradlew test, mvn -q verify, bundle exec rspec, "
        "make test, mise run test:ci, just test, dotnet test, run_tests.sh -v, ci/test, "
        "./gradlew :app:test, mvn -B clean verify, cargo +nightly test, node --test a.mjs, "
        "pnpm vitest run, docker compose exec app pytest, bash -lc 'pytest -q', xcodebuild test, "
        "nx run web:test, turbo run test, deno test a.ts, php artisan test"
    ),
    "lint": (
        "ruff check ., uvx ruff format --check, npx eslint@9 src, "
        "cd web && \\\n  npx eslint src, npm run lint, golangci-lint run, go vet ./..., "
        "cargo clippy, make check, pre-commit run -a, cargo fmt --all -- --check, mix format --check-formatted, gofmt -l ., git diff --check, "
        "npx prettier --check src, black --check ., yarn eslint src"
    ),
    "types": ("npx tsc --noEmit, mypy ., uv run ty check, npm run typecheck"),
    "build": (
        "go build ./..., cargo build, npm run build, make, docker build ., node --check test.js, "
        "bash -n test.sh, mvn verify -DskipTests, go test -c ./cart, xcodebuild -scheme Shop"
    ),
    None: (
        "grep -rn pytest ., cat tests/test_a.py, pytest --version, npm install jest, "
        "npm run dev, make install, make deploy, git commit -m 'make test', go mod tidy, "
        "cargo add serde, echo npm test, test -f setup.py, build-log --tail, cargo fmt, "
        "ruff format src, gofmt -w ., gofmt -l -w ., npx prettier --write src, git diff, "
        "pytest --collect-only, cargo test --no-run, command -v eslint, docker compose up, "
        "bash -c 'echo pytest'"
    ),
}


@pytest.mark.parametrize(
    ("command", "kind"),
    [(one, key) for key, many in CHECKS.items() for one in many.split(", ")],
)
def test_checks_are_recognised_and_mentions_are_not(command: str, kind: str | None) -> None:
    kinds = [found[0] for words in simple_commands(command) if (found := check_of(words))]
    assert kinds == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("command", "written", "folder"),
    [
        ("cd /tmp/try && echo 1 > a.py", ["/tmp/try/a.py"], "/tmp/try"),
        ("cd app && cd ../web && sed -i s/1/2/ src/a.ts", ["web/src/a.ts"], "web"),
        ("cd /srv && tee /etc/hosts && touch ~/x", ["/etc/hosts", "~/x"], "/srv"),
        ("echo 1 > a.py; cd /tmp; git am x.patch", ["a.py", "git am"], "/tmp"),
        ("echo 1 > a.py", ["a.py"], ""),
    ],
)
def test_files_are_written_in_the_folder_that_a_command_changed_to(
    command: str, written: list[str], folder: str
) -> None:
    assert [write.path for write in writes_of(command)] == written
    assert folder_of(command) == folder
