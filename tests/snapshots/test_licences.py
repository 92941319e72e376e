from __future__ import annotations

import json
from pathlib import Path

import pytest

from debrief.snapshots.captures import find_captures
from debrief.snapshots.rows import licence_at, licence_of_text, metadata_row, snapshot_row
from tests.snapshots.scenario import git, head, repository

MIT = (
    "Copyright (c) 2026 Ann\n\nPermission is hereby granted, free of charge, to any person\n"
    "obtaining a copy of this software"
)
BSD = "Redistribution and use in source and binary forms, with or without modification,"


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        pytest.param(MIT, "MIT", id="MIT without its name"),
        pytest.param("Apache License\n    Version 2.0, January 2004", "Apache-2.0", id="Apache"),
        pytest.param("GNU GENERAL PUBLIC LICENSE\n  Version 3, 29 June", "GPL-3.0", id="GPL"),
        pytest.param(
            "GNU LESSER GENERAL PUBLIC LICENSE\nVersion 3\n version 3 of the GNU General Public "
            "License",
            "LGPL-3.0",
            id="LGPL, which names the GPL as well",
        ),
        pytest.param(BSD, "BSD-2-Clause", id="two clauses"),
        pytest.param(f"{BSD} to endorse or promote products", "BSD-3-Clause", id="three clauses"),
        pytest.param("SPDX-License-Identifier: EUPL-1.2\n", "EUPL-1.2", id="a tag"),
        pytest.param("All rights reserved.", "", id="no licence"),
        pytest.param("", "", id="empty"),
    ],
)
def test_a_licence_file_is_known_by_how_it_begins(text: str, licence: str) -> None:
    assert licence_of_text(text) == licence


@pytest.mark.parametrize(
    ("files", "licence"),
    [
        pytest.param({"LICENSE": MIT}, "MIT", id="a file"),
        pytest.param({"LICENSE-MIT": MIT, "package.json": "{"}, "MIT", id="beside a broken one"),
        pytest.param({"pyproject.toml": '[project]\nlicense = "MIT"\n'}, "MIT", id="pyproject"),
        pytest.param(
            {"Cargo.toml": '[package]\nlicense = "MIT OR Apache-2.0"\n'},
            "MIT OR Apache-2.0",
            id="cargo",
        ),
        pytest.param({"package.json": json.dumps({"license": "ISC"})}, "ISC", id="package"),
        pytest.param({"package.json": json.dumps({"license": ["a"]})}, "", id="a list"),
        pytest.param({"LICENSE": "Ours."}, "", id="nothing known"),
        pytest.param({"README.md": MIT}, "", id="no licence file"),
    ],
)
def test_a_repository_s_licence_is_what_its_files_say(
    tmp_path: Path, files: dict[str, str], licence: str
) -> None:
    place = repository(tmp_path / "shop", files)
    assert licence_at(place, git(place, "rev-parse", "HEAD")) == licence


def test_a_folder_that_is_no_repository_has_no_licence(tmp_path: Path) -> None:
    assert licence_at(tmp_path, "HEAD") == ""


def test_a_row_names_the_commit_and_licence_and_neither_where_the_folder_is_gone(
    tmp_path: Path,
) -> None:
    place = repository(tmp_path / "shop", {"LICENSE": MIT})
    captures = find_captures([])
    expected = {place: (git(place, "rev-parse", "HEAD"), "MIT"), tmp_path / "gone": ("", "")}
    for folder, facts in expected.items():
        session = head(cwd=str(folder), branch="main")
        row = metadata_row(session, snapshot_row(session, captures, str), captures)
        assert (row.base_commit, row.licence) == facts
