"""The first step of the ``debrief`` command: Ctrl-C during its imports ends it without a word."""

from __future__ import annotations

import signal


def main() -> None:
    """Import the commands, and run the one that was typed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from pipelines.command import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
