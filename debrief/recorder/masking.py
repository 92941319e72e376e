"""Secrets out of a session before it becomes a record, on both sides of every file.

A secret inside a diff cannot be replaced where it stands: the patch would no longer fit. So the
file is redacted as it was and as it is, with the same stable placeholders, and the hunks are made
anew between the two. Reading, patch and result then tell one story, which can be verified.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, structs

from debrief.recorder.changes import ChangedFile, Changes, entries_of
from debrief.recorder.facts import RanCommand, SessionFacts
from debrief.recorder.findings import Findings
from debrief.recorder.objects import Entry, Objects
from debrief.recorder.patches import FilePair, Version, hunks_of
from debrief.recorder.scratch import Scratch

_LONGEST_SCANNED = 400_000
"""Characters of an output that are searched for secrets; a record keeps far fewer."""
_ONLY_SECRETS = "only secrets in it changed"


class _Masked(Struct, frozen=True):
    """A file pair before and after its secrets were replaced."""

    origin: ChangedFile
    pair: FilePair


def mask_facts(facts: SessionFacts, findings: Findings) -> SessionFacts:
    """Return a session's facts without secrets in what was typed and printed."""
    return structs.replace(
        facts,
        system=None if facts.system is None else findings.clean(facts.system),
        prompt=findings.clean(facts.prompt),
        summary=None if facts.summary is None else findings.clean(facts.summary),
        commands=tuple(_mask_command(command, findings) for command in facts.commands),
    )


def mask_changes(
    scratch: Scratch, objects: Objects, changes: Changes, findings: Findings
) -> Changes:
    """Return the changes with placeholders on both sides; the very same ones without secrets.

    Raises:
        InputError: git cannot compare the two sides.
    """
    masked = [_Masked(file, _mask_pair(objects, file.pair, findings)) for file in changes.files]
    if all(one.pair is one.origin.pair for one in masked):
        return changes
    gone = [one for one in masked if one.pair.before == one.pair.after]
    kept = [one for one in masked if one.pair.before != one.pair.after]
    pairs = [one.pair for one in kept]
    base = objects.tree_of(changes.base)
    before = objects.replace(base, _earlier(pairs), stored=True)
    after = objects.replace(before, entries_of(pairs), stored=True)
    hunks = hunks_of(scratch, pairs, "diff-tree", before, after)
    return structs.replace(
        changes,
        final_tree=objects.replace(base, entries_of(pairs)),
        files=tuple(ChangedFile(pair=pair, hunks=hunks.get(pair.path, "")) for pair in pairs),
        skipped=tuple(
            sorted([*changes.skipped, *((one.pair.path, _ONLY_SECRETS) for one in gone)])
        ),
    )


def _mask_command(command: RanCommand, findings: Findings) -> RanCommand:
    output = command.output
    cut = len(output) > _LONGEST_SCANNED
    return structs.replace(
        command,
        args=tuple(findings.clean(arg) for arg in command.args),
        output=findings.clean(output[:_LONGEST_SCANNED] if cut else output),
        cut=command.cut or cut,
    )


def _mask_pair(objects: Objects, pair: FilePair, findings: Findings) -> FilePair:
    before = _mask_version(objects, pair.before, findings)
    after = _mask_version(objects, pair.after, findings)
    if before is pair.before and after is pair.after:
        return pair
    return FilePair(path=pair.path, before=before, after=after)


def _mask_version(objects: Objects, version: Version | None, findings: Findings) -> Version | None:
    if version is None:
        return None
    text = findings.clean(version.text)
    if text == version.text:
        return version
    return Version(mode=version.mode, id=objects.write_blob(text.encode()), text=text)


def _earlier(pairs: Iterable[FilePair]) -> dict[bytes, Entry | None]:
    return {
        pair.path.encode(): Entry(pair.before.mode, pair.before.id) for pair in pairs if pair.before
    }
