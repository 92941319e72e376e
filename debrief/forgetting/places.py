"""Where a session's words can be: each place, what it holds of a session, and what takes it away.

A new table of the lake goes into ``lake_files.TABLES``; a new place outside of it goes here. What
nobody lists is found by the test that searches every file after a session was forgotten.
"""

from __future__ import annotations

from msgspec import Struct

from debrief.forgetting import elsewhere, lake_files
from debrief.forgetting.subject import Sweep


class Place(Struct, frozen=True):
    """A kind of place that is swept."""

    name: str
    holds: str
    """What of a session, in words."""
    sweep: Sweep


BEFORE: tuple[Place, ...] = (
    Place("Langfuse", "our scores with their comments, labels sent", elsewhere.sweep_langfuse),
    Place("recorder's database", "records, and lines made of them", elsewhere.sweep_records),
    Place("recorder", "records of this machine, sent and unsent", elsewhere.sweep_recorder),
    Place("captures", "prompts, metadata, copies of transcripts", elsewhere.sweep_captures),
    Place("mirrors", "copies of transcripts from object stores", elsewhere.sweep_mirrors),
    Place("pushed", "names of files that were pushed to a store", elsewhere.sweep_pushed),
    Place("answers", "models' answers about it", elsewhere.sweep_answers),
    Place("labels", "what people say of it", lake_files.sweep_labels),
    Place("training sets", "conversations, with scores", lake_files.sweep_training),
    Place("lake's tables", "judgements, scores, quotations …", lake_files.sweep_tables),
    Place("lake's files", "lines of reports, proposed prompts", lake_files.sweep_files),
    Place("exports", "lines in the forms of trainers", elsewhere.sweep_exports),
    Place("logs", "its id in failures, reasons", elsewhere.sweep_logs),
)
"""In order: servers first, so that one that is away stops it before anything is gone."""
LAST: tuple[Place, ...] = (
    Place("sessions", "the session itself", lake_files.sweep_sessions),
    Place("pages' index", "its words, to be searched", elsewhere.sweep_index),
)
"""Until a session itself is gone, its words are known: so whatever stopped it before that, the same
command finds all of it again."""
