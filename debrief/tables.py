"""Every table of a lake: the type of its rows, and what may be in them."""

from __future__ import annotations

from msgspec import Struct

from debrief.judging.model import JUDGE_SETS, Judge
from debrief.langfuse.listing import ListedSession
from debrief.langfuse.source import FETCHED_TABLE, LISTING_TABLE
from debrief.outcomes.store import (
    PROBLEMS,
    LabelProblem,
)
from debrief.questions.schema import QUESTIONS, KeptQuestion
from debrief.rubrics import model as rubrics
from debrief.scoring.model import FACETS, Facet
from debrief.sessions.forgotten import TABLE as TOMBSTONES
from debrief.sessions.forgotten import Tombstone
from debrief.sessions.model import Session, UnreadTranscript
from debrief.sessions.recorder_source import LISTING_TABLE as RECORDER_LISTING
from debrief.sessions.recorder_source import ListedRecord
from debrief.sessions.scanning import ScanEntry
from debrief.sessions.store import SCAN_TABLE, UNREAD_TABLE
from debrief.snapshots.model import NAMES, PromptName
from debrief.stages.catalog import all_stages
from debrief.training.held import DECISIONS, HELD, HeldDecision, HeldToken
from debrief.training.kinship import TRAITS_TABLE, SessionTraits
from debrief.training.model import LINES, LineRow
from debrief.training.publishing.exported import TABLE as EXPORTS
from debrief.training.publishing.exported import KnownExport


class LakeTable(Struct, frozen=True):
    """A table of the lake, and what may be in its rows."""

    rows: type[Struct]
    weekly: bool = False
    """Its partitions are weeks."""
    may_quote: bool = False
    """A row may hold words of sessions without naming them."""
    holds_files: bool = False
    """A row of another session may hold files of a repository into which the sessions' work went.
    Such a row goes as a whole: running it again makes it anew."""
    keeps_stamp: bool = False
    """Its stamp says how far something was read, and not what the rows were made from."""


_OTHERS: dict[str, LakeTable] = {
    # What is read, beside the sessions.
    UNREAD_TABLE: LakeTable(UnreadTranscript, weekly=True, may_quote=True),
    SCAN_TABLE: LakeTable(ScanEntry, may_quote=True),
    LISTING_TABLE: LakeTable(ListedSession, keeps_stamp=True),
    FETCHED_TABLE: LakeTable(Session, keeps_stamp=True),
    RECORDER_LISTING: LakeTable(ListedRecord, keeps_stamp=True),
    # What is made of each session.
    PROBLEMS: LakeTable(LabelProblem, may_quote=True),
    TRAITS_TABLE: LakeTable(SessionTraits, weekly=True),
    FACETS: LakeTable(Facet, weekly=True),
    # What is mined from several, and quotes them.
    QUESTIONS: LakeTable(KeptQuestion, may_quote=True),
    rubrics.DROPPED: LakeTable(rubrics.DroppedRubric, weekly=True, may_quote=True),
    rubrics.UNMINED: LakeTable(rubrics.UnminedSession, weekly=True),
    rubrics.CANDIDATES: LakeTable(rubrics.Rubric, may_quote=True),
    rubrics.TRIALS: LakeTable(rubrics.RubricTrial, may_quote=True),
    rubrics.SETS: LakeTable(rubrics.Rubric, may_quote=True),
    # Training sets, the files of which are `training/**`, and prompts proposed from them.
    LINES: LakeTable(LineRow),
    HELD: LakeTable(HeldToken),
    DECISIONS: LakeTable(HeldDecision),
    # Figures over all sessions: nobody's words are in them. The next run makes them anew.
    rubrics.SEARCHES: LakeTable(rubrics.RubricSearch),
    # What is no session's.
    JUDGE_SETS: LakeTable(Judge),
    NAMES: LakeTable(PromptName),
    EXPORTS: LakeTable(KnownExport),
    TOMBSTONES: LakeTable(Tombstone),
}
"""Tables that are no stage's own."""

TABLES: dict[str, LakeTable] = {
    **{
        stage.table: LakeTable(
            stage.row_type,
            weekly=stage.partitions == "week",
            may_quote=stage.may_quote,
            holds_files=stage.holds_files,
        )
        for stage in all_stages()
    },
    **_OTHERS,
}
"""Every table of a lake. A file of one that is not here is removed when it names a session or
holds words of one."""
