"""Prompt templates: a project's own before the shipped ones, filled in one pass.

``str.format`` has no place here: a session is full of braces, and a template that already holds
one must not be formatted again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from debrief.content import folder
from debrief.errors import ConfigurationError
from debrief.keys import digest_of, plain_name

EXTRACTOR = "rubric_extractor"
SUMMARIZER = "rubric_summarizer"
JUDGE = "judge_template"
SCORER = "session_scorer"
FRICTION_GROUPS = "friction_groups"
FRICTION_CHECK = "friction_check"
QUESTION = "question"
QUESTION_ANSWER = "question_answer"

_EXTRACTORS = {
    "excellence": f"{EXTRACTOR}_excellence",
    "overall_quality": f"{EXTRACTOR}_excellence",
    "token_efficiency": f"{EXTRACTOR}_token_efficiency",
    "user_turn_efficiency": f"{EXTRACTOR}_user_turn_efficiency",
    "turn_efficiency": f"{EXTRACTOR}_user_turn_efficiency",
}

VARIABLES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        [EXTRACTOR, *_EXTRACTORS.values()],
        frozenset({"chat_session", "extraction_min_rubrics", "extraction_max_rubrics"}),
    ),
    SUMMARIZER: frozenset({"all_rubrics"}),
    SCORER: frozenset({"data", "part", "judges", "form", "questions"}),
    JUDGE: frozenset({"rubric_name", "rubric_description", "scoring_criteria", "chat_session"}),
    FRICTION_GROUPS: frozenset({"notes"}),
    FRICTION_CHECK: frozenset({"passages"}),
    QUESTION: frozenset({"question", "part", "data"}),
    QUESTION_ANSWER: frozenset({"question", "found"}),
}
"""Which variables a template has, by its name."""

REPLACEABLE = (EXTRACTOR, *dict.fromkeys(_EXTRACTORS.values()), SUMMARIZER, JUDGE)
"""Templates that a project can replace by its own."""


def extractor_for(score_name: str) -> str:
    """Return the name of the extractor template of a score name; the general one by default.

    >>> extractor_for("Token Efficiency"), extractor_for("kindness")
    ('rubric_extractor_token_efficiency', 'rubric_extractor')
    """
    return _EXTRACTORS.get(plain_name(score_name), EXTRACTOR)


def load_template(name: str, own: Path | None = None) -> str:
    """Return the text of ``<name>.txt``.

    Args:
        name: of the template, without ``.txt``.
        own: a project's folder of templates; its file wins where it has one of that name.

    Raises:
        ConfigurationError: it is not there, is not UTF-8, or lacks one of its variables.
    """
    path = own / f"{name}.txt" if own is not None else None
    if path is None or not path.is_file():
        path = folder("prompts") / f"{name}.txt"
    return _read(path, path.stat().st_mtime_ns if path.is_file() else 0)


@cache
def _read(path: Path, _modified: int) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigurationError(str(path), "is not there", "Restore the template") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(str(path), f"is not UTF-8 at byte {error.start}") from None
    variables = (f"{{{name}}}" for name in sorted(VARIABLES.get(path.stem, ())))
    missing = ", ".join(variable for variable in variables if variable not in text)
    if missing:
        raise ConfigurationError(str(path), f"does not contain {missing}", "Put it in")
    return text


def check_templates(own: Path) -> None:
    """Check every template of a project's folder.

    Raises:
        ConfigurationError: a file has another name than a template that can be replaced, or
            cannot be used.
    """
    for path in sorted(own.glob("*.txt")):
        if path.stem not in REPLACEABLE:
            known = ", ".join(f"{name}.txt" for name in REPLACEABLE)
            raise ConfigurationError(
                str(path), "replaces no template", f"Rename it to one of {known}"
            )
        load_template(path.stem, own)


def version_of(*names: str, own: Path | None = None) -> str:
    """Return the version of what is made with these templates: 16 hex digits.

    Args:
        names: of the templates.
        own: a project's folder of templates.

    Raises:
        ConfigurationError: one of them cannot be used.
    """
    return digest_of("templates-v1", [(name, load_template(name, own)) for name in names])[:16]


def render(template: str, values: Mapping[str, object]) -> str:
    """Fill a template: each ``{name}`` of ``values`` is replaced, and nothing else.

    One pass over the template alone, so braces that come in with a value stay as they are, and
    so does every ``{…}`` of the template that is not in ``values``.

    >>> render("{a} {b} {{}}", {"a": "{b}", "b": 1})
    '{b} 1 {{}}'
    """
    if not values:
        return template
    names = "|".join(re.escape(name) for name in values)
    return re.sub(rf"\{{({names})\}}", lambda found: str(values[found[1]]), template)
