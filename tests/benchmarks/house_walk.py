"""Count the product's modules whose code runs between a transcript and its training line.

``python -m tests.benchmarks.house_walk SESSIONS LAKE FILE`` runs the graph and writes the counts.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PROJECT = Path(__file__).parents[2]
TO_A_LINE = (
    "raw_sessions",
    "prompt_snapshots",
    "session_metadata",
    "judge_evaluations",
    "session_scores",
    "training_sets",
)
APART = "langfuse_scores"


class Walk:
    """Notes the modules whose functions are called while a stage computes."""

    def __init__(self, starts: set[CodeType]) -> None:
        self.modules: defaultdict[str, set[str]] = defaultdict(set)
        self._starts = starts
        self._stage = ""
        self._frame: FrameType | None = None
        self._rooms = tuple(
            f"{PROJECT / r}/" for r in ("assets", "debrief", "pipelines", "resources")
        )

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Take a call or a return."""
        if event == "call":
            if not self._stage and frame.f_code in self._starts:
                context = frame.f_locals.get("context")
                self._stage = context.asset_key.to_user_string() if context else ""
                self._frame = frame
            if self._stage and frame.f_code.co_filename.startswith(self._rooms):
                self.modules[self._stage].add(frame.f_code.co_filename)
        elif event == "return" and frame is self._frame:
            self._stage, self._frame = "", None


def main() -> None:
    """Run the graph under a profile function."""
    sessions, lake, result = sys.argv[1:]
    import pipelines.command  # noqa: F401  adds its commands
    from debrief.cli.app import app
    from pipelines.definitions import defs

    starts = set()
    for asset in defs.resolve_asset_graph().assets_defs:
        if asset.keys and asset.is_executable:
            compute: Any = asset.op.compute_fn
            starts.add(compute.decorated_fn.__code__)
    walk = Walk(starts)
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        app(["run", "--offline", "--sessions", sessions, "--lake", lake], standalone_mode=False)
    finally:
        sys.setprofile(None)
    together = set[str]().union(*(walk.modules[stage] for stage in TO_A_LINE))
    counts = {stage: len(modules) for stage, modules in walk.modules.items()}
    found = {**counts, "line": len(together), APART: len(walk.modules[APART])}
    Path(result).write_text(json.dumps(found))
    print(*sorted(each.removeprefix(f"{PROJECT}/") for each in together), sep="\n")


if __name__ == "__main__":
    main()
