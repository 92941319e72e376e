"""The tables as queries name them. The migrations alone say how they are made."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID


def _columns(*names: str) -> list[sa.ColumnClause[object]]:
    """Return columns whose values Postgres's driver converts by itself."""
    return [sa.column(name) for name in names]


tasks = sa.table("tasks", *_columns("id", "name", "description", "created_at"))

sessions = sa.table(
    "sessions",
    sa.column("id", UUID(as_uuid=True)),
    sa.column("number", sa.BigInteger),
    sa.column("changed", sa.BigInteger),
    sa.column("record_text", sa.Text),
    sa.column("not_ready", ARRAY(sa.Text)),
    *_columns("task_id", "repo_name", "repo_remote", "branch", "base_ref", "created_at"),
    *_columns("received_at", "size", "sha256", "status"),
    *_columns("verified", "files", "validated", "redactions"),
)

tokens = sa.table(
    "tokens",
    sa.column("scopes", ARRAY(sa.Text)),
    *_columns("name", "sha256", "created_at", "last_used_at", "revoked_at"),
)

benchmarks = sa.table(
    "benchmarks",
    sa.column("id", sa.BigInteger),
    sa.column("session_id", UUID(as_uuid=True)),
    sa.column("details", JSONB),
    *_columns("adapter", "version", "task_id", "metric", "value", "n", "created_at"),
)

store = sa.table("store", sa.column("id"))
"""One row: which history the cursors of this database speak of."""
