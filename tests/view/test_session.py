"""A session's page: one renderer for each kind of step, evidence that leads there and back, parts
that load one after the other, and sessions made to do harm."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.outcomes.store import LABELS, Label
from debrief.scoring.llm_review import (
    ClaimReview,
    FrictionReview,
    Incident,
    PersonWords,
    RequestReview,
    SessionReview,
    TrainOn,
)
from debrief.scoring.model import DimensionScore, SessionScores
from debrief.scoring.verdict import SessionVerdict
from debrief.sessions.model import (
    ContextText,
    Evidence,
    Intervention,
    Message,
    Session,
    Subagent,
    ToolCall,
    Turn,
)
from debrief.signals.schema import Change, CheckSignal, Event
from debrief.training.manifest import write_manifest
from debrief.training.model import LINES, LineRow
from debrief.view.links import session_path
from debrief.view.marks import Back, EvidenceMark, find, marked
from tests.view.every_kind import SNAPSHOT, WEEK, call_of, fill_every_kind, page_of
from tests.view.shown import (
    event_of,
    fill,
    scores_of,
    served,
    session_of,
    settings_of,
    signals_of,
    words,
)

EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><b onmouseover=x>"
    "\x1b[2J\x1b]0;gone\x07\x00\u202egnp.exe\u2066\u2028 {{ 7*7 }} {% raw %}[x](javascript:alert(1))"
)
EVIL_ID = "<b onid=x>/../x y?#"
LIVE = re.compile(
    r"<(?:script|img|b on)[\s>]|on\w+=x>|href=\"javascript:|49 \{%|[\x00\x07\x1b\u202e\u2066\u2028]"
)
LISTS = (
    *("/", "/sessions", "/sessions?q=%3Cscript%3E%00", "/weeks", f"/weeks/{WEEK}", "/prompts"),
    *("/prompts/0aaad855", "/labels", "/labels/next", "/training", "/rubrics"),
)


def test_the_page_of_a_session_with_one_of_everything_is_as_it_was_looked_at(
    tmp_path: Path,
) -> None:
    """Read the change, then ``python -m tests.view.every_kind`` writes the page anew."""
    settings = settings_of(tmp_path)
    fill_every_kind(Lake(settings.lake))
    with served(settings) as client:
        assert page_of(client, "/sessions/every-kind") == SNAPSHOT.read_text()


def test_each_reason_leads_to_a_mark_and_each_mark_back_to_its_reasons(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill_every_kind(Lake(settings.lake))
    with served(settings) as client:
        page = page_of(client, "/sessions/every-kind")
    ids = re.findall(r'id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    to = re.findall(r'href="#((?:mark|reason|turn)-[^"]+)"', page)
    assert {name.partition("-")[0] for name in to} == {"mark", "reason", "turn"}
    assert set(to) <= set(ids)
    marks = [name for name in ids if name.startswith("mark-")]
    assert marks == [f"mark-{number}" for number in range(1, len(marks) + 1)]


def test_a_fork_leads_to_its_relatives_and_they_to_it(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    forks = [session_of(name, f"Go {name}.", relative_of="root") for name in ("left", "right")]
    stray = session_of("stray", "Go on.", relative_of="elsewhere")
    fill(Lake(settings.lake), [(session, 0.5) for session in (session_of("root"), *forks, stray)])
    with served(settings) as client:
        pages = {
            name: page_of(client, f"/sessions/{name}")
            for name in ("root", "left", "right", "stray")
        }

    def leads(page: str, other: str, words: str) -> bool:
        return bool(re.search(rf'<a href="/sessions/{other}"[^>]*>{words}</a>', pages[page]))

    assert leads("root", "left", "a fork of this session")
    assert leads("root", "right", "a fork of this session")
    assert leads("left", "root", "the session that this is a fork of")
    assert leads("left", "right", "another fork of the same session")
    assert "a fork of elsewhere, which is not in this lake" in pages["stray"]
    assert "a fork of" not in pages["root"].replace("a fork of this session", "")


def test_a_failed_check_stops_a_review_that_says_complete(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill_every_kind(Lake(settings.lake))
    with served(settings) as client:
        said = words(page_of(client, "/sessions/every-kind"))
        listed = words(client.get("/sessions").text)
    assert "partial reviewed by openai/reader Says complete; the last test failed" in said
    assert "review by claude-code failed" in said, "the other review stands beside it"
    assert "partial reviewed by openai/reader" in listed
    assert "Says complete; the last test failed" in listed


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ({"value": "good", "source": "person", "rater": "ada"}, "complete you said so"),
        ({"value": "bad", "source": "person", "rater": "bo"}, "failed bo said so"),
        ({"value": "yes", "source": "pull-request"}, "merged"),
        ({"value": "no", "source": "revert"}, "reverted"),
    ],
)
def test_a_person_and_an_outcome_come_before_a_review(
    tmp_path: Path, label: dict[str, Any], shown: str
) -> None:
    settings = settings_of(tmp_path)
    fill_every_kind(Lake(settings.lake))
    row = Label(session_id="every-kind", name="success", **label)
    Lake(settings.lake).write(LABELS, label["source"], [row], Label)
    with served(settings) as client:
        said = words(page_of(client, "/sessions/every-kind"))
        listed = words(client.get("/sessions?basis=review").text)
    assert f"Verdict, signals and reasons {said.split('reasons ')[1].split()[0]}" in said
    assert f"{shown} openai/reader: confidence high, quality 0.40, effort 0.70" in said
    assert "Says complete" not in said, "nobody says so but the review"
    assert "review by openai/reader partial" in said
    assert "Fix the cart, it adds up wrong." not in listed


def test_a_session_that_nobody_reviewed_has_signals_and_no_number(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    session = session_of("one")
    told = signals_of(
        session, event_of("correction", 2), lines_kept=3, end=Evidence(1, "", "Done.")
    )
    fill(Lake(settings.lake), [(session, None)], {"one": told})
    with served(settings) as client:
        page = page_of(client, "/sessions/one")
    said = words(page)
    assert "not reviewed To look at Corrected twice (turns 1, 2: “no, the tax”)" in said
    assert "passed pytest passed: 3 tests ran (turn 1: 3 passed )" in said
    assert "Ends with an answer (turn 1: “Done.”)" in said
    assert "Lines kept: 3" in said
    for word in ("Dimensions", "quality", "mean", "percent", "best", "Judges"):
        assert word not in said


@pytest.mark.parametrize(
    ("html", "quote", "shown"),
    [
        ("<p>a &lt; b</p>", "a < b", '<mark class="evidence" id="mark-1">a &lt; b</mark>'),
        ("<p>x <b>is it</b></p>", "x is", '<mark class="evidence" id="mark-1">x </mark><b><mark'),
        ("<p>Total = a - b, total = a + b</p>", "total = a + b", ">total = a + b</mark>"),
        ("<pre>one\n  two</pre>", "ONE two", ">one\n  two</mark>"),
        ("<p>the end of it all</p>", "ls…: the end of it…", ">the end of it</mark>"),
        ('<p><a href="x">click here</a></p>', "click", 'click</mark> here</a><a class="back"'),
        ("<summary>rm x</summary><p>y</p>", "rm x", '</mark></summary><a class="back"'),
        ("<p title='secret word'>public</p>", "secret word", 'class="evidence-here" id="mark-1"'),
        ("<p>nothing</p>", "?!", 'class="evidence-here" id="mark-1"'),
    ],
)
def test_a_quotation_is_marked_where_its_words_are(html: str, quote: str, shown: str) -> None:
    mark = EvidenceMark(number=1, turn=1, quote=quote, backs=(Back("#reason-1", "<why>"),))
    found = str(marked(html, [mark]))
    assert shown in found
    assert "&lt;why&gt;</a>" in found


def test_a_quotation_is_looked_for_in_no_more_than_linear_time() -> None:
    started = time.process_time()
    assert find("a-" * 500_000, "aaaaaaa b") is None
    assert find("-" * 1_000_000 + "done", "done") == (1_000_000, 1_000_004)
    assert time.process_time() - started < 2


def hostile_session(text: str) -> Session:
    call = call_of("c1", text, {text: text, "command": text}, text, status="failed")
    messages = (
        Message(id="m", model=text, text=text, thinking=text, summary=text, calls=(call,)),
        Message(
            id="n",
            model="m",
            calls=(
                call_of("c2", "Bash", {"command": text, "description": text}, text),
                call_of("c3", "Edit", {"file_path": text, "old_string": text, "new_string": "x"}),
                call_of("c4", "Read", {"file_path": text}, text),
                call_of("c5", "Write", {"path": text}, path=text, patch=f"@@ {text}\n+{text}"),
                call_of("c6", "TodoWrite", {"todos": [{"content": text, "status": text}]}),
                call_of("c7", "Task", {"prompt": text, "description": text}, text),
                call_of("c8", "ask_user", {"question": text, "choices": [text]}, text),
                call_of("c9", "exit_plan", {"plan": text}, text),
                ToolCall(id="c10", name="Odd", input="[" * 900 + "]" * 900, result=text),
                ToolCall(id="c11", name="Odd", input=json.dumps({"a": _nested(300)}), result=None),
                ToolCall(id="c12", name="Odd", input=text, result=text),
            ),
        ),
    )
    given = (ContextText(said_by="command", text=text), ContextText(said_by="hook", text=text))
    messages = (*messages[:1], replace(messages[1], context=given))
    turn = Turn(
        number=1,
        prompt=text,
        expansion=text,
        images=1,
        compacted=True,
        messages=messages,
        interventions=(Intervention(kind="remark", text=text),),
    )
    agents = (
        Subagent(id="s", type=text, description=text, prompt=text, messages=messages, call_id="c7"),
        Subagent(id="t", type=text, description=text, prompt=text, messages=messages),
    )
    return session_of(
        EVIL_ID, title=text, cwd=text, models=(text,), turns=(turn,), subagents=agents, tool=text
    )


def _nested(depth: int) -> Any:
    inner: Any = "x"
    for _ in range(depth):
        inner = [inner]
    return inner


def hostile_review(text: str, place: Evidence) -> SessionReview:
    fields: dict[str, Any] = {"turn": 1, "call": "c2", "quote": text[:300]}
    return SessionReview(
        requests=(RequestReview(turn=1, asked=text, state="not", proof=place),),
        claims=(ClaimReview(**fields, state="contradicted", proof=place),),
        verdict="failed",
        incidents=(Incident(**fields, what=text),),
        person=(PersonWords(**fields, says="correction"),),
        frictions=(FrictionReview(**fields, what=text, instead=text),),
        train=TrainOn(what="parts", turns=((1, 99),)),
    )


def fill_hostile(lake: Lake, text: str) -> None:
    session = hostile_session(text)
    places = (
        Evidence(1, "", text[:300]),
        Evidence(1, "c2", text[:300]),
        Evidence(1, "no such call", "words of nobody"),
        Evidence(77, text[:50], text[:300]),
    )
    check = CheckSignal(
        kind="test",
        tool=text[:200],
        target=text[:200],
        worth="tests",
        passed=True,
        evidence=places[1],
    )
    told = signals_of(
        session,
        Event(kind="destructive", evidence=places),
        checks=(check,),
        change=Change(files=(text[:300],), commands=(text[:300],), commits=places),
        end=places[0],
    )
    fill(lake, [(session, 0.3)], {session.id: told})
    score = DimensionScore(dimension="tool_mastery", value=0.1, rationale=text, evidence=places)
    said = SessionVerdict(verdict="failed", basis="review", source=text, evidence=places)
    scores = scores_of(
        session,
        0.3,
        text,
        verdict=said,
        review=hostile_review(text, places[1]),
        dimension_scores=(score,),
    )
    lake.write("session_scores", WEEK, [scores], SessionScores)
    judged = JudgeEvaluation(
        session_id=EVIL_ID,
        session_digest="",
        started=session.started,
        judge=text[:200],
        weight=1.0,
        model=text[:200],
        status="ok",
        score=0.5,
        feedback=text,
        eval_fingerprint="f",
        evidence=places,
    )
    lake.write("judge_evaluations", WEEK, [judged], JudgeEvaluation)


@pytest.mark.parametrize(
    "address",
    ["", "?part=0&fragment=1", "?agent=1", "?save=1", "?at=mark-2", "?whole=turn-1-call-1"],
)
def test_a_session_that_would_do_harm_is_shown_and_not_obeyed(address: str, tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill_hostile(Lake(settings.lake), EVIL)
    with served(settings) as client:
        answer = client.get(f"{session_path(EVIL_ID)}{address}")
    assert answer.status_code == 200
    if "whole" in address:
        assert answer.headers["content-type"].startswith("text/plain")
        assert not re.search("[\x00\x07\x1b\u202e\u2066]", answer.text)
    else:
        text = answer.text.replace('<script src="/static/', "")
        assert not LIVE.search(text)
        assert "&lt;script&gt;" in text
        assert "{{ 7*7 }}" in text
        assert " style=" not in text


def test_lists_show_such_a_session_in_the_same_way_and_lead_to_it(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill_hostile(Lake(settings.lake), EVIL + "a" * 200_000)
    with served(settings) as client:
        answers = {address: client.get(address) for address in LISTS}
        assert {answer.status_code for answer in answers.values()} == {200}
        texts = {
            name: response.text.replace('<script src="/static/', "")
            for name, response in answers.items()
        }
        assert [name for name, text in texts.items() if LIVE.search(text)] == []
        links = {
            link
            for text in texts.values()
            for link in re.findall(r'href="(/sessions/[^"#?]+)', text)
        }
        assert links == {session_path(EVIL_ID)}


def test_a_megabyte_in_every_field_is_shown_in_seconds(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill_hostile(Lake(settings.lake), ("word <b>x</b> [l](javascript:1) `a` " * 30_000)[:1_000_000])
    with served(settings) as client:
        started = time.process_time()
        page = page_of(client, session_path(EVIL_ID))
    assert time.process_time() - started < 12
    assert "characters left out" in page


def test_turns_of_one_number_have_anchors_of_their_own(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    calls = (call_of("c1", "Bash", {"command": "ls"}),)
    before = Turn(number=0, prompt="", messages=(Message(id="m", model="m", calls=calls),))
    fill(Lake(settings.lake), [(session_of("twice", turns=(before, before)), 0.3)])
    with served(settings) as client:
        page = page_of(client, "/sessions/twice")
    assert re.findall(r'id="(turn[^"]+)"', page) == [
        "turn-0", "turn-0-call-1", "turn-0-2", "turn-0-2-call-1",
    ]  # fmt: skip


def test_a_megabyte_in_one_line_is_cut_with_its_evidence_left_in(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    long = f"{'x' * 500_000} needle in hay {'y' * 500_000}"
    call = call_of("c1", "Bash", {"command": "cat"}, long, status="failed")
    turns = (Turn(number=1, prompt=long, messages=(Message(id="m", model="m", calls=(call,)),)),)
    session = session_of("long", turns=turns)
    fill(Lake(settings.lake), [(session, 0.3)])
    place = Evidence(1, "c1", "needle in hay")
    verdict = DimensionScore(dimension="tool_mastery", value=0.1, rationale="It", evidence=(place,))
    rows = [scores_of(session, 0.3, dimension_scores=(verdict,))]
    Lake(settings.lake).write("session_scores", WEEK, rows, SessionScores)
    with served(settings) as client:
        page = page_of(client, "/sessions/long")
        whole = client.get("/sessions/long?whole=turn-1-call-1").text
        saved = client.get("/sessions/long?save=1").text
    assert len(page) < 60_000
    assert len(saved) < 300_000
    assert re.search(r'<mark class="evidence" id="mark-\d">needle in hay</mark>', page)
    assert "characters left out" in page
    assert long in whole


def long_session(turns: int, messages: int) -> Session:
    def message(turn: int, place: int) -> Message:
        name = f"{turn}-{place}"
        call = call_of(f"c{name}", "Bash", {"command": f"make part-{name}"}, f"built {name}")
        return Message(id=f"m{name}", model="m", text=f"Step {name}.", calls=(call,))

    return session_of(
        "long",
        turns=tuple(
            Turn(
                number=turn,
                prompt=f"Go on with {turn}.",
                messages=tuple(message(turn, place) for place in range(messages)),
            )
            for turn in range(1, turns + 1)
        ),
    )


@pytest.mark.parametrize(("turns", "messages"), [(60, 5), (1, 400), (3, 120)])
def test_a_long_session_comes_in_parts_that_leave_nothing_out(
    turns: int, messages: int, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path)
    fill(Lake(settings.lake), [(long_session(turns, messages), 0.3)])
    with served(settings) as client:
        page = client.get("/sessions/long").text
        assert len(page) < 200_000
        parts, address = [page], re.search(r'data-fragment="([^"]+)"', page)
        while address:
            parts.append(client.get(address[1].replace("&amp;", "&")).text)
            address = re.search(r'data-fragment="([^"]+)"', parts[-1])
        calls = re.findall(r"make part-(\d+-\d+)</span>", "".join(parts))
        wanted = [f"{t}-{m}" for t in range(1, turns + 1) for m in range(messages)]
        assert calls == wanted
        assert len(re.findall(r'id="turn-\d+"', "".join(parts))) == turns
        last = f"turn-{turns}-call-{messages}"
        far = client.get(f"/sessions/long?at={last}").text
        assert f'id="{last}"' in far
        assert "Earlier: " in far
        without_script = re.search(r'class="more"><a href="([^"]+)"', page)
        assert without_script
        assert client.get(without_script[1]).status_code == 200


def test_evidence_far_away_is_linked_in_its_part_and_in_a_subagents_work(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    session = long_session(60, 5)
    inner = Message(id="i", model="m", calls=(call_of("inner", "Bash", {"command": "rm"}, "no"),))
    padding = tuple(Message(id=f"p{n}", model="m", text=f"Padding {n}.") for n in range(90))
    agent = Subagent(id="s", call_id="c60-4", messages=(*padding, inner))
    session = session_of("long", turns=session.turns, subagents=(agent,))
    fill(Lake(settings.lake), [(session, 0.3)], {"long": signals_of(session, checks=())})
    verdict = DimensionScore(
        dimension="tool_mastery",
        value=0.1,
        rationale="It",
        evidence=(Evidence(60, "inner", "no"),),
    )
    rows = [
        scores_of(session, 0.3, dimension_scores=(verdict,), review=SessionReview(verdict="failed"))
    ]
    Lake(settings.lake).write("session_scores", WEEK, rows, SessionScores)
    with served(settings) as client:
        page = client.get("/sessions/long").text
        there = re.search(r'href="(/sessions/long\?at=mark-1)#mark-1"', page)
        assert there
        far = client.get(there[1]).text
        assert 'id="mark-1"' in far
        assert 'href="#mark-1"' in far
        assert "Padding 89." in client.get("/sessions/long?agent=1").text


def test_neighbours_and_the_training_line_are_a_link_away(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    lake = Lake(settings.lake)
    fill_every_kind(lake)
    line = LineRow(
        session_id="every-kind",
        window=1,
        split="train",
        quality=0.3,
        offset=0,
        size=1,
        opening="",
        messages=1,
        tokens=1,
        digest="",
    )
    lake.write(LINES, "shop/0aaad855-0bbbd855", [line], LineRow)
    write_manifest(lake, [("shop", "0aaad855-0bbbd855")])
    with served(settings) as client:
        page = page_of(client, "/sessions/every-kind")
        assert '<a href="/training/shop/0aaad855-0bbbd855?line=1#line-1">' in page
        assert '<a href="/sessions/later"' in page
        assert '<a href="/sessions/every-kind"' in page_of(client, "/sessions/later")


@pytest.mark.parametrize("query", ["?part=99", "?agent=9", "?whole=turn-99", "?whole=%3Cb%3E"])
def test_what_is_not_there_is_said_in_one_line(query: str, tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    fill(Lake(settings.lake), [(session_of("one"), 0.3)])
    with served(settings) as client:
        answer = client.get(f"/sessions/one{query}")
    assert answer.status_code == 400
    assert "of this session" in answer.text or "in this session" in answer.text


def test_a_mark_cuts_no_entity_in_two() -> None:
    html = "grep -c &#34;List them all.&#34; 2&gt;&amp;1"
    mark = EvidenceMark(number=1, turn=1, quote='grep -c "List them all."')
    assert '<mark class="evidence" id="mark-1">grep -c &#34;List them all.&#34;</mark> 2' in marked(
        html, [mark]
    )
    within = EvidenceMark(number=1, turn=1, quote="all.")
    assert ">all.</mark>&#34; 2" in marked(html, [within])
