"""A session's facts and changes become a record that rebuilds the tree and holds no secret."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from debrief.errors import InputError
from debrief.git.scratch import FileState
from debrief.recorder.assembly import assemble, build_record
from debrief.recorder.changes import StepChanges, WorktreeChanges
from debrief.recorder.checks import ReadyRule, problems_of, readiness, validations_of
from debrief.recorder.comparison import ChangedFile
from debrief.recorder.contracts import (
    OUTPUT_LIMIT,
    TRUNCATED,
    AssistantMessage,
    DeleteFile,
    Record,
    ToolMessage,
)
from debrief.recorder.encoding import encode_record
from debrief.recorder.local_session import shown_output
from debrief.recorder.messages import calls_of, changes_of, files_of, operations_of
from debrief.recorder.scrubbing import SecretLog, scrubbed
from debrief.recorder.verification import verify
from tests.recorder.records import BEFORE, build
from tests.recorder.repositories import (
    REDACTOR,
    apply_to_folder,
    facts,
    head,
    kept,
    kinds,
    ran,
    recorded,
    repository,
    run,
    skips,
    tree_of_folder,
    untouched,
    write,
)

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"[:36]
OTHER = "ghp_" + "Z9y8X7w6V5u4T3s2R1q0P9o8N7m6L5k4J3i2"[:36]


def steps(record: Record) -> list[str]:
    told = []
    for message in record.messages:
        if isinstance(message, AssistantMessage) and message.tool_calls:
            function = message.tool_calls[0].function
            arguments = json.loads(function.arguments)
            told.append(f"{function.name} {arguments.get('path', '')}".strip())
        else:
            told.append(message.role)
    return told


def test_the_messages_are_in_the_order_of_the_contract(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"b": "1\n", "a": "1\n", "gone": "1\n"})
    early, _ = kept(work)
    write(work, {"b": "2\n", "a": "2\n", "c": "1\n"})
    (work / "gone").unlink()
    late, blobs = kept(work)
    known = structs.replace(
        facts(
            head(work),
            ran(early, "lint", exit_code=1),
            ran(None, "i"),
            ran(late, "test", output="1 passed\n"),
            ran(late, "build"),
        ),
        system="You are careful.",
    )
    record = build_record(work, known, REDACTOR, list(blobs.values()))
    assert problems_of(record) == []
    reads = [f"repo.readFile {path}" for path in ("a", "b", "gone")]
    calls = [*reads, "run_cmd", "run_cmd", "apply_patch", "run_cmd", "run_cmd"]
    interleaved = [part for call in calls for part in (call, "tool")]
    assert steps(record) == ["system", "user", *interleaved, "assistant"]
    assert [done.call.id for done in calls_of(record)] == [f"call{n:05d}" for n in range(1, 9)]
    assert [command.exit_code for command in record.meta.commands or ()] == [1, 0, 0, 0]
    assert validations_of(record) == [(False, 1), (True, 0), (True, 0)]
    assert record.messages[-1].content == (
        "Updated a (+1 -1), updated b (+1 -1), created c (+1) and deleted gone (-1). "
        "On the result, `pnpm test` passed and `pnpm build` passed."
    )
    assert readiness(record, ReadyRule(passed=True, on_final_tree=True)) == []


def test_the_same_session_gives_the_same_bytes(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"a": "1\n"})
    write(work, {"a": f"2\nkey = '{TOKEN}'\n", "b": "x\n"})
    state, blobs = kept(work)
    known = facts(head(work), ran(state, "test"))
    made = (build_record(work, known, REDACTOR, list(blobs.values())) for _ in range(2))
    first, second = map(encode_record, made)
    assert first == second


@pytest.mark.parametrize(
    ("size", "cut", "ending", "truncated"),
    [
        (OUTPUT_LIMIT, False, "", False),
        (OUTPUT_LIMIT + 1, False, "", True),
        (OUTPUT_LIMIT - 5, False, "(ended at its time limit)", True),
        (100, False, "(ended at its time limit)", False),
        (OUTPUT_LIMIT + 9, True, "(ended at its time limit)", True),
        (0, False, "(ended at its time limit)", False),
    ],
)
def test_long_outputs_are_cut_and_say_so(
    size: int, cut: bool, ending: str, truncated: bool
) -> None:
    output = ran(None, "test", output="é" * size)
    shown = shown_output(structs.replace(output, cut=cut, ending=ending, exit_code=None))
    assert shown.endswith(TRUNCATED) is truncated
    assert ending in shown
    assert len(shown) <= OUTPUT_LIMIT + len(TRUNCATED)


def test_without_contents_a_record_tells_numbers_alone(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"a": "secret plan\n"})
    write(work, {"a": "secret plan, changed\n", "b": "b\n"})
    known = facts(head(work), ran(None, "test", output="secret output\n"), contents="none")
    record = build_record(work, known, REDACTOR)
    assert "secret" not in encode_record(record).decode()
    assert problems_of(record) == []
    assert record.meta.verified
    assert [(c.path, c.kind, c.added, c.removed) for c in changes_of(record)] == [
        ("a", "update", 1, 1),
        ("b", "create", 1, 0),
    ]
    assert readiness(record, ReadyRule())


def test_secrets_become_placeholders_on_both_sides_and_the_patch_still_fits(
    tmp_path: Path,
) -> None:
    before = "".join(f"line {n}\n" for n in range(12)) + f"token = '{TOKEN}'\nend\n"
    work = repository(tmp_path / "work", {"config.py": before, "gone.py": f"t = '{OTHER}'\n"})
    write(work, {"config.py": before.replace("line 10", "line ten"), "new.py": f"t = '{TOKEN}'\n"})
    (work / "gone.py").unlink()
    known = structs.replace(
        facts(head(work), ran(None, "test", output=f"using {TOKEN}\n")), prompt=f"Use {TOKEN}."
    )
    with untouched(work):
        record = build_record(work, known, REDACTOR)
    text = encode_record(record).decode()
    assert TOKEN not in text
    assert OTHER not in text
    assert record.meta.verified, record.meta.warnings
    assert problems_of(record) == []
    assert verify(work, record, REDACTOR) == []
    assert record.meta.redactions.count == 2
    digest = REDACTOR.placeholder("any", TOKEN).rpartition(":")[2]
    assert digest in files_of(record)["config.py"]
    assert digest in record.messages[0].content
    assert kinds(record) == {"gone.py": "delete", "config.py": "update", "new.py": "create"}


def test_a_masked_record_rebuilds_the_masked_tree(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"config.py": f"a = 1\ntoken = '{TOKEN}'\n"})
    write(work, {"config.py": f"a = 2\ntoken = '{OTHER}'\n"})
    record = build_record(work, facts(head(work)), REDACTOR)
    other = tmp_path / "other"
    run(work, "worktree", "add", "--quiet", "--detach", str(other))
    write(other, {"config.py": files_of(record)["config.py"]})
    apply_to_folder(other, operations_of(record))
    assert tree_of_folder(other) == record.meta.final_tree
    assert (other / "config.py").read_text() == REDACTOR.redact(
        (work / "config.py").read_text()
    ).text


def test_a_file_in_which_only_one_secret_became_the_same_placeholder_is_skipped(
    tmp_path: Path,
) -> None:
    work = repository(tmp_path / "work", {"config.py": f"token = '{TOKEN}'\n"})
    masked = REDACTOR.redact(f"token = '{TOKEN}'\n").text
    write(work, {"config.py": masked, "b": "1\n"})
    record = build_record(work, facts(head(work)), REDACTOR)
    assert record.meta.verified, record.meta.warnings
    assert kinds(record) == {"b": "create"}
    assert skips(record) == {"config.py": "only secrets in it changed"}


def test_a_file_that_cannot_be_searched_is_named_and_its_change_is_not_said_to_be_verified(
    tmp_path: Path,
) -> None:
    """Both sides of its long line would get the same mark, and the change would be lost."""
    line = "eyJ" * 10_000
    files: dict[str, str | bytes] = {
        "long.js": f"{line}\n1\n",
        "gone.js": line,
        "config.py": "a = 1\n",
    }
    work = repository(tmp_path / "work", files)
    write(work, {"long.js": f"{line}!\n2\n", "new.js": line, "config.py": "a = 2\n"})
    (work / "gone.js").unlink()
    record = recorded(work)
    assert kinds(record) == {"config.py": "update"}
    reason = "a stretch of it would take too long to search for secrets"
    assert skips(record) == dict.fromkeys(["gone.js", "long.js", "new.js"], reason)
    assert record.meta.redactions.count == 0
    assert "3 changed paths could not be recorded" in readiness(record, ReadyRule())[0]
    assert "withheld" not in encode_record(record).decode()


def test_a_secret_that_cannot_be_replaced_holds_the_record(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    write(work, {f"{TOKEN}.txt": "named after a secret\n"})
    record = build_record(work, facts(head(work)), REDACTOR)
    assert not record.meta.verified
    assert "a secret is left in it" in record.meta.warnings[-1]


def test_more_files_than_a_record_has_messages_are_refused() -> None:
    before = FileState("100644", "1\n", "1" * 40)
    files = tuple(ChangedFile(path=f"f{n:04}", before=before, after=None) for n in range(2500))
    changes = WorktreeChanges(
        base="0" * 40,
        final_tree="0" * 40,
        files=files,
        steps=(StepChanges(files=files, tree="0" * 40),),
        skipped=(),
        warnings=(),
    )
    with pytest.raises(InputError, match="messages"):
        assemble(facts("0" * 40), changes)


def test_facts_that_are_not_of_the_contract_are_refused(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")
    with pytest.raises(InputError, match=r"task_?[iI]d"):
        build_record(work, structs.replace(facts(head(work)), task_id="No Task!"), REDACTOR)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("+2", "+3", id="another text"),
        pytest.param('"path":"a"', '"path":"z"', id="another path"),
        pytest.param("100755", "100644", id="another mode"),
        pytest.param("-1\\n", "-0\\n", id="another baseline in the patch"),
    ],
)
def test_a_record_that_was_tampered_with_does_not_verify(
    tmp_path: Path, before: str, after: str
) -> None:
    work = repository(tmp_path / "work", {"a": "1\n"})
    write(work, {"a": "2\n", "run": "go\n"})
    (work / "run").chmod(0o755)
    record = build_record(work, facts(head(work)), REDACTOR)
    messages = []
    for message in record.messages:
        if isinstance(message, AssistantMessage) and message.tool_calls:
            call = message.tool_calls[0]
            if call.function.name == "apply_patch":
                arguments = call.function.arguments.replace(before, after)
                assert arguments != call.function.arguments
                function = call.function.model_copy(update={"arguments": arguments})
                call = call.model_copy(update={"function": function})
                message = message.model_copy(update={"tool_calls": [call]})
        messages.append(message)
    assert verify(work, record.model_copy(update={"messages": messages}))


def test_a_file_read_other_than_the_baseline_does_not_verify(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", {"a": "1\n2\n3\n4\n5\n6\n7\n8\n9\n"})
    write(work, {"a": "0\n2\n3\n4\n5\n6\n7\n8\n9\n"})
    record = build_record(work, facts(head(work)), REDACTOR)
    messages = [
        message.model_copy(update={"content": message.content.replace("9", "10")})
        if isinstance(message, ToolMessage)
        else message
        for message in record.messages
    ]
    problems = verify(work, record.model_copy(update={"messages": messages}))
    assert problems == ["'a': the record has another text of it than the baseline"]


TEXTS = st.text(alphabet=st.sampled_from([*"ab \t\r\n\f\\@+-é\u2028", "\n"]), max_size=40)


@settings(max_examples=5)
@given(st.lists(st.tuples(TEXTS | st.none(), TEXTS | st.none()), min_size=8, max_size=30))
def test_any_texts_come_back(pairs: list[tuple[str | None, str | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before = {f"d{n % 3}/f{n}": old for n, (old, _) in enumerate(pairs) if old is not None}
        after = {f"d{n % 3}/f{n}": new for n, (_, new) in enumerate(pairs) if new is not None}
        work = repository(Path(folder) / "work", dict(before))
        for name in before.keys() - after.keys():
            (work / name).unlink()
        write(work, dict(after))
        record = build_record(work, facts(head(work)), REDACTOR)
        assert record.meta.verified, record.meta.warnings
        assert problems_of(record) == []
        assert record.meta.final_tree == tree_of_folder(work)


GITHUB = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
PIECES = (
    *(GITHUB, GITHUB[:20], GITHUB[20:], "AKIA" + "Z7Q2M4X9K1L8P3R6", "sk-ant-oat01-"),
    *("password = ", '"Xy7$kk2!pQz"', "token: ", "9f8Ae7b6C5d4E3f2A1b0Z9y8X7w6", "export "),
    *("curl -u bob:", "hunter2hunter2!", "\n", " ", '"', "'", "\\", "\\/", "=", ":", "ü", "\0"),
    *("Bearer ", "eyJhbGciOiJIUzI1NiJ9.", "const total = price + 1;", "676870", "Z2hwXzE2Qzdl"),
    *("-----BEGIN RSA PRIVATE KEY-----", "\u200b", "\x1b[0m", "%67", "<secret:token:3f9a1c>"),
)
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), max_size=9).map("".join)


def looked_at_one_by_one(record: Record) -> SecretLog:
    """Return the findings of each text of a record, however unlikely it is to hold any."""
    findings = SecretLog(REDACTOR)
    for message in record.messages:
        findings.clean(message.content)
    for op in operations_of(record):
        findings.clean(op.path)
        findings.clean("" if isinstance(op, DeleteFile) else op.diff)
    for done in calls_of(record):
        if done.call.function.name != "apply_patch":
            findings.clean_json(done.call.function.arguments)
    findings.clean_json(
        record.meta.model_dump_json(by_alias=True, include={"repo_remote", "branch", "warnings"})
    )
    return findings


plain = texts.map(lambda text: text.replace("\0", "").encode("utf-8", "replace").decode())


@settings(max_examples=20)
@given(before=plain, after=plain, output=plain, warning=plain, branch=plain)
def test_a_record_is_found_to_hold_what_each_of_its_texts_holds(
    before: str, after: str, output: str, warning: str, branch: str
) -> None:
    files = {**BEFORE, "a.ts": f"{before}\nend\n"}
    record = build(
        files,
        {**files, "a.ts": f"{after}\nEnd\n", "new.ts": f"{after}{before}\n"},
        final=[(["test"], output)],
        warnings=[warning],
        branch=branch or None,
        session_id=UUID("7f2c1a52-90c6-4d0e-9f61-0c3f5f4c8a11"),
    )
    expected = looked_at_one_by_one(record)

    result = scrubbed(record, REDACTOR)

    assert (result.kinds if result else ()) == expected.kinds
    if result:
        assert result.text == encode_record(result.record)
        assert result.record.meta.redactions == expected.redactions()
        for clean, message in zip(result.record.messages, record.messages, strict=True):
            assert clean.content == REDACTOR.redact(message.content).text


def test_a_secret_behind_an_escaped_slash_is_found_in_a_calls_arguments() -> None:
    record = build(
        final=[(["--filter", "x", "test"], "1 passed\n")],
        warnings=[f"https:\\/\\/bob:{GITHUB}@example.org"],
    )

    result = scrubbed(record, REDACTOR)

    assert result is not None
    assert GITHUB.encode() not in result.text
