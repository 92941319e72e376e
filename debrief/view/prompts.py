"""Prompts: every fingerprint, its text, and the difference between two."""

from __future__ import annotations

import difflib

from fastapi import APIRouter, Response

from debrief.errors import InputError
from debrief.snapshots.model import PromptSnapshotRow
from debrief.view.templating import Page, PageContext

router = APIRouter()


@router.get("/prompts")
def prompts(page: Page) -> Response:
    """List the fingerprints, with how their sessions went."""
    rows = page.index.select(
        "SELECT fingerprint, count(*) AS sessions, avg(quality) AS quality, min(week) AS since "
        "FROM sessions GROUP BY fingerprint ORDER BY max(started) DESC"
    )
    return page.render("prompts/list.html", title="Prompts", prompts=rows)


@router.get("/prompts/{fingerprint}")
def prompt(page: Page, fingerprint: str) -> Response:
    """Show the text of a prompt, and its sessions."""
    snapshot = _snapshot(page, fingerprint)
    rows = page.index.sessions("fingerprint = ?", (fingerprint,), limit=50)
    return page.render("prompts/prompt.html", title=fingerprint, snapshot=snapshot, sessions=rows)


@router.get("/prompts/{before}/diff/{after}")
def difference(page: Page, before: str, after: str) -> Response:
    """Show what changed from one prompt to another."""
    old, new = (_snapshot(page, name).main.splitlines() for name in (before, after))
    lines = list(difflib.unified_diff(old, new, before, after, lineterm=""))
    return page.render("prompts/diff.html", title=f"{before} → {after}", lines=lines)


def _snapshot(page: PageContext, fingerprint: str) -> PromptSnapshotRow:
    found = page.index.sessions("fingerprint = ?", (fingerprint,), limit=1)
    for row in found:
        only = ("session_id", {row.id})
        rows = page.lake.read("prompt_snapshots", row.week, PromptSnapshotRow, only)
        if snapshot := next(rows, None):
            return snapshot
    raise InputError(fingerprint, "is no prompt of this lake", "Choose one of the list.")
