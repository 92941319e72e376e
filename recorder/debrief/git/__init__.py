"""Git, run over somebody's repository: nothing of it is changed, and nothing that it names is run.

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
