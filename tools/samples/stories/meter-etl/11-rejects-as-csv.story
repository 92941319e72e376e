---
title: Write rejects to a CSV file
tool: claude-code
repository: meter-etl
prompts: v2
at: 2026-10-16 09:21:36
version: 2.1.229
---
==> user
The operators want to know which of their rows we rejected. New module meter_etl/rejects.py:

- `write_rejects(rejects, target)` writes CSV with the header row,code,reason, in the order of the rows
- a reason may hold commas, quotes and line breaks (parse errors do), so use the csv module
- returns how many were written

Tests in tests/test_rejects.py: order, quoting, nothing to write → header only. No CLI flag yet, that comes with the report.
==> read meter_etl/model.py
==> +read meter_etl/publish.py
==> write tests/test_rejects.py
import csv
import io

from meter_etl.model import Reject
from meter_etl.rejects import write_rejects


def written(*rejects: Reject) -> list[list[str]]:
    target = io.StringIO(newline="")
    assert write_rejects(rejects, target) == len(rejects)
    return list(csv.reader(io.StringIO(target.getvalue(), newline="")))


def test_rows_come_in_order():
    found = written(Reject(7, "E23", "late"), Reject(2, "E01", "bad"))
    assert [row[0] for row in found[1:]] == ["2", "7"]


def test_a_reason_survives_commas_quotes_and_line_breaks():
    reason = 'Invalid literal: "1,5"\nin row 3'
    assert written(Reject(3, "E01", reason))[1] == ["3", "E01", reason]


def test_without_rejects_there_is_a_header():
    assert written() == [["row", "code", "reason"]]
==> write meter_etl/rejects.py
"""Tells an operator which rows were rejected, and why."""

import csv
from collections.abc import Iterable
from typing import TextIO

from meter_etl.model import Reject


def write_rejects(rejects: Iterable[Reject], target: TextIO) -> int:
    """Write the rejects in the order of their rows; return how many."""
    ordered = sorted(rejects, key=lambda reject: reject.row)
    out = csv.writer(target, lineterminator="\n")
    out.writerow(("row", "code", "reason"))
    out.writerows((reject.row, reject.code, reject.reason) for reject in ordered)
    return len(ordered)
==> tests pytest tests/test_rejects.py -q
ok tests/test_rejects.py 3
==> say
meter_etl/rejects.py and three tests (order, quoting, header only): `pytest tests/test_rejects.py -q`, "3 passed". The CLI is untouched, as you asked.
==> user
good, and the rest of the suite?
==> tests pytest -q
ok tests/test_parse.py 1
ok tests/test_publish.py 1
ok tests/test_rejects.py 3
ok tests/test_settle.py 1
ok tests/test_window.py 7
==> say
All green: `pytest -q`, "13 passed".
