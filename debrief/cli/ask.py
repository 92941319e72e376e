"""``debrief ask``: a question over all sessions, with an answer that cites them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.shared import (
    Conditions,
    DryRun,
    LakeUrl,
    MaxCost,
    Model,
    Yes,
    checked_limit,
    chosen,
    console,
    cost_text,
    existing_lake,
    print_json,
)
from debrief.errors import InputError, ModelError, without_controls
from debrief.markdown import counted

if TYPE_CHECKING:
    from debrief.evaluators import Evaluators
    from debrief.lake import Lake
    from debrief.questions.run import AskResult, ToAsk
    from debrief.questions.schema import KeptQuestion

FORMS = dict.fromkeys(("text", "json"))
_SHORTEST = 8


def ask(
    question: Annotated[
        str,
        typer.Argument(
            help="What to ask of each session, or the id of a friction that reviews found. "
            "Without one, list what was asked."
        ),
    ] = "",
    where: Conditions = None,
    newest: Annotated[
        int, typer.Option("--newest", min=0, help="Ask only so many, the newest; 0: all.")
    ] = 0,
    standing: Annotated[
        bool | None,
        typer.Option(
            "--standing/--not-standing",
            help="Ask new sessions, too, in the call that reviews them; or stop that.",
        ),
    ] = None,
    model: Model = "",
    max_cost: MaxCost = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    form: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
    lake: LakeUrl = "",
) -> None:
    """Ask a question of your sessions: "where did it claim success that nothing shows?"

    Each session that was not asked this before is asked once, and one more call puts what was found
    together. Each sentence of the answer cites its sessions. What it is likely to cost is printed
    before a model is asked. Answers are kept: the pages filter by them, and the same question later
    asks only new sessions.
    """
    from debrief.conditions import parse_where
    from debrief.conversion import open_lake
    from debrief.judging.model import litellm_name
    from debrief.questions.run import ask_all, to_ask
    from debrief.redaction.redactor import redactor_of
    from debrief.settings import load_settings
    from debrief.stages.friction import refresh_effects

    chosen("--format", form, FORMS)
    settings = load_settings().with_given(model=model, max_cost_usd=checked_limit(max_cost))
    store = open_lake(existing_lake(lake) or settings.lake)
    if not question.strip():
        _print_questions(store, form)
        return
    asked = redactor_of(settings).redact(question).text
    plan = to_ask(store, asked, parse_where(where or ()), newest, litellm_name(settings.model))
    if not plan.sessions:
        raise InputError("debrief ask", "no session fits", "Widen --where, or: debrief run.")
    by = _agreed(plan, store, settings, yes=yes, dry_run=dry_run)
    with console(stderr=True).status("Asking …") as status:
        result = ask_all(
            store, plan, by, standing, lambda done, of: status.update(f"Asked {done} of {of} …")
        )
    if plan.is_friction:
        refresh_effects(store)
    if form == "json":
        print_json(result)
    else:
        _print_answer(result)
    raise typer.Exit(int(bool(result.failed) and not result.read))


def _agreed(
    plan: ToAsk, store: Lake, settings: object, *, yes: bool, dry_run: bool
) -> Evaluators | None:
    """Return who asks, once what that takes is agreed to; None where all was answered before."""
    from debrief.cli.asking import agreed
    from debrief.evaluators import require_model
    from debrief.questions.run import ask_all
    from debrief.settings import Settings

    assert isinstance(settings, Settings)
    if not plan.open and plan.is_answered:
        return None
    if not settings.model:
        require_model("debrief ask", settings)

    def count(by: Evaluators) -> None:
        with suppress(ModelError):
            ask_all(store, plan, by, None)

    return agreed(settings, count, yes, dry_run=dry_run, sessions=len(plan.open))


def _print_answer(asked: AskResult) -> None:
    for line in _lines(asked):
        console().print(without_controls(line), highlight=False)


def _lines(asked: AskResult) -> Iterator[str]:
    """Yield the answer, what it cites, and what was read, what was not, and what is new."""
    answer = asked.question.answer
    if asked.is_friction:
        yield asked.question.text
    sentences = answer.sentences if answer is not None else ()
    for number, sentence in enumerate(filter(lambda each: each.sessions, sentences), 1):
        yield f"{number}. {sentence.text}"
        for id_ in sentence.sessions:
            facet = asked.facets[id_]
            places = "; ".join(f"turn {place.turn}: “{place.quote}”" for place in facet.places)
            yield f"   {_short(id_, asked.read)} {places}"
    if answer is None and not asked.is_friction:
        yield f"No answer could be put together: {asked.problem}"
    elif answer is not None and not answer.sentences:
        yield "No session shows it."
    yield ""
    yield (
        f"Found in {len(asked.found)} of {counted(len(asked.read), 'session')} read"
        f"{asked.span}; {asked.now} asked now, {len(asked.read) - asked.now} before"
        f"{f' ({cost_text(asked.cost_usd)})' if asked.now else ''}."
    )
    if asked.since is not None:
        more = f"{asked.new_read} more read, {asked.new_found} more found"
        yield f"New since {asked.since:%Y-%m-%d}: {more}."
    for reason, count in asked.left_out:
        yield f"Not asked: {counted(count, 'session')} ({reason})."
    for reason, count in Counter(asked.failed.values()).most_common():
        yield f"Failed: {counted(count, 'session')} ({reason.rstrip('.')})."
    if asked.question.standing:
        yield "New sessions are asked in the call that reviews them."
    yield f"On the pages: /sessions?facet={asked.question.id}"


def _short(id_: str, ids: Collection[str]) -> str:
    """Return the first characters of an id, eight at least, that no other id begins with."""
    alike = [each for each in ids if each != id_]
    lengths = range(_SHORTEST, len(id_))
    of_its_own = (n for n in lengths if not any(each.startswith(id_[:n]) for each in alike))
    return id_[: next(of_its_own, len(id_))]


def _print_questions(store: Lake, form: str) -> None:
    from debrief.questions.schema import questions_in

    questions: list[KeptQuestion] = questions_in(store)
    if form == "json":
        print_json(questions)
        return
    out = console()
    for each in questions:
        out.print(f"{each.id}  {without_controls(each.text)}" + "  (standing)" * each.standing)
        if each.answer is not None:
            said = f"found in {len(each.answer.found)} of {each.answer.asked}, {each.answer.on}"
            out.print(f"    {said}", style="dim")
    if not questions:
        out.print('Nothing was asked yet: debrief ask "which tests does it skip?"')
