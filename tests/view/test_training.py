"""The pages of training sets: what each holds and leaves out, and its lines as chat with weights."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html import unescape
from pathlib import Path

from debrief.lake import Lake
from debrief.redaction.gate import digest_of_token
from debrief.sessions.model import Message, Session
from debrief.training.model import training_path
from tests.redaction.synthetic import ALNUM, Maker
from tests.training.lakes import TASK, add, lake_of, stored
from tests.training.scenario import FINGERPRINT, MONDAY, call, said, says, session, turn
from tests.view.every_kind import page_of
from tests.view.shown import OWN, served, settings_of
from tests.view.test_session import EVIL, LIVE

ADDRESS = f"/training/{TASK}/{FINGERPRINT}"


def fill_training(folder: Path, *sessions: Session, **quality: float) -> Lake:
    lake = lake_of(folder, sessions, quality)
    stored(lake)
    return lake


def corrected() -> Session:
    return session(
        "corrected",
        turn("Fix the tax.", says("Looking.", call(result="tax.py")), says("Done: 19 %.")),
        turn("No, that's wrong. Undo it.", says("Undone, sorry."), number=2),
        started=MONDAY,
    )


def shown(page: str) -> str:
    """What a page says, without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_the_list_names_each_set_with_its_samples_and_verdicts(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    lake = lake_of(Path(settings.lake), [])
    add(lake, [corrected(), session("poor", started=MONDAY)], verdict=said("complete_unverified"))
    stored(lake)
    with served(settings) as client:
        page = page_of(client, "/training")
        assert f'href="{ADDRESS}"' in page
        assert "2 samples of" in shown(page)
        assert "2 complete, not verified" in shown(page)
        own = shown(page_of(client, ADDRESS))
        asked = "Verdicts that were asked for: complete, verified; complete, not verified"
        assert asked in own
        assert "complete, not verified · its session" in own


def test_a_line_is_shown_as_chat_with_what_is_not_trained_on_and_why(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    lake = fill_training(
        Path(settings.lake), corrected(), session("next", started=MONDAY + timedelta(days=1))
    )
    with served(settings) as client:
        page = page_of(client, ADDRESS)
        told = shown(page)
        raw = client.get(f"{ADDRESS}?raw=1")
        second = page_of(client, f"{ADDRESS}?line=2")
    assert "Line 1 of 2" in told
    assert re.search(r"user turn 1 (?:.* )?Fix the tax\.", told)
    assert "assistant weight 0 the person corrected it" in told
    assert "assistant trained on Undone, sorry." in told
    assert '<a class="note" href="/sessions/corrected#turn-2">turn 2</a>' in page
    assert "tax.py" in told
    assert f'href="{ADDRESS}?line=2#line-2" rel="next"' in page
    data = lake.read_bytes(f"training/{TASK}/{FINGERPRINT}.jsonl") or b""
    assert raw.json() == json.loads(data.splitlines()[0])
    assert 'id="line-2"' in second
    assert "Fix the retry loop of next" in shown(second)


def test_a_set_without_samples_says_each_reason_once(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    lake = lake_of(Path(settings.lake), [])
    unfinished = [session(name, started=MONDAY) for name in ("one", "two")]
    add(lake, unfinished, verdict=said("partial"))
    add(lake, [session("three", started=MONDAY + timedelta(days=7))], verdict=said("failed"))
    stored(lake)
    with served(settings) as client:
        page = shown(page_of(client, "/training"))
    assert "1 set without samples" in page
    assert f"{FINGERPRINT} · its verdict: partial (2), failed (1)" in page


def test_what_was_left_out_is_named_with_its_reason_and_the_card_is_there(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    lake = lake_of(
        Path(settings.lake), [corrected(), session("poor", started=MONDAY)], {"poor": 0.2}
    )
    stored(lake, min_overall_quality=0.5)
    with served(settings) as client:
        page = page_of(client, ADDRESS)
    assert "Left out: 1 of 2 sessions" in shown(page)
    assert '<a href="/sessions/poor">poor</a>' in page
    assert "0.5" in shown(page)
    assert "What is in it" in shown(page)


def test_a_long_line_is_shown_in_stretches(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    steps = [says(f"Step {n}.", call(arguments={"command": f"make {n}"})) for n in range(120)]
    fill_training(Path(settings.lake), session("long", turn("Go.", *steps, says("All done."))))
    with served(settings) as client:
        page = page_of(client, ADDRESS)
        further = re.search(r'href="([^"]+start=[^"]+)"', page)
        assert further
        rest = page_of(client, unescape(further[1]))
    assert "All done." not in page
    assert "All done." in rest
    assert re.findall(r"Step (\d+)\.", page + rest) == [str(n) for n in range(120)]


def test_a_hostile_line_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    evil = Message(
        id="m", model="m", text=EVIL, thinking=EVIL, calls=(call("Bash", {EVIL: EVIL}, EVIL),)
    )
    long = says("y" * 1_000_000)
    fill_training(Path(settings.lake), session("evil", turn(EVIL, evil, long)))
    with served(settings) as client:
        page = page_of(client, ADDRESS)
    assert not LIVE.search(page)
    assert not re.search("[\x00\x07\x1b\u202e\u2066]", page)
    assert "&lt;script&gt;" in page
    assert len(page) < 200_000


def test_what_is_no_set_and_no_line_is_said_so(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill_training(Path(settings.lake), corrected())
    with served(settings) as client:
        assert client.get(f"{ADDRESS}?line=9").status_code == 400
        for address in ("/training/none/x-y", "/training/..%2f/x"):
            assert client.get(address).status_code == 404, address


def test_what_is_held_back_is_shown_and_one_key_releases_or_removes_it(tmp_path: Path) -> None:
    settings, make = settings_of(tmp_path), Maker(61)
    first, second = make.of(ALNUM, 30), make.of(ALNUM, 30)
    sessions = [
        session("one", turn(f"It printed {first} again.", says("Done.")), started=MONDAY),
        session("two", turn(f"It printed {second}.", says("Done.")), started=MONDAY),
        session("three", started=MONDAY),
    ]
    lake = fill_training(Path(settings.lake), *sessions)
    with served(settings) as client:
        assert "2 held back" in shown(page_of(client, "/training"))
        page = page_of(client, "/held")
        assert f"<mark>{first}</mark>" in page
        assert 'data-label-key="r"' in page
        assert 'data-label-key="x"' in page
        for token, verdict in ((first, "released"), (second, "removed")):
            form = {"digest": digest_of_token(token), "verdict": verdict}
            assert client.post("/held", data=form, headers=OWN).status_code in (200, 303)
        assert (
            client.post(
                "/held", data={"digest": "0", "verdict": "released"}, headers=OWN
            ).status_code
            == 400
        )
        assert "Nothing is held back" in page_of(client, "/held")
    stored(lake)
    lines = lake.read_bytes(training_path(TASK, FINGERPRINT)) or b""
    assert first.encode() in lines
    assert second.encode() not in lines
