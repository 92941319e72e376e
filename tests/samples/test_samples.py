"""The shipped sample data: what it is made of, and that anybody can make it again."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from debrief.git import git
from debrief.keys import week_of
from debrief.samples import REPOSITORIES, STREAM, folder, lay_out_repositories
from debrief.snapshots.fingerprint import compute_prompt_fingerprint
from debrief.tokens import count_tokens
from debrief.training.optimisation import LEAST_HELD_OUT
from debrief.training.splits import BY_WEEK
from tests.machine import files_below
from tools.samples.build import build_files, histories, load_prompts, load_stories
from tools.samples.material import SECRETS
from tools.samples.story import PLANS, Story

WEEKS = ["2026-10-05", "2026-10-12", "2026-10-19", "2026-10-26", "2026-11-02"]


@pytest.fixture(scope="module")
def stories() -> list[Story]:
    return load_stories()


@pytest.fixture(scope="module")
def built() -> dict[str, bytes]:
    return build_files()


def named(stories: list[Story], name: str) -> Story:
    return next(story for story in stories if story.name == name)


def transcript(story: Story) -> Path:
    return next(folder().rglob(f"{story.session_id}.jsonl"))


def records(story: Story) -> list[dict[str, Any]]:
    return [json.loads(line) for line in transcript(story).read_bytes().splitlines()]


def texts_in(value: Any) -> str:
    if isinstance(value, str):
        return value
    children = value.values() if isinstance(value, dict) else value
    return "\n".join(map(texts_in, children)) if isinstance(value, dict | list) else ""


def test_building_again_gives_the_shipped_bytes(built: dict[str, bytes]) -> None:
    assert built.keys() == files_below(folder()).keys()
    assert {name for name, data in files_below(folder()).items() if data != built[name]} == set()


def test_the_shipped_repositories_are_real_and_hold_the_work_that_was_kept(
    stories: list[Story], tmp_path: Path
) -> None:
    shipped = files_below(folder().with_name(REPOSITORIES))
    assert shipped == {f"{name}{STREAM}": data for name, data in histories(stories).items()}
    places = {place.name: place for place in lay_out_repositories(tmp_path)}
    for name, plan in PLANS.items():
        last = [story for story in stories if story.repository == name][-1]
        named = git(places[name], "ls-tree", "-r", "-z", "--name-only", plan).decode()
        assert set(named.split("\0")[:-1]) == last.left.keys()
        kept = [story for story in stories if story.repository == name and story.is_kept]
        subjects = git(places[name], "log", "--format=%s", plan).decode().splitlines()
        assert set(subjects) <= {"Begin", *(story.title for story in kept)}
    assert lay_out_repositories(tmp_path) == list(places.values())


def test_the_data_stays_small(built: dict[str, bytes]) -> None:
    assert sum(map(len, built.values())) <= 3_000_000


def test_thirty_six_sessions_lie_in_five_weeks(stories: list[Story]) -> None:
    assert len({story.session_id for story in stories}) == 36
    weeks = Counter(week_of(story.started) for story in stories)
    assert weeks == dict(zip(WEEKS, (6, 7, 8, 9, 6), strict=True))


def test_each_of_three_tasks_has_ten_sessions_or_more_and_both_tools(stories: list[Story]) -> None:
    assert Counter(story.plan for story in stories) == dict(
        zip(PLANS.values(), (10, 10, 16), strict=True)
    )
    tools = defaultdict(set)
    for story in stories:
        tools[story.plan].add(story.tool)
    assert all(used == {"claude-code", "droid"} for used in tools.values())


def test_three_fingerprints_occur_in_the_tasks_and_both_tools_share_two(
    stories: list[Story],
) -> None:
    fingerprints = {compute_prompt_fingerprint(load_prompts(name)) for name in ("v1", "v2", "v3")}
    assert len(fingerprints) == 3
    pairs = Counter((story.plan, story.prompts) for story in stories if story.prompts)
    assert len(pairs) == 9
    assert min(pairs.values()) >= 2
    assert {story.prompts for story in stories if story.tool == "droid"} == {"v1", "v3", ""}


def test_one_training_set_has_enough_held_out_samples_to_improve_its_prompts(
    stories: list[Story],
) -> None:
    sides = Counter(
        BY_WEEK.side_of(story.repository, story.started)
        for story in stories
        if (story.plan, story.prompts) == ("late-readings", "v2") and "duplicates" not in story.name
    )
    assert sides["train"] >= 1
    assert sides["eval"] >= LEAST_HELD_OUT


def test_one_session_needs_several_chunks(stories: list[Story]) -> None:
    story = named(stories, "05-reclassify-rejects")
    prompts = [
        record["message"]["content"]
        for record in records(story)
        if record["type"] == "user" and isinstance(record["message"]["content"], str)
    ]
    assert count_tokens("\n".join(prompts)) > 2 * 70_000


def test_one_session_has_every_kind_of_broken_line(stories: list[Story]) -> None:
    data = transcript(named(stories, "04-cut-off-by-a-crash")).read_bytes()
    with pytest.raises(UnicodeDecodeError):
        data.decode()
    lines = data.decode(errors="replace").split("\n")
    with pytest.raises(json.JSONDecodeError):
        json.loads(lines[-1])
    doubled = [line for line in lines[:-1] if not _is_one_object(line)]
    assert len(doubled) == 1
    decoder = json.JSONDecoder()
    _, end = decoder.raw_decode(doubled[0])
    assert decoder.raw_decode(doubled[0][end:])[1] == len(doubled[0]) - end
    types = {json.loads(line)["type"] for line in lines[:-1] if line not in doubled}
    assert "workspace-pulse" in types


def _is_one_object(line: str) -> bool:
    try:
        json.loads(line)
    except json.JSONDecodeError:
        return False
    return True


def test_the_planted_secrets_are_met_by_decoding_alone(stories: list[Story]) -> None:
    story = named(stories, "07-credentials-out-of-the-repository")
    text = texts_in(records(story))
    for secret in SECRETS.values():
        assert secret in text
        assert not any(secret.encode() in data for data in files_below(folder()).values())
    everywhere = {
        other.name
        for other in stories
        if not other.damage
        and any(secret in texts_in(records(other)) for secret in SECRETS.values())
    }
    assert everywhere == {story.name}
