"""Let a model word a line from a trouble's evidence; refuse it when it names anything else."""

from __future__ import annotations

import json
import re

from debrief.errors import ModelError
from debrief.models.answers import answer_text, refuse
from debrief.models.fencing import defuse, fence, injection_signs, make_visible
from debrief.models.prompting import PromptedModel
from debrief.models.templates import TROUBLE_LINE, load_template, render
from debrief.sessions.model import ToolCall
from debrief.signals.risky_commands import hazards_of
from debrief.troubles.model import KINDS_SHOWN, Trouble
from debrief.troubles.remedies import stands_in

NOTHING = "NONE"
_LONGEST = 240
_SPAN = re.compile(r"`([^`]+)`|“([^”]+)”|\"([^\"]+)\"")
_NAME = re.compile(r"(?<!\w)(?:--?[a-z][\w-]+|[\w@-]*(?:[./_][\w-]+)+|[a-z]+[A-Z]\w+)")
"""Options, paths, and names of code."""


def worded(trouble: Trouble, model: PromptedModel) -> str:
    """Return the line that a model words for a trouble; empty where it knows no remedy.

    Raises:
        ModelError: no answer was usable after three calls.
        DebriefError: the model could not be asked.
    """
    evidence = evidence_of(trouble)
    data = fence(defuse(evidence), model.marker("trouble", trouble.id, evidence))
    prompt = render(load_template(TROUBLE_LINE), {"evidence": data})
    line, _ = model.read(
        prompt, lambda answer: read_line(answer, evidence), about=f"trouble {trouble.id}"
    )
    return line


def evidence_of(trouble: Trouble) -> str:
    """Return what a model is shown of a trouble, as JSON."""
    shown = {
        "what": KINDS_SHOWN[trouble.kind],
        "subject": trouble.subject,
        "times": trouble.count,
        "sessions": len(trouble.sessions),
        "what then worked": trouble.worked,
        "examples": [
            {
                "command": example.command,
                "file": example.file,
                "the person said": example.words,
                "what then worked": example.worked,
                "seen": example.evidence.quote,
            }
            for example in trouble.examples
        ],
    }
    return json.dumps(shown, ensure_ascii=False, indent=1)


def read_line(answer: str, evidence: str) -> str:
    """Return the line of an answer; empty when it says that there is none.

    Raises:
        ModelError: it is no single line, is too long, speaks to whoever reads it, would destroy
            something, or names a command, a file or words that the evidence does not hold.
    """
    line = answer_text(answer).strip().removeprefix("- ").strip()
    if line.strip("`.").upper() == NOTHING:
        return ""
    if not line or "\n" in line or len(line) > _LONGEST or make_visible(line) != line:
        refuse(f"it is not one line of at most {_LONGEST} characters")
    if injection_signs([line]):
        refuse("it holds words that are meant for a judge")
    held = "\n".join(_texts(json.loads(evidence)))
    spans = [next(filter(None, found)) for found in _SPAN.findall(line)]
    if not spans:
        refuse("it quotes no command, file or words of the evidence")
    for name in (*spans, *_NAME.findall(_SPAN.sub(" ", line))):
        if not stands_in(_plain(name), held):
            refuse(f"it names {name}, which the evidence does not hold")
        if hazards_of(ToolCall(id="", name="", input="", action="run", command=name)):
            refuse(f"{name} would destroy something, or hides what it does")
    return line


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [_plain(str(value))]


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".…")


def worded_or_own(trouble: Trouble, model: PromptedModel, own: str) -> tuple[str, str]:
    """Return the model's line, or ours where its was refused, with the reason for that."""
    try:
        return worded(trouble, model), ""
    except ModelError as error:
        return own, error.reason
