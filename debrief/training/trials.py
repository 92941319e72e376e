"""Try a prompt: an agent under it describes how it would work, and a model judges that.

A session cannot be run again to see what other prompts would have made of it. What can be had at
a price is what a model under those prompts says it would do with the same request, judged by
what was found about the session that was. It is a stand-in, and called so wherever it is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from debrief.errors import ModelError
from debrief.judging.answers import read_judgement
from debrief.keys import digest_of
from debrief.models.answers import refuse
from debrief.models.fencing import bare_words, defuse, fence, marker_of, refuse_lifted
from debrief.models.language_model import LanguageModel, failures_named
from debrief.models.prompting import PromptedModel
from debrief.models.subject import asked_about, asking_about
from debrief.models.templates import load_template, render
from debrief.models.usage import RunUsage
from debrief.training.lessons import findings_of
from debrief.training.model import TrainingSample

if TYPE_CHECKING:
    import dspy
    from dspy.lm15 import Request, Response

NEEDS_A_MODEL = (
    "needs a language model: one plays the agent under each set of prompts, judges what it would "
    "do, and rewrites them"
)
TEMPLATE = "candidate_judge"
FORM = "trial-1"
"""Of the question that an agent under trial is asked: part of the cache's key."""


class PromptTrials:
    """Tries prompts out on samples with language models; safe to use from threads.

    What was answered before is not asked again, in this run or a later one.

    Args:
        model: judges what the agent would do.
        secret: of this machine, for the markers around data.
        concurrency: trials at once.
        actor: plays the agent; the judge itself when None.
        rewriter: rewrites prompts; the judge itself when None.
        on_trial: called with the count of trials after each.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        secret: bytes,
        concurrency: int = 4,
        actor: LanguageModel | None = None,
        rewriter: LanguageModel | None = None,
        on_trial: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.model = model
        self.actor = actor or model
        self.rewriter = rewriter or model
        self._on_trial = on_trial
        self.failure: ModelError | None = None
        """The first question that could not be answered, once there was one."""
        self.concurrency = concurrency
        self.sessions: tuple[str, ...] = ()
        """What is asked is about one of these, or all of them."""
        self._judged: set[str] = set()
        self._secret = secret

    def acting(self) -> dspy.LM:
        """Return the model that plays the agent as DSPy takes it, with our memory behind it."""
        return self.actor.new_lm(engine=_Remembering(self, self.actor))

    def rewriting(self) -> dspy.LM:
        """Return the model that rewrites; a question that is put again within a run gets another
        answer."""
        return self.rewriter.new_lm(engine=_Remembering(self, self.rewriter, anew=True))

    @property
    def names(self) -> str:
        """Who played the agent, judged it, and rewrote the prompts, in words."""
        if self.actor.name == self.model.name == self.rewriter.name:
            return self.model.name
        return f"{self.actor.name} acted, {self.model.name} judged, {self.rewriter.name} rewrote"

    @property
    def spent(self) -> RunUsage:
        """What was taken of all of them so far."""
        models = {model.name: model for model in (self.model, self.actor, self.rewriter)}
        return sum((model.meter.spent for model in models.values()), RunUsage())

    def run(self, program: Any, samples: Sequence[TrainingSample]) -> list[float]:
        """Try a program on samples and return its scores, from 0 to 1, in their order.

        Raises:
            ModelError: a question could not be answered.
        """
        lm = self.acting()

        def score(sample: TrainingSample) -> float:
            import dspy

            with (
                failures_named(self.actor.name),
                asking_about(sample.plan_id),
                dspy.context(lm=lm, adapter=adapter(), trace=[], disable_history=True),
            ):
                made = program(request=request_of(sample))
            return self.judge(sample, course_text(made))[0]

        with ThreadPoolExecutor(self.concurrency) as pool:
            return list(pool.map(score, samples))

    def judge(self, sample: TrainingSample, course: str) -> tuple[float, str]:
        """Judge a course of work by what was found of the session.

        Raises:
            ModelError: there was no usable answer.
        """
        texts = (request_of(sample), findings_of(sample), course)
        marker = marker_of(self._secret, *texts)
        heads = ("The request", "What was found of the session", "The course of work")
        data = "\n\n".join(
            f"{head}:\n{fence(defuse(text), marker)}"
            for head, text in zip(heads, texts, strict=True)
        )
        shown = bare_words("\n".join(texts))

        def read(answer: str) -> tuple[float, str]:
            score, feedback = read_judgement(answer)
            refuse_lifted(answer, [feedback], shown)
            if score is None:
                refuse("it gives no number")
            return score, feedback

        try:
            with asking_about(sample.plan_id):
                judgement, _ = PromptedModel(self.model.name, self.model.ask).read(
                    render(load_template(TEMPLATE), {"data": data}),
                    read,
                    about=f"about a course of work on session {sample.plan_id}",
                )
        except ModelError as error:
            self.failed(error)
            raise
        self._judged.add(digest_of(sample.plan_id, course))
        self._on_trial(self.count)
        return judgement

    @property
    def count(self) -> int:
        """How many different courses were judged, those out of the cache included."""
        return len(self._judged)

    def failed(self, error: ModelError) -> None:
        """Note a failure; the first stays."""
        self.failure = self.failure or error


@dataclass(eq=False)
class _Remembering:
    """An engine that answers from the model's cache what was answered before."""

    trials: PromptTrials
    model: LanguageModel
    anew: bool = False
    asked: Counter[str] = field(default_factory=Counter)
    """How often each question was put."""

    def complete(self, request: Request) -> Response:
        """Answer one request."""
        from dspy.lm15 import Message, Response, TextPart, Usage

        model = self.model
        question = digest_of(_texts_of(request))
        round_ = self.asked[question] if self.anew else 0
        self.asked[question] += 1
        key = model.key_of(FORM, question, str(round_))
        kept = model.recall(key)
        if kept is not None:
            return Response(
                id=None,
                model=model.name,
                message=Message(role="assistant", parts=(TextPart(kept.text),)),
                finish_reason="stop",
                usage=Usage(
                    input_tokens=kept.usage.input_tokens, output_tokens=kept.usage.output_tokens
                ),
            )
        try:
            response, answer = model.complete(request)
        except ModelError as error:
            self.trials.failed(error)
            raise
        if answer.text.strip() and not answer.cut:
            with asking_about(*(asked_about() or self.trials.sessions)):
                model.remember(key, answer)
        return response


def _texts_of(request: Request) -> list[str]:
    parts = [request.system] if isinstance(request.system, str) else list(request.system or ())
    for message in request.messages:
        parts += [message.role, *message.parts]
    return [part if isinstance(part, str) else str(part.text) for part in parts]


def request_of(sample: TrainingSample) -> str:
    """Return what the person asked for."""
    return sample.plan_content or ""


def course_text(made: Any) -> str:
    """Return a course of work with the remarks of subagents on it."""
    remarks: Mapping[str, str] = made.remarks
    parts = [str(made.course_of_work)]
    parts += [f"{name} remarks: {text}" for name, text in remarks.items() if text.strip()]
    return "\n\n".join(parts)


def program_of(prompts: Mapping[str, str]) -> dspy.Module:
    """Return an agent under these prompts, each prompt the instructions of a predictor.

    The predictors are ``main`` and ``subagent_0`` …, by name of the subagent.
    """
    import dspy

    def predictor(prompt: str, inputs: Mapping[str, str], name: str, answer: str) -> Any:
        fields = {field: (str, dspy.InputField(desc=text)) for field, text in inputs.items()}
        fields[name] = (str, dspy.OutputField(desc=answer))
        return dspy.Predict(dspy.Signature(fields, prompt))

    class Agent(dspy.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            request = {"request": "What the person asks for"}
            self.main = predictor(
                prompts["main"],
                request,
                "course_of_work",
                "What you will do, in order: what you look at, ask, change, run, check and "
                "report. In words; at most 300 of them; no code",
            )
            inputs = {**request, "course_of_work": "What the agent means to do"}
            answer = "What you have to say of it; at most 150 words"
            subagents = sorted(prompts.keys() - {"main"})
            self.names = {f"subagent_{number}": name for number, name in enumerate(subagents)}
            for key, name in self.names.items():
                setattr(self, key, predictor(prompts[name], inputs, "remarks", answer))

        def forward(self, request: str) -> dspy.Prediction:
            course = self.main(request=request).course_of_work or ""
            remarks = {
                name: getattr(self, key)(request=request, course_of_work=course).remarks
                for key, name in self.names.items()
            }
            return dspy.Prediction(course_of_work=course, remarks=remarks)

    return Agent()


def prompts_in(program: Any) -> dict[str, str]:
    """Return the prompts of a program: ``main``, then the subagents' by name."""
    texts = {name: made.signature.instructions for name, made in program.named_predictors()}
    return {name: texts[key] for key, name in {"main": "main", **program.names}.items()}


def adapter() -> Any:
    """Return an adapter that takes an answer without its headings as the one field asked for."""
    import dspy

    class Lenient(dspy.ChatAdapter):  # type: ignore[misc]
        def parse(self, signature: Any, completion: str) -> dict[str, Any]:
            (name,) = signature.output_fields
            text = completion.partition(f"[[ ## {name} ## ]]")[2] or completion
            return {name: text.partition("[[ ## completed ## ]]")[0].strip()}

    return Lenient(use_json_adapter_fallback=False)
