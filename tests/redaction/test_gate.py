"""The last gate over the final bytes of a file."""

from __future__ import annotations

import ast
import json
import string
from pathlib import Path

import pytest

from debrief.errors import InputError
from debrief.redaction import Redactor, contains_secret, gate, refuse_secrets
from debrief.redaction.gate import random_tokens, refuse_random
from tests.redaction.harmless import near_misses
from tests.redaction.synthetic import ALNUM, HEX, Maker, hard_cases, known_cases

REDACTOR = Redactor(b"k" * 32)


def line(**content: object) -> str:
    return json.dumps({"messages": [{"role": "user", "content": "hi"}, content]}) + "\n"


def test_a_secret_is_found_with_its_line_and_the_way_to_it() -> None:
    secret = Maker(31).github()
    data = (line(content="fine") + line(role="tool", content=f"é {secret}")).encode()
    (found,) = contains_secret(data)
    assert (found.kind, found.path, found.start) == ("github-token", "2.messages.1.content", 2)
    assert secret not in repr(found)


def test_the_arguments_of_a_call_are_json_in_json() -> None:
    secret = Maker(32).password()
    arguments = json.dumps({"env": {"DB_PASSWORD": secret}})
    data = line(tool_calls=[{"function": {"name": "Bash", "arguments": arguments}}]).encode()
    assert [found.kind for found in contains_secret(data)][:1] == ["password"]


def test_what_was_redacted_passes() -> None:
    for case in [*known_cases(33, 1), *hard_cases(34, 1), *near_misses(35, 1)]:
        clean = REDACTOR.redact(case.text).text
        assert contains_secret(line(content=clean).encode()) == [], case.text


@pytest.mark.parametrize("length", [20, 24, 32, 40, 64])
def test_what_is_made_by_chance_is_seen_without_a_name_or_a_form(length: int) -> None:
    make = Maker(38 + length)
    token = make.of(ALNUM, length)
    ((found, before, after),) = random_tokens(line(content=f"it says {token} there").encode())
    assert found == token
    assert before.endswith("it says ")
    assert after.startswith(" there")


def test_ids_digests_pictures_paths_and_placeholders_are_not_made_by_chance() -> None:
    make = Maker(40)
    for text in (
        make.uuid(),
        make.of(HEX, 40),
        f"sha512-{make.of(ALNUM, 86)}==",
        f"toolu_{make.of(ALNUM, 24)}",
        f"data:image/png;base64,iVBORw0KGgo{make.of(ALNUM, 400)}",
        "src/components/UserProfile2/getElementByTestId.test.ts",
        "test_refresh_token_2_is_sent_again_after_401",
        "func ReadsBase64Literals2OfOlderFiles(t *testing.T)",
        f"?id=cmfppfndo0001{make.of(string.ascii_lowercase + string.digits, 12)}",
        "/private/var/folders/4n/2f7pppjd2_n0fftzg8vrlg040000gn/T/tmpk_ntrtq3",
        f"PRRC_kwDO{make.of(ALNUM, 18)}",
        "<secret:password:3f9a1c>",
        r"\u001b[36manalytics2024Chart\u001b[0m",
    ):
        assert list(random_tokens(line(content=f"see {text} .").encode())) == [], text


def test_the_last_gate_shares_nothing_with_the_redactor() -> None:
    tree = ast.parse(Path(gate.__file__).read_text())
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert [name for name in names if name.startswith("debrief")] == ["debrief.errors"]
    assert [node for node in ast.walk(tree) if isinstance(node, ast.Import)]


def test_a_refusal_names_file_line_and_kind() -> None:
    make = Maker(39)
    secret = make.github()
    with pytest.raises(InputError, match=r"^card.md, line 3: holds a secret .github-token") as told:
        refuse_secrets("card.md", f"# card\n\nmade with {secret}\n".encode())
    assert secret not in str(told.value)
    with pytest.raises(InputError, match=r"^main.md, line 2: holds letters and digits") as told:
        refuse_random("main.md", f"# prompt\nmade with {make.of(ALNUM, 30)}\n".encode())


def test_a_line_of_plain_text_is_searched_too() -> None:
    secret = Maker(36).github()
    (found,) = contains_secret(f"# card\n\nmade with {secret}\n".encode())
    assert found.path == "3"


def test_bytes_that_are_not_utf8_do_not_hide_a_secret_and_no_bytes_hold_none() -> None:
    secret = Maker(37).github()
    assert contains_secret(b"\xff\xfe " + secret.encode() + b"\n")
    assert contains_secret(b"") == []
