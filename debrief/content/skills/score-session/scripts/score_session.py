"""Score a session: passes its arguments on to ``debrief score``."""

from __future__ import annotations

import sys

from finding import debrief

if __name__ == "__main__":
    sys.exit(debrief("score", *sys.argv[1:]))
