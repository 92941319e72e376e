"""The tables, as the latest migration leaves them."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

metadata = sa.MetaData()
_TIME = sa.DateTime(timezone=True)
_NEXT_CHANGE = sa.text("nextval('sessions_changed_seq')")

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("description", sa.Text),
    sa.Column("created_at", _TIME, nullable=False, server_default=sa.func.now()),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("id", UUID(as_uuid=True), primary_key=True),
    sa.Column("task_id", sa.Text, sa.ForeignKey("tasks.id"), nullable=False),
    sa.Column("repo_name", sa.Text, nullable=False),
    sa.Column("repo_remote", sa.Text),
    sa.Column("branch", sa.Text),
    sa.Column("base_ref", sa.Text, nullable=False),
    sa.Column("created_at", _TIME, nullable=False, server_default=sa.func.now()),
    sa.Column("record", JSONB, sa.Computed("record_text::jsonb"), nullable=False),
    sa.Column("number", sa.BigInteger, sa.Identity(always=True), nullable=False),
    sa.Column("changed", sa.BigInteger, nullable=False, server_default=_NEXT_CHANGE),
    sa.Column("received_at", _TIME, nullable=False, server_default=sa.func.now()),
    sa.Column("record_text", sa.Text, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False, server_default="draft"),
    sa.Column("verified", sa.Boolean, nullable=False),
    sa.Column("files", sa.Integer, nullable=False),
    sa.Column("validated", sa.Boolean, nullable=False),
    sa.Column("redactions", sa.Integer, nullable=False),
    sa.Column("not_ready", ARRAY(sa.Text), nullable=False, server_default="{}"),
    sa.Index("sessions_task_created", "task_id", sa.text("created_at DESC")),
    sa.Index("sessions_number", "number", unique=True),
    sa.Index("sessions_changed", "changed", unique=True),
    sa.Index("sessions_task_number", "task_id", "number"),
    sa.CheckConstraint("status IN ('draft', 'ready')", name="sessions_status"),
)

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("sha256", sa.Text, nullable=False, unique=True),
    sa.Column("scopes", ARRAY(sa.Text), nullable=False),
    sa.Column("created_at", _TIME, nullable=False, server_default=sa.func.now()),
    sa.Column("last_used_at", _TIME),
    sa.Column("revoked_at", _TIME),
)

benchmarks = sa.Table(
    "benchmarks",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("adapter", sa.Text, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("task_id", sa.Text, sa.ForeignKey("tasks.id")),
    sa.Column("session_id", UUID(as_uuid=True), sa.ForeignKey("sessions.id")),
    sa.Column("metric", sa.Text, nullable=False),
    sa.Column("value", sa.Double, nullable=False),
    sa.Column("n", sa.Integer),
    sa.Column("details", JSONB, nullable=False, server_default="{}"),
    sa.Column("created_at", _TIME, nullable=False, server_default=sa.func.now()),
    sa.Index("benchmarks_adapter", "adapter", "version"),
)

store = sa.Table(
    "store",
    metadata,
    sa.Column("id", sa.Text, nullable=False),
)
"""One row: which history the cursors of this database speak of."""
