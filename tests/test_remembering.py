"""What was searched once is not searched again, and what changed is."""

from debrief.redaction import contains_secret
from debrief.remembering import by_digest
from tests.redaction.synthetic import Maker


def test_the_same_bytes_are_searched_once_and_others_by_themselves() -> None:
    searched: list[bytes] = []

    @by_digest
    def secrets_in(line: bytes) -> int:
        searched.append(line)
        return len(contains_secret(line))

    clean = b'{"content": "all is well"}'
    changed = clean.replace(b"well", Maker(5).github().encode())
    assert [secrets_in(line) for line in (clean, changed, bytes(bytearray(clean)))] == [0, 1, 0]
    assert searched == [clean, changed]
