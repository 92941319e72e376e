"""A whole session is redacted: every text, the same secret the same way, patches still apply."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
import pytest

from debrief.keys import place_of, slugify
from debrief.redaction.redactor import WITHHELD_MARK, Redactor
from debrief.sessions.model import (
    OURS,
    DeclaredTool,
    Message,
    Session,
    ToolCall,
    TranscriptRef,
    Turn,
    UnreadTranscript,
    Usage,
)
from debrief.sessions.redaction import fields_of, redact_name, redact_session
from tests.redaction.synthetic import KNOWN, Maker

REDACTOR = Redactor(b"k" * 32)
NOW = datetime(2026, 3, 2, tzinfo=UTC)


def session(*calls: ToolCall, **fields: object) -> Session:
    base: dict[str, object] = {
        "id": "s1",
        "source": "claude-code",
        "tool": "claude-code",
        "task": "shop",
        "started": NOW,
        "ended": NOW,
        "turns": (
            Turn(number=1, prompt="go", messages=(Message(id="m1", model="x", calls=calls),)),
        ),
    }
    return msgspec.convert({**base, **fields}, Session, from_attributes=True)


def call(**fields: object) -> ToolCall:
    given = {"id": "c1", "name": "Bash", "input": "{}", **fields}
    return msgspec.convert(given, ToolCall)


def hunks(old: str, new: str) -> str:
    rows = list(unified_diff(old.splitlines(), new.splitlines(), lineterm=""))
    return "\n".join(rows[2:])


def test_a_session_without_secrets_is_returned_as_the_same_object() -> None:
    plain = session(call(input='{"command":"ls"}', result="a.py b.py", patch="@@ -1 +1 @@\n-a\n+b"))
    assert redact_session(plain, REDACTOR) is plain


def filled(hint: Any, secrets: dict[str, str], way: str) -> Any:
    """Return a value of a type, a secret of its own in every text; ``secrets`` notes the way."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return (
            json.dumps({(t := filled(str, secrets, way)): t})
            if args[1] == "json"
            else (f"@@ -0,0 +1 @@\n+{filled(str, secrets, way)}" if args[1] == "patch" else "ours")
        )
    if origin in (Union, UnionType):
        return filled(args[0], secrets, way)
    if origin is Literal:
        return args[0]
    if origin is tuple:
        return (filled(args[0], secrets, way),)
    if hint is str:
        secret = secrets[way] = Maker(len(secrets)).github()
        return f"a/{secret}/b"
    if issubclass(hint, msgspec.Struct):
        given = {
            field.name: filled(field.type, secrets, f"{way}.{field.name}")
            for field in msgspec.structs.fields(hint)
        }
        return hint(**given)
    return NOW if hint is datetime else hint()


def test_a_secret_is_found_in_whatever_field_a_session_has_or_comes_to_have() -> None:
    secrets: dict[str, str] = {}
    given = filled(Session, secrets, "session")
    assert len(secrets) > 40
    text = msgspec.json.encode(redact_session(given, REDACTOR)).decode()
    assert [way for way, secret in secrets.items() if secret in text] == []
    structs: list[type[msgspec.Struct]] = [*fields_of(Session), Usage, UnreadTranscript]
    ours = {
        (struct, field.name)
        for struct in structs
        for field in msgspec.structs.fields(struct)
        if get_args(field.type)[1:] == (OURS,)
    }
    digests = {(Session, "digest"), (TranscriptRef, "digest")}
    names = {(Session, "source"), (UnreadTranscript, "source"), (UnreadTranscript, "week")}
    assert ours == digests | names


def test_a_field_that_may_or_may_not_hold_text_is_refused() -> None:
    unclear = msgspec.defstruct("Unclear", [("anything", dict[str, object])])
    with pytest.raises(TypeError, match=r"Unclear.anything: text or not"):
        fields_of(unclear)


@pytest.mark.parametrize("cwd", ["/home/me/{}", "/home/me/shop/.debrief/worktrees/{}"])
def test_a_task_is_named_after_a_folder_whose_secret_is_gone(cwd: str) -> None:
    secret = Maker(33).github()
    place = place_of(cwd.format(secret))
    given = session(cwd=cwd.format(secret), task=place.task, repository=place.repository)
    found = redact_session(given, REDACTOR)
    mark = REDACTOR.placeholder("github-token", secret)
    assert found.task == slugify(mark)
    assert found.cwd == cwd.format(mark)
    assert redact_session(found, REDACTOR) is found


def test_a_folder_that_is_named_after_a_path_with_a_secret_shows_none() -> None:
    make = Maker(34)
    for kind in ("github", "npm", "slack", "stripe", "anthropic", "gitlab"):
        secret = KNOWN[kind](make)
        path = f"/p/-home-me-{re.sub('[^A-Za-z0-9]', '-', secret)}/s.jsonl"
        clean = redact_name(path, REDACTOR).text
        assert re.fullmatch(r"/p/-home-me-<secret:[a-z-]+:[0-9a-f]{6}>/s.jsonl", clean), kind
        assert redact_name(clean, REDACTOR).text == clean
    plain = "/home/me/.claude/projects/-home-me-tokens-api-key-service/0a1b2c3d-0000.jsonl"
    assert redact_name(plain, REDACTOR).text == plain


def test_a_secret_given_away_once_is_replaced_where_nothing_gives_it_away() -> None:
    secret = Maker(22).password()
    found = redact_session(
        session(
            call(input=json.dumps({"content": f"DB_PASSWORD={secret}\n"})),
            call(id="c2", result=f"connected as app with {secret}"),
            title=f"why is {secret} refused?",
        ),
        REDACTOR,
    )
    first, second = found.turns[0].messages[0].calls
    mark = REDACTOR.placeholder("password", secret)
    assert json.loads(first.input)["content"] == f"DB_PASSWORD={mark}\n"
    assert second.result == f"connected as app with {mark}"
    assert found.title == f"why is {mark} refused?"
    assert found.redactions == 3


@pytest.mark.parametrize(
    ("before", "after", "is_hidden"),
    [
        *[("", "", True), ("(", ")", True), ("as ", "!", True)],
        *[("x", "", False), ("", "9", False), ("of x", "", False)],
    ],
)
def test_a_short_secret_is_replaced_where_it_is_no_part_of_a_word(
    before: str, after: str, *, is_hidden: bool
) -> None:
    given = call(input=json.dumps({"password": "aB3$x9qZ!w"}))
    title = f"{before}aB3$x9qZ!w{after}"
    found = redact_session(session(given, title=title), REDACTOR)
    assert (found.title != title) == is_hidden
    assert ("aB3$x9qZ!w" in found.title) != is_hidden


def test_a_secret_that_json_spells_with_escapes_is_replaced_too() -> None:
    secret = 'aB3$"x\\9qZ!w7'
    found = redact_session(
        session(
            call(input=json.dumps({"note": f"never say {secret} aloud"})),
            call(id="c2", input=json.dumps({"password": secret})),
        ),
        REDACTOR,
    )
    for tool_call in found.turns[0].messages[0].calls:
        assert json.dumps(secret)[1:-1] not in tool_call.input
        assert "<secret:password:" in tool_call.input


def test_a_patch_still_applies_to_the_redacted_file(tmp_path: Path) -> None:
    make = Maker(23)
    block = make.pem()
    rows = [f"line {n}" for n in range(30)]
    old = "\n".join(
        [*rows[:5], f"password = '{make.password()}'", *rows[5:20], *block.split("\n"), *rows[20:]]
    )
    changed = old.split("\n")
    changed[2] = "line two"
    changed[23] = make.of("abcdefghijkl0123456789ABCDEFG+/", 64)
    changed.insert(7, f"token = '{make.github()}'")
    new = "\n".join(changed)
    patch = hunks(old, new)
    found = redact_session(
        session(
            call(name="Write", input=json.dumps({"content": old})),
            call(id="c2", name="Edit", input=json.dumps({"content": new}), patch=patch),
        ),
        REDACTOR,
    )
    write, edit = found.turns[0].messages[0].calls
    file = tmp_path / "settings.py"
    file.write_text(json.loads(write.input)["content"] + "\n")
    subprocess.run(
        ["git", "apply", "--unidiff-zero", "-"],
        input=f"--- a/settings.py\n+++ b/settings.py\n{edit.patch}\n",
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert file.read_text() == json.loads(edit.input)["content"] + "\n"
    assert edit.patch.count("\n") == patch.count("\n")
    assert block.split("\n")[5] not in msgspec.json.encode(found).decode()


def test_a_part_of_a_key_in_a_patch_is_known_from_the_file() -> None:
    block = Maker(24).pem()
    rows = block.split("\n")
    patch = f"@@ -3,2 +3,2 @@\n {rows[2]}\n-{rows[3]}\n+{rows[3][::-1]}"
    found = redact_session(
        session(call(result=f"$ cat key\n{block}\n"), call(id="c2", patch=patch)), REDACTOR
    )
    after = found.turns[0].messages[0].calls[1].patch.split("\n")
    assert after[0] == "@@ -3,2 +3,2 @@"
    assert after[1].startswith(" <secret:private-key:")
    assert after[2].startswith("-<secret:private-key:")


def test_markers_of_a_patch_are_no_part_of_a_secret() -> None:
    secret = Maker(25).github()
    patch = f"@@ -1,2 +1,2 @@\n ok\n-{secret}\n+{secret}\n\\ No newline at end of file"
    mark = REDACTOR.placeholder("github-token", secret)
    redacted = redact_session(session(call(patch=patch)), REDACTOR)
    assert redacted.turns[0].messages[0].calls[0].patch == patch.replace(secret, mark)


def test_redacting_a_session_twice_changes_nothing() -> None:
    make = Maker(26)
    once = redact_session(
        session(
            call(
                input=json.dumps({"command": f"mysql -p{make.password()}", "api_key": make.uuid()}),
                result=make.pem(),
            )
        ),
        REDACTOR,
    )
    assert once.redactions >= 3
    assert redact_session(once, REDACTOR) is once


def test_what_a_source_tells_of_its_tools_is_read_too() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    told = DeclaredTool(
        name="fetch",
        description=f"Fetch with {secret}.",
        parameters=json.dumps({"properties": {"token": {"default": secret}}}),
    )
    clean = redact_session(session(declared_tools=(told,)), REDACTOR)
    assert secret not in str(clean)
    (tool,) = clean.declared_tools or ()
    assert list(json.loads(tool.parameters)["properties"]) == ["token"]
    assert clean.redactions == 2


def test_what_there_is_no_time_for_is_withheld_and_the_rest_of_the_session_kept() -> None:
    secret = Maker(29).password()
    hostile = "redis-cli -a b%3D \n" * 25_000
    plain = "x = 1\n" * 2_000
    found = redact_session(
        session(call(result=hostile + plain, patch=hostile), title=f"password={secret}"), REDACTOR
    )
    (made,) = found.turns[0].messages[0].calls
    assert made.result is not None
    assert WITHHELD_MARK in made.result
    assert made.result.count("\n") == 27_000
    assert made.result.endswith(plain[-6_000:])
    assert found.title == f"password={REDACTOR.placeholder('password', secret)}"
    assert found.unsure_redactions >= 1


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("aws secretsmanager get-secret-value --secret-id a --output text", "{}"),
        ("sudo vault kv get -field=relay secret/prod", "{}\n"),
        ("kubectl get secret db -o json", '{{"data": {{"relay": "{}"}}, "kind": "Secret"}}'),
        ("bash -lc 'printenv SMTP_PASSWORD'", "Exit code: 0\nOutput:\n{}\n"),
        ("cat /run/secrets/db_password", "{}"),
        ("cd infra && terraform output -raw admin_password", "{}"),
        ("openssl rand -base64 24", "{}"),
    ],
)
def test_a_command_says_that_its_result_is_a_secret(command: str, output: str) -> None:
    secret = Maker(30).password()
    asked = call(input=json.dumps({"command": command}), result=output.format(secret))
    later = call(id="c2", input=json.dumps({"text": f"I used {secret} here"}))
    found = redact_session(session(asked, later), REDACTOR)
    assert secret not in msgspec.json.encode(found).decode()
    assert found.redactions == 2


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("kubectl get secret db -o jsonpath={.data.password}", 'Error: secrets "db" not found'),
        ("cat password.py", "import os\n\nPASSWORD_FILE = os.environ['PW_FILE']\n"),
        ("printenv DB_PASSWORD", "changeme"),
        ("git rev-parse HEAD # token", Maker(31).of("0123456789abcdef", 40)),
        ("grep -c token a.py", "12"),
    ],
)
def test_other_results_of_such_commands_stay(command: str, output: str) -> None:
    before = session(call(input=json.dumps({"command": command}), result=output))
    assert redact_session(before, REDACTOR) is before


def test_json_in_json_in_json_is_opened_by_its_names() -> None:
    secret = Maker(32).uuid()
    inner = json.dumps({"db_password": {"sensitive": True, "value": secret}})
    text = json.dumps({"arguments": json.dumps({"content": inner})})
    found = redact_session(session(call(input=text, result=text, name="Write")), REDACTOR)
    assert secret not in msgspec.json.encode(found).decode()
    assert json.loads(found.turns[0].messages[0].calls[0].input)
