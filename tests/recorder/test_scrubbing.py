"""Scanning all texts of a record as one finds what looking at each of them finds."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.recorder.contracts import DeleteFile, Record
from debrief.recorder.encoding import calls_of, encode_record, operations_of
from debrief.recorder.scrubbing import SecretLog, scrubbed
from debrief.redaction import Redactor
from tests.recorder.records import BEFORE, build

REDACTOR = Redactor(b"a key of the tests, and no other's")
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


@settings(max_examples=60)
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
