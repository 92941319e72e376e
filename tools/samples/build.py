"""Builds the sample data from the stories: ``python -m tools.samples.build [FOLDER]``.

Deterministic: no clock, no randomness, so the shipped files are what anybody builds again.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from debrief.samples import folder
from debrief.snapshots.fingerprint import compute_prompt_fingerprint
from debrief.snapshots.model import PromptSnapshot
from tools.samples import chance
from tools.samples.claude import write_claude
from tools.samples.damage import damaged
from tools.samples.droid import write_droid
from tools.samples.script import Script, read_script
from tools.samples.story import Story, dashed, join, perform, stamp, started_at
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
    trees = {path.stem: _tree(read_script(path)) for path in STORIES.glob("trees/*.tree")}
    stories = []
    for script in scripts:
        tree = trees[script.head["repository"]]
        kept = dict(tree.files)
        stories.append(perform(script, tree))
        if script.head.get("discard"):
            tree.files = kept
    return stories


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
    """Write the sample data to ``target``, replacing what is there."""
    if target.exists():
        shutil.rmtree(target)
    for name, data in build_files().items():
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
