"""Prompts in the pages: names, texts, who ran with them, and what changed from one to the next."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from msgspec.structs import replace

from debrief.lake import Lake
from debrief.settings import Settings
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow, SubagentPrompt
from debrief.view.prompts import prompt_diff
from tests.view.shown import (
    MONDAY,
    OWN,
    event_of,
    fill,
    served,
    session_of,
    settings_of,
    signals_of,
    words,
)

HOSTILE = "</pre><script>alert(1)</script>\x1b[31m"
TEXTS = {
    "aaaaaaaa": "# How we work\n\nRun the tests before you push.\n",
    "bbbbbbbb": "# How we work\n\nRun all tests before you push.\nBe brief.\n",
    "cccccccc": f"# {HOSTILE}\n\n" + "x" * 1_000_000 + "\n",
}


def shop(folder: Path) -> Settings:
    """Six sessions, two on each prompt, a day each; the first was corrected."""
    settings = settings_of(folder)
    lake = Lake(settings.lake)
    keys = sorted([*TEXTS, *TEXTS])
    sessions = [
        session_of(f"s{day}", started=MONDAY + timedelta(days=day)) for day in range(len(keys))
    ]
    marks = [0.4, 0.5, 0.7, 0.8, 0.2, 0.3]
    corrected = signals_of(sessions[0], event_of("correction"))
    fill(lake, list(zip(sessions, marks, strict=True)), {"s0": corrected})
    week = f"{MONDAY:%Y-%m-%d}"
    known = [
        replace(row, prompt_fingerprint=key)
        for row, key in zip(
            lake.read("session_metadata", week, SessionMetadataRow), keys, strict=True
        )
    ]
    lake.write("session_metadata", week, known, SessionMetadataRow)
    prompts = [
        PromptSnapshotRow(
            session_id=session.id,
            origin="recorded",
            main=TEXTS[key],
            subagents=(SubagentPrompt("tester", "Test it."),) if key == "bbbbbbbb" else (),
            prompt_fingerprint=key,
            note="the transcript",
        )
        for session, key in zip(sessions, keys, strict=True)
    ]
    lake.write("prompt_snapshots", week, prompts, PromptSnapshotRow)
    return settings


def test_each_prompt_has_a_name_its_days_and_sessions_and_no_interval_under_five(
    tmp_path: Path,
) -> None:
    with served(shop(tmp_path)) as client:
        page = client.get("/prompts").text
    shown = words(page)
    for text in (
        "How we work · aaaaaaaa",
        "How we work · bbbbbbbb",
        "2026-11-04 to 2026-11-05 2 2 of 2 too few for a share",
    ):
        assert text in shown
    assert '<a href="/prompts/aaaaaaaa/diff/bbbbbbbb">from the one before</a>' in page
    assert '<a href="/sessions?fingerprint=bbbbbbbb">2</a>' in page
    assert page.index("cccccccc") < page.index("bbbbbbbb") < page.index("aaaaaaaa")


def test_a_prompts_page_has_all_its_texts_and_its_sessions_to_look_at(tmp_path: Path) -> None:
    with served(shop(tmp_path)) as client:
        page = client.get("/prompts/bbbbbbbb").text
        short = client.get("/prompts/aaaaaaaa").text
    shown = words(page)
    for text in (
        "in force 2026-11-04 to 2026-11-05 · 2 sessions · recorded: the transcript",
        "Complete: 2 of 2 too few for a share",
        "Run all tests before you push.",
        "Subagent tester 1 line, 8 characters Test it.",
        "What changed since the one before",
    ):
        assert text in shown
    assert "/sessions/s2" not in page
    assert "/sessions/s0" in short
    assert "/sessions/s1" not in short, "nothing happened in it"


def test_from_five_verdicts_on_a_share_has_an_interval(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill(Lake(settings.lake), [(session_of(f"s{n}"), 0.9 if n else 0.2) for n in range(5)])
    with served(settings) as client:
        assert "0.80 (0.38 to 0.96) of 5 with a verdict" in words(client.get("/prompts").text)


def test_a_person_gives_a_prompt_a_name_and_takes_it_back(tmp_path: Path) -> None:
    with served(shop(tmp_path)) as client:
        for name, expected in (
            ("Strict & kind", "Strict &amp; kind"),
            ("", "How we work · aaaaaaaa"),
        ):
            answer = client.post("/prompts/aaaaaaaa/name", data={"name": name}, headers=OWN)
            assert (answer.status_code, answer.headers["location"]) == (303, "/prompts/aaaaaaaa")
            assert f">{expected}</a>" in client.get("/prompts").text
        too_long = client.post("/prompts/aaaaaaaa/name", data={"name": "x" * 61}, headers=OWN)
        assert (too_long.status_code, "more than 60 characters" in too_long.text) == (400, True)
        nowhere = client.post("/prompts/dddddddd/name", data={"name": "x"}, headers=OWN)
        assert nowhere.status_code == 404


def test_the_difference_marks_lines_words_and_files(tmp_path: Path) -> None:
    with served(shop(tmp_path)) as client:
        chosen = client.get("/prompts/aaaaaaaa/diff", params={"to": "bbbbbbbb"})
        assert chosen.headers["location"] == "/prompts/aaaaaaaa/diff/bbbbbbbb"
        page = client.get("/prompts/aaaaaaaa/diff/bbbbbbbb").text
        assert "The texts are the same." in client.get("/prompts/aaaaaaaa/diff/aaaaaaaa").text
        assert client.get("/prompts/aaaaaaaa/diff/dddddddd").status_code == 404
    assert "Run <mark>the </mark>tests before you push." in page
    assert "Run <mark>all </mark>tests before you push." in page
    shown = words(page)
    assert "Main prompt 2 lines added, 1 removed" in shown
    assert "Subagent tester 1 line added, 0 removed" in shown


def test_a_hostile_prompt_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    with served(shop(tmp_path)) as client:
        for address in ("/prompts", "/prompts/cccccccc", "/prompts/bbbbbbbb/diff/cccccccc"):
            answer = client.get(address)
            assert answer.status_code == 200
            assert "<script>alert" not in answer.text
            assert "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;\ufffd[31m" in answer.text


def test_far_lines_are_left_out_of_a_difference() -> None:
    old = [f"line {number}" for number in range(40)]
    new = [*old[:2], "new", *old[2:38], "last", *old[38:]]
    lines = list(prompt_diff(old, new))
    assert [line.kind for line in lines].count("gap") == 1
    assert [(line.kind, line.new) for line in lines if line.kind == "added"] == [
        ("added", 3), ("added", 40),
    ]  # fmt: skip
    assert len(lines) < 20


def test_of_a_line_as_long_as_a_page_no_single_words_are_marked() -> None:
    def removed(words: int) -> tuple[str, ...]:
        old, new = (" ".join(["word"] * words + [end]) for end in ("old", "new"))
        return tuple(text for text, _ in next(prompt_diff([old], [new])).parts)

    assert removed(900) == ("word " * 900, "old")
    assert removed(1_100) == ("word " * 1_100 + "old",)
