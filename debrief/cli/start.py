"""``debrief`` without a command: open the pages at once, and read this machine's sessions."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import typer

from debrief.cli.shared import console
from debrief.errors import ConfigurationError, DebriefError
from debrief.files import locked
from debrief.keys import digest_of
from debrief.processes import stop_with_parent
from debrief.settings import load_settings

_PORT, _HOST = 3000, "127.0.0.1"
_PATIENCE = 15.0
"""Seconds that the process that reads has for its end: it finishes the week under way."""


def start(port: int = 0, *, browser: bool = True) -> None:
    """Show this machine's sessions, read them in the background, and stop both at Ctrl-C.

    Started again while it runs, it says where, and opens that.

    Args:
        port: of the pages; 0: 3000, or any that is free where that is taken.
        browser: open the pages in one.

    Raises:
        ConfigurationError: the port is taken.
    """
    settings, out = load_settings(), console()
    lock = settings.home / "locks" / f"{digest_of(settings.lake)[:16]}.start"
    with locked(lock) as is_alone:
        if not is_alone:
            address = _address_in(lock)
            out.print(f"Debrief runs already: {address}")
            _open(address, browser)
            return
        lock.write_text("", encoding="utf-8")  # of the last one that ran
        with _listener(port) as listener, _reading() as reader:
            # Imported while the sessions are looked for.
            from debrief.door.app import Door
            from debrief.lake import Lake
            from debrief.recorder.service.running import ServiceLimits, run, url_of
            from debrief.view.app import make_app

            address = url_of(listener)
            lock.write_text(address, encoding="utf-8")
            door = Door(make_app(Lake(settings.lake), settings), settings)

            def say() -> None:
                out.print(f"{address}  your sessions, as they are read  (Ctrl-C stops it)")
                _open(address, browser)
                threading.Thread(target=_obey_keys, args=(address, reader), daemon=True).start()

            with _keys_at_once():
                run(door, ServiceLimits(), listener, say)
    out.print("Stopped. What was read stays; debrief goes on from there.")


def _address_in(lock: Path) -> str:
    """Return where another start shows its pages; one that has only begun says it in a moment."""
    until = time.monotonic() + _PATIENCE
    while not (address := lock.read_text(encoding="utf-8")) and time.monotonic() < until:
        time.sleep(0.05)
    return address


@contextmanager
def _reading() -> Iterator[subprocess.Popen[bytes]]:
    """Have another process read sessions within the block, and wait for its end."""
    # It inherits this, so that a key pressed before it listens does not end it.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "debrief.cli.reading"],
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C comes here, and from here to it
        preexec_fn=stop_with_parent(signal.SIGTERM),
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _listener(port: int) -> socket.socket:
    from debrief.recorder.service.running import listen

    try:
        return listen(_HOST, port or _PORT)
    except ConfigurationError:
        if port:
            raise
        return listen(_HOST, 0)


def _open(address: str, browser: bool) -> None:
    """Open a browser with a window of its own; one in the terminal would take it over."""
    has_window = sys.platform in ("darwin", "win32") or any(
        map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    )
    if browser and has_window:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


@contextmanager
def _keys_at_once() -> Iterator[None]:
    """Have the terminal give each key at once within the block."""
    if not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _obey_keys(address: str, reader: subprocess.Popen[bytes]) -> None:
    """Do what is asked by one key: y has sessions reviewed, once the process that reads has asked
    for it; h installs the hook, o opens the pages, q stops."""
    while sys.stdin.isatty() and (key := sys.stdin.read(1)):
        if key == "h":
            from debrief.cli.capture import hooks_install

            try:
                with suppress(typer.Exit):  # another debrief was to do it, and said why it did not
                    hooks_install(user=True)
            except DebriefError as error:
                console(stderr=True).print(f"debrief: {error}", style="red")
        elif key == "y":
            reader.send_signal(signal.SIGUSR1)
        elif key == "o":
            _open(address, browser=True)
        elif key == "q":
            os.kill(os.getpid(), signal.SIGINT)
