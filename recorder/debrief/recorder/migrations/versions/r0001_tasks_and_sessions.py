"""Tasks, and sessions with their records as jsonb."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, UUID

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "tasks",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
    )
    op.create_table(
        "sessions",
        sa.Column("id", UUID, primary_key=True),
        sa.Column("task_id", sa.Text, sa.ForeignKey("tasks.id"), nullable=False),
        sa.Column("repo_name", sa.Text, nullable=False),
        sa.Column("repo_remote", sa.Text),
        sa.Column("branch", sa.Text),
        sa.Column("base_ref", sa.Text, nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
        sa.Column("record", JSONB, nullable=False),
    )
    op.create_index("sessions_task_created", "sessions", ["task_id", sa.text("created_at DESC")])


def downgrade() -> None:
    """Drop both."""
    op.drop_table("sessions")
    op.drop_table("tasks")
