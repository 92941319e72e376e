"""Judges, what they are shown, and what they say.

A judge is content: a Markdown file with front matter. The front matter is split off by hand,
because the body goes into the evaluation fingerprint and must stay exactly as it was written,
blank lines and all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NoReturn, Protocol

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from debrief.errors import ConfigurationError, flat, readable
from debrief.fields import FieldsError, fields_of
from debrief.markdown import shorten
from debrief.models.programs import PROGRAMS
from debrief.sessions.model import Evidence, Session

WORKTREE = "worktree"
"""The source of a session that is nothing but a worktree's changes: edits, and no conversation."""


JUDGE_SETS = "judge_sets"
"""Table of the judges behind each eval fingerprint, so that an old one can still be explained."""


class Criterion(Struct, frozen=True, kw_only=True):
    """A question with yes or no for an answer."""

    question: str
    weight: float = 1.0


Needs = Literal["change", "code"]
"""``change``: any change. ``code``: lines of code that were added."""


class Judge(Struct, frozen=True, kw_only=True):
    """A judge as its file in ``judges/`` says."""

    name: str
    """The file's name without ``.md``."""
    weight: float
    model: str
    """A LiteLLM model name, or a program's (``claude-code/opus``)."""
    body: str
    """The instructions, exactly as written below the front matter."""
    criteria: tuple[Criterion, ...] = ()
    """With any, the score is the weighted share of those that are met."""
    needs: Needs = "change"
    """What a session must have to be judged."""


class ChangeContext(Struct, frozen=True, kw_only=True):
    """What a judge is shown: what was asked for, and what was changed."""

    plan_content: str
    git_changes: str
    shrink: Callable[[int], ChangeContext] | None = None
    """Makes the same context again in at most so many characters, notes on what had to be left
    out on top; None where it cannot be made again."""

    @property
    def size(self) -> int:
        """Return its characters."""
        return len(self.plan_content) + len(self.git_changes)


class Judgement(Struct, frozen=True, kw_only=True):
    """A judge's answer."""

    score: float | None
    """From 0 to 1; None where what the judge asks for cannot be seen, which is no mark at all."""
    feedback: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """None when the model's price is not known; 0 only when nothing was spent."""
    answered_by: str = ""
    """The configured fallback that stood in for the judge's model; empty when none had to."""
    evidence: tuple[Evidence, ...] = ()
    """Where the session shows what the feedback says."""


class ChangeJudge(Protocol):
    """Whoever answers for a judge."""

    def judge(self, judge: Judge, context: ChangeContext, session: Session) -> Judgement:
        """Judge one session; raise a DebriefError when no usable answer could be had."""
        ...


class JudgeEvaluation(Struct, frozen=True, kw_only=True):
    """One row: one session as one judge saw it."""

    session_id: str
    session_digest: str
    started: datetime
    judge: str
    weight: float
    model: str
    status: Literal["ok", "failed", "no_change"]
    """``no_change``: the session has nothing to judge, so the judge was not asked; the feedback
    says why."""
    score: float | None = None
    """From 0 to 1; None too where the judge says that it cannot be seen."""
    feedback: str = ""
    failure: str = ""
    eval_fingerprint: str
    version: str = ""
    """Of how a model is asked: with another one, sessions are judged again."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    answered_by: str = ""
    """The fallback that stood in for ``model``; empty when none had to."""
    evidence: tuple[Evidence, ...] = ()
    """Where the session shows what the feedback says."""
    injection_suspected: bool = False
    """The session, or what the judge was shown, holds words made for a judge."""


_FENCE = re.compile(r"---[ \t]*\r?\n?\Z")
_PROVIDERS = (
    "ai21 aiml aiohttp_openai amazon_nova anthropic anthropic_text azure azure_ai azure_text "
    "baseten bedrock bedrock_mantle bytez cerebras chatgpt chutes clarifai cloudflare "
    "codestral cohere cohere_chat cometapi compactifai custom custom_openai dashscope "
    "databricks datarobot deepinfra deepseek docker_model_runner empower featherless_ai "
    "fireworks_ai friendliai galadriel gemini gigachat github github_copilot gradient_ai groq "
    "helicone heroku hosted_vllm huggingface hyperbolic inception infinity lambda_ai lemonade "
    "litellm_proxy llamafile lm_studio maritalk meta_llama minimax mistral modelscope "
    "moonshot morph nano-gpt nebius nlp_cloud novita nscale nvidia_nim oci ollama ollama_chat "
    "oobabooga openai openai_like openrouter ovhcloud perplexity petals poe predibase "
    "publicai reka replicate sagemaker sagemaker_chat sambanova sap scaleway scripted "
    "snowflake synthetic text-completion-codestral text-completion-openai together_ai triton "
    "v0 vercel_ai_gateway vertex_ai vertex_ai_beta vllm volcengine wandb watsonx watsonx_text "
    "xai xiaomi_mimo xinference zai"
)
_ROUTED_BY_NAME = frozenset((*_PROVIDERS.split(), *PROGRAMS, "recorded"))


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, str_strip_whitespace=True)


class _Criterion(_Part):
    question: str = Field(min_length=1)
    weight: float = Field(1.0, gt=0, allow_inf_nan=False)


class _FrontMatter(_Part):
    """The fields that are read; a judge may have others of its own, such as a description."""

    model_config = ConfigDict(extra="allow")

    weight: float = Field(ge=0, allow_inf_nan=False)
    model: str = Field(pattern=r"^\S+$")
    criteria: list[_Criterion] = []
    needs: Needs = "change"

    @field_validator("weight", mode="before")
    @classmethod
    def _number(cls, given: Any) -> Any:
        """Take a number in quotes."""
        try:
            return float(given) if isinstance(given, str) else given
        except ValueError:
            return given

    @field_validator("criteria", mode="before")
    @classmethod
    def _questions(cls, given: Any) -> Any:
        """Take a plain text as a question of weight 1."""
        if not isinstance(given, list):
            return given
        return [{"question": each} if isinstance(each, str) else each for each in given]


_KNOWN = f"Known fields: {', '.join(_FrontMatter.model_fields)}."
_SLIP = 0.75
"""How alike a field of one's own and one that is read may be; above it is taken for a slip."""
_SHOWN = 60
_OWN_FIELD = re.compile(r"[^\W\d][\w -]{0,59}")


def load_judges(folder: Path | str, model: str | None = None) -> list[Judge]:
    """Load every judge of a folder, in name order.

    Args:
        folder: where the ``*.md`` files are; a ``README.md`` among them is a guide, no judge.
        model: asked instead of the model that each file names.

    Raises:
        ConfigurationError: the folder is missing or holds no judge, or a file is not a judge;
            the culprit is ``file:line``.
    """
    judges: dict[str, Judge] = {}
    for path in judge_paths(Path(folder)):
        judge = load_judge(path, model)
        twin = judges.setdefault(judge.name.casefold(), judge)
        if twin is not judge:
            reason = f"a second judge of the name {judge.name}; the first is {twin.name}.md"
            _refuse(path, 1, reason, "Rename one of them.")
    return sorted(judges.values(), key=lambda judge: judge.name)


def judge_paths(folder: Path) -> list[Path]:
    """Return the judges' files of a folder, in order.

    Raises:
        ConfigurationError: the folder is missing or holds no judge.
    """
    paths = sorted(path for path in folder.iterdir() if _is_judge(path)) if folder.is_dir() else []
    if not paths:
        reason = "no judge (*.md) was found" if folder.is_dir() else "there is no such folder"
        raise ConfigurationError(str(folder), reason, "Run: debrief judges new <name>")
    return paths


def load_judge(path: Path, model: str | None = None) -> Judge:
    """Load one judge file; arguments and errors as of ``load_judges``."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        _refuse(path, line, "is not UTF-8", "Save the file as UTF-8.")
    except OSError as error:
        _refuse(path, 1, f"cannot be read: {error.strerror}", "Make it readable.")
    head, body, body_line = _split(path, text)
    front = _front_matter(path, head)
    if not body.strip():
        _refuse(path, body_line, "the body is empty", "Write the judge's instructions there.")
    return Judge(
        name=path.stem,
        weight=front.weight,
        model=litellm_name(model or front.model),
        body=body,
        criteria=tuple(Criterion(**criterion.model_dump()) for criterion in front.criteria),
        needs=front.needs,
    )


def litellm_name(model: str) -> str:
    """Return the name by which LiteLLM routes a model.

    A bare OpenRouter tag (``x-ai/grok-4.1-fast``, ``openrouter/auto``) is led by ``openrouter/``;
    a name without a slash, or with a provider that LiteLLM knows or a program in front, stays as
    it is.

    >>> litellm_name("x-ai/grok-4.1-fast")
    'openrouter/x-ai/grok-4.1-fast'
    >>> litellm_name("openrouter/auto")
    'openrouter/openrouter/auto'
    >>> litellm_name("anthropic/claude-sonnet-4-5")
    'anthropic/claude-sonnet-4-5'
    """
    provider, slash, rest = model.partition("/")
    is_tag = provider not in _ROUTED_BY_NAME or (provider == "openrouter" and "/" not in rest)
    return f"openrouter/{model}" if slash and is_tag else model


def _is_judge(path: Path) -> bool:
    return (
        path.suffix.lower() == ".md"
        and path.is_file()
        and not path.name.startswith(".")
        and path.name.upper() != "README.MD"
    )


def _split(path: Path, text: str) -> tuple[str, str, int]:
    """Return front matter, body, and the line that the body starts on."""
    lines = re.split(r"(?<=\n)", text)
    if not _FENCE.match(lines[0]):
        move = "Start the file with ---, weight: …, model: …, ---"
        _refuse(path, 1, "the front matter is missing", move)
    for index in range(1, len(lines)):
        if _FENCE.match(lines[index]):
            return "".join(lines[1:index]), "".join(lines[index + 1 :]), index + 2
    _refuse(path, len(text.splitlines()), "the front matter is never closed", "Add a line ---.")


def _front_matter(path: Path, head: str) -> _FrontMatter:
    try:
        fields = fields_of(head)
    except FieldsError as error:
        _refuse(path, error.line + 1, f"the front matter cannot be read: {error.reason}", _KNOWN)
    for name in fields.keys() - _FrontMatter.model_fields.keys():
        meant = get_close_matches(name.casefold(), _FrontMatter.model_fields, 1, _SLIP)
        if meant or not _OWN_FIELD.fullmatch(name):
            reason = f"is not a known field{f'; did you mean {meant[0]}?' if meant else ''}"
            _refuse(
                path, fields.lines[name] + 1, f"{shorten(flat(name), _SHOWN)}: {reason}", _KNOWN
            )
    try:
        return _FrontMatter.model_validate(fields)
    except ValidationError as error:
        first = min(error.errors(include_url=False), key=lambda error: error["type"] == "missing")
        name = str(first["loc"][0])
        line = fields.lines.get(name, 0) + 1
        _refuse(path, line, f"{shorten(flat(name), _SHOWN)}: {first['msg']}", _KNOWN)


def _refuse(path: Path, line: int, reason: str, next_move: str) -> NoReturn:
    raise ConfigurationError(f"{readable(str(path))}:{line}", reason, next_move)
