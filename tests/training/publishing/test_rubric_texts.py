from __future__ import annotations

import json
from pathlib import Path

from msgspec.structs import replace

from debrief.rubrics.model import Rubric
from debrief.training.publishing.one_set import Wanted
from debrief.training.publishing.publish import publish
from tests.training.lakes import lake_of, stored
from tests.training.publishing.test_forms import RUBRICS
from tests.training.publishing.test_publish import team

KEY = "AKIA" + "Q7ZK4MNB2XVH6TRD"


def test_a_rubric_whose_text_holds_a_secret_is_not_published(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", team()[:2])
    stored(lake)
    (rubric,) = RUBRICS.values()
    texts = [rubric.description, f"It says export AWS_ACCESS_KEY_ID={KEY}."]
    found = []
    for number, text in enumerate(texts):
        one = replace(rubric, description=text)
        lake.write("rubrics", "excellence", [one], Rubric)
        publish(lake, str(tmp_path / f"out{number}"), Wanted(form="reward"))
        lines = [
            json.loads(line)
            for path in sorted((tmp_path / f"out{number}").rglob("*.jsonl"))
            for line in path.read_text().splitlines()
        ]
        found.append({line["rubric"] for line in lines})
    assert found == [{rubric.description}, {""}]
