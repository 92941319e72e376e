"""The ``debrief`` command, of the recorder alone and of Debrief.

``debrief record`` starts without anything of Debrief. Where Debrief is installed, it answers for
all other commands; else the recorder's are all that there are.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

PROGRAM = "debrief.program"
"""The group of entry points in which Debrief names what runs its commands."""


def main() -> None:
    """Import the commands, and run the one that was typed.

    Ctrl-C during the imports ends it without a word. A command that was started with Ctrl-C
    ignored, as in the background of a script, ignores it.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    run = _program(sys.argv[1:])
    signal.signal(signal.SIGINT, handler)
    run()


def _program(arguments: list[str]) -> Callable[[], None]:
    if arguments[:1] != ["record"]:
        from importlib.metadata import entry_points

        for found in entry_points(group=PROGRAM):
            whole: Callable[[], None] = found.load()
            return whole
    from debrief.cli.recorder_app import app

    return app
