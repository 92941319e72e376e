"""A damaged file of labels: pages show what is left, say so, and lose nothing."""

from __future__ import annotations

from pathlib import Path

from debrief.lake import DAMAGED_SUFFIX, Lake
from debrief.outcomes.giving import given_labels
from tests.view.shown import OWN, fill, served, session_of, settings_of, words


def test_pages_go_on_with_the_labels_that_can_be_read(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    lake = Lake(settings.lake)
    fill(lake, [(session_of("one"), 0.3), (session_of("two"), 0.4)])
    with served(settings) as client:

        def say(session: str, value: str) -> int:
            path = f"/sessions/{session}/labels"
            return client.post(path, data={"say": value}, headers=OWN).status_code

        assert say("one", "good") == 303
        (path,) = Path(lake.url, "labels").rglob("*.jsonl.zst")
        cut = path.read_bytes()[:-20]
        path.write_bytes(cut)
        for address in ("/", "/sessions", "/sessions/one", "/labels/next"):
            answer = client.get(address)
            assert answer.status_code == 200, answer.text
        page = words(client.get("/sessions/one").text)
        assert f"{path} is damaged (its end is missing): 1 rows can be read and are used" in page
        assert say("two", "bad") == 303
        assert "is damaged" not in words(client.get("/sessions/two").text)
    assert {label.session_id: label.value for label in given_labels(lake)} == {
        "one": "good",
        "two": "bad",
    }
    (kept,) = path.parent.glob(f"*{DAMAGED_SUFFIX}")
    assert kept.read_bytes() == cut
