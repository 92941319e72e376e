"""Convert a Codex rollout's records into events of its session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.codex import records
from debrief.sessions.readers.codex.calls import RolloutCalls, TokenMeter
from debrief.sessions.readers.documents import JsonLines, JsonRecord
from debrief.sessions.readers.timeline import NO_USAGE, MessageDraft, TurnDraft
from debrief.sessions.readers.values import (
    declared_tools,
    first_string,
    inside,
    mapping,
    mappings,
    moment,
    qualified,
    string,
    whole_number,
    without,
)

_ABORTED = "<turn_aborted>"
_Take = Callable[[JsonRecord, datetime | None], object]
"""Takes a record's payload, and its time."""


class Rollout:
    """Reports what records say to a draft's timeline, in the light of those before."""

    def __init__(self, draft: TranscriptDraft) -> None:
        self._draft = draft
        self._timeline = draft.timeline
        self._meter = TokenMeter()
        self._model = ""
        self._answered = False
        """The model's latest message is complete: what it says next begins another one."""
        self._unpaired: Counter[tuple[str, str]] = Counter()
        self._has_prompt_events = False
        self._reviewing = False
        self._numbered = 0
        self._thread = ""
        self._record: JsonRecord = {}
        self._begun: list[tuple[int, TurnDraft]] = []
        """The turns, and the numbers of the records that began them."""
        self._certain: list[TurnDraft] = []
        """Those of which the record itself says that a person began them."""
        self._replies: set[str] = set()
        self._goals: set[str] = set()
        self._history: list[JsonRecord] = []
        """What the session has from the one that it was forked from."""
        self._calls = RolloutCalls(draft, self._current_message)
        self._items: dict[str, _Take] = {
            "message": self._message,
            "reasoning": self._thought,
            "function_call": self._called,
            "custom_tool_call": self._called,
            "tool_search_call": self._called,
            "local_shell_call": self._ran,
            "web_search_call": self._searched,
            "function_call_output": self._calls.output,
            "custom_tool_call_output": self._calls.output,
            "tool_search_output": self._found,
            "additional_tools": self._declared,
            "agent_message": self._heard,
            "token_count": self._tokens,
        }
        self._events: dict[str, _Take] = {
            "item_completed": self._completed,
            "user_message": self._asked,
            "agent_message": self._said_by_event,
            "token_count": self._tokens,
            "exec_command_end": self._calls.executed,
            "patch_apply_end": self._calls.patched,
            "mcp_tool_call_end": self._calls.served,
            "dynamic_tool_call_response": self._calls.dynamic,
            "turn_aborted": self._aborted,
            "entered_review_mode": self._review,
            "exited_review_mode": self._review,
            "sub_agent_activity": self._spawned,
            "thread_goal_updated": self._aim,
            "thread_rolled_back": self._roll_back,
            "thread_name_updated": self._named,
        }
        self._others: dict[str, _Take] = {
            "session_meta": self._meta,
            "turn_context": self._context,
            "token_usage_record": self._usage,
            "compacted": self._compact,
        }

    def read(self, lines: JsonLines, _: TranscriptDraft) -> None:
        """Take a file's records, in their order."""
        copied = records.CopiedHistory()
        previous: JsonRecord | None = None
        for record in lines:
            if record == previous:
                lines.report("the record repeats the one before and was counted once")
                continue
            previous = record
            is_meta = record.get("type") == "session_meta"
            if is_meta and not self._draft.id:
                self._history += records.history_elsewhere(record, lines)
            if (is_meta or copied.is_open) and copied.holds(record):
                self._meter.inherit(mapping(record.get("payload")))
                self._history.append(record)
                continue
            self._add(record, lines)

    def take(self, records: Iterable[JsonRecord], lines: JsonLines) -> None:
        """Take records that are in no file; ``lines`` gets what is wrong with them."""
        for record in records:
            self._add(record, lines)

    def _add(self, record: JsonRecord, lines: JsonLines) -> None:
        kind = record.get("type")
        at = moment(record.get("timestamp"))
        payload = record.get("payload")
        if type(payload) is not dict:
            if "payload" in record:
                lines.report("a record without a payload")
                return
            kind, payload = records.unwrapped(record)
        at = at or moment(payload.get("timestamp"))
        self._record = record
        self._draft.see(at)
        if kind == "response_item":
            item = payload.get("type") or ("message" if "role" in payload else "")
            take = self._items.get(item) if type(item) is str else None
        elif kind == "event_msg":
            event = payload.get("type")
            take = self._events.get(event) if type(event) is str else None
        else:
            take = self._others.get(kind) if type(kind) is str else None
        if take is not None:
            take(payload, at)

    def finish(self) -> None:
        """Settle what only the whole rollout tells."""
        if self._history and not (self._draft.parent or self._draft.is_subagent):
            self._inherit()
        for turn in self._certain:
            turn.provisional = False
        if self._has_prompt_events:
            self._timeline.settle()
        self._calls.finish()
        if self._meter.calls:
            self._draft.api_calls = self._meter.calls
        self._draft.reported_usage = self._meter.reported

    def _inherit(self) -> None:
        """Put the turns of the history before the session's own; they count elsewhere. Its prompt
        files were in this session's requests too."""
        copy = TranscriptDraft(self._draft.path)
        rollout = Rollout(copy)
        rollout.take(self._history, JsonLines(copy.path))
        rollout.finish()
        for turn in copy.timeline.turns:
            turn.origin = "inherited"
            for message in turn.messages:
                message.usage = NO_USAGE
        self._timeline.turns[:0] = copy.timeline.turns
        self._draft.instructions[:0] = [
            given for given in copy.instructions if given not in self._draft.instructions
        ]

    def _meta(self, payload: JsonRecord, _: datetime | None) -> None:
        draft, page = self._draft, records.page_of(payload)
        if draft.id:
            if page is not None:
                self._take_back(page)
            return
        draft.take(payload, id="id", cwd="cwd", version="cli_version")
        self._thread = draft.id
        draft.id = draft.id if page is None else page.id
        instructions = payload.get("base_instructions")
        draft.system_prompt = string(mapping(instructions).get("text")) or string(instructions)
        draft.shows_instructions = bool(draft.system_prompt)
        draft.take(payload, agent_type="agent_role", title="agent_nickname")
        self._model = self._model or string(payload.get("model"))
        draft.parent = records.parent_of(payload)
        draft.take(payload, relative_of="forked_from_id")
        source = mapping(payload.get("source"))
        draft.is_subagent = "subagent" in source
        draft.take(source, agent_type="subagent")
        draft.declared += declared_tools(records.loaded_tools(payload.get("dynamic_tools")))
        git = mapping(payload.get("git"))
        draft.take(git, branch="branch", commit="commit_hash")
        draft.repository = records.repository_of(string(git.get("repository_url")))

    def _take_back(self, page: records.ThreadPage) -> None:
        """Begin a page: the turns from where it does on were taken back, tokens and all."""
        for number, turn in self._begun:
            turn.rewound = turn.rewound or number >= page.first
        self._timeline.message = None
        self._meter.restart()

    def _roll_back(self, payload: JsonRecord, _: datetime | None) -> None:
        """Note that the person took back the last few turns."""
        turns = whole_number(payload.get("num_turns"))
        kept = [turn for _, turn in self._begun if not turn.rewound]
        for turn in kept[len(kept) - min(turns, len(kept)) :]:
            turn.rewound = True

    def _compact(self, payload: JsonRecord, _: datetime | None) -> None:
        """Record a compaction; the answer that is the summary was no answer to the person."""
        summary = string(payload.get("message"))
        message = self._timeline.message
        said = "\n".join(message.texts) if message is not None and not message.calls else ""
        if message is not None and said and summary.endswith(said):
            self._timeline.turns[-1].messages.remove(message)
            self._timeline.message = None
        self._timeline.compact(summary)

    def _context(self, payload: JsonRecord, _: datetime | None) -> None:
        self._model = string(payload.get("model")) or self._model
        self._draft.take(payload, cwd="cwd")

    def _called(self, payload: JsonRecord, at: datetime | None) -> None:
        given = payload.get("arguments", payload.get("input"))
        name = string(payload.get("name")) or string(payload.get("type")).removesuffix("_call")
        name = qualified(payload.get("namespace"), name)
        self._calls.made(string(payload.get("call_id")), name, given, at)

    def _ran(self, payload: JsonRecord, at: datetime | None) -> None:
        name = first_string(payload, "call_id", "id")
        self._calls.made(name, "local_shell", payload.get("action"), at)

    def _searched(self, payload: JsonRecord, at: datetime | None) -> None:
        name, given = string(payload.get("id")), payload.get("action")
        call = self._calls.made(name, "web_search", given, at)
        self._timeline.result(call, None, failed=payload.get("status") == "failed", at=at)

    def _found(self, payload: JsonRecord, at: datetime | None) -> None:
        self._declared(payload, at)
        self._calls.output(payload, at)

    def _declared(self, payload: JsonRecord, _: datetime | None) -> None:
        self._draft.declared += declared_tools(payload.get("tools"))

    def _thought(self, payload: JsonRecord, _: datetime | None) -> None:
        """Keep what the model thought for its next message: its reasoning, else a summary of it."""
        for name in ("content", "summary"):
            texts = [string(block.get("text")) for block in mappings(payload.get(name))]
            if any(texts):
                self._timeline.thoughts += texts
                return

    def _message(self, payload: JsonRecord, at: datetime | None) -> None:
        if payload.get("role") == "assistant":
            blocks = mappings(payload.get("content"))
            words = "".join(string(block.get("text")) for block in blocks)
            self._say(words or string(payload.get("content")), "item", at)
            return
        if payload.get("role") == "developer":
            for block in mappings(payload.get("content")):
                self._timeline.add_context("program", string(block.get("text")), at, is_ahead=True)
        if payload.get("role") != "user":
            return
        said = records.said(payload)
        if any(note.startswith(_ABORTED) for note in said.notes):
            self._timeline.interrupt(at)
        for note in said.notes:
            if records.instructions_in(note) is None:
                is_ahead = not records.is_notice(note)
                self._timeline.add_context(records.source_of(note), note, at, is_ahead=is_ahead)
        if any(map(records.is_environment, said.notes)):
            self._draft.shows_instructions = True
        found = filter(None, map(records.instructions_in, said.notes))
        self._draft.add_instructions(found, "message")
        if not (said.words or said.images) or self._replied(said.words, at):
            return
        self._reviewing = False
        text = records.own_words(said.words)
        if self._timeline.fresh_prompt() != text:
            self._prompt(text, at, said.images, provisional=True)
            if said.is_certain:
                self._certain.append(self._timeline.turns[-1])

    def _replied(self, words: str, at: datetime | None) -> bool:
        """Record what a person answered to a question, once; return whether ``words`` do so."""
        if not words.lstrip().startswith(f"<{records.REPLY}>"):
            return False
        if words not in self._replies:
            self._replies.add(words)
            answer = inside(words, records.REPLY) or words.lstrip()[len(records.REPLY) + 2 :]
            self._timeline.intervene("answer", answer.strip(), at)
        return True

    def _heard(self, payload: JsonRecord, at: datetime | None) -> None:
        """Take what another agent has to say; to a subagent the first is what it is asked."""
        blocks = mappings(payload.get("content"))
        words = "\n".join(filter(None, (string(block.get("text")) for block in blocks)))
        if self._draft.is_subagent and not self._timeline.turns:
            self._draft.prompt = self._draft.prompt or words.partition("Payload:\n")[2].strip()
        else:
            self._timeline.add_context("agent", words, at)

    def _completed(self, payload: JsonRecord, at: datetime | None) -> None:
        thread = string(payload.get("thread_id"))
        if thread != self._thread and records.is_id(thread):
            return  # a reviewer's, whose own rollout has it
        event = records.event_of(mapping(payload.get("item")))
        if event:
            self._events[event["type"]](event, at)

    def _said_by_event(self, payload: JsonRecord, at: datetime | None) -> None:
        self._say(string(payload.get("message")), "event", at)

    def _aborted(self, _: JsonRecord, at: datetime | None) -> None:
        self._reviewing = False
        self._timeline.interrupt(at)

    def _review(self, payload: JsonRecord, at: datetime | None) -> None:
        self._reviewing = payload.get("type") == "entered_review_mode"
        if self._reviewing:
            hint = string(payload.get("user_facing_hint"))
            self._timeline.intervene("slash_command", f"/review {hint}".strip(), at)

    def _spawned(self, payload: JsonRecord, _: datetime | None) -> None:
        agent = string(payload.get("agent_thread_id"))
        self._draft.child_calls.setdefault(agent, string(payload.get("call_id")))

    def _named(self, payload: JsonRecord, _: datetime | None) -> None:
        self._draft.title = string(payload.get("thread_name")) or self._draft.title

    def _aim(self, payload: JsonRecord, at: datetime | None) -> None:
        """Record the goal that a person set, once; the model sets goals by a call."""
        goal = string(mapping(payload.get("goal")).get("objective"))
        calls = (call for call in self._timeline.calls.values() if call.name == "create_goal")
        goals = {string(call.arguments.get("objective")) for call in calls}
        if goal and goal not in (goals | self._goals):
            self._goals.add(goal)
            self._timeline.intervene("slash_command", f"/goal {goal}", at)

    def _asked(self, payload: JsonRecord, at: datetime | None) -> None:
        self._has_prompt_events = True
        words = string(payload.get("message"))
        if self._reviewing or self._replied(words, at):
            return
        text = records.own_words(words).strip()
        images = sum(
            len(part)
            for part in (payload.get("images"), payload.get("local_images"))
            if type(part) is list
        )
        if not text and not images:
            return
        if not self._timeline.confirm(text, images):
            self._prompt(text, at, images, provisional=False)

    def _prompt(self, text: str, at: datetime | None, images: int, *, provisional: bool) -> None:
        turn = self._timeline.prompt(text, at, images)
        turn.provisional = provisional
        self._begun.append((records.ordinal_of(self._record), turn))
        self._unpaired.clear()
        self._calls.scripts.clear()

    def _say(self, text: str, origin: str, at: datetime | None) -> None:
        """Add the model's words, which an event and an item hold once each, in either order."""
        if records.CITATION in text:
            text = without(text, (records.CITATION,))
        text = text.strip("\n")
        if not text.strip():
            return
        other = ("event" if origin == "item" else "item", text)
        if self._unpaired[other] > 0:
            self._unpaired[other] -= 1
            return
        self._unpaired[origin, text] += 1
        self._current_message(at).texts.append(text)

    def _current_message(self, at: datetime | None) -> MessageDraft:
        self._reviewing = False
        message = self._timeline.message
        if message is None or self._answered or records.has_results(message):
            self._numbered += 1
            name = f"{self._draft.id or 'message'}-{self._numbered}"
            message = self._timeline.begin_message(name, self._model, at)
            self._answered = False
        elif self._timeline.thoughts:
            message.thoughts += self._timeline.thoughts
            self._timeline.thoughts = []
        return message

    def _usage(self, payload: JsonRecord, _: datetime | None) -> None:
        self._spend(self._meter.read_record(payload))

    def _tokens(self, payload: JsonRecord, _: datetime | None) -> None:
        if not self._meter.has_records:
            self._model = self._model or string(mapping(payload.get("info")).get("model"))
            self._spend(self._meter.read(payload))

    def _spend(self, usage: Usage | None) -> None:
        if usage is not None:
            if self._timeline.message is None or self._answered:
                self._current_message(None)
            self._timeline.spend(usage)
            self._answered = True
