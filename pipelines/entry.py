"""The first step of the ``debrief`` command: Ctrl-C during its imports ends it without a word."""

from __future__ import annotations

import signal


def main() -> None:
    """Import the commands, and run the one that was typed.

    A command that was started with Ctrl-C ignored, as in the background of a script, ignores it.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from pipelines.command import main as run

    signal.signal(signal.SIGINT, handler)
    run()
