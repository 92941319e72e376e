"""Pack a folder into an archive that is byte-identical whenever its files are."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

_GIT = ".git"


def archive_of(folder: Path) -> bytes:
    """Return a folder's files as an uncompressed tar: sorted, without times and owners.

    Symbolic links stay links. Empty folders and git's own are left out.
    """
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in files_in(folder):
            entry = archive.gettarinfo(path, path.relative_to(folder).as_posix())
            entry.mtime = entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mode = 0o755 if entry.mode & 0o100 else 0o644
            if entry.issym():
                archive.addfile(entry)
            elif entry.isfile():
                with path.open("rb") as file:
                    archive.addfile(entry, file)
    return made.getvalue()


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the files and links below a folder in order; none of git's own."""
    for place, folders, names in os.walk(folder):
        here = Path(place)
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = sorted(set(folders) - {_GIT, *links})
        yield from (here / name for name in sorted([*names, *links]) if name != _GIT)
