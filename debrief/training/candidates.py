"""Improved prompts that the optimiser proposes, stored without changing the prompts in use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from debrief.errors import InputError
from debrief.files import write_folder
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.redaction import contains_secret, refuse_secrets
from debrief.redaction.gate import refuse_random
from debrief.reports import report
from debrief.snapshots.capture import is_key, is_text, refuse_link
from debrief.stats import MeanEstimate
from debrief.training.lessons import LessonFilter, lessons_of
from debrief.training.model import LINES
from debrief.training.optimisation import OptimiserOptions, Proposal, TrialFigures, propose
from debrief.training.trials import PromptTrials

CANDIDATES = "prompts/candidates"
REPORT = "report.md"


TABLE = "prompt_candidates"
FORM = "2"
"""Raised when the same samples give another candidate."""


def candidate_files(proposal: Proposal) -> dict[str, bytes]:
    """Return the files of a candidate by name: the prompts, and what speaks for them.

    Raises:
        InputError: a prompt holds a secret, or a subagent's name cannot be a file's.
    """
    texts = {"main": proposal.main, **proposal.subagents}
    files = {}
    for name, text in texts.items():
        if not is_key(name) or not is_text(name):
            raise InputError(f"subagent {name!r}", "has a name that no file can have")
        data = text.encode()
        if contains_secret(data):
            raise InputError(f"the proposed prompt {name}", "holds a secret", "Propose again.")
        refuse_random(f"{name}.md", data)
        files[f"{name}.md"] = data
    data = msgspec.json.encode(msgspec.structs.asdict(proposal))
    files["candidate.json"] = msgspec.json.format(data, indent=2) + b"\n"
    files[REPORT] = report_of(proposal).encode()
    for name, data in files.items():
        refuse_secrets(name, data)
    return files


def write_candidate(proposal: Proposal, debrief_folder: Path, tool: str) -> tuple[Path, bool]:
    """Write a candidate to ``prompts/candidates/<tool>/<fingerprint>/`` of a ``.debrief`` folder.

    Args:
        proposal: with prompts other than its parent's.
        debrief_folder: a repository's ``.debrief``.
        tool: whose prompts they are.

    Returns:
        Its folder, and whether it is new: False when the same prompts had been proposed before.

    Raises:
        InputError: a prompt holds a secret, the tool's name cannot be a folder's, or a folder on
            the way is a symbolic link.
        OSError: it cannot be written.
    """
    if not is_key(tool):
        reason = "has a name that no folder can have"
        raise InputError(f"tool {tool!r}", reason, "Give its name in metadata.json.")
    files = candidate_files(proposal)
    target = debrief_folder / CANDIDATES / tool / proposal.fingerprint
    above = target.relative_to(debrief_folder).parents
    refuse_link(*(debrief_folder / folder for folder in above), target)
    if target.exists():
        return target, False
    write_folder(target, files)
    return target, True


def report_of(proposal: Proposal) -> str:
    """Return what speaks for a proposal, as Markdown."""
    return report(
        "candidate",
        fingerprint=proposal.fingerprint,
        parent=proposal.parent_fingerprint,
        verdict=_verdict(proposal),
        compared=[
            (f"before ({proposal.before.count})", *_cells(proposal.before)),
            (f"after ({proposal.after.count})", *_cells(proposal.after)),
            ("difference", *_cells(proposal.difference, sign=True)),
        ],
        trained_on=proposal.trained_on,
        trials=proposal.trials,
        model=proposal.model,
        calls=proposal.calls,
        recalled=proposal.recalled,
        input_tokens=proposal.input_tokens,
        output_tokens=proposal.output_tokens,
        cost="not known" if proposal.cost_usd is None else f"${proposal.cost_usd:.4f}",
    )


def _verdict(proposal: Proposal) -> Literal["nothing_better", "better", "perhaps", "not_better"]:
    if not proposal.changed:
        return "nothing_better"
    if (proposal.difference.low or 0.0) > 0:
        return "better"
    return "perhaps" if (proposal.difference.mean or 0.0) > 0 else "not_better"


def _cells(value: MeanEstimate, *, sign: bool = False) -> tuple[str, str]:
    form = "+.2f" if sign else ".2f"
    if value.mean is None:
        return "–", "–"
    if value.low is None or value.high is None:
        return f"{value.mean:{form}}", "–"
    return f"{value.mean:{form}}", f"{value.low:{form}} to {value.high:{form}}"


class CandidateRow(TrialFigures, frozen=True, kw_only=True):
    """One row: what came of proposing prompts for a pair."""

    task: str
    fingerprint: str
    """The pair's."""
    outcome: Literal["proposed", "nothing_better", "not_possible"]
    reason: str = ""
    """Why it is not possible; else empty."""
    candidate: str = ""
    """The proposed prompts' own fingerprint; empty without any."""
    digest: str = ""
    report: str = ""
    """Markdown."""


def store_candidate(
    lake: Lake,
    task: str,
    fingerprint: str,
    trials: PromptTrials,
    options: OptimiserOptions,
    progress: Callable[[str], None] = lambda text: None,
) -> CandidateRow:
    """Propose prompts from a pair's training set, unless that was done from the same before.

    Args:
        lake: with the training set; prompts and row go there.
        task: the pair's task.
        fingerprint: the pair's fingerprints.
        trials: the way to try prompts out.
        options: how much may be tried.
        progress: called with what is going on.

    Raises:
        ModelError: a question could not be answered, or the run may spend no more.
    """
    partition = f"{task}/{fingerprint}"
    lines = lake.stamp(LINES, partition)
    made_from = digest_of(FORM, options.model_dump(), trials.names, lines.inputs if lines else "")
    stamp = lake.stamp(TABLE, partition)
    if stamp is not None and stamp.inputs == made_from:
        return next(lake.read(TABLE, partition, CandidateRow))
    samples = list(lessons_of(lake, LessonFilter(task=task, fingerprint=fingerprint)))
    try:
        proposal = propose(samples, trials, options, progress)
        files = candidate_files(proposal) if proposal.changed else {}
    except InputError as error:
        row = CandidateRow(
            task=task, fingerprint=fingerprint, outcome="not_possible", reason=str(error)
        )
    else:
        for name, data in files.items():
            path = f"{CANDIDATES}/{task}/{fingerprint}/{proposal.fingerprint}/{name}"
            lake.write_bytes(path, data)
        row = CandidateRow(
            **{name: getattr(proposal, name) for name in TrialFigures.__struct_fields__},
            task=task,
            fingerprint=fingerprint,
            outcome="proposed" if proposal.changed else "nothing_better",
            candidate=proposal.fingerprint if proposal.changed else "",
            digest=proposal.digest if proposal.changed else "",
            report=report_of(proposal),
        )
    lake.write(TABLE, partition, [row], CandidateRow, lambda: made_from)
    return row
