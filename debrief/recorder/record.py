"""From a worktree to a record that was seen to rebuild it, or that says why it is held."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from debrief.recorder.assembly import assemble
from debrief.recorder.changes import Changes, find_changes
from debrief.recorder.contracts import Record, Redactions
from debrief.recorder.encoding import MAX_BYTES, encode_record
from debrief.recorder.facts import SessionFacts
from debrief.recorder.findings import Findings
from debrief.recorder.masking import mask_changes, mask_facts
from debrief.recorder.objects import Objects
from debrief.recorder.scratch import scratch_of
from debrief.recorder.scrubbing import scrubbed
from debrief.recorder.verification import round_trip
from debrief.redaction import Redactor


def build_record(
    root: Path, facts: SessionFacts, redactor: Redactor, scratch: Path | None = None
) -> Record:
    """Record a session's changes, replace their secrets, and verify the round trip.

    A record that must not leave the machine comes back with ``meta.verified`` false, and the
    reasons at the end of ``meta.warnings``.

    Args:
        root: anywhere in the session's worktree.
        facts: what the session knows of itself.
        redactor: this machine's.
        scratch: the folder in which temporary files are made; the machine's usual one by default.

    Raises:
        InputError: git cannot tell the changes, or no record can hold them.
    """
    findings = Findings(redactor)
    with scratch_of(root, scratch) as opened, opened.objects() as objects:
        changes = find_changes(opened, objects, facts.base_ref, facts.ignore)
        changes = mask_changes(opened, objects, changes, findings)
        facts = mask_facts(facts, findings)
        redactions = findings.counted()
        held = _whole_problems(objects, facts, changes, redactions, redactor)
    record = assemble(facts, changes, redactions=redactions, verified=not held)
    held += _unfit(record, redactor)
    if not held:
        return record
    changes = structs.replace(changes, warnings=(*changes.warnings, *held))
    return assemble(facts, changes, redactions=redactions, verified=False)


def _whole_problems(
    objects: Objects,
    facts: SessionFacts,
    changes: Changes,
    redactions: Redactions,
    redactor: Redactor,
) -> list[str]:
    """Return why the record with contents does not rebuild the tree; it may be sent without."""
    whole = structs.replace(facts, contents="full", commands=())
    record = assemble(whole, changes, redactions=redactions)
    return round_trip(objects, record, redactor if redactions.count else None)


def _unfit(record: Record, redactor: Redactor) -> Sequence[str]:
    """Return why a record may not be sent though it rebuilds the tree."""
    reasons = []
    size = len(encode_record(record))
    if size > MAX_BYTES:
        reasons.append(f"it has {size:,} bytes; at most {MAX_BYTES:,} can be sent")
    if left := scrubbed(record, redactor):
        reasons.append(f"a secret is left in it ({', '.join(left.kinds)})")
    return reasons
