"""A repository's own commands: as strict as the built-in ones, and nobody's before they agreed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from debrief.errors import InputError
from debrief.recorder.checks import ReadyRule, problems_of, readiness
from debrief.recorder.commands import check_command, digest_of, read_rules
from debrief.recorder.contracts import RunCommand
from debrief.recorder.encoding import decode_record, encode_record
from debrief.recorder.messages import calls_of
from debrief.recorder.service.ingest import Ingest
from debrief.recorder.session import session_of
from debrief.recorder.storage.rows import UnfitError
from tests.recorder.records import upload_of
from tests.recorder.session_scenario import REDACTOR, Shop
from tests.snapshots.scenario import commit, write

RULES = """
[[commands]]
program = "pytest"
arguments = ["-q"]
check = true
time_limit = 30

[[commands]]
program = "uv"
arguments = ["run", "pytest", "<test>+"]
check = true

[[commands]]
program = "make"
arguments = ["format"]
"""


def ruled(shop: Shop, text: str = RULES) -> None:
    commit(shop.folder, {".debrief/recorder.toml": text})


def begun(shop: Shop, text: str = RULES, **scripts: str) -> None:
    """Start a session under rules, with the programs that they name."""
    ruled(shop, text)
    for name, script in scripts.items():
        path = shop.folder.parent / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    shop.start()


def test_a_repositorys_check_is_recorded_with_its_rules_and_makes_it_ready(
    shop: Shop, file: Path
) -> None:
    begun(shop, uv='echo "$@"', make="echo formatted")
    shop.change()
    asked: list[str] = []

    def agrees(rules: object) -> bool:
        asked.append("once")
        return True

    shop.run("make", "format", agrees=agrees)
    shop.run("uv", "run", "pytest", "tests/test_a.py::TestA::test_b", "tests", agrees=agrees)
    assert asked == ["once"]
    done = shop.stop(file)
    record, rules = done.record, read_rules(shop.folder)
    assert record.meta.rules == rules
    assert (problems_of(record), done.not_ready) == ([], ())
    run = record.tools[-1].function
    assert json.loads(json.dumps(run))["parameters"]["properties"]["cmd"]["enum"] == [
        *("pnpm", "make", "pytest", "uv")
    ]
    commands = calls_of(record, "run_cmd")
    assert [command.arguments(RunCommand).cmd for command in commands] == ["make", "uv"]
    assert decode_record(encode_record(record)) == record


def test_nothing_of_a_repositorys_own_runs_before_somebody_agreed(shop: Shop) -> None:
    begun(shop, make="touch made")
    with pytest.raises(InputError, match="nobody here agreed to") as caught:
        shop.run("make", "format")
    assert caught.value.code == "rules-not-agreed"
    assert "debrief record commands --yes" in caught.value.next_move
    assert session_of(shop.home, shop.folder).commands() == []
    assert not (shop.folder / "made").exists()
    shop.run("pnpm", "test")


def test_a_program_that_starts_others_is_its_owners_to_allow_and_a_persons_to_agree_to(
    shop: Shop,
) -> None:
    begun(shop, '[[commands]]\nprogram = "env"\narguments = ["make", "<name>"]\n', make="true")
    with pytest.raises(InputError, match="nobody here agreed to"):
        shop.run("env", "make", "all")
    assert shop.run("env", "make", "all", agrees=lambda rules: True).exit_code == 0
    with pytest.raises(InputError, match="no pattern of the allowlist"):
        shop.run("env", "sh", "all")


def test_who_agreed_to_some_rules_agreed_to_no_others(shop: Shop, file: Path) -> None:
    begun(shop, make="true")
    shop.run("make", "format", agrees=lambda rules: True)
    shop.stop(file)
    ruled(shop, RULES + '\n[[commands]]\nprogram = "make"\narguments = ["deploy"]\n')
    shop.start()
    with pytest.raises(InputError, match="nobody here agreed to"):
        shop.run("make", "format")


def test_a_session_keeps_the_rules_that_it_began_with(shop: Shop, file: Path) -> None:
    begun(shop, make="true")
    write(shop.folder, {".debrief/recorder.toml": RULES.replace("format", "deploy")})
    with pytest.raises(InputError, match="no pattern of the allowlist"):
        shop.run("make", "deploy", agrees=lambda rules: True)
    shop.run("make", "format", agrees=lambda rules: True)


def test_a_rules_time_limit_holds_and_the_checks_are_named_where_none_ran(
    shop: Shop, file: Path
) -> None:
    begun(
        shop, RULES.replace("time_limit = 30", "time_limit = 0.3"), pytest="echo begun; sleep 600"
    )
    shop.change()
    end = shop.run("pytest", "-q", agrees=lambda rules: True)
    assert (end.exit_code, end.ending) == (None, "(ended at its time limit of 0.3 s)")
    shop.home.query("DELETE FROM commands")
    (reason,) = shop.stop(file).not_ready
    checks = "pytest -q, uv run pytest <test>+, pnpm lint, test or build"
    assert reason == f"no validation command ({checks}) was run"


def rule(program: str, *arguments: str) -> str:
    return f"[[commands]]\nprogram = {json.dumps(program)}\narguments = {json.dumps(arguments)}\n"


WRONG = {
    "a wildcard": (rule("make", "*"), "characters that a shell"),
    "any word": (rule("make", "<.*>"), "characters that a shell"),
    "an unknown kind": (rule("make", "<any>+"), "is no kind of argument"),
    "a kind within a word": (rule("make", "--file=<path>"), "characters that a shell"),
    "a substitution": (rule("make", "$(reboot)"), "characters that a shell"),
    "two commands": (rule("make", "a;b"), "characters that a shell"),
    "a redirection": (rule("make", ">out"), "characters that a shell"),
    "a blank in a word": (rule("make", "a b"), "characters that a shell"),
    "an empty word": (rule("make", ""), "characters that a shell"),
    "a line end": (rule("make", "a\nb"), "characters that a shell"),
    "a way out": (rule("make", "-C", "../other"), "leads out of the repository"),
    "a way out in a value": (rule("make", "--file=a/../../b"), "leads out of the repository"),
    "an absolute path": (rule("make", "-f", "/etc/makefile"), "leads out of the repository"),
    "an absolute value": (rule("make", "--file=/etc/makefile"), "leads out of the repository"),
    "an address": (rule("uv", "--index=https://x.example"), "leads out of the repository"),
    "a program by its path": (rule("./run"), "is not the plain name of a program"),
    "a program with arguments": (rule("make all"), "is not the plain name of a program"),
    "more of pnpm": (rule("pnpm", "publish"), "are those of the allowlist"),
    "a key that is unknown": (rule("make") + "shell = true\n", "commands.0.shell"),
    "a table that is unknown": ("[words]\nany = '.*'\n" + rule("make"), "words is not known"),
    "a time limit without end": (rule("make") + "time_limit = inf\n", "time_limit"),
    "no text": ("[[commands]\n", "Expected"),
}


@pytest.mark.parametrize(("text", "reason"), WRONG.values(), ids=WRONG)
def test_rules_that_would_let_anything_else_in_are_refused(
    shop: Shop, text: str, reason: str
) -> None:
    ruled(shop, text)
    with pytest.raises(InputError) as caught:
        shop.start()
    assert reason in str(caught.value)
    assert caught.value.code == "rules-invalid"


def test_a_file_of_rules_that_is_a_link_or_no_file_is_refused(shop: Shop, tmp_path: Path) -> None:
    write(tmp_path, {"elsewhere/recorder.toml": RULES})
    folder = shop.folder / ".debrief"
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a symbolic link"):
        read_rules(shop.folder)
    folder.unlink()
    folder.mkdir()
    (folder / "recorder.toml").symlink_to(tmp_path / "elsewhere/recorder.toml")
    with pytest.raises(InputError, match="is a symbolic link"):
        read_rules(shop.folder)
    (folder / "recorder.toml").unlink()
    (folder / "recorder.toml").mkdir()
    with pytest.raises(InputError, match="is not a file"):
        read_rules(shop.folder)
    (folder / "recorder.toml").rmdir()
    write(shop.folder, {".debrief/recorder.toml": "#" * 70_000})
    with pytest.raises(InputError, match="at most 65,536 bytes"):
        read_rules(shop.folder)


VARYING = {
    "an option": ["run", "pytest", "--pdb"],
    "a way out": ["run", "pytest", "../secret"],
    "an absolute path": ["run", "pytest", "/etc/passwd"],
    "a substitution": ["run", "pytest", "$(reboot)"],
    "nothing": ["run", "pytest"],
    "a second program": ["run", "python", "x"],
    "a NUL": ["run", "pytest", "a\0b"],
}


@pytest.mark.parametrize("arguments", VARYING.values(), ids=VARYING)
def test_what_varies_is_held_to_its_kind(shop: Shop, arguments: list[str]) -> None:
    ruled(shop)
    with pytest.raises(InputError):
        check_command("uv", arguments, ".", read_rules(shop.folder))


def test_the_digest_is_of_the_rules_and_not_of_their_file(shop: Shop) -> None:
    ruled(shop)
    first = read_rules(shop.folder)
    write(shop.folder, {".debrief/recorder.toml": f"# a comment\n{RULES}"})
    second = read_rules(shop.folder)
    assert first is not None
    assert second is not None
    assert first.digest == second.digest == digest_of(first.commands)


def test_a_server_holds_a_record_to_its_rules_and_its_owner_to_some_programs(
    shop: Shop, file: Path
) -> None:
    begun(shop, pytest="echo fine")
    shop.change()
    shop.run("pytest", "-q", agrees=lambda rules: True)
    record = shop.stop(file).record
    upload = upload_of(record)
    assert Ingest(REDACTOR, ReadyRule()).check(upload).validated
    assert Ingest(REDACTOR, ReadyRule(), ("pnpm", "pytest")).check(upload).not_ready == []
    with pytest.raises(UnfitError, match="the program pytest is not one that this service takes"):
        Ingest(REDACTOR, ReadyRule(), ("pnpm",)).check(upload)
    assert record.meta.rules is not None
    stranger = record.meta.rules.model_copy(update={"commands": [*record.meta.rules.commands[1:]]})
    unruled = record.meta.model_copy(update={"rules": None})
    for meta in (record.meta.model_copy(update={"rules": stranger}), unruled):
        other = record.model_copy(update={"meta": meta})
        with pytest.raises(UnfitError, match=r"digest|the program is not"):
            Ingest(REDACTOR, ReadyRule()).check(upload_of(other))
    elsewhere = json.loads(encode_record(record))
    elsewhere["meta"]["rules"]["commands"][0] |= {"program": "bin/run", "arguments": []}
    problems = problems_of(decode_record(json.dumps(elsewhere).encode()))
    assert any("'bin/run' is not the plain name of a program" in problem for problem in problems)
    assert readiness(record, ReadyRule(passed=True, on_final_tree=True)) == []
