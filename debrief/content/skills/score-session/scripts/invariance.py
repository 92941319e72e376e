"""Print how far a session's scores move when it is cut at 80, 100 and 120 % of the usual size."""

from __future__ import annotations

import sys

from finding import debrief

if __name__ == "__main__":
    sys.exit(debrief("score", "--invariance", *sys.argv[1:]))
