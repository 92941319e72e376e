from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from debrief.sessions.model import Session
from debrief.training.kinship import (
    ALIKE,
    Kinship,
    SessionTraits,
    message_marks,
    signature_of,
    traits_of,
    work_signature_of,
)
from debrief.training.minhash import likeness
from debrief.training.splits import BY_WEEK
from tests.training.scenario import MONDAY, call, says, session, text, turn
from tests.training.test_selection import Given, candidate, chosen


def family(*sessions: Session) -> dict[str, str]:
    kinship = Kinship(map(traits_of, sessions))
    return {one.id: kin.head.session_id for one in sessions if (kin := kinship.of(one.id))}


def work(id: str, *said: str, day: int = 0, ids: bool = True) -> Session:
    messages = [says(words, id=f"msg_{hash(words)}" if ids else "") for words in said]
    return session(id, turn(f"{id} {text(3)}", *messages), started=MONDAY + timedelta(days=day))


A, B, C, D, E = (text(200) for _ in range(5))


def wrote(id: str, *said: str, day: int = 0) -> Session:
    """The work of a tool that gives messages no ids."""
    return work(id, *said, day=day, ids=False)


@pytest.mark.parametrize(
    ("crowd", "heads"),
    [
        ([work("fork", "a", B, day=1), work("origin", "a", C)], "origin origin"),
        ([wrote("origin", A, B), wrote("fork", A, C, D, day=1)], "origin origin"),
        ([wrote("a", A, C), wrote("b", A, B, day=1), wrote("c", B, D, E, day=2)], "a a a"),
        ([wrote("a", A), wrote("b", B, day=1), wrote("bridge", A, B, day=2), wrote("z", B, day=3)],
         "a a a a"),
        ([session(name, turn(words, says(words[::-1], id="1"))) for name, words in (("a", A), ("b", B))],
         "a b"),
        ([session(name, turn("Hello?")) for name in "ab"], ""),
        ([wrote("a", A), replace(wrote("b", B, day=1), relative_of="a")], "a a"),
    ],
    ids=[
        "a fork has the history that it copied",
        "one with new ids has what the model wrote",
        "a fork of a fork is of the first one's family",
        "one that resembles two families makes them one",
        "messages that share only their number",
        "nobody answered",
        "a fork whose history is not copied",
    ],
)  # fmt: skip
def test_relatives_are_found_by_what_they_share(crowd: list[Session], heads: str) -> None:
    assert " ".join(family(*crowd).values()) == heads


def test_near_copies_are_found_among_many_and_nobody_else_is() -> None:
    said = [text(300) for _ in range(200)]
    originals = [work(f"s{n:03d}", words, ids=False) for n, words in enumerate(said)]
    copies = [
        work(f"copy{n:03d}", f"{words[:900]} changed {words[900:]}", day=1, ids=False)
        for n, words in enumerate(said)
    ]
    kinship = Kinship(map(traits_of, [*copies, *originals]))
    for number in range(200):
        kin = kinship.of(f"copy{number:03d}")
        assert kin is not None
        assert kin.head.session_id == f"s{number:03d}"
        assert kin.copy_groups == (f"s{number:03d}",)


@given(st.lists(st.sampled_from(["fix it", "add a test", "undo", "why"]), max_size=8), st.randoms())
@settings(deadline=None, max_examples=20)
def test_order_is_of_no_matter_and_a_head_is_its_own(
    prompts: list[str], order: random.Random
) -> None:
    crowd = [
        session(f"s{n}", turn(p, says(f"{p}: done")), started=MONDAY + timedelta(days=n))
        for n, p in enumerate(prompts)
    ]
    before = family(*crowd)
    order.shuffle(crowd)
    assert family(*crowd) == before
    assert all(before[head] == head for head in before.values())


@given(
    st.lists(
        st.lists(st.sampled_from([text(40) for _ in range(4)]), min_size=1, max_size=4),
        max_size=20,
    ),
    st.integers(0, 20),
)
@settings(deadline=None, max_examples=20)
def test_a_later_session_splits_no_family_and_moves_none_but_one_that_it_connects_with_an_older(
    crowd: list[list[str]], count: int
) -> None:
    sessions = [work(f"s{n:02d}", *said, day=n, ids=False) for n, said in enumerate(crowd)]
    after, before = family(*sessions), family(*sessions[:count])
    for name, head in before.items():
        assert after[name] == after[head] <= head


def of_text(words: str) -> bytes:
    return signature_of(session("s", turn(words, says())))


@pytest.mark.parametrize("shared", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_likeness_is_the_share_of_runs_in_common(shared: float) -> None:
    size = 4_000
    common = int(size * shared)
    start = text(common)
    one, other = (of_text(f"{start} {text(size - common)}") for _ in range(2))
    assert likeness(one, other) == pytest.approx(shared / (2 - shared), abs=0.1)
    assert likeness(one, one) == 1.0


def test_results_do_not_make_two_sessions_alike() -> None:
    same = text(500)
    one, other = (
        session("s", turn(text(60), says("", call("Read", {"file_path": "a"}, same))))
        for _ in range(2)
    )
    assert likeness(signature_of(one), signature_of(other)) < 0.3


def test_sessions_of_a_word_or_none_can_be_compared() -> None:
    assert likeness(of_text(""), of_text("")) == 1.0
    assert likeness(of_text("x"), of_text("y")) < 0.1


def test_a_session_of_any_length_has_at_most_64_marks_and_shares_them_with_its_beginning() -> None:
    messages = [says(f"step {number}", id=f"msg_{number}") for number in range(1_000)]
    whole = message_marks(session("whole", turn("Go.", *messages)))
    fork = message_marks(session("fork", turn("Go.", *messages[:50])))
    assert len(whole) <= 64 * 8
    assert {whole[n : n + 8] for n in range(0, len(whole), 8)} & {
        fork[n : n + 8] for n in range(0, len(fork), 8)
    }


Step = tuple[str, int, int, int, int]
STEPS: st.SearchStrategy[Step] = st.tuples(
    st.sampled_from(["new", "copy", "fork", "both"]),
    *(st.integers(0, 30) for _ in range(3)),
    st.integers(0, 80),
)


def descended(steps: Sequence[Step]) -> list[Given]:
    """Sessions each of which is new, or a changed copy, a fork, or a union of earlier ones."""
    made: list[list[tuple[str, str]]] = []
    crowd = []
    for number, (way, of, other, changed, day) in enumerate(steps):
        own = [(f"w{number}_{n}_{changed}", "") for n in range(60)]
        told = own
        if made and way == "copy":
            told = [*made[of % len(made)]]
            for place in range(min(changed, len(told))):
                told[place * len(told) // max(1, changed)] = own[place % len(own)]
        elif made and way in ("fork", "both"):
            copied = ("looked at it", "changed it", "tried it")
            history = [(word, f"m{of % len(made)}_{n}") for n, word in enumerate(copied)]
            told = [*history[: 1 + changed % 3], *own]
        if made and way == "both":
            told += made[other % len(made)]
        made.append(told)
        messages = [says(" ".join(word for word, mark in told if not mark))]
        messages += [says(word, id=mark) for word, mark in told if mark]
        started = MONDAY + timedelta(days=day, minutes=number)
        of_repository = f"repo{(of + other) % 3}"
        one = session(
            f"s{number:02d}", turn("Go.", *messages), started=started, repository=of_repository
        )
        crowd.append(candidate(one, 0.5))
    return crowd


@given(st.lists(STEPS, min_size=2, max_size=20))
@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_descends_from_what_no_two_relatives_are_on_different_sides(
    steps: list[Step],
) -> None:
    crowd = descended(steps)
    outcome = chosen(*crowd, near_duplicates="keep", eval_share=0.5)
    sides = {one.session_id: one.split for one in outcome.selected}
    kept = [known for _, known in crowd if known.session_id in sides]
    for traits, other in combinations(kept, 2):
        alike = (
            likeness(traits.signature, other.signature) >= ALIKE
            and likeness(traits.work_signature, other.work_signature) >= ALIKE
        )
        if alike or marks(traits) & marks(other):
            assert sides[traits.session_id] == sides[other.session_id]


def test_a_request_that_was_made_before_makes_relatives_of_other_work_on_it() -> None:
    asked = "Add a folder named app, and in it a script that prints the sum of two numbers."
    other = "Take the folder named app away again, since nobody starts that script any more."
    crowd = [
        session("first", turn(asked, says(A))),
        session("again", turn(f"{asked} Thanks.", says(B)), started=MONDAY + timedelta(days=1)),
        session("other", turn(other, says(C)), started=MONDAY + timedelta(days=2)),
        session("taken back", turn(asked, says(D), rewound=True), turn(other[:30], says(E))),
        session("short", turn("Run all the tests.", says(text(200)))),
        session("as short", turn("Run all the tests.", says(text(200)))),
    ]
    kinship = Kinship(map(traits_of, crowd))
    assert family(*crowd) == {one.id: one.id for one in crowd} | {"again": "first"}
    again = kinship.of("again")
    assert again is not None
    assert again.copy_groups == ("again",), "other work is no copy"


def marks(known: SessionTraits) -> set[bytes]:
    data = known.message_marks
    return {data[place : place + 8] for place in range(0, len(data), 8)}


def test_a_session_that_connects_two_families_brings_the_younger_to_the_side_of_the_older() -> None:
    sides = [BY_WEEK.side_of("shop", MONDAY + timedelta(weeks=week)) for week in range(60)]
    here, there = sorted((sides.index("train"), sides.index("eval")))
    one, other = ([says(f"{who} {n}", id=f"{who}_{n}") for n in range(3)] for who in ("a", "b"))
    team = [
        session("one", turn("Go.", *one), started=MONDAY + timedelta(weeks=here)),
        session("other", turn("Run.", *other), started=MONDAY + timedelta(weeks=there)),
        session("both", turn("?", *one, *other), started=MONDAY + timedelta(weeks=there, days=1)),
    ]
    apart, together = (chosen(*map(candidate, some)) for some in (team[:2], team))
    assert {one.split for one in apart.selected} == {"train", "eval"}
    assert {one.split for one in together.selected} == {sides[here]}
    assert not together.left_out


def test_little_work_is_no_likeness_where_the_requests_differ() -> None:
    done = says("Fixed it, and all tests pass.", call(arguments={"command": "pytest -q"}))
    crowd = [
        session(f"s{n}", turn(f"{A} {asked} {B}", done), started=MONDAY + timedelta(weeks=n))
        for n, asked in enumerate([C[:200], D[:200]])
    ]
    outcome = chosen(*map(candidate, crowd))
    assert family(*crowd) == {"s0": "s0", "s1": "s1"}
    assert not outcome.left_out


def test_the_same_words_of_a_person_are_no_likeness_where_the_work_is_other_work() -> None:
    crowd = [
        session(name, turn("Go.", says(said)), turn(A, number=2))
        for name, said in (("a", B[:300]), ("b", C[:300]))
    ]
    assert family(*crowd) == {"a": "a", "b": "b"}
    assert likeness(*map(signature_of, crowd)) > likeness(*map(work_signature_of, crowd))


def test_messages_that_each_session_numbers_anew_are_no_copies() -> None:
    """Ids of a gateway are the same in all sessions; a copy keeps its times as well."""

    def ended(id: str, hours: int) -> Session:
        at = MONDAY + timedelta(hours=hours)
        last = replace(says("Glad to hear it."), id="msg_9", at=at)
        return session(id, turn(text(20), last), started=at)

    assert family(ended("a", 0), ended("b", 5)) == {"a": "a", "b": "b"}
    assert family(ended("a", 0), ended("b", 0)) == {"a": "a", "b": "a"}
