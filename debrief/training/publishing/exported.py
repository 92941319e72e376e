"""Remember where exports went, in the lake that they were made from.

An export is out of the lake's hands, but not out of its knowledge: what is forgotten later is
looked for there too.
"""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
from msgspec import Struct

from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.training.publishing.publish import ExportOptions

TABLE = "exports"


class KnownExport(Struct, frozen=True, kw_only=True):
    """One row: a place that sessions were exported to."""

    target: str
    """An absolute folder, or an fsspec URL."""
    host: str = ""
    """The machine that has the folder; empty for a URL."""
    form: str
    options: str = ""
    """How the training sets were exported, as JSON of ``ExportOptions``; empty for another export
    than of training sets."""
    pushed_to: str = ""
    """The dataset of the Hugging Face Hub that it was sent to as well."""

    @property
    def is_here(self) -> bool:
        """Whether this machine can reach it."""
        return self.host in ("", socket.gethostname())

    @property
    def partition(self) -> str:
        """Where its row is in the table."""
        return digest_of(self.host, self.target)[:16]


def note_export(
    lake: Lake,
    target: str,
    form: str,
    options: ExportOptions | None = None,
    pushed_to: str = "",
) -> None:
    """Remember that something is exported to a place, before it is.

    Args:
        lake: that it is made from.
        target: a folder or an fsspec URL.
        form: of what is exported.
        options: of an export of training sets.
        pushed_to: a dataset that it is sent to, too; that of an earlier time stays otherwise.
    """
    is_folder = "://" not in target
    export = KnownExport(
        target=str(Path(target).expanduser().absolute()) if is_folder else target.rstrip("/"),
        host=socket.gethostname() if is_folder else "",
        form=form,
        options=msgspec.json.encode(options).decode() if options else "",
        pushed_to=pushed_to,
    )
    for before in lake.read(TABLE, export.partition, KnownExport):
        export = msgspec.structs.replace(export, pushed_to=pushed_to or before.pushed_to)
    lake.write(TABLE, export.partition, [export], KnownExport)
