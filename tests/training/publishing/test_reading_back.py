"""What an exported folder is checked for before the command says that it is done."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pandas.io.json import ujson_loads
from rich.console import Console

from debrief.cli.summary import print_summary
from debrief.errors import InputError
from debrief.summary import content_of
from debrief.training.publishing.folder import PublishedFolder
from debrief.training.publishing.form import Form, with_readable_numbers
from debrief.training.publishing.publish import ExportOptions, publish
from tests.training.lakes import lake_of, stored
from tests.training.publishing.test_publish import own_cache  # noqa: F401
from tests.training.scenario import MONDAY, call, says, session, text, turn

FITTING = ["18446744073709551615", "-9223372036854775808", "1e308", "0.5", "-0", "12"]
TOO_GREAT = [
    *("18446744073709551616", "-9223372036854775809", "1" * 300),
    *("123456789012345678901234567890.5", "-10000000000000000000.5e3"),
]
INFINITE = ["1e400", "-1e999", "1" * 400]
"""These make arguments that are no object for any form."""


@pytest.mark.parametrize("form", ["trl", "preference", "kto", "rl", "messages"])
def test_numbers_of_any_size_load(
    tmp_path: Path,
    form: str,
    own_cache: None,  # noqa: F811
) -> None:
    from datasets import load_dataset

    arguments = ", ".join(f'"n{at}": {number}' for at, number in enumerate(FITTING + TOO_GREAT))
    arguments = f"{{{arguments}}}"
    pay = replace(call("pay"), input=arguments)
    more = arguments.replace("{", '{"more": 1, ')
    refused = replace(call("pay", result=None, status="rejected"), input=more)
    crowd = [
        session("s1", turn("Pay.", says("", pay), says("Paid.")), started=MONDAY),
        session(
            "s2",
            turn("Pay.", says("", refused)),
            turn("Not so much.", says("", pay), says("Paid."), number=2),
            started=MONDAY,
        ),
    ]
    lake = lake_of(tmp_path / "lake", crowd)
    stored(lake, near_duplicates="keep")
    done = publish(lake, str(tmp_path / "out"), ExportOptions(form=form, one_file=True))
    assert done.files
    loaded = load_dataset(str(tmp_path / "out"))
    assert sum(loaded.num_rows.values()) == sum(file.lines for file in done.files)
    page = (tmp_path / "out" / "README.md").read_text()
    written = "".join(path.read_text() for path in (tmp_path / "out").glob("*.jsonl"))
    as_text = [number for number in FITTING + TOO_GREAT if f'"{number}"' in written]
    assert as_text == ([] if form == "messages" else TOO_GREAT)
    assert ("## Numbers as text" in page) == (form != "messages")
    assert any("written as text" in said for said in done.warnings) == (form != "messages")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.text()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([*FITTING, *TOO_GREAT, *INFINITE]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(VALUES)
@settings(deadline=None)
def test_whatever_a_line_holds_can_be_read_and_only_numbers_change(value: Any) -> None:
    line = json.dumps({"value": value}).encode()
    for number in (*FITTING, *TOO_GREAT, *INFINITE):
        line = line.replace(f': "{number}"'.encode(), f": {number}".encode())
    made, count = with_readable_numbers(line)
    ujson_loads(made)
    assert re.sub(rb'"(-?[0-9.eE+-]+)"', rb"\1", made) == re.sub(
        rb'"(-?[0-9.eE+-]+)"', rb"\1", line
    )
    assert (made == line) == (count == 0)


def test_a_file_that_no_loader_reads_stops_the_export_and_replaces_nothing(tmp_path: Path) -> None:
    form = Form(name="own", reader="nobody", columns={"n": "int64"}, note="")
    with PublishedFolder(str(tmp_path), form) as folder:
        folder.write_set("task", "f", [("train", {"n": 1})])
    before = (tmp_path / "task" / "f" / "train.jsonl").read_bytes()
    with (
        pytest.raises(InputError, match="cannot be read back") as told,
        PublishedFolder(str(tmp_path), form) as folder,
    ):
        folder.write_set("task", "f", [("train", {"n": 1}), ("train", {"n": "one"})])
    assert told.value.culprit == "task/f/train.jsonl:2"
    assert (tmp_path / "task" / "f" / "train.jsonl").read_bytes() == before


COUNTED = re.compile(r"^\| (in these files|left out: .*?) \| (\d+) \|$", re.MULTILINE)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"form": "trl", "tool": "codex"},
        {"form": "rl"},
        {"form": "preference"},
        {"form": "kto", "verdicts": ("partial",)},
        {"max_tokens": 300},
        {"split": "time:2026-01-12"},
    ],
    ids=str,
)
def test_the_page_counts_every_session_once(tmp_path: Path, options: dict[str, Any]) -> None:
    crowd = [
        session("good", turn(f"Do {text(12)}.", says("", call()), says("Done."))),
        session("copy", turn("Copy it.", says(text(80))), started=MONDAY),
        session("long", turn(text(900), says(text(900), call()), says("Done."))),
        session("silent", turn("Hello?")),
        session("codex", turn(f"Go {text(9)}.", says("Ok.")), tool="codex"),
        session("over", turn("Stay.", says(text(99))), ended=MONDAY.replace(day=20)),
    ]
    lake = lake_of(tmp_path / "lake", crowd)
    made = stored(lake, verdicts=("complete_verified", "complete_unverified"))
    assert made.row.considered == len(crowd)
    publish(lake, str(tmp_path / "out"), ExportOptions(one_file=True, **options))
    page = tmp_path / "out" / "README.md"
    if not page.exists():  # no line in the form: nothing is written
        return
    counts = dict(COUNTED.findall(page.read_text()))
    assert "What became of the 6 sessions of these sets." in page.read_text()
    assert sum(map(int, counts.values())) == len(crowd)
    assert int(counts["left out: no answer of the model"]) == 1


def test_a_run_counts_every_session_of_the_lake_and_names_empty_sets(tmp_path: Path) -> None:
    crowd = [session("good"), session("silent", turn("Hello?"))]
    crowd += [session(f"alone{n}", turn("Hello?"), task="other") for n in range(2)]
    lake = lake_of(tmp_path, crowd)
    stored(lake)
    stored(lake, "other")
    out = StringIO()
    print_summary(lake, content_of(lake, ["2026-01-05"]), Console(file=out, width=200))
    said = " ".join(out.getvalue().split())
    assert (
        "Training sets: 1 sample in 1 set, from 1 of 4 sessions; left out 3: no answer of the "
        "model (3)" in said
    )
    assert "Empty sets: other b7d4e2f9-a3f8b2c1 (no answer of the model (2))" in said
