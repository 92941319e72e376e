"""The eval fingerprint, from ``debrief eval`` to the training sample."""

from __future__ import annotations

import json

from debrief.judging.model import load_judges
from debrief.snapshots.fingerprint import compute_eval_fingerprint
from tests.cli.shop import JUDGES, Shop, server, shop
from tests.judging.repository import PLAN_ID, write

__all__ = ["server", "shop"]


def computed(shop: Shop) -> str:
    return str(json.loads(shop.eval("--json").stdout)["eval_fingerprint"])


def test_eval_command_computes_eval_fingerprint(shop: Shop) -> None:
    folder = shop.root / ".debrief/judges"
    first = computed(shop)
    assert first == compute_eval_fingerprint(load_judges(folder))
    write(folder, {"tidiness.md": JUDGES["tidiness.md"].replace("weight: 3", "weight: 2")})
    assert computed(shop) == compute_eval_fingerprint(load_judges(folder)) != first


def test_eval_command_passes_eval_fingerprint_to_exporter(shop: Shop) -> None:
    capture = shop.root / ".debrief/sessions" / PLAN_ID
    write(capture, {"metadata.json": '{"tool": "droid"}', "prompts/main.md": "Be kind."})
    done = shop.eval()
    assert done.exit_code == 0, done.output
    folder = shop.root / ".debrief/training_data" / PLAN_ID
    metadata = json.loads((folder / "metadata.json").read_bytes())
    assert metadata["eval_fingerprint"] == computed(shop)
