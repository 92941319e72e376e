"""Secrets planted in transcripts of every tool, wherever a string stands, and looked for afterwards.

Each secret stands in one place of one transcript alone, so that what is found tells where it came
from. What is looked for is known, so looking needs no rule of what a secret is.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import hyperscan
import pyarrow.parquet as pq
import zstandard

from tests.redaction.synthetic import KNOWN, Maker

EXAMPLES = {
    path.parents[2].name: path
    for path in sorted(Path(__file__).parent.glob("sessions/readers/examples/*/everything/input/*"))
}
"""By source, the file that has something of everything that its reader looks at."""
_SEVERAL_SIGNS = {"azure-ad", "telegram", "sendgrid", "terraform"}
"""What cannot be told from a path any more once its signs have become hyphens."""
_MONDAY = 1772445600
"""Of a week that the examples are of as well: 2 March 2026."""
_TOO_LONG = {"pypi", "openai", "vault", "jwt", "google-access", "slack-hook", "discord-hook"}
"""For the name of a file."""
_NEED_NAMES = {"aws-secret", "azure-storage", "pem", "mailchimp", "planetscale"}
_IN_WORDS: dict[str, Callable[[Maker], tuple[str, str]]] = {
    "password": lambda m: (f"DB_PASSWORD={(s := m.password())}", s),
    "url": lambda m: (f"postgres://svc:{(s := m.password())}@db.invalid:5432/shop", s),
    "bearer": lambda m: (f"Authorization: Bearer {(s := m.token())}", s),
    "header": lambda m: (f"X-Auth-Token: {(s := m.token())}", s),
    "aws": lambda m: (f"AWS_SECRET_ACCESS_KEY={(s := KNOWN['aws-secret'](m))}", s),
    "key": lambda m: (s := m.pem(), s),
}
KINDS = (*[kind for kind in KNOWN if kind not in _NEED_NAMES][:34], *_IN_WORDS)
"""Known formats, and six that are given away by what stands beside them."""
_STRUCTURE = frozenset({
    "type", "role", "timestamp", "subtype", "status", "kind", "startTime", "mime", "commandMode",
    "commit_hash", "headCommit", "requestId", "version", "schema_version", "source",
    "media_type",
})  # fmt: skip
_IDS = frozenset({
    "id", "sessionId", "messageId", "uuid", "parentUuid", "leafUuid", "tool_use_id",
    "toolCallId", "call_id", "callID", "parentToolUseID", "agentId", "session_id",
    "trajectory_id", "tool_call_id", "source_call_id",
})  # fmt: skip
_NAMES = frozenset({
    "gitBranch", "branch", "model", "modelID", "selectedModel", "name", "tool", "toolName",
    "server", "subagent_type", "agentName", "repository", "repository_url", "version",
    "cli_version", "copilotVersion", "projectHash",
})  # fmt: skip
_PATHS = frozenset(
    ["cwd", "directory", "file_path", "filePath", "path", "relativePath", "directories"]
)
ESCAPES: dict[str, Callable[[str], str]] = {
    "percent": lambda said: quote(said, safe=""),
    "behind %3D": lambda said: f"curl -d key%3D{said}",
    "behind %22": lambda said: f"q=%22{said}%22",
    "behind \\u003d": lambda said: f"token\\u003d{said}",
    "behind \\u0022": lambda said: f"\\u0022{said}\\u0022",
    "in JSON in JSON": lambda said: json.dumps(json.dumps({"a": said})),
    "behind &quot;": lambda said: f"&quot;{said}&quot;",
    "coloured": lambda said: f"\x1b[32m{said}\x1b[0m",
    "in base64": lambda said: base64.b64encode(f"A=1\nB={said}\n".encode()).decode(),
}


MARKUP = (
    "![i](https://evil.example/i.png)<img src=https://evil.example/j.png>[l](javascript:x)**b**"
    "www.evil.example`c`|d$\\frac$\x1b[31m\u202e\x9b"
)


@dataclass
class Planted:
    """What was planted: the place of each secret, and what tells that it is still there."""

    places: dict[str, str] = field(default_factory=dict)
    """By secret, ``kind, place``."""

    def needles(self) -> Iterator[tuple[str, str]]:
        """Yield what is looked for, with its secret: each line, and a part that names keep."""
        for secret in self.places:
            for line in secret.splitlines():
                if not line.startswith("-----"):
                    runs = re.findall(r"[A-Za-z0-9]{16,}", line)
                    yield from ((part, secret) for part in {line, *runs})


class Planter:
    """Plants secrets of one kind, a new one in each place.

    Args:
        kind: one of ``KINDS``.
        planted: is told each of them.
        seed: of the secrets.
    """

    def __init__(self, kind: str, planted: Planted, seed: int = 1) -> None:
        self.kind = kind
        self.planted = planted
        self.number = KINDS.index(kind) if kind in KINDS else len(KINDS)
        self.make = Maker(seed * 1_000 + self.number)
        self.fits_names = kind == "password" or (kind in KNOWN and kind not in _TOO_LONG)

    def said(self, place: str) -> str:
        """Return a new secret as people write one of its kind."""
        known = KNOWN.get(self.kind)
        text, secret = (s := known(self.make), s) if known else _IN_WORDS[self.kind](self.make)
        self.planted.places[secret] = f"{self.kind}, {place}"
        return text

    def named(self, name: str, place: str, joint: str = "-") -> str:
        """Return a name with a secret in it, where names hold secrets of this kind."""
        return f"{name}{joint}{self.said(place)}" if self.fits_names else name

    def mangled(self, name: str, place: str) -> str:
        """Return a name as Claude Code makes it of a folder's path, a secret in the path."""
        if self.kind in KNOWN and self.fits_names and self.kind not in _SEVERAL_SIGNS:
            name += f"-{self.said(place)}"
        return re.sub(r"[^A-Za-z0-9]", "-", name)

    def own(self, id: str) -> str:
        """Return an id that no transcript of another kind has."""
        digits = f"{self.number:04x}"
        return f"{id[:-4]}{digits}" if re.fullmatch(r"[0-9a-f-]{36}", id) else f"{id}{digits}"

    def transcript(self, source: str) -> str:
        """Return an example of a source's transcripts with a secret in each string of it."""
        ids: dict[str, str] = {}
        done: set[str] = set()

        def visit(value: Any, place: str, key: str) -> Any:
            if isinstance(value, list):
                return [visit(item, place, key) for item in value]
            if isinstance(value, dict):
                inner = {name: visit(one, f"{place}.{name}", name) for name, one in value.items()}
                if key in ("input", "arguments", "args") and f"{place} key" not in done:
                    done.add(f"{place} key")
                    inner[self.named("x", f"{source}: a key in {place}")] = 1
                return inner
            if not isinstance(value, str) or key in _STRUCTURE or not value:
                return value
            if key in _IDS:
                if value not in ids:
                    fresh = place not in done
                    name = self.own(value)
                    ids[value] = self.named(name, f"{source}: {place}") if fresh else name
                done.add(place)
                return ids[value]
            if place in done:
                return value
            done.add(place)
            return self._planted_in(value, f"{source}: {place}", key)

        text = EXAMPLES[source].read_text()
        lines = []
        for line in text.splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                lines.append(line)
                continue
            kind = record.get("type") if isinstance(record, dict) else ""
            planted = visit(record, kind or "", "")
            lines.append(json.dumps(planted))
        return "\n".join(lines) + "\n"

    def _planted_in(self, value: str, place: str, key: str) -> str:
        if key in _PATHS:
            return self.named(value, place, "/")
        if key == "repository_url":
            return f"https://ann:{self.said(place)}@git.invalid/ann/shop.git"
        if key in _NAMES:
            return self.named(value, place)
        said = self.said(place)
        if key == "lines":
            return f"{value} {said}".replace("\n", " ")
        if "\n+" in value:
            return re.sub(
                r"\n\+[^\n]*",
                lambda row: f"{row[0]} {said.replace(chr(10), chr(10) + '+')}",
                value,
                count=1,
            )
        if place.endswith("message.content"):
            escaped = (form(self.said(f"{place}, {name}")) for name, form in ESCAPES.items())
            return "\n".join([f"{value} {said}", *escaped])
        return f"{value} {said}"


class MarkupPlanter(Planter):
    """Plants markup, addresses and control characters in the same places instead."""

    def __init__(self) -> None:
        super().__init__("markup", Planted())

    def said(self, place: str) -> str:
        """Return what a page or a terminal would obey."""
        return MARKUP

    def named(self, name: str, place: str, joint: str = "-") -> str:
        """Return a name with it."""
        return f"{name}{joint}{MARKUP.replace('/', '') if joint == '-' else MARKUP}"


def write_markup(folder: Path) -> None:
    """Write transcripts of all sources that hold markup wherever a string stands."""
    planter = MarkupPlanter()
    for source, example in EXAMPLES.items():
        name = f"{source}{MARKUP.replace('/', '')}"
        ending = example.name.removeprefix("a.")
        (folder / f"{name}.{ending}").write_text(planter.transcript(source))
        _write_broken(folder / f"broken{name}.jsonl", f'{{"{MARKUP}')


def write_transcripts(folder: Path, kinds: Iterable[str], seed: int = 1) -> Planted:
    """Write transcripts of all sources, captures and a broken file for each kind of secret."""
    planted = Planted()
    for kind in kinds:
        planter = Planter(kind, planted, seed)
        for source, example in EXAMPLES.items():
            ending = example.name.removeprefix("a.")
            below = folder / source / planter.named("p", f"{source}: folder")
            if source == "claude-code":
                below /= planter.mangled("-home-ann-shop", "claude-code: folder named after cwd")
            below.mkdir(parents=True, exist_ok=True)
            name = planter.named(f"{kind}-s", f"{source}: file name")
            (below / f"{name}.{ending}").write_text(planter.transcript(source))
        broken = folder / f"{planter.named(f'{kind}-broken', 'name of a broken file')}.jsonl"
        said = json.dumps(planter.said("in a broken file"))
        _write_broken(broken, f'{{"type":"user","sessionId":"b","message":{said[:-1]}\n')
        _write_capture(folder, planter)
    return planted


def _write_broken(path: Path, text: str) -> None:
    path.write_text(text)
    os.utime(path, (_MONDAY, _MONDAY))


def _write_capture(folder: Path, planter: Planter) -> None:
    """Write a session that is as its tool left it, and prompts that were captured with it."""
    name = f"captured-{planter.kind}"
    text = EXAMPLES["claude-code"].read_text()
    text = re.sub(r'"(sessionId)":"[^"]*"', rf'"\1":"{name}"', text.replace('": "', '":"'))
    own = r'"([0-9a-f]{8}-[0-9a-f-]{27}|[cmtpa][0-9m]|req_m1)"'
    text = re.sub(own, lambda found: f'"{planter.own(found[1])}c"', text)
    (folder / f"{name}.jsonl").write_text(text)
    prompts = folder / ".debrief" / "sessions" / name / "prompts"
    prompts.mkdir(parents=True)
    (prompts / "main.md").write_text(f"Use {planter.said('captured prompt')} for staging.\n")
    agent = planter.named("reviewer", "name of a captured prompt")
    (prompts / f"{agent}.md").write_text("Review it.\n")
    metadata = {"model": planter.named("m", "model in metadata.json"), "session_ids": [name]}
    (prompts.parent / "metadata.json").write_text(json.dumps(metadata))


class Search:
    """Looks for all that was planted in files, whatever form they have."""

    def __init__(self, planted: Planted) -> None:
        self.planted = planted
        self.needles = list(planted.needles())
        self._database: Any = hyperscan.Database()
        self._database.compile(
            expressions=[needle.encode() for needle, _ in self.needles],
            ids=list(range(len(self.needles))),
            elements=len(self.needles),
            flags=[hyperscan.HS_FLAG_CASELESS | hyperscan.HS_FLAG_SINGLEMATCH] * len(self.needles),
            literal=True,
        )

    def below(self, folder: Path) -> dict[str, list[str]]:
        """Return the secrets that are somewhere below a folder, and in which files."""
        found: dict[str, list[str]] = {}
        for path in sorted(folder.rglob("*")):
            where = str(path.relative_to(folder))
            texts = [where, *(texts_of(path) if path.is_file() else ())]
            for secret in sorted({secret for text in texts for secret in self.within(text)}):
                found.setdefault(secret, []).append(where)
        return found

    def within(self, text: str) -> set[str]:
        """Return the secrets that are in a text, or in what it decodes to."""
        found: set[str] = set()

        def on_match(number: int, *_: object) -> None:
            found.add(self.needles[number][1])

        for form in decoded_forms(text):
            if form:
                self._database.scan(form.encode("utf-8", "replace"), match_event_handler=on_match)
        return found


def texts_of(path: Path) -> Iterator[str]:
    """Yield what a file holds as text: its bytes, and the values of a table or a database."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:4] == b"\x28\xb5\x2f\xfd":
        data = zstandard.ZstdDecompressor().stream_reader(data).read()
    yield data.decode("utf-8", "replace")
    if data[:4] == b"PAR1":
        rows = pq.read_table(path).to_pylist()
        yield json.dumps(rows, ensure_ascii=False, default=str)
    elif data[:15] == b"SQLite format 3":
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            for (table,) in database.execute("select name from sqlite_master where type='table'"):
                yield "\n".join(map(str, database.execute(f'select * from "{table}"')))


_ESCAPED = re.compile(r'\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([nrt])|(["\\/]))')
_CODED = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def decoded_forms(text: str) -> Iterator[str]:
    """Yield a text, and what it is without escapes, percent signs, entities, colours, base64."""
    forms = [text]
    for _ in range(4):
        plain = _ESCAPED.sub(_unescaped, forms[-1])
        if plain == forms[-1]:
            break
        forms.append(plain)
    yield from forms
    last = forms[-1]
    yield from {
        form
        for form in (unquote(last), html.unescape(last), _COLOURS.sub("", last))
        if form != last
    }
    blobs = []
    for coded in _CODED.findall(last):
        try:
            blob = base64.b64decode(
                coded.rstrip("=") + "=" * (-len(coded.rstrip("=")) % 4),
                "-_" if "_" in coded or "-" in coded else None,
            )
        except ValueError:
            continue
        blobs.append(blob.decode("latin-1"))
    yield "\n".join(blobs)


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else "\n" if found[3] else found[4]
