"""Find what a task's checks need on this machine, and the container image that has the same."""

from __future__ import annotations

from pathlib import Path

from debrief.execution.preparing import NotPrepared, packages_of, prepare
from debrief.execution.sandbox import TREE, Sandbox, SandboxLimits
from debrief.tasks.files import TaskSource
from debrief.tasks.images import changed_dependencies, image_of
from debrief.tasks.making import HeldBack
from debrief.tasks.proving import ProofPlace

_LEAST_TIME, _MARGIN = 60.0, 3
"""Seconds that a run gets at least, and how many times what its checks took before."""
_ASKED = SandboxLimits(seconds=30.0)


class Equipment:
    """Makes ready what checks need, out of what was prepared before. Nothing is fetched.

    Args:
        sandbox: where tasks are proven.
        cache: the folder that keeps what was prepared.
    """

    def __init__(self, sandbox: Sandbox, cache: Path) -> None:
        self._sandbox, self._cache = sandbox, cache

    def __call__(self, source: TaskSource) -> ProofPlace:
        """Return where a task is proven.

        Raises:
            HeldBack: what its checks need was not prepared, or a container that is built from the
                base would not have it.
        """
        final = source.final_folder
        folders = sorted({check.folder for check in source.checks})
        cache = packages_of(source.clone, self._cache)
        prepared = prepare(final, cache, self._sandbox, network=False, folders=folders)
        if isinstance(prepared, NotPrepared):
            raise HeldBack("not_prepared", prepared.missing)

        def ask(command: str) -> str:
            ran = self._sandbox.run(
                command,
                copies={TREE: final},
                mounts=prepared.mounts,
                environment=prepared.environment,
                path=prepared.path,
                limits=_ASKED,
            )
            return ran.output if ran.exit_code == 0 else ""

        changed = changed_dependencies(source.base_folder, final, source.checks)
        if changed:
            raise HeldBack("changes_dependencies", changed)
        places = [f"{TREE}/{folder}".rstrip("/") for folder in folders]
        programs = [f"{place}/node_modules/.bin" for place in places]
        return ProofPlace(
            sandbox=self._sandbox,
            image=image_of(final, source.checks, prepared.environment, ask),
            mounts=prepared.mounts,
            environment=prepared.environment,
            path=(*prepared.path, *dict.fromkeys(programs)),
            limits=SandboxLimits(seconds=max(_LEAST_TIME, _MARGIN * source.seconds)),
        )
