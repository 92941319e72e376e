"""Builds the sample data from the stories: ``python -m tools.samples.build [FOLDER]``.

Deterministic: no clock, no randomness, so the shipped files are what anybody builds again.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from debrief.samples import REPOSITORIES, STREAM, folder
from debrief.snapshots.fingerprint import compute_prompt_fingerprint
from debrief.snapshots.model import PromptSnapshot
from tools.samples import chance
from tools.samples.claude import write_claude
from tools.samples.damage import damaged
from tools.samples.droid import write_droid
from tools.samples.history import AFTER, FIRST, SampleCommit, stream_of
from tools.samples.script import Script, read_script
from tools.samples.story import PLANS, Story, dashed, join, perform, stamp, started_at
from tools.samples.tree import WorkingTree

STORIES = Path(__file__).with_name("stories")


def load_stories() -> list[Story]:
    """Perform every script, in the order of time: a code base keeps what a story did to it.

    A story marked ``discard`` had its work thrown away afterwards, as failed work is.
    """
    scripts = sorted(
        (read_script(path) for path in sorted(STORIES.glob("*/*.story"))),
        key=lambda script: (started_at(script), script.name),
    )
    trees = _trees()
    stories = []
    for script in scripts:
        tree = trees[script.head["repository"]]
        kept = dict(tree.files)
        story = perform(script, tree)
        is_kept = not script.head.get("discard")
        if not is_kept:
            tree.files = kept
        stories.append(replace(story, left=dict(tree.files), is_kept=is_kept))
    return stories


def histories(stories: Sequence[Story]) -> dict[str, bytes]:
    """Return the stream of each repository by its name: a commit for each story that was kept."""
    commits = {
        name: [SampleCommit(at=FIRST, subject="Begin", files=tree.files)]
        for name, tree in _trees().items()
    }
    for story in stories:
        own = commits[story.repository]
        if story.left != own[-1].files:
            at = story.events[-1].at + AFTER
            own.append(SampleCommit(at=at, subject=story.title, files=story.left))
    return {name: stream_of(own, PLANS[name]) for name, own in commits.items()}


def _trees() -> dict[str, WorkingTree]:
    return {path.stem: _tree(read_script(path)) for path in STORIES.glob("trees/*.tree")}


def load_prompts(name: str) -> PromptSnapshot:
    """Return the set of prompts of that name: ``main.md``, the others being subagents."""
    texts = {
        path.stem: path.read_text(encoding="utf-8")
        for path in sorted((STORIES / "prompts" / name).glob("*.md"))
    }
    return PromptSnapshot(main=texts.pop("main"), subagents=texts)


def build_files() -> dict[str, bytes]:
    """Return every file of the sample data by its path below the data folder."""
    files: dict[str, bytes] = {}
    for story in load_stories():
        claude = story.tool == "claude-code"
        top = "claude/projects" if claude else "factory/sessions"
        for path, data in (write_claude if claude else write_droid)(story).items():
            whole = damaged(data, story.damage) if path.endswith(".jsonl") else data
            files[f"{top}/{path}"] = whole
        if story.prompts:
            files |= _capture(story)
    return files | _no_session()


def build(target: Path) -> None:
    """Write the sample data to ``target``, and the repositories beside it.

    What is there before is replaced.
    """
    streams = {f"{name}{STREAM}": data for name, data in histories(load_stories()).items()}
    for place, files in ((target, build_files()), (target.with_name(REPOSITORIES), streams)):
        _write(place, files)


def _write(target: Path, files: Mapping[str, bytes]) -> None:
    if target.exists():
        shutil.rmtree(target)
    for name, data in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _tree(script: Script) -> WorkingTree:
    return WorkingTree({step.argument: step.body + "\n" for step in script.steps})


def _capture(story: Story) -> dict[str, bytes]:
    prompts = load_prompts(story.prompts)
    metadata = {
        "tool": story.tool,
        "model": story.model,
        "recorded_at": stamp(story.started),
        "prompt_fingerprint": compute_prompt_fingerprint(prompts),
        "session_id": story.session_id,
    }
    top = f"captures/.debrief/sessions/{story.session_id}"
    texts = {"main": prompts.main, **prompts.subagents}
    files = {f"{top}/prompts/{name}.md": text.encode() for name, text in texts.items()}
    return files | {f"{top}/metadata.json": (json.dumps(metadata, indent=2) + "\n").encode()}


def _no_session() -> dict[str, bytes]:
    """Return a transcript that was opened and left: bookkeeping, and not one message."""
    session = chance.uuid_of("opened and left", "session")
    message = chance.uuid_of("opened and left", "message")
    at = "2026-10-20T07:58:12.004Z"
    snapshot = {"messageId": message, "trackedFileBackups": {}, "timestamp": at}
    records = [
        {"type": "permission-mode", "permissionMode": "default", "sessionId": session},
        {
            "type": "file-history-snapshot",
            "messageId": message,
            "snapshot": snapshot,
            "isSnapshotUpdate": False,
        },
        {"type": "queue-operation", "operation": "dequeue", "timestamp": at, "sessionId": session},
        {"type": "summary", "summary": "Plan the late readings window", "leafUuid": message},
    ]
    project = dashed("/home/sam/meter-etl/.debrief/worktrees/late-readings")
    return {f"claude/projects/{project}/{session}.jsonl": join(records)}


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else folder())
