"""Record what a real server answers: ``python -m tests.langfuse.recording ADDRESS MODE``.

The address is ``http://<public key>:<secret key>@<host>``; the mode is that of the server, one of
``recorded.MODES``.
"""

from __future__ import annotations

import json
import sys

from tests.langfuse.recorded import FOLDER, VERSION, ask, file_of, opened
from tests.langfuse.sites import Site, real_client


def main(address: str, mode: str) -> None:
    """Write what the server at an address answers."""
    with real_client(address) as client, opened(address) as server:
        site = Site(client, None)
        site.fill()
        told = {"version": VERSION, "mode": mode, "answers": ask(server, site.session)}
    FOLDER.mkdir(exist_ok=True)
    file_of(mode).write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
