"""Tokens, benchmarks, and the name of the history that cursors speak of."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the three tables."""
    time, now = sa.DateTime(timezone=True), sa.func.now()
    op.create_table(
        "tokens",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("sha256", sa.Text, nullable=False, unique=True),
        sa.Column("scopes", ARRAY(sa.Text), nullable=False),
        sa.Column("created_at", time, nullable=False, server_default=now),
        sa.Column("last_used_at", time),
        sa.Column("revoked_at", time),
    )
    op.create_table(
        "benchmarks",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("adapter", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text, sa.ForeignKey("tasks.id")),
        sa.Column("session_id", UUID, sa.ForeignKey("sessions.id")),
        sa.Column("metric", sa.Text, nullable=False),
        sa.Column("value", sa.Double, nullable=False),
        sa.Column("n", sa.Integer),
        sa.Column("details", JSONB, nullable=False, server_default="{}"),
        sa.Column("created_at", time, nullable=False, server_default=now),
    )
    op.create_index("benchmarks_adapter", "benchmarks", ["adapter", "version"])
    op.create_table("store", sa.Column("id", sa.Text, nullable=False))
    op.execute("INSERT INTO store VALUES (left(md5(gen_random_uuid()::text), 8))")


def downgrade() -> None:
    """Drop them, with what is in them."""
    op.drop_table("store")
    op.drop_table("benchmarks")
    op.drop_table("tokens")
