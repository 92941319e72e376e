"""The forms in which training sets are exported, registered in ``FORMS``.

``debrief export`` and the recorder's exports take them from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.training.model import SampleMetadata, ScoreEntry, ToolSchema
from debrief.training.publishing.form import (
    Form,
    Rating,
    Rubrics,
    StoredLine,
    column_of,
    decoded,
    encoded,
    template_messages,
    trained_messages,
)

MESSAGES = Form(
    name="messages",
    reader="`datasets`, and whatever reads OpenAI's chat form",
    columns={
        "messages": ["json"],
        "tools": ["json"],
        "metadata": column_of(SampleMetadata),
    },
    note="The stored lines themselves, `arguments` as JSON text.",
    convert=lambda line, _: (line,),
    of_records=True,
)


def _trl(line: StoredLine, _: object = None) -> Iterator[dict[str, Any]]:
    """Yield the stored line as TRL takes it."""
    yield {
        "messages": template_messages(trained_messages(line.messages)),
        "tools": bytes(line.tools).decode(),
        "session_id": line.rating.session_id,
    }


TRL = Form(
    name="trl",
    reader="TRL's `SFTTrainer`",
    columns={"messages": ["json"], "tools": "string", "session_id": "string"},
    note=(
        "`arguments` are objects, as chat templates want them, and `tools` is JSON text, which TRL "
        "reads. There are no weights: answers to a request that is not known are left out. A line "
        "whose end the transcript lacks ends on calls; a turn within it that has no end, on "
        "results."
    ),
    convert=_trl,
    of_records=True,
)

MIN_LINES = 10
"""Lines that a file must have."""
LONGEST_DESCRIPTION = 1_024
"""Characters of a function's description; with more, the service refuses all functions."""
_CUT = " …"
_SCHEMAS = msgspec.json.Decoder(tuple[ToolSchema, ...])


def _openai(line: StoredLine, _: object = None) -> Iterator[dict[str, Any]]:
    """Yield the stored line without its metadata, its tools' descriptions cut where too long."""
    yield {"messages": line.messages, "tools": _shortened(bytes(line.tools))}


@lru_cache(maxsize=32)
def _shortened(tools: bytes) -> Raw | list[ToolSchema]:
    declared = _SCHEMAS.decode(tools)
    if all(len(tool.function.description) <= LONGEST_DESCRIPTION for tool in declared):
        return Raw(tools)
    return [
        replace(tool, function=replace(tool.function, description=_cut(tool.function.description)))
        for tool in declared
    ]


def _cut(description: str) -> str:
    if len(description) <= LONGEST_DESCRIPTION:
        return description
    kept = description[: LONGEST_DESCRIPTION - len(_CUT)]
    return (kept.rpartition(" ")[0] or kept) + _CUT


OPENAI = Form(
    name="openai",
    reader="OpenAI's fine-tuning service",
    columns={"messages": ["json"], "tools": ["json"]},
    note=(
        f"`messages` and `tools` alone. The service asks for at least {MIN_LINES} lines a file and "
        "cuts lines that are over its model's limit of tokens: split long sessions with "
        "`max_tokens` when the training set is made. `weight` 0 marks what is not trained on. "
        f"Descriptions of tools are cut at {LONGEST_DESCRIPTION:,} characters, more of which the "
        "service does not take."
    ),
    convert=_openai,
    of_records=True,
    min_lines=MIN_LINES,
)

_DATASET = {
    "formatting": "sharegpt",
    "columns": {"messages": "conversations", "system": "system", "tools": "tools"},
}
_SPEAKERS = ("human", "observation"), ("gpt", "function_call")


def _sharegpt(line: StoredLine, _: object = None) -> Iterator[dict[str, Any]]:
    """Yield the stored line as strictly alternating turns: a human turn or an observation stands in
    every odd place, the model's words or one call in every even one.

    Raises:
        ValueError: its turns do not alternate.
    """
    first = line.messages[0]
    turns = _turns(line)
    _check_order([turn["from"] for turn in turns])
    functions = [tool.function for tool in _SCHEMAS.decode(line.tools)]
    yield {
        "conversations": turns,
        "system": first.content if first.role == "system" else "",
        "tools": msgspec.json.encode(functions).decode(),
        "session_id": line.rating.session_id,
    }


def _turns(line: StoredLine) -> list[dict[str, str]]:
    results = {one.tool_call_id: one.content for one in line.messages if one.role == "tool"}
    turns: list[dict[str, str]] = []
    for message in trained_messages(line.messages, alternating=True):
        if message.role == "user":
            turns.append({"from": "human", "value": message.content})
        elif message.tool_calls:
            for call in message.tool_calls:
                name, arguments = call.function.name, call.function.arguments
                called = f'{{"name":"{name}","arguments":{arguments}}}'
                turns.append({"from": "function_call", "value": called})
                turns.append({"from": "observation", "value": results[call.id]})
        elif message.role == "assistant":
            turns.append({"from": "gpt", "value": message.content})
    return turns[:-1] if turns and turns[-1]["from"] == "observation" else turns


def _check_order(speakers: Sequence[str]) -> None:
    if len(speakers) % 2 or not speakers:
        raise ValueError(f"{len(speakers)} turns, and there must be an even number of them")
    for number, speaker in enumerate(speakers):
        if speaker not in _SPEAKERS[number % 2]:
            raise ValueError(f"turn {number}: {speaker} cannot stand here")


def dataset_info(files: Mapping[str, str]) -> dict[str, bytes]:
    """Return the file in which LLaMA-Factory looks for datasets."""
    info = {name: {"file_name": file, **_DATASET} for name, file in files.items()}
    return {"dataset_info.json": msgspec.json.format(msgspec.json.encode(info), indent=2) + b"\n"}


SHAREGPT = Form(
    name="sharegpt",
    reader="LLaMA-Factory and others that read ShareGPT",
    columns={
        "conversations": [{"from": "string", "value": "string"}],
        "system": "string",
        "tools": "string",
        "session_id": "string",
    },
    note=(
        "Calls made at once stand one after the other, each before its result. The form has no "
        "place for what a model says beside a call: such words are left out, and `messages` or "
        "`trl` have them. Left out are answers to a request that is not known, too, and a "
        "conversation whose end the transcript lacks ends on a call; within it a text in round "
        "brackets stands for an end, since turns must alternate. `dataset_info.json` is for "
        "LLaMA-Factory."
    ),
    convert=_sharegpt,
    of_records=True,
    extra_files=dataset_info,
)


def _reward(line: StoredLine, rubrics: Rubrics) -> Iterator[dict[str, Any]]:
    """Yield a line for each rubric score of the stored one."""
    rating = line.rating
    entries = [entry for entry in rating.scores if entry.kind == "rubric"]
    messages = template_messages(line.messages) if entries else []
    for entry in entries:
        score_name, _, key = entry.name.partition("/")
        rubric = rubrics.get(entry.name)
        yield {
            "messages": messages,
            "tools": bytes(line.tools).decode(),
            "score_name": score_name,
            "rubric_key": key,
            "rubric_name": rubric.name if rubric else key,
            "rubric": rubric.description if rubric else "",
            "criteria": rubric.scoring_criteria if rubric else "",
            "score": entry.value,
            "reasoning": entry.comment,
            "judged_by": entry.model,
            "session_id": rating.session_id,
        }


REWARD = Form(
    name="reward",
    reader="whoever trains a model to score",
    columns={
        "messages": ["json"],
        **dict.fromkeys(("tools", "score_name", "rubric_key", "rubric_name"), "string"),
        **dict.fromkeys(("rubric", "criteria"), "string"),
        "score": "float64",
        **dict.fromkeys(("reasoning", "judged_by", "session_id"), "string"),
    },
    note=(
        "A line for each session and rubric that gave it a score, from 1 to 5. `rubric` and "
        "`criteria` are the rubric's texts as they stand now, empty where it has been replaced "
        "since."
    ),
    convert=_reward,
)

MIN_MARGIN = 0.1
"""Of overall quality, 0 to 1: less is within what one scorer varies by."""
_MAX_REASONS = 3


def pair_line(better: StoredLine, worse: StoredLine, same_prompt: bool) -> dict[str, Any] | None:
    """Return two stored lines as one; None when both hold the same conversation."""
    chosen, rejected = (template_messages(trained_messages(x.messages)) for x in (better, worse))
    if chosen == rejected:
        return None
    winner, loser = better.rating, worse.rating
    tools = {
        tool.function.name: tool for line in (worse, better) for tool in _SCHEMAS.decode(line.tools)
    }
    return {
        "chosen": chosen,
        "rejected": rejected,
        "tools": msgspec.json.encode([tools[name] for name in sorted(tools)]).decode(),
        "margin": round(winner.overall_quality - loser.overall_quality, 6),
        "reasons": list(_reasons(winner, loser)),
        "same_prompt": same_prompt,
        "chosen_session": winner.session_id,
        "rejected_session": loser.session_id,
    }


def _reasons(better: Rating, worse: Rating) -> Iterator[str]:
    yield (
        f"overall quality {better.overall_quality:.2f} against {worse.overall_quality:.2f}, "
        f"scored by {better.scoring_model}"
    )
    others = {(entry.kind, entry.name): entry for entry in worse.scores}
    differing = [
        (entry, other)
        for entry in better.scores
        if entry.kind in ("dimension", "judge")
        and (other := others.get((entry.kind, entry.name))) is not None
        and entry.value > other.value
    ]
    differing.sort(key=lambda pair: (-_gap(*pair), pair[0].kind, pair[0].name))
    for entry, other in differing[:_MAX_REASONS]:
        comments = "; ".join(
            f"{word}: {' '.join(one.comment.split())}"
            for word, one in (("better", entry), ("worse", other))
            if one.comment.strip()
        )
        reason = f"{entry.kind} {entry.name} {entry.value:.2f} against {other.value:.2f}"
        yield f"{reason} ({comments})" if comments else reason


def _gap(entry: ScoreEntry, other: ScoreEntry) -> float:
    return (entry.weight or 1.0) * (entry.value - other.value)


PREFERENCE = Form(
    name="preference",
    reader="TRL's `RewardTrainer`, and `DPOTrainer` where `same_prompt` is true",
    columns={
        "chosen": ["json"],
        "rejected": ["json"],
        "tools": "string",
        "margin": "float64",
        "reasons": ["string"],
        "same_prompt": "bool",
        "chosen_session": "string",
        "rejected_session": "string",
    },
    note=(
        "`chosen` and `rejected` are conversations, as in `trl`, `margin` the difference of their "
        f"overall qualities (at least {MIN_MARGIN:g}), `reasons` what the scores say of it. Only "
        "where `same_prompt` is true do both answer the same prompt, as DPO needs it: filter for "
        "it. Both of a pair are on the same side of the split."
    ),
    pair=pair_line,
)

FORMS: dict[str, Form] = {
    form.name: form for form in (MESSAGES, TRL, OPENAI, SHAREGPT, PREFERENCE, REWARD)
}
RECORD_FORMS = tuple(form.name for form in FORMS.values() if form.of_records)
"""Forms that recorded sessions can be exported in."""


def form_named(name: str) -> Form:
    """Return a form.

    Raises:
        InputError: there is none of that name.
    """
    if name not in FORMS:
        raise InputError(f"format {name}", "is not known", f"There are: {', '.join(FORMS)}.")
    return FORMS[name]


def in_form(name: str, line: bytes) -> bytes:
    """Return the line of a recorded session in one of ``RECORD_FORMS``, with its line end.

    Raises:
        InputError: there is no such form, or its readers would not take the line.
    """
    convert = form_named(name).convert
    if convert is None:
        raise InputError(f"format {name}", "makes no line of one record")
    try:
        (made,) = convert(decoded(line), {})
    except ValueError as error:
        raise InputError(f"format {name}", str(error)) from error
    return encoded(made)
