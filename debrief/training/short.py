"""Lines of sessions that a training set leaves out, made for one export.

What is not complete is nothing to imitate, so the stored sets are without it; what tells good from
bad needs it: an export of labels, pairs or rewards makes these lines. Another export may ask for
sessions that nobody reviewed. The lines pass the same gates as stored ones, and are stored nowhere
else.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable
from typing import IO

from msgspec.structs import replace

from debrief.lake import Lake
from debrief.outcomes.store import success_labels
from debrief.training.cards import SetCounts
from debrief.training.held import decisions, held_for, held_tokens
from debrief.training.kinship import read_kinship
from debrief.training.manifest import current_pairs
from debrief.training.model import ExclusionKind, LineRow, TrainingSetRow
from debrief.training.options import TrainingOptions
from debrief.training.selection import Pair, select
from debrief.training.store import candidates_in, lines_in, make_lines, read_materials


def left_out_lines(
    lake: Lake,
    sets: Iterable[TrainingSetRow],
    kinds: Collection[ExclusionKind],
    options: TrainingOptions,
    file: IO[bytes],
) -> tuple[dict[Pair, list[LineRow]], dict[str, str]]:
    """Write the lines of the sessions that stored sets leave out for some kinds of reasons.

    Left out are those that the sets would leave out for another reason as well, and those with a
    token that looks made by chance, unless somebody released it.

    Args:
        lake: with the sets, and what they were made of.
        sets: the stored ones.
        kinds: ``verdict`` and ``not_reviewed``, or one of them.
        options: with which the sets are made; every verdict is taken, and nothing is cut.
        file: that the lines are written to, from where it stands.

    Returns:
        By set, the rows of its lines; by session, why others have none all the same.
    """
    left_out = {
        (row.task, row.fingerprint): {
            session
            for skipped in row.left_out
            if skipped.kind in kinds
            for session in skipped.sessions
        }
        for row in sets
    }
    left_out = {pair: sessions for pair, sessions in left_out.items() if sessions}
    if not left_out:
        return {}, {}
    everything = {"verdicts": (), "unreviewed": True, "max_tokens": None}
    options = options.model_copy(update=everything)
    kinship, outcomes = read_kinship(lake), success_labels(lake)
    observed, decided = current_pairs(lake), decisions(lake)
    found: dict[Pair, list[LineRow]] = {}
    reasons: dict[str, str] = {}
    for pair, sessions in left_out.items():
        members = {week: ids & sessions for week, ids in observed.get(pair, {}).items()}
        materials = read_materials(lake, pair[1], members, outcomes)
        selection = select(candidates_in(materials, kinship), options, kinship)
        with tempfile.TemporaryFile() as scratch:
            made = make_lines(lake, members, materials, selection, options, SetCounts(), scratch)
            held = held_tokens(lines_in(scratch, made), decided)
            found[pair] = rows = []
            for candidate in selection.selected:
                name = candidate.session_id
                for *_, row in () if held_for(held.get(name, ()), decided) else made.get(name, ()):
                    scratch.seek(row.offset)
                    rows.append(replace(row, offset=file.tell()))
                    file.write(scratch.read(row.size))
        reasons |= {name: why.reason for name, why in selection.left_out.items()}
    return found, reasons
