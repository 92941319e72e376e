"""How fast transcripts of every source are read: ``python -m tests.benchmarks.reading``.

Reads files that are made by repeating the tests' examples, with words that no run has seen, or the
transcripts in ``--folder``, one after another on one core. Prints the time of reading, and of
reading with redaction, as multiples of what ``orjson.loads`` takes over the same JSON, measured in
turns. ``--source`` names one source alone.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from debrief.errors import InputError
from debrief.redaction.redactor import Redactor
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import Reader, Transcript
from debrief.sessions.readers.databases import read_database
from debrief.sessions.readers.files import opened, walk
from debrief.sessions.redaction import redact_session
from tests.benchmarks.measuring import options, seconds, show
from tests.planting import EXAMPLES
from tests.sessions.readers.opencode_database import DIFF, EDIT, SESSION, Database

_KEPT = ("sessionId", "thread_id", "toolId", "modelId", "modelID")
"""Ids that all copies of a record share."""
_LONGEST_WORD = 10
_AROUND = {"type": "text", "text": "<environment_details>\n" + "# Open: cart.py\n" * 300}
_TASK = [
    [{"type": "text", "text": "<task>\nFix it\n</task>"}, _AROUND],
    "<thinking>Look.</thinking>\n<replace_in_file><path>a.py</path><diff>\n------- SEARCH\nx = 1\n"
    "=======\nx = 2\n+++++++ REPLACE\n</diff></replace_in_file>",
    [
        {"type": "text", "text": "[replace_in_file for 'a.py'] Result:\nThe file was saved."},
        _AROUND,
    ],
    [{"type": "tool_use", "id": "c", "name": "execute_command", "input": {"command": "pytest"}}],
    [{"type": "tool_result", "tool_use_id": "c", "content": "Command executed.\nOutput: 2 passed"}],
]
"""Of Cline's extension: what a person asks, calls as elements and as blocks, and their results."""


def main() -> None:
    """Print the ratios of reading to decoding."""
    chosen = options(__doc__, folder="", source="", megabytes=20, rounds=5)
    with TemporaryDirectory() as made:
        folder = Path(chosen.folder or made)
        if not chosen.folder:
            for path, each in enlarged(folder, chosen.megabytes << 20):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(each)
            database(folder / "database" / "opencode", chosen.megabytes << 20)
        found = walk(folder)
        show("source: MB", "reading, with redaction (times decoding; the bars are 3 and 6)")
        for source, reader in READERS.items():
            groups: dict[str, list[Transcript]] = {}
            for transcript in reader.find(found) if chosen.source in ("", source) else ():
                place = "" if chosen.folder else Path(transcript.on_disk).parts[len(folder.parts)]
                groups.setdefault(place or source, []).append(transcript)
            for name, transcripts in groups.items():
                measure(name, reader, transcripts, chosen.rounds)


def measure(name: str, reader: Reader, transcripts: list[Transcript], rounds: int) -> None:
    """Print what one source's transcripts take."""
    files = {
        path for transcript in transcripts for path in (transcript.on_disk, *transcript.companions)
    }
    texts = [text for path in sorted(files) for text in json_in(path)]

    def decode() -> None:
        for text in texts:
            with suppress(orjson.JSONDecodeError):
                orjson.loads(text)

    def read(redactor: Redactor | None = None) -> None:
        for transcript in transcripts:
            with suppress(InputError):
                session = reader.read(transcript)
                if redactor is not None:
                    redact_session(session, redactor)

    times: list[tuple[float, float]] = []
    for number in range(rounds):
        redactor = Redactor(b"a key for measuring alone, %06d" % number)  # which has seen nothing
        tasks = (decode, read, partial(read, redactor))
        decoding, reading, redacting = (seconds(task, time.process_time) for task in tasks)
        times.append((reading / decoding, redacting / decoding))
    plain, redacted = map(statistics.median, zip(*times, strict=True))
    show(f"{name}: {sum(map(len, texts)) / 1e6:.1f}", f"{plain:.2f}, {redacted:.2f}")


def json_in(path: str) -> list[bytes]:
    """Return the JSON in a file, as it is to be decoded."""
    if path.endswith(".db"):
        query = "SELECT data FROM message UNION ALL SELECT data FROM part"
        return read_database(path, lambda base: [row[0].encode() for row in base.execute(query)])
    if path.endswith(".json"):
        return [Path(path).read_bytes()]
    with opened(path) as file:
        return [line for line in file.read().split(b"\n") if line]


def enlarged(folder: Path, size: int) -> Iterator[tuple[Path, bytes]]:
    """Yield files of a size that hold an example of each source again and again."""
    for source, path in EXAMPLES.items():
        first, *rest = map(json.loads, path.read_text().splitlines())
        is_one = path.suffix != ".jsonl"
        listed = "steps" if "steps" in first else "messages"
        rest = first.pop(listed) if is_one else rest
        rest = [each for each in rest if each.get("type") != "session_meta"]
        parts = repeated(rest, size)
        if is_one:
            inner = b'%b, "%b": [%b]}'
            text = inner % (orjson.dumps(first)[:-1], listed.encode(), b",\n".join(parts))
        else:
            text = b"\n".join([orjson.dumps(first), *parts])
        yield folder / source / path.name, text
    names = ("user", "assistant", "user", "assistant", "user")
    said = [{"role": role, "content": content} for role, content in zip(names, _TASK, strict=True)]
    task = folder / "cline-vscode" / "1772445600000" / "api_conversation_history.json"
    yield task, b"[" + b",".join(repeated(said, size)) + b"]"


def repeated(records: list[Any], size: int) -> list[bytes]:
    """Return copies of records, with ids and words of their own."""
    parts: list[bytes] = []
    left, number, source = size, 0, random.Random(size)
    while left > 0:
        for record in records:
            parts.append(orjson.dumps(renewed(record, number, source)))
            left -= len(parts[-1])
        number += 1
    return parts


def renewed(value: Any, number: int, source: random.Random, key: str = "") -> Any:
    """Return a value with the ids of a copy, and with more words where it holds some already."""
    if isinstance(value, dict):
        return {name: renewed(inner, number, source, name) for name, inner in value.items()}
    if isinstance(value, list):
        if key == "k" and value[1:2] == [0]:  # the way to a value in a chat of VS Code's
            return [value[0], number, *value[2:]]
        return [renewed(inner, number, source, key) for inner in value]
    if isinstance(value, str) and key.lower().endswith("id") and key not in _KEPT:
        return f"{value}-{number}"
    if isinstance(value, str) and " " in value and value[:1] not in "{<[-/":
        return f"{value}\n{words(source)}"
    return value


def words(source: random.Random) -> str:
    """Return lines of words that stand nowhere else, of 20 to 8,000 characters: mostly few."""
    letters = "etaoinshrdlucmfwyp"
    text, left = "", int(20 * 400 ** source.random())
    while left > len(text):
        word = "".join(source.choices(letters, k=source.randint(1, _LONGEST_WORD)))
        text += word + ("\n" if source.random() < 0.1 else " ")
    return text


def database(folder: Path, size: int) -> None:
    """Write a database of OpenCode's."""
    base, source = Database(folder), random.Random(size)
    base.session(SESSION)
    base.connection.execute("BEGIN")
    while size > 0:
        text = [words(source) for _ in range(3)]
        done = {"status": "completed", "input": EDIT, "output": text[2], "metadata": {"diff": DIFF}}
        call = {"type": "tool", "callID": f"c{size}", "tool": "edit", "state": done}
        base.message(SESSION, "user", {"type": "text", "text": text[0]})
        base.message(SESSION, "assistant", {"type": "text", "text": text[1]}, call)
        size -= sum(map(len, text)) + 1000
    base.connection.execute("COMMIT")
    base.close()


if __name__ == "__main__":
    main()
