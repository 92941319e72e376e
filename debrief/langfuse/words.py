"""What a person asked for and what was answered, in inputs and outputs of any form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from debrief.langfuse.chat import Memory, said_by, said_to
from debrief.langfuse.messages import Said
from debrief.langfuse.parts import Parts
from debrief.langfuse.values import decoded, plain

_ANSWERS = ("content", "text", "output", "answer", "response", "result", "completion", "message")
_REQUESTS = ("prompt", "input", "query", "question", "messages", "content", "text", "message")
_BESIDE = ("tools", "functions", "tool_choice", "function_call", "toolChoice", "model")
"""What is beside the words in a request, and is none."""
_CALLED = {"args", "kwargs"}
"""How a traced function's input is written down."""
_DEEPEST = 8


class UserRequest(Struct, frozen=True, kw_only=True):
    """What an input asks for."""

    text: str = ""
    images: int = 0
    in_words: bool = False
    """False where the text is only the data that the input is."""
    goes_on: bool = False
    """Nobody says anything new: the last are results of calls."""
    requests: int = 0
    """How often a person spoke up to here, where the input has what was said before."""
    said: tuple[Said, ...] = ()
    """The conversation that the input is, if it is one."""

    def is_next_after(self, other: UserRequest) -> bool:
        """Return whether this is asked later in the conversation in which the other was asked."""
        before = [one.text for one in self.said if one.role == "user" and one.has_words][:-1]
        return not self.goes_on and self.requests > other.requests and other.text in before


def request_in(value: object, memory: Memory | None = None) -> UserRequest:
    """Return what an input asks for: of a conversation what a person said last.

    Args:
        value: decoded or as text.
        memory: of the session's requests.
    """
    value = _called_with(decoded(value))
    if said := said_to(value, memory):
        return _asked_last(said)
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if key not in _BESIDE} or None
    words = words_in(value, _REQUESTS)
    return UserRequest(text=words or data_in(value), in_words=bool(words.strip()))


def answer_in(value: object) -> str:
    """Return the words of an output: of a conversation what the model said last; empty when it
    is only data."""
    value = decoded(value)
    if said := said_by(value):
        answers = [one.text for one in said if one.role == "assistant" and one.text.strip()]
        return answers[-1] if answers else ""
    return words_in(value, _ANSWERS)


def words_in(value: object, keys: Iterable[str], depth: int = _DEEPEST) -> str:
    """Return the words in a value that is no conversation; empty when it is only data.

    Of an object they stand under the first of ``keys`` that holds any, or under its only key.
    """
    value = decoded(value)
    if isinstance(value, list):
        parts = Parts()
        parts.add_all(item for item in value if isinstance(item, dict))
        return parts.text if value and parts.known == len(value) else ""
    if not isinstance(value, dict):
        return plain(value)
    if not depth:
        return ""
    found = (words_in(value[key], keys, depth - 1) for key in keys if value.get(key))
    if words := next(filter(None, found), ""):
        return words
    only = next(iter(value.values())) if len(value) == 1 else None
    return plain(only) if isinstance(only, str) else ""


def data_in(value: object) -> str:
    """Return a value as text, as it was written where it was; an empty one as none."""
    return "" if decoded(value) in ([], {}) else plain(value)


def _asked_last(said: tuple[Said, ...]) -> UserRequest:
    people = [one for one in said if one.role == "user" and one.has_words]
    last = _last_but_a_beginning(said)
    goes_on = last is not None and not (last.role == "user" and last.has_words)
    own = "" if goes_on else said[-1].text
    return UserRequest(
        text=people[-1].text if people else own,
        images=people[-1].images if people else 0,
        in_words=bool(people),
        goes_on=goes_on,
        requests=len(people),
        said=said,
    )


def _last_but_a_beginning(said: Sequence[Said]) -> Said | None:
    """Return the last message, instructions apart, and apart from the beginning of an answer that
    the model is given to go on from."""
    others = [one for one in said if one.role != "system"]
    while len(others) > 1 and others[-1].role == "assistant" and not others[-1].calls:
        others.pop()
    return others[-1] if others else None


def _called_with(value: object) -> object:
    """Return the argument of a traced function that holds what was asked."""
    if not isinstance(value, dict) or not value or not set(value) <= _CALLED:
        return value
    args, kwargs = value.get("args", []), value.get("kwargs", {})
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        return value
    given = [decoded(one) for one in (*args, *kwargs.values())]
    if len(given) == 1:
        return given[0]
    for one in given:
        if isinstance(one, list | dict) and said_to(one):
            return one
    return kwargs if kwargs and not args else value
