"""What a repository's own files state of its licence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from debrief.snapshots.licences import licence_at
from tests.snapshots.scenario import git, repository

MIT = (
    "MIT License\n\nPermission is hereby granted, free of charge, to any person\n"
    "obtaining a copy of this software"
)
TAG = "SPDX-License-Identifier: "


@pytest.mark.parametrize(
    ("files", "licence"),
    [
        pytest.param({"LICENSE": f"{TAG}EUPL-1.2\n\n{MIT}"}, "EUPL-1.2", id="a tag"),
        pytest.param({"COPYING": f"{TAG}mit or apache-2.0\n"}, "MIT OR Apache-2.0", id="spelling"),
        pytest.param({"LICENSE": f"{TAG}Ours-1.0\n"}, "", id="a tag that SPDX does not have"),
        pytest.param({"LICENSE-MIT": MIT, "package.json": "{"}, "MIT", id="a file's name"),
        pytest.param({"LICENSE.Apache-2.0.txt": "x"}, "Apache-2.0", id="a name with an ending"),
        pytest.param({"LICENSES/MIT.txt": MIT, "a.py": ""}, "MIT", id="REUSE"),
        pytest.param({"UNLICENSE": "x"}, "Unlicense", id="a licence of its own file"),
        pytest.param(
            {"LICENSE-MIT": "", "LICENSE-APACHE": ""}, "", id="one name that says nothing"
        ),
        pytest.param({"LICENSES/MIT.txt": "", "LICENSES/0BSD.txt": ""}, "", id="two names"),
        pytest.param(
            {"LICENSE": MIT, "LICENSE.md": MIT}, "", id="words alone are not guessed from"
        ),
        pytest.param({"LICENSE/MIT.txt": MIT}, "", id="a folder of a file's name"),
        pytest.param({"pyproject.toml": '[project]\nlicense = "MIT"\n'}, "MIT", id="pyproject"),
        pytest.param(
            {"pyproject.toml": '[project]\nlicense = {text = "ISC"}\n'}, "ISC", id="a table"
        ),
        pytest.param(
            {"Cargo.toml": '[package]\nlicense = "MIT/Apache-2.0"\n', "LICENSE-MIT": MIT},
            "MIT OR Apache-2.0",
            id="a manifest before a name",
        ),
        pytest.param({"package.json": json.dumps({"license": "ISC"})}, "ISC", id="package"),
        pytest.param({"package.json": json.dumps({"license": "UNLICENSED"})}, "", id="none"),
        pytest.param({"package.json": json.dumps({"license": ["a"]})}, "", id="a list"),
        pytest.param(
            {"package.json": '{"license": "MIT"}', "LICENSE": f"{TAG}GPL-3.0-only\n"},
            "",
            id="two that differ",
        ),
        pytest.param(
            {"package.json": '{"license": "MIT"}', "LICENSE": f"{TAG}MIT\n"}, "MIT", id="two alike"
        ),
        pytest.param({"README.md": f"{TAG}MIT"}, "", id="no licence file"),
    ],
)
def test_a_repositorys_licence_is_what_its_files_state(
    tmp_path: Path, files: dict[str, str], licence: str
) -> None:
    place = repository(tmp_path / "shop", files)
    assert licence_at(place, git(place, "rev-parse", "HEAD")) == licence


def test_what_is_no_repository_states_none(tmp_path: Path) -> None:
    assert licence_at(tmp_path, "HEAD") == ""
