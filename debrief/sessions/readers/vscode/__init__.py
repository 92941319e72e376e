"""Copilot's chats in VS Code: ``workspaceStorage/<workspace>/chatSessions/<id>.json``, a document a
chat; since 1.109 ``.jsonl``, a log of the changes to that document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, TranscriptReader
from debrief.sessions.readers.documents import JsonLines, JsonRecord
from debrief.sessions.readers.files import HEAD
from debrief.sessions.readers.values import first_string, mapping, mappings, moment, string
from debrief.sessions.readers.vscode.conversion import ChatRequest, number_of, path_of

_PRODUCTS = ("Code", "Code - Insiders", "VSCodium", "VSCodium - Insiders")
_SETTINGS = (".config", "Library/Application Support", "AppData/Roaming")
_SERVERS = (".vscode-server", ".vscode-server-insiders", ".vscodium-server", ".vscode-remote")
_CHATS = ("workspaceStorage/*/chatSessions", "globalStorage/*ChatSessions")
STREAMS = "GitHub.copilot-chat/transcripts"
"""Where the extension keeps events of the chats that are beside it in ``chatSessions``."""
_CREATED = re.compile(rb'(?<!\\)"creationDate"\s*:\s*(\d{10,13})\b')
_ASKED = re.compile(rb'(?<!\\)"timestamp"\s*:\s*(\d{10,13})\b')
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FIRST = re.compile(rb'(?<!\\)"requestId"\s*:\s*"(?:request_)?(' + _UUID.encode() + rb')"')
_INITIAL, _SET, _PUSH, _DELETE = range(4)


class VSCodeReader(TranscriptReader):
    """VS Code's chats: a document each, or in newer versions a log of its changes."""

    source = "vscode"
    tool = "copilot-vscode"
    tools = ToolNames(
        run="run_in_terminal copilot_runInTerminal",
        read="read_file copilot_readFile view_image",
        search="file_search copilot_findFiles grep_search copilot_findTextInFiles list_dir "
        "copilot_listDirectory semantic_search copilot_searchCodebase",
        edit="create_file copilot_createFile insert_edit_into_file copilot_insertEdit "
        "replace_string_in_file copilot_replaceString multi_replace_string_in_file "
        "copilot_multiReplaceString apply_patch copilot_applyPatch edit_notebook_file "
        "copilot_editNotebook edit_files vscode_editFile_internal",
        wait="get_terminal_output copilot_getTerminalOutput await_terminal",
        plan="manage_todo_list",
        delegate="runSubagent",
        ask="vscode_askQuestions",
        web="fetch_webpage copilot_fetchWebPage vscode_fetchWebPage_internal",
    )
    suffixes = (".json", ".jsonl")
    start = re.compile(
        rb'\A\s*\{\s*"(?:kind"\s*:\s*0\s*,\s*"v"|version"|re\w+er\w+"|initialLocation")'
    )
    marks = (
        re.compile(rb'(?<!\\)"requests"\s*:\s*\['),
        re.compile(rb'(?<!\\)"(?:responderUsername|creationDate)"\s*:'),
    )
    message_mark = re.compile(b'"requestId"')

    def folders(self, home: Path, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """Return the chats' folders of every workspace, for there are other things beside them."""
        moved = [Path(folder)] if (folder := environ.get("XDG_CONFIG_HOME")) else []
        settings = [*moved, *(home / folder for folder in _SETTINGS)]
        users = [folder / product / "User" for folder in settings for product in _PRODUCTS]
        users += [home / server / "data/User" for server in _SERVERS]
        return tuple(at for user in users for chats in _CHATS for at in sorted(user.glob(chats)))

    def beside(self, path: str) -> tuple[str, ...]:
        """Return the stream of a chat's events, which tells the same once more."""
        stream = Path(path).parents[1] / STREAMS / f"{Path(path).stem}.jsonl"
        return (str(stream),) if stream.is_file() else ()

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the beginning says, and the end, where a document tells its time."""
        text = head if head.is_whole else head + _end_of(path)
        made = _CREATED.search(text) or _ASKED.search(text)
        started = moment(int(made[1])) if made else None
        return Peek(session_id=_identity(head, path), started=started, root=head.text(_FIRST))

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one chat."""
        draft, log = TranscriptDraft(path), _Log()
        if path.endswith(".jsonl"):
            draft.read_lines(log.read)
        else:
            log.document = draft.load(path)
        draft.id = _identity(Head.of(path), path)
        draft.title = first_string(log.document, "customTitle", "computedTitle")
        requests = mappings(log.document.get("requests"))
        draft.cwd = _folder(log.document, requests, path)
        state = mapping(log.document.get("repoData"))
        draft.take(state, branch="localBranch", commit="localHeadCommit")
        draft.repository = string(state.get("remoteUrl")).rpartition("/")[2].removesuffix(".git")
        draft.see(moment(log.document.get("creationDate")))
        kept = {string(request.get("requestId")) for request in requests}
        if dropped := [each for id, each in log.dropped.items() if id not in kept]:
            requests = sorted(
                requests + dropped, key=lambda request: number_of(request, "timestamp")
            )
        partial = 0
        for request in requests:
            is_dropped = string(request.get("requestId")) not in kept
            partial += ChatRequest(request, draft).convert(is_dropped)
        if partial:
            draft.report(0, f"requests that tell only their last call's input tokens: {partial}")
        return draft


READER = VSCodeReader()


def _identity(head: Head, path: str) -> str:
    """Return a chat's id: its file's name, or its first request's id where that is no id."""
    stem = Path(path).stem
    return stem if re.fullmatch(_UUID, stem) else head.text(_FIRST) or stem


def _end_of(path: str) -> bytes:
    with suppress(OSError), open(path, "rb") as file:  # noqa: PTH123
        file.seek(max(0, file.seek(0, 2) - HEAD))
        return file.read()
    return b""


def _folder(document: JsonRecord, requests: list[JsonRecord], path: str) -> str:
    """Return the folder that a chat is about, as its workspace or its first request tells it."""
    beside = None
    if Path(path).parent.name == "chatSessions":
        workspace = Path(path).parents[1] / "workspace.json"
        with suppress(OSError, ValueError):
            beside = orjson.loads(workspace.read_bytes() if workspace.is_file() else b"")
    named = [document.get("workingDirectory"), mapping(beside).get("folder")]
    for request in requests[:1]:
        metadata = mapping(mapping(request.get("result")).get("metadata"))
        named.append(string(metadata.get("cacheKey")).partition(",")[0])
        named += [part.get("baseUri") for part in mappings(request.get("response"))]
    return next((folder for uri in named if (folder := path_of(uri).rstrip("/"))), "")


class _Log:
    """A chat's document, as the entries of its log make it."""

    def __init__(self) -> None:
        self.document: JsonRecord = {}
        self.dropped: dict[str, JsonRecord] = {}
        """The requests that were taken back or asked anew, by their ids."""

    def read(self, lines: JsonLines, draft: TranscriptDraft) -> None:
        for entry in lines:
            kind, value = entry.get("kind"), entry.get("v")
            if type(kind) is not int or not _INITIAL <= kind <= _DELETE:
                lines.report("an entry of a kind that is not known")
            elif kind == _INITIAL:
                self.document = mapping(value)
            else:
                try:
                    self._apply(kind, entry["k"], value, entry.get("i"))
                except (KeyError, IndexError, TypeError, ValueError):
                    lines.report("an entry changes what is not there")

    def _apply(self, kind: int, way: list[Any], value: Any, length: Any) -> None:
        target: Any = self.document
        *outer, last = way
        for key in outer:
            target = target[_key(target, key)]
        last = _key(target, last)
        if kind == _DELETE:
            target.pop(last, None)
        elif kind == _PUSH:
            items = target.setdefault(last, []) if type(target) is dict else target[last]
            if type(items) is not list:
                raise TypeError
            if type(length) is int and length >= 0:
                if way == ["requests"]:
                    gone = mappings(items[length:])
                    self.dropped.update((string(each.get("requestId")), each) for each in gone)
                del items[length:]
            items += value if type(value) is list else []
        elif type(target) is list and last == len(target):
            target.append(value)
        else:
            target[last] = value


def _key(target: Any, key: Any) -> Any:
    """Return a key that fits its target: a name, or an index that counts from the front."""
    if type(key) is not (str if type(target) is dict else int) or (type(key) is int and key < 0):
        raise TypeError
    return key
