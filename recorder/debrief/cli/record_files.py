"""``debrief record``: what is done with a record's file, and what may be run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.record_output import (
    AsJson,
    content,
    print_changes,
    print_first,
    print_missing,
    print_redactions,
    redactor_of,
    settings_and_home,
)
from debrief.cli.serve import ready_rule
from debrief.cli.shared import Repo, console, print_json
from debrief.errors import InputError, readable
from debrief.markdown import counted

RecordFile = Annotated[Path, typer.Argument(metavar="FILE", help="A record's file.")]


def record_apply(
    file: RecordFile,
    to: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The top of a clean checkout of its baseline.")
    ] = Path(),
) -> None:
    """Apply a record's changes to a folder: all of them, verified, or none."""
    from debrief.recorder.encoding import decode_record
    from debrief.recorder.verification import replay

    record = decode_record(content(file), str(file))
    changed = replay(record, to)
    print_first(map(readable, changed))
    paths = counted(len(changed), "path")
    console().print(f"{paths} changed; the tree is {record.meta.final_tree}, as recorded.")


def record_check(file: RecordFile, repo: Repo = Path()) -> None:
    """Show what is wrong with a record, what it lacks to be ready, and if it rebuilds its tree.

    The last needs a repository that has its baseline. Exit code 1 if anything is wrong.
    """
    from debrief.recorder.checks import problems_of, readiness
    from debrief.recorder.encoding import decode_record
    from debrief.recorder.messages import changes_of
    from debrief.recorder.verification import verify

    settings, _ = settings_and_home()
    record = decode_record(content(file), str(file))
    meta = record.meta
    out = console()
    out.print(f"Record {meta.session_id} of task {meta.task_id}, {readable(meta.repo_name)}")
    problems = problems_of(record)
    if not problems:
        print_changes(meta, changes_of(record))
    print_redactions(meta.redactions)
    if not problems and meta.contents == "full":
        differences = verify(repo, record, redactor_of(settings))
        if differences is None:
            out.print(f"Not rebuilt: no repository here has its baseline {meta.base_ref}.")
        elif not differences and meta.final_tree is None:
            out.print("Its patches apply to its baseline; it does not tell its final tree.")
        elif not differences:
            out.print(f"It rebuilds its tree, {meta.final_tree}.")
        problems += differences or []
    for problem in problems:
        console(stderr=True).print(f"debrief: {problem}", style="red")
    if problems:
        raise typer.Exit(1)
    print_missing(readiness(record, ready_rule(settings.ready_rule)))


def record_schemas(
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="A folder, made if need be.")],
) -> None:
    """Write the JSON Schemas of records, tools and the service's bodies, for other languages."""
    from debrief.recorder.encoding import write_schemas

    for path in write_schemas(to):
        console().print(str(path))


def record_commands(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND …", help="Would it be taken?")
    ] = None,
    value: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=WORD", help="Fills the commands; may be given more than once."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Agree to the repository's own commands.")
    ] = False,
    digest: Annotated[
        str, typer.Option(help="With --yes: only if that is the digest of its commands.")
    ] = "",
    repo: Repo = Path(),
    as_json: AsJson = False,
) -> None:
    """Show which commands may be run here, or whether one would be: **-- pnpm test**.

    A repository adds its own in **.debrief/recorder.toml**. None of them is run before you have
    seen and agreed to them, with **--yes** or when the first one is run.
    """
    from debrief.recorder.answers import commands_answer, rules_here

    values: dict[str, list[str]] = {}
    for each in value or ():
        kind, _, word = each.partition("=")
        values.setdefault(kind, []).append(word)
    _, home = settings_and_home()
    if yes and (rules := rules_here(home, repo)):
        if digest and digest != rules.digest:
            move = "See them: debrief record commands"
            error = InputError("--digest", "is not that of the repository's commands by now", move)
            raise error.known_as("rules-changed", digest=rules.digest)
        home.agree(rules)
    answer = commands_answer(home, repo, command or (), values)
    if as_json:
        print_json(answer)
        return
    out = console()
    source, asked = answer["source"], answer["asked"]
    if asked is not None:
        refusal = f"{asked['reason']}. {asked['nextMove']}"
        out.print("It would be run." if asked["accepted"] else refusal)
        return
    for rule in answer["commands"]:
        check = ", a check" if rule["isCheck"] else ""
        own = f"{source}, at most {rule['timeLimit']:g} s" if rule["own"] else "built in"
        out.print(f"{' '.join((rule['program'], *rule['arguments']))}  ({own}{check})")
    if not answer["agreed"]:
        out.print(f"Nobody here agreed to those of {source}: debrief record commands --yes")
