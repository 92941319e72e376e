"""Run a program that is told to end when whoever started it is gone.

``python -m pipelines.leash PROGRAM ARGUMENT …`` becomes the program. On Linux the kernel sends it
SIGTERM when the process that started it ends, however that comes about; elsewhere the program
runs without a leash.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def tie() -> None:
    """Tie this process to its parent."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit("the process that started this one is gone")


if __name__ == "__main__":
    tie()
    os.execvp(sys.argv[1], sys.argv[1:])
