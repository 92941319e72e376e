"""A push to the Hub: shown first, refused for a reason, whole or not at all, and repeatable."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.lake import Lake
from debrief.sessions.model import Session
from tests.http_server import LoopbackServer, Reply, Request
from tests.training.lakes import TASK, lake_of, stored
from tests.training.publishing.test_publish import lake, team
from tests.training.scenario import FINGERPRINT, session

__all__ = ["lake"]
NAME = "team/sets"
COMMIT = f"/api/datasets/{NAME}/commit/main"


class Hub:
    """What the Hub keeps of one dataset; the first commits may be refused."""

    def __init__(self, refusals: int = 0) -> None:
        self.refusals = refusals
        self.files: dict[str, bytes] = {}
        self.url = ""
        self.created: list[dict[str, object]] = []
        self.tokens: set[str | None] = set()

    def answer(self, request: Request) -> Reply:
        """Answer as the Hub's API does."""
        self.tokens.add(request.headers.get("Authorization"))
        path = request.path.partition("?")[0]
        if path == "/api/repos/create":
            self.created.append(json.loads(request.body))
            return _json({"url": f"{self.url}/datasets/{NAME}"})
        if path.endswith("/preupload/main"):
            asked = json.loads(request.body)["files"]
            told = [
                {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                for one in asked
            ]
            return _json({"files": told})
        if path == COMMIT and self.refusals:
            self.refusals -= 1
            return _json({"error": "the dataset is being looked at"}, 403)
        if path == COMMIT:
            for line in map(json.loads, request.body.splitlines()):
                value = line["value"]
                if line["key"] == "file":
                    self.files[value["path"]] = base64.b64decode(value["content"])
                elif line["key"] == "deletedFile":
                    del self.files[value["path"]]
            oid = "1" * 40
            return _json(
                {"commitUrl": f"{self.url}/datasets/{NAME}/commit/{oid}", "commitOid": oid}
            )
        if "/tree/" in path:
            return _json(
                [
                    {"type": "file", "path": name, "size": len(data), "oid": "1" * 40}
                    for name, data in self.files.items()
                ]
            )
        return _json({"id": NAME, "sha": "1" * 40, "siblings": [], "private": True, "tags": []})


def _json(value: object, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


def export(lake: Lake, folder: Path, hub: str, *arguments: str) -> tuple[int, str]:
    """Run the command as a person does who has a token of the Hub."""
    command = [sys.executable, "-c", "from debrief.cli.app import app; app()", "export"]
    home = folder.parent / "home"
    done = subprocess.run(
        [*command, "--lake", lake.url, "--to", str(folder), *arguments],
        env={
            **{"HOME": str(home), "HF_HOME": str(home), "HF_ENDPOINT": hub, "NO_PROXY": "*"},
            **{"HF_TOKEN": "hf_of_a_person", "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


LICENSED = ("--form", "trl", "--one-file", "--licence", "Apache-2.0", "--push", NAME)


def test_a_push_is_shown_first_then_sent_whole_and_repeated_after_a_refusal(
    lake: Lake, tmp_path: Path
) -> None:
    from datasets import load_dataset

    hub, folder = Hub(refusals=1), tmp_path / "out"
    with LoopbackServer(hub.answer) as server:
        hub.url = server.url
        code, said = export(lake, folder, server.url, *LICENSED)
        assert (code, hub.created) == (0, [])
        assert "train.jsonl" in said
        assert "Nothing was sent: add --yes." in said
        (folder / "notes.txt").write_text("mine")
        code, said = export(lake, folder, server.url, *LICENSED, "--yes")
        assert (code, hub.files) == (1, {})
        assert f"push to {NAME}: was refused" in said
        assert "Nothing of it is seen there. Repeat the command" in said
        code, said = export(lake, folder, server.url, *LICENSED, "--yes")
        assert code == 0, said
        assert f"{server.url}/datasets/{NAME}" in said
    assert hub.tokens - {None} == {"Bearer hf_of_a_person"}
    assert {(one["type"], one["visibility"]) for one in hub.created} == {("dataset", "private")}
    assert "notes.txt" not in hub.files, "only what was exported goes"
    there = tmp_path / "there"
    for name, data in hub.files.items():
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_bytes(data)
    page = (there / "README.md").read_text()
    assert page.startswith("---\nlicense: apache-2.0\n")
    assert "size_categories:\n- n<1K\n" in page
    loaded = load_dataset(str(there), cache_dir=str(tmp_path / "cache"))
    assert sum(loaded[side].num_rows for side in loaded) == len(team())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--push", NAME), "refused without a licence"),
        (("--yes",), "is of --push"),
        (("--push", "no/such/name", "--licence", "mit", "--yes"), "Repo id must be"),
    ],
)
def test_a_push_that_makes_no_sense_is_refused(
    lake: Lake, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    command = ["export", "--lake", lake.url, "--to", str(tmp_path / "out"), *arguments]
    done = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    assert done.exit_code == 1
    assert said in done.output


def test_redactions_that_nobody_has_decided_on_stay_here(tmp_path: Path) -> None:
    unsure: Session = replace(session("s1"), unsure_redactions=1)
    lake = lake_of(tmp_path / "lake", [unsure])
    stored(lake, eval_share=0.0, allow_unsure_redactions=True)
    command = ["export", "--lake", lake.url, "--to", str(tmp_path / "out"), *LICENSED, "--yes"]
    done = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    assert done.exit_code == 1
    assert f"{TASK} {FINGERPRINT}: 1 lines are of sessions with redactions" in done.output
    assert not (tmp_path / "out").exists()
