"""``debrief export``."""

from __future__ import annotations

from typing import Annotated

import typer

from debrief.cli.commands.options import LakeUrl
from debrief.cli.console import told

app = typer.Typer()


@app.command()
@told
def export(
    to: Annotated[str, typer.Option("--to", help="A folder or an fsspec URL such as s3://…")],
    lake: LakeUrl = "",
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="messages, trl, openai, sharegpt, preference or reward; of records also record, "
            "as they are stored.",
        ),
    ] = "messages",
    task: Annotated[str, typer.Option(help="Only this task.")] = "",
    fingerprint: Annotated[
        str, typer.Option(help="Only this pair, such as b7d4e2f9-a3f8b2c1.")
    ] = "",
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Parquet files beside the JSONL.")
    ] = False,
    min_quality: Annotated[
        float, typer.Option(help="Only lines of at least this overall quality, 0 to 1.")
    ] = 0.0,
    status: Annotated[str, typer.Option(help="any, ready or draft.")] = "any",
    single_calls: Annotated[
        bool,
        typer.Option(
            "--single-calls",
            help="Tell calls made at once one after the other, for chat templates that take one "
            "call a message, such as Llama 3.1's.",
        ),
    ] = False,
    from_recorder: Annotated[
        bool,
        typer.Option(
            "--from-recorder",
            help="Recorded sessions, without the pipeline: from the API that "
            "DEBRIEF_RECORDER_URL names, else straight from the database.",
        ),
    ] = False,
    url: Annotated[str, typer.Option(help="Of records: the address of their API.")] = "",
    database: Annotated[str, typer.Option(help="Of records: the address of their database.")] = "",
    since: Annotated[
        str, typer.Option(help="Of records: stopped on that day or later, as 2026-01-31.")
    ] = "",
    split: Annotated[str, typer.Option(help="Of records: both, train or eval.")] = "both",
    eval_share: Annotated[
        float | None, typer.Option(help="Of records: held out for evaluation, 0 to 1.")
    ] = None,
) -> None:
    """Write training sets to a folder that **datasets.load_dataset** takes as splits.

    Below it are **TASK/FINGERPRINT/train.jsonl** and **eval.jsonl** with the set's card, and a
    README.md that tells loaders the types. Every line is checked by the rules of who reads the
    format. Sets are published as they were made: what is taken into them, and how long a line may
    be, is chosen at launch or by settings such as **DEBRIEF_TRAINING_MAX_TOKENS=8192**, and
    *debrief backfill --stage training_sets* makes them again.

    With **--from-recorder** the sets are recorded sessions, split by repository and time, that
    nobody has judged. What was fetched from an API stays until all is here: an export that was
    broken off goes on where it was.
    """
    if from_recorder:
        from debrief.cli.export_records import RecordsWish, export_records

        export_records(
            RecordsWish(
                target=to,
                form=form,
                task=task,
                status=status,
                since=since,
                split=split,
                eval_share=eval_share,
                url=url,
                database=database,
                refused={
                    "--lake": bool(lake),
                    "--fingerprint": bool(fingerprint),
                    "--parquet": parquet,
                    "--min-quality": min_quality > 0,
                    "--single-calls": single_calls,
                },
            )
        )
        return
    from debrief.cli.export import export as export_sets
    from debrief.cli.export import of_records_alone

    of_records_alone(
        {
            "--url": bool(url),
            "--database": bool(database),
            "--since": bool(since),
            "--split": split != "both",
            "--eval-share": eval_share is not None,
        }
    )
    export_sets(
        to,
        lake=lake,
        form=form,
        task=task,
        fingerprint=fingerprint,
        parquet=parquet,
        min_quality=min_quality,
        status=status,
        single_calls=single_calls,
    )
