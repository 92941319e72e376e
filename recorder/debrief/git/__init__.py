"""Run git on a repository that is not ours: change nothing in it, run nothing that it configures.

``git`` reads names and history; ``scratch_of`` is for all that looks at a working tree or shows
what a commit changed.
"""

from debrief.git.program import find_commit, git
from debrief.git.repository import Repository, open_repository
from debrief.git.scratch import Scratch, scratch_into, scratch_of

__all__ = [
    "Repository",
    "Scratch",
    "find_commit",
    "git",
    "open_repository",
    "scratch_into",
    "scratch_of",
]
