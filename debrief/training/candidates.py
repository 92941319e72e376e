"""Proposed prompts, filed beside those in force and never over them."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from debrief.errors import InputError
from debrief.markdown import table
from debrief.redaction import contains_secret
from debrief.snapshots.prompts import is_text
from debrief.snapshots.writing import is_key, refuse_link
from debrief.training.leaderboard import Estimate
from debrief.training.optimisation import Proposal

CANDIDATES = "prompts/candidates"
REPORT = "report.md"


class WrittenCandidate(Struct, frozen=True):
    """Where a candidate is."""

    folder: Path
    new: bool
    """False when the same prompts had been proposed before."""


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
        files[f"{name}.md"] = data
    told = msgspec.json.encode(msgspec.structs.asdict(proposal))
    files["candidate.json"] = msgspec.json.format(told, indent=2) + b"\n"
    files[REPORT] = report_of(proposal).encode()
    return files


def write_candidate(proposal: Proposal, debrief_folder: Path, tool: str) -> WrittenCandidate:
    """Write a candidate to ``prompts/candidates/<tool>/<fingerprint>/`` of a ``.debrief`` folder.

    Args:
        proposal: with prompts other than its parent's.
        debrief_folder: a repository's ``.debrief``.
        tool: whose prompts they are.

    Raises:
        InputError: a prompt holds a secret, the tool's name cannot be a folder's, or a folder on
            the way is a symbolic link.
        OSError: it cannot be written.
    """
    if not is_key(tool):
        raise InputError(
            f"tool {tool!r}",
            "has a name that no folder can have",
            "Give its name in metadata.json.",
        )
    files = candidate_files(proposal)
    target = debrief_folder / CANDIDATES / tool / proposal.fingerprint
    for place in (debrief_folder, *reversed(target.relative_to(debrief_folder).parents), target):
        refuse_link(debrief_folder / place)
    if target.exists():
        return WrittenCandidate(target, new=False)
    unfinished = target.with_name(f".{target.name}")
    unfinished.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (unfinished / name).write_bytes(data)
    unfinished.rename(target)
    return WrittenCandidate(target, new=True)


def report_of(proposal: Proposal) -> str:
    """Return what speaks for a proposal, as Markdown."""
    cost = "not known" if proposal.cost_usd is None else f"${proposal.cost_usd:.4f}"
    if not proposal.changed:
        verdict = "Nothing better than the prompts in force was found."
    elif (proposal.difference.low or 0.0) > 0:
        verdict = "Better on the held-out samples, by more than chance."
    elif (proposal.difference.mean or 0.0) > 0:
        verdict = "Better on the held-out samples, but it may be chance."
    else:
        verdict = "Not better on the held-out samples: kept to be looked at, not to be used."
    return "\n".join(
        [
            f"# Prompts {proposal.fingerprint}, proposed from {proposal.parent_fingerprint}",
            "",
            verdict,
            "",
            table(
                ("held-out samples", "mean, 0 to 1", "95 % interval"),
                [
                    (f"before ({proposal.before.count})", *_cells(proposal.before)),
                    (f"after ({proposal.after.count})", *_cells(proposal.after)),
                    ("difference", *_cells(proposal.difference, sign=True)),
                ],
            ),
            "",
            f"{proposal.trained_on} training samples, {proposal.trials} trials; "
            f"{proposal.model}: {proposal.calls} calls ({proposal.recalled} more answered from the "
            f"cache), {proposal.input_tokens:,} tokens in, {proposal.output_tokens:,} out, "
            f"cost {cost}.",
            "",
            "A trial is what a model under the prompts says it would do with a session's request, "
            "judged by the same model by what was found of that session. It stands in for running "
            "the session again, which nobody did: try the prompts on real work, and let the "
            "leaderboard compare the fingerprints.",
            "",
        ]
    )


def _cells(value: Estimate, *, sign: bool = False) -> tuple[str, str]:
    form = "+.2f" if sign else ".2f"
    if value.mean is None:
        return "–", "–"
    if value.low is None or value.high is None:
        return f"{value.mean:{form}}", "–"
    return f"{value.mean:{form}}", f"{value.low:{form}} to {value.high:{form}}"
