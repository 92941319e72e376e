"""A session's messages in OpenAI's chat form.

The conversation holds what the person said, what the model said and called, and what came back,
in strict turns: a user message, then assistant messages with their results, closed by an
assistant message without calls. What the transcript lacks is neither invented nor left open: a
fixed text in round brackets stands for it, and is counted. An assistant message of ours carries
``weight`` 0, OpenAI's mark for what is not trained on.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from debrief.sessions.model import Message, ToolCall
from debrief.training.formats import call_arguments, call_id, function_name
from debrief.training.model import ChatCall, ChatFunction, ChatMessage

NO_PROMPT = "(no prompt recorded)"
NO_RESULT = "(no result recorded)"
REJECTED = "(the user rejected this call)"
TURN_ENDED = "(the turn ended here)"


class Conversation:
    """A conversation as it grows, turn by turn, in the order that every chat template takes."""

    def __init__(self, system: str = "") -> None:
        self.calls: list[tuple[str, dict[str, object]]] = []
        """Each call's tool, as the transcript names it, and its arguments."""
        self.stand_ins = 0
        self._messages: list[ChatMessage] = []
        if system.strip():
            self._messages.append(ChatMessage(role="system", content=system))

    def add_turn(self, prompt: str, images: int, answers: Sequence[Message]) -> None:
        """Add a human prompt and what the model did until the next one."""
        answers = [answer for answer in answers if answer.text.strip() or answer.calls]
        if not prompt.strip():
            if not answers and not images:
                return
            prompt = f"({images} image{'s'[: images > 1]})" if images else NO_PROMPT
            self.stand_ins += 1
        self._close_turn()
        if self._last == "user":
            self._messages[-1] = _joined(self._messages[-1], prompt)
        else:
            self._messages.append(ChatMessage(role="user", content=prompt))
        for answer in answers:
            self._add_answer(answer)

    def close(self) -> tuple[ChatMessage, ...]:
        """End the conversation on an assistant message without calls, and return it.

        A prompt that was never answered is taken off again.
        """
        self._close_turn()
        if self._last == "user":
            self._messages.pop()
        return marked(self._messages)

    @property
    def _last(self) -> str:
        return self._messages[-1].role if self._messages else ""

    def _add_answer(self, answer: Message) -> None:
        text = answer.text if answer.text.strip() else ""
        calls = tuple(self._call(call) for call in answer.calls)
        if self._last == "assistant":
            message = _joined(self._messages.pop(), text)
        else:
            message = ChatMessage(role="assistant", content=text)
        self._messages.append(replace(message, tool_calls=calls) if calls else message)
        for call, source in zip(calls, answer.calls, strict=True):
            self._messages.append(
                ChatMessage(role="tool", content=self._result(source), tool_call_id=call.id)
            )

    def _call(self, call: ToolCall) -> ChatCall:
        arguments, text = call_arguments(call.input)
        self.calls.append((call.name, arguments))
        return ChatCall(
            id=call_id(len(self.calls)),
            type="function",
            function=ChatFunction(name=function_name(call.name), arguments=text),
        )

    def _result(self, call: ToolCall) -> str:
        if call.result is not None:
            return call.result
        self.stand_ins += 1
        return REJECTED if call.status == "rejected" else NO_RESULT

    def _close_turn(self) -> None:
        closed = ending_on_words(self._messages)
        self.stand_ins += len(closed) - len(self._messages)
        self._messages = closed


def ending_on_words(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Put an assistant message behind results that the model never answered."""
    if not messages or messages[-1].role != "tool":
        return messages
    return [*messages, ChatMessage(role="assistant", content=TURN_ENDED, weight=0)]


def marked(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return the messages of a line, with explicit weights when none of them calls a tool.

    Without calls all roles have the same keys, and a loader would make of them a record in which
    other lines' calls have no place; a weight of 1 says what holds anyway.
    """
    if any(message.tool_calls for message in messages):
        return tuple(messages)
    return tuple(
        replace(message, weight=1) if message.role == "assistant" else message
        for message in messages
    )


def _joined(message: ChatMessage, text: str) -> ChatMessage:
    parts = [part for part in (message.content, text) if part]
    return replace(message, content="\n\n".join(parts))
