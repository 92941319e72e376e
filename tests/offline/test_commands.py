"""Shell commands taken apart, and which of them check the work."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.offline.commands import arguments, check_of, shell_command, simple_commands
from debrief.sessions.model import ToolCall


def call(name: str, input: object) -> ToolCall:
    return ToolCall(id="c", name=name, input=json.dumps(input))


@pytest.mark.parametrize(
    ("name", "input", "command"),
    [
        ("Bash", {"command": "ls"}, "ls"),
        ("Execute", {"command": "ls"}, "ls"),
        ("shell", {"command": ["bash", "-lc", "ls -l"]}, "ls -l"),
        ("shell", {"command": ["ls", "a b"]}, "ls 'a b'"),
        ("exec_command", {"cmd": "ls"}, "ls"),
        ("run_shell_command", {"command": "ls"}, "ls"),
        ("mcp__desktop__bash", {"command": "ls"}, "ls"),
        ("shell_command", {"command": "ls"}, "ls"),
        ("exec", {"input": 'await tools.exec_command({cmd: "ls \\"a\\"\\nls b"})'}, 'ls "a"\nls b'),
        ("exec", {"input": "run({'cmd': 'ls a'}); run({cmd: `ls b`})"}, "ls a\nls b"),
        ("exec", {"input": "await tools.apply_patch(patch)"}, None),
        ("Read", {"command": "ls"}, None),
        ("Bash", {}, None),
        ("Bash", ["ls"], None),
    ],
)
def test_the_shell_tools_of_all_sources_give_their_command(
    name: str, input: object, command: str | None
) -> None:
    assert shell_command(call(name, input)) == command


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
        ("if true; then npm test; fi", ["true", "npm test"]),
        ("(cd a; make)", ["cd a", "make"]),
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


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("pytest -q tests", "test"),
        ("python -m pytest", "test"),
        ("python3.11 -m unittest discover", "test"),
        (".venv/bin/pytest", "test"),
        ("uv run pytest", "test"),
        ("npx jest --ci", "test"),
        ("npx vitest run", "test"),
        ("npm test", "test"),
        ("npm run test:unit", "test"),
        ("pnpm --filter web test", "test"),
        ("bun run test", "test"),
        ("yarn e2e", "test"),
        ("go test ./...", "test"),
        ("cargo test --all", "test"),
        ("cargo nextest run", "test"),
        ("mix test", "test"),
        ("./gradlew test", "test"),
        ("mvn -q verify", "test"),
        ("bundle exec rspec", "test"),
        ("make test", "test"),
        ("mise run test:ci", "test"),
        ("just test", "test"),
        ("dotnet test", "test"),
        ("ruff check .", "lint"),
        ("uvx ruff format --check", "lint"),
        ("npx eslint@9 src", "lint"),
        ("cd web && \\\n  npx eslint src", "lint"),
        ("npm run lint", "lint"),
        ("golangci-lint run", "lint"),
        ("go vet ./...", "lint"),
        ("cargo clippy", "lint"),
        ("make check", "lint"),
        ("pre-commit run -a", "lint"),
        ("npx tsc --noEmit", "types"),
        ("mypy .", "types"),
        ("uv run ty check", "types"),
        ("npm run typecheck", "types"),
        ("go build ./...", "build"),
        ("cargo build", "build"),
        ("npm run build", "build"),
        ("make", "build"),
        ("docker build .", "build"),
        ("grep -rn pytest .", None),
        ("cat tests/test_a.py", None),
        ("pytest --version", None),
        ("npm install jest", None),
        ("npm run dev", None),
        ("make install", None),
        ("make deploy", None),
        ("git commit -m 'make test'", None),
        ("go mod tidy", None),
        ("cargo add serde", None),
        ("python test_server.py", None),
        ("echo npm test", None),
    ],
)
def test_checks_are_recognised_and_mentions_are_not(command: str, kind: str | None) -> None:
    kinds = [found[0] for words in simple_commands(command) if (found := check_of(words))]
    assert kinds == ([kind] if kind else [])
