"""Take over ``.lw_coder/`` and ``.weft/`` folders of earlier tools into ``.debrief/``.

Files are copied, git worktrees are moved by git, keys are added to the file of this machine's
settings. Nothing is overwritten. A plan of every step comes first; to apply it is to carry out
its steps.
"""

from debrief.snapshots.migration.folders import earlier_folders, plan_migration
from debrief.snapshots.migration.keys import plan_keys
from debrief.snapshots.migration.steps import Applied, MigrationStep, apply
from debrief.snapshots.migration.worktrees import move_of_earlier_worktree, plan_worktrees

__all__ = [
    "Applied",
    "MigrationStep",
    "apply",
    "earlier_folders",
    "move_of_earlier_worktree",
    "plan_keys",
    "plan_migration",
    "plan_worktrees",
]
