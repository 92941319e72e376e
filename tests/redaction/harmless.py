"""What looks like a secret and is none: digests, ids, placeholders, code."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

from tests.redaction.synthetic import ALNUM, HEX, Case, Maker

TEXTS = (Path(__file__).parent / "harmless.txt").read_text().splitlines()
"""One a line, with ``\\n`` for a line break in it."""


def near_misses(seed: int, each: int = 3) -> Iterator[Case]:
    """Yield what looks like a secret and is none."""
    make = Maker(seed)
    for _ in range(each):
        for text in _harmless(make):
            yield Case("near-miss", "", text)


def _harmless(make: Maker) -> Iterator[str]:
    for line in TEXTS:
        yield line.replace("\\n", "\n") + "\n"
    sha = make.of(HEX, 40)
    digest = make.of(HEX, 64)
    noise = base64.b64encode(make.random.randbytes(300)).decode()
    yield f"Merge commit {sha} into main\n"
    yield f"git checkout {sha[:12]} && git show {sha}:src/auth/token.py\n"
    yield f"sha256 = {digest}\n"
    yield f'"checksum": "{digest}", "etag": "{make.of(HEX, 32)}"\n'
    yield f'"integrity": "sha512-{base64.b64encode(make.random.randbytes(64)).decode()}"\n'
    yield f'{{"session_id": "{make.uuid()}", "request_id": "req_{make.of(ALNUM, 24)}"}}\n'
    yield f'{{"tool_use_id": "toolu_{make.of(ALNUM, 24)}", "next_page_token": "{make.of(ALNUM, 40)}"}}\n'
    yield f'{{"type": "thinking", "signature": "{noise}"}}\n'
    yield f"data:image/png;base64,iVBORw0KGgo{noise}\n"
    yield f"-----BEGIN CERTIFICATE-----\n{noise}\n-----END CERTIFICATE-----\n"
    yield f"ssh-rsa {'AAAAB3NzaC1yc2EAAAADAQABAAAB'}{make.of(ALNUM, 200)} me@host\n"
    yield f"pk-lf-{make.uuid()} is the public key\n"
    yield f"idempotency_key = '{make.uuid()}'\n"
    yield f"resource id {make.uuid()} and trace {make.of(HEX, 32)}\n"
    yield f"pod/api-{make.of('bcdfghjklmnpqrstvwxz2456789', 10)}-{make.of(HEX, 5)} Running\n"
    yield f"blob {make.of(HEX, 7)}..{make.of(HEX, 7)} 100644\n"
