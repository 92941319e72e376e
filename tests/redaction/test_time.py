"""What the search of a text may cost: ordinary text is searched, endless work is withheld."""

from __future__ import annotations

import json
import random
from functools import partial

import pytest

from debrief.redaction.finder import SearchBudget
from debrief.redaction.redactor import WITHHELD_MARK, Redactor
from tests.redaction.harmless import LINES, log_of
from tests.redaction.hostile import VARIANTS, units
from tests.redaction.synthetic import ALNUM, HEX, Maker
from tests.waiting import is_done_within

REDACTOR = Redactor(b"k" * 32)


def test_no_text_made_from_the_rules_makes_it_slow() -> None:
    """Each rule's beginning and whole, repeated: its cost ends 100 kB long before the clock does.

    What the clock ends has another fate on another machine. The benchmark tells the speeds.
    """
    rng = random.Random(19)
    for unit in rng.sample(units(19), 30):
        text = rng.choice([*VARIANTS.values()])(unit, 100_000)
        assert is_done_within(3, partial(REDACTOR.redact, text)), unit


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("size", [40_000, 1_000_000])
def test_ordinary_logs_pages_and_lists_are_searched_at_every_size(kind: str, size: int) -> None:
    text = log_of(kind, size)
    assert REDACTOR.redact(text).text is text


@pytest.mark.parametrize("unit", ["password=\n", "redis-cli -a b%3D ", "key=aB3$xQ9! "])
def test_only_what_there_is_no_time_for_is_withheld_with_its_lines(unit: str) -> None:
    plain = "an ordinary line of text\n" * 1_000
    text = plain + unit * (1_000_000 // len(unit)) + Maker(20).github() + "\n" + plain
    redacted = REDACTOR.redact(text, "", SearchBudget(0))
    assert WITHHELD_MARK in redacted.text
    assert redacted.text.startswith(plain[:-300])
    assert redacted.text.endswith(plain[-20_000:])
    assert Maker(20).github() not in redacted.text
    assert redacted.text.count("\n") == text.count("\n")
    assert redacted.unsure >= 1


def test_json_stays_json_where_there_was_no_time_for_all_of_it() -> None:
    secret = Maker(22).github()
    hostile = "redis-cli -a b%3D " * 30_000
    rows = [{"log": hostile, "user": "x", "token": secret}] * 2
    found = REDACTOR.redact_json(json.dumps(rows))
    kept = json.loads(found.text)
    assert [sorted(row) for row in kept] == [["log", "token", "user"]] * 2
    assert secret not in found.text
    assert found.unsure >= 1


@pytest.mark.parametrize("unit", ["Cookie: a=", "cookie=abc123def456; ", "seed phrase ", "eyJ"])
def test_a_megabyte_takes_a_second_or_so_whatever_is_in_it(unit: str) -> None:
    """A bound of three, for machines that are slower and busy; the benchmark tells the speeds."""
    text = unit * (1_000_000 // len(unit))
    assert is_done_within(3, partial(REDACTOR.redact, text)), unit


@pytest.mark.parametrize(
    "unit", ["pass%77ord%3D", "p=61ssw=6Frd=3D", "pass\x1b[1mword=\x1b[0mabc", "pass\\u0077ord="]
)
def test_a_run_of_escaped_names_is_read_once(unit: str) -> None:
    """Each name has all that follows for its value: read to its end, none would be searched."""
    text = unit * (30_000 // len(unit))
    assert REDACTOR.redact(text).text is text


@pytest.mark.parametrize(
    "row",
    [
        "password: |\n  {}\nuser: ann\n",
        "docker login -u ann -p {} registry.invalid\n",
        '{{"key":"db_password","value":"{}"}}\n',
        "<password>{}</password>\n",
    ],
)
def test_a_dump_of_settings_loses_its_secrets_alone(row: str) -> None:
    make = Maker(42)
    text = "".join(row.format(make.password()) for _ in range(1_500))
    document = json.dumps({"type": "user", "content": text})
    for redacted in (REDACTOR.redact(text), REDACTOR.redact_json(document)):
        assert WITHHELD_MARK not in redacted.text
        assert len(redacted.findings) == 1_500


def test_no_line_is_withheld_that_holds_no_secret_where_thousands_do() -> None:
    """A log of curl, a HAR file, and a table of password hashes."""
    make = Maker(41)
    log = "".join(
        f"> GET /{n} HTTP/2\n> Host: a.invalid\n> Cookie: sid={make.of(HEX, 32)}; theme=dark\n>\n"
        for n in range(400)
    )
    entry = {"request": {"url": "https://a.invalid/x", "headers": [], "cookies": []}, "time": 12}
    cookies = [{"name": "sid", "value": make.of(HEX, 32)} for _ in range(400)]
    har = json.dumps({"entries": [{**entry, "cookies": [cooky]} for cooky in cookies]}, indent=1)
    sql = "".join(
        f"INSERT INTO users (id, name, password) VALUES ({n}, 'ann{n}', '$2b$12${make.of(ALNUM, 53)}');\n"
        for n in range(2_000)
    )
    for text in (log, har, sql):
        found = REDACTOR.redact(text)
        assert WITHHELD_MARK not in found.text
        assert found.text.count("\n") == text.count("\n")
    assert "theme=dark" in REDACTOR.redact(log).text
