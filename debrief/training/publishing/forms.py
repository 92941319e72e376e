"""The forms in which a training set can be published."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from debrief.errors import InputError
from debrief.training.model import SampleMetadata
from debrief.training.publishing import openai, preference, reward, sharegpt, trl
from debrief.training.publishing.columns import Column, Columns, ListOf, column_of
from debrief.training.publishing.conversations import Made, StoredLine
from debrief.training.validation import validate_line

Rubrics = reward.Rubrics


class Form(Struct, frozen=True, kw_only=True):
    """One form: what it makes of stored lines, and what its readers ask of the result."""

    name: str
    reader: str
    """Who reads it, in words."""
    columns: Columns
    note: str
    """What a person should know of it."""
    convert: Callable[[StoredLine, Rubrics], Iterable[Made]] | None
    """From a stored line to lines; None where lines are paired."""
    problems: Callable[[bytes], Iterable[str]]
    """What is wrong with a line by the rules of who reads it."""
    fewest: int = 0
    """Lines that its reader asks for at least."""


def _as_stored(stored: StoredLine, rubrics: Rubrics) -> Iterator[Made]:
    """Yield a line as it is: it was validated when it was stored, and is read with its digest."""
    yield (stored.line,), ()


_JSON_LIST: Column = ListOf("json")

FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        Form(
            name="messages",
            reader="`datasets`, and whatever reads OpenAI's chat form",
            columns={
                "messages": _JSON_LIST,
                "tools": _JSON_LIST,
                "metadata": column_of(SampleMetadata),
            },
            note="The stored lines themselves, `arguments` as JSON text.",
            convert=_as_stored,
            problems=validate_line,
        ),
        Form(
            name="trl",
            reader="TRL's `SFTTrainer`",
            columns=trl.COLUMNS,
            note=trl.NOTE,
            convert=trl.convert,
            problems=trl.problems,
        ),
        Form(
            name="openai",
            reader="OpenAI's fine-tuning service",
            columns={"messages": _JSON_LIST, "tools": _JSON_LIST},
            note=openai.NOTE,
            convert=openai.convert,
            problems=openai.problems,
            fewest=openai.FEWEST,
        ),
        Form(
            name="sharegpt",
            reader="LLaMA-Factory and others that read ShareGPT",
            columns=sharegpt.COLUMNS,
            note=sharegpt.NOTE,
            convert=sharegpt.convert,
            problems=sharegpt.problems,
        ),
        Form(
            name="preference",
            reader="TRL's `RewardTrainer`, and `DPOTrainer` where `same_prompt` is true",
            columns=preference.COLUMNS,
            note=preference.NOTE,
            convert=None,
            problems=preference.problems,
        ),
        Form(
            name="reward",
            reader="whoever trains a model to score",
            columns=reward.COLUMNS,
            note=reward.NOTE,
            convert=reward.convert,
            problems=reward.problems,
        ),
    )
}


def form_named(name: str) -> Form:
    """Return a form.

    Raises:
        InputError: there is none of that name.
    """
    if name not in FORMS:
        raise InputError(f"format {name}", "is not known", f"There are: {', '.join(FORMS)}.")
    return FORMS[name]
