"""Personal data gives way to stand-ins where a setting asks for it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import msgspec
import pytest

from debrief.redaction.redactor import Redactor, redactor_of
from debrief.sessions.redaction import redact_session
from debrief.settings import load_settings
from tests.redaction.test_sessions import call, hunks, session

KEY = b"k" * 32
KEEPS = Redactor(KEY)
REPLACES = Redactor(KEY, {"Ann Example"})
OLD = "owner = 'ann@acme.dev'\nhome = '/home/ann/shop'\ncall: +49 30 1234567\n"
NEW = OLD + "by Ann Example, see /Users/ann/notes\n"


def said(text: str) -> str:
    found = redact_session(session(call(result=text)), REPLACES)
    return found.turns[0].messages[0].calls[0].result or ""


def test_personal_data_stays_unless_it_is_to_go() -> None:
    before = session(call(result=NEW), cwd="/home/ann/shop")
    assert redact_session(before, KEEPS) is before
    after = msgspec.json.encode(redact_session(before, REPLACES)).decode()
    for gone in ("ann@acme", "/home/ann", "/Users/ann", "1234567", "Ann Example"):
        assert gone not in after


def test_a_patch_still_applies_to_the_file_that_got_the_same_stand_ins(tmp_path: Path) -> None:
    found = redact_session(
        session(
            call(
                input=json.dumps({"file_path": "/home/ann/shop/a.py", "content": OLD}),
                result=OLD,
                patch=hunks(OLD, NEW),
            )
        ),
        REPLACES,
    )
    (made,) = found.turns[0].messages[0].calls
    assert "ann" not in made.patch
    (tmp_path / "a.py").write_text(made.result or "")
    patch = f"--- a/a.py\n+++ b/a.py\n{made.patch}\n"
    subprocess.run(["git", "apply"], input=patch.encode(), cwd=tmp_path, check=True)
    assert (tmp_path / "a.py").read_text().count("mail-") == 1
    assert json.loads(made.input)["content"] == made.result


def test_one_person_is_one_stand_in_and_a_second_look_changes_nothing() -> None:
    once = redact_session(session(call(result="/home/ann/a and C:\\\\Users\\\\ann\\\\b")), REPLACES)
    text = once.turns[0].messages[0].calls[0].result or ""
    stand = REPLACES.stand("home", "ann")
    assert text.count(f"user_{stand}") == 2
    assert redact_session(once, REPLACES) is once


def test_names_beside_addresses_go_everywhere_in_the_session() -> None:
    text = said("Author: Karim Lee <karim@acme.dev>\n\nThanks to Karim Lee.")
    assert "Karim" not in text
    assert text.count("person-") == 2


@pytest.mark.parametrize(
    "text",
    [
        "git@github.com:acme/shop.git",
        "mail to a@example.com",
        "/home/runner/shop",
        "+1234567890 is an added line, 2026-03-04 10:00:00+02:00 a time",
        "@@ -1,4 +1,4 @@ and +100 1.0045",
        "the-home-page-button in .home-ann",
    ],
)
def test_what_is_nobodys_stays(text: str) -> None:
    assert said(text) == text


def test_the_setting_says_so_and_sessions_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = Bo Example\n")
    known = {"DEBRIEF_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    keeps = redactor_of(load_settings(known))
    replaces = redactor_of(load_settings({**known, "DEBRIEF_PERSONAL_DATA": "replace"}))
    assert keeps.people is None
    assert replaces.people == {"Bo Example"}
    assert keeps.identity != replaces.identity
