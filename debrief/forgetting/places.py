"""Each place that can hold a session's words, what it holds, and the function that deletes it.

A new table of the lake goes into ``debrief.tables.TABLES``; a new place outside of it goes here.
What nobody lists is found by the test that searches every file after a session was forgotten.
"""

from __future__ import annotations

from msgspec import Struct

from debrief.forgetting import elsewhere, lake_files
from debrief.forgetting.subject import Sweep


class SweptPlace(Struct, frozen=True):
    """A kind of place that is swept."""

    name: str
    holds: str
    """What of a session, in words."""
    sweep: Sweep


BEFORE: tuple[SweptPlace, ...] = (
    SweptPlace("Langfuse", "our scores with their comments, labels sent", elsewhere.sweep_langfuse),
    # The machine's own first: a record that is being sent is in the database by then.
    SweptPlace("recorder", "records of this machine, sent and unsent", elsewhere.sweep_recorder),
    SweptPlace("recorder's database", "records, and lines made of them", elsewhere.sweep_records),
    SweptPlace("captures", "prompts, metadata, copies of transcripts", elsewhere.sweep_captures),
    SweptPlace("mirrors", "copies of transcripts from object stores", elsewhere.sweep_mirrors),
    SweptPlace("pushed", "names of files that were pushed to a store", elsewhere.sweep_pushed),
    SweptPlace("answers", "models' answers about it", elsewhere.sweep_answers),
    SweptPlace("changes", "who changed what, by name", elsewhere.sweep_changes),
    SweptPlace("labels", "what people say of it", lake_files.sweep_labels),
    SweptPlace("training sets", "conversations, with scores", lake_files.sweep_training),
    SweptPlace("lake's tables", "judgements, scores, quotations …", lake_files.sweep_tables),
    SweptPlace("lake's files", "lines of reports, proposed prompts", lake_files.sweep_files),
    SweptPlace("exports", "lines in the forms of trainers", elsewhere.sweep_exports),
    SweptPlace("logs", "its id in failures, reasons", elsewhere.sweep_logs),
)
"""In order: servers first, so that one that is away stops it before anything is gone."""
LAST: tuple[SweptPlace, ...] = (
    SweptPlace("sessions", "the session itself", lake_files.sweep_sessions),
    SweptPlace("pages' index", "its words, to be searched", elsewhere.sweep_index),
)
"""Until a session itself is gone, its words are known: so whatever stopped it before that, the same
command finds all of it again."""
