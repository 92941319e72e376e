"""Codex CLI: ``~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl``, compressed ones too.

There are three layouts: bare items, items and events in envelopes, and "paginated" ones, whose
events are completed items. A person's prompts are the events that say so; of the other messages
in the user's name, the record tells whose words they are, or their beginning does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from debrief.sessions.model import Problem, Session
from debrief.sessions.readers.assembly import TranscriptDraft, assemble
from debrief.sessions.readers.base import (
    Claims,
    Head,
    Peek,
    ToolNames,
    Transcript,
    TranscriptReader,
)
from debrief.sessions.readers.codex import records
from debrief.sessions.readers.codex.conversion import Rollout
from debrief.sessions.readers.documents import JsonLines, JsonRecord
from debrief.sessions.readers.files import SUFFIX, Walk
from debrief.sessions.readers.timeline import NO_USAGE
from debrief.sessions.readers.values import string

_WRAPPED = re.compile(
    rb'(?<!\\)"type"\s*:\s*"(?:session_meta|turn_context|response_item|event_msg|compacted)"'
)
_PAYLOAD = re.compile(rb'(?<!\\)"payload"\s*:\s*\{')
_BARE = re.compile(rb'\A\s*\{"id"\s*:\s*"[^"]*",\s*"timestamp"\s*:\s*"[^"]*",\s*"instructions"\s*:')
_ID = re.compile(rb'(?<!\\)"id"\s*:\s*"([^"\\]+)"')
_PARENT = re.compile(rb'(?<!\\)"parent_thread_id"\s*:\s*"([^"\\]+)"')
_BOOKKEEPING = frozenset({"", "session_meta", "turn_context", "compacted", "world_state"})


class CodexReader(TranscriptReader):
    """Codex's rollouts, one a session."""

    source = "codex"
    tool = "codex"
    tools = ToolNames(
        run="shell exec_command local_shell shell_command container.exec unified_exec exec",
        read="read_file view_image",
        search="grep_files list_dir",
        edit="apply_patch",
        wait="write_stdin wait wait_agent",
        plan="update_plan",
        delegate="spawn_agent send_input resume_agent",
        ask="request_user_input",
        web="web_search web__run",
    )
    home_folders = (".codex/sessions", ".codex/archived_sessions")
    suffixes = (".jsonl", f".jsonl{SUFFIX}")
    moved_by = ("CODEX_HOME", ".codex")

    def claims(self, head: bytes, path: str) -> bool:
        """Return whether a beginning is a rollout's, of the wrapped or the bare layout."""
        first = head.lstrip().partition(b"\n")[0]
        return bool((_WRAPPED.search(first) and _PAYLOAD.search(first)) or _BARE.match(head))

    def transcripts(self, walk: Walk, claims: Claims) -> Iterator[Transcript]:
        """Yield the rollouts, each once: while Codex compresses one it is there twice."""
        own, names = claims[self.source], {file.path for file in walk.files}
        copies = {f"{name}{SUFFIX}" for name in names} & names
        once = {path: beginning for path, beginning in own.items() if path not in copies}
        for found in super().transcripts(walk, {self.source: once}):
            paths = (f"{path}{SUFFIX}" for path in (found.path, *found.companions))
            beside = tuple(path for path in paths if path in copies)
            yield replace(found, companions=(*found.companions, *beside)) if beside else found

    def describe(self, head: Head, path: str) -> Peek | None:
        """Return what the beginning says; a session without an id is named after its file."""
        heads = head.records()
        has_content = any(string(head.get("type")) not in _BOOKKEEPING for head in heads)
        if head.is_whole and not has_content:
            return None
        meta = next((meta for record in heads if (meta := records.meta_of(record))), {})
        identity, parent = string(meta.get("id")), records.parent_of(meta)
        if not heads:  # the first record, which may hold long instructions, goes on
            identity, parent = head.text(_ID), head.text(_PARENT)
        page = records.page_of(meta)
        if page is not None:
            identity, parent = page.id, page.thread
        identity = identity or records.id_in_name(path)
        return Peek(session_id=identity, started=head.first_time(), parent=parent)

    def read_file(self, path: str, pages: tuple[str, ...] = ()) -> TranscriptDraft:
        """Read one rollout, and the pages that its thread goes on in."""
        draft = TranscriptDraft(path)
        rollout = Rollout(draft)
        for each in (path, *pages):
            draft.read_lines(rollout.read, each)
        rollout.finish()
        draft.id = draft.id or records.id_in_name(path)
        return draft

    def read_main(self, transcript: Transcript) -> TranscriptDraft:
        """Read a session's own rollout with its pages."""
        return self.read_file(transcript.path, tuple(filter(_is_page, _rollouts(transcript))))

    def read_children(
        self, transcript: Transcript, draft: TranscriptDraft
    ) -> Iterator[TranscriptDraft]:
        """Read the subagents' rollouts, whose tokens Codex's totals of the session leave out."""
        agents = tuple(path for path in _rollouts(transcript) if not _is_page(path))
        for child in super().read_children(replace(transcript, companions=agents), draft):
            if draft.reported_usage is not None:
                draft.reported_usage += child.reported_usage or NO_USAGE
            yield child


def session_of_records(
    path: str, records: Iterable[JsonRecord], problems: Sequence[Problem] = ()
) -> Session:
    """Return the session of records that were in a rollout, wherever they come from.

    Args:
        path: in place of the rollout's.
        records: in their order.
        problems: what is known to be missing.
    """
    draft, lines = TranscriptDraft(path), JsonLines(path)
    rollout = Rollout(draft)
    rollout.take(records, lines)
    rollout.finish()
    draft.problems = [*problems, *lines.problems]
    return assemble(draft, source=READER.source, tool=READER.tool)


def _rollouts(transcript: Transcript) -> tuple[str, ...]:
    """Return the companions without the compressed copies of what is there plain."""
    copies = {f"{path}{SUFFIX}" for path in (transcript.path, *transcript.companions)}
    return tuple(path for path in transcript.companions if path not in copies)


def _is_page(path: str) -> bool:
    metas = map(records.meta_of, Head.of(path).records())
    return any(records.page_of(meta) is not None for meta in metas)


READER = CodexReader()
