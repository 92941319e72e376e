"""The tool that fits the shipped order: what holds in every family stays, and the file is read."""

from __future__ import annotations

from pathlib import Path

import msgspec

from debrief.scoring.order import OrderTable
from tests.validity.scenario import benchmark_folder
from tools.fit_table import read, toml


def test_a_sign_that_one_family_decides_alone_is_left_out(tmp_path: Path) -> None:
    for family in ("one", "two"):
        benchmark_folder(tmp_path / family, 12, family)
    agreed = list(read([tmp_path]))
    table = msgspec.toml.decode(toml(agreed), type=OrderTable)
    assert (table.coding.sessions, table.coding.done) == (48, 24)
    assert table.coding.weights["last_check_passed"] > 0 > table.coding.weights["errors"]
    assert table.coding.fitted_on == "one, two"
    benchmark_folder(tmp_path / "three", 12, "three", right=0.0)
    divided = msgspec.toml.decode(
        toml(list(read([tmp_path / "one", tmp_path / "three"]))), type=OrderTable
    )
    assert "errors" not in divided.coding.weights
