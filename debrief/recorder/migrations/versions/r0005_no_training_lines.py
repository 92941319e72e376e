"""No training lines beside records: the pipeline makes them."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Drop the columns."""
    op.execute(
        "ALTER TABLE sessions DROP COLUMN line, DROP COLUMN line_reason, DROP COLUMN line_version"
    )


def downgrade() -> None:
    """Add them, empty; the earlier version's exports make the lines again."""
    op.execute(
        """
        ALTER TABLE sessions
            ADD COLUMN line text,
            ADD COLUMN line_reason text NOT NULL DEFAULT '',
            ADD COLUMN line_version integer,
            ALTER COLUMN line SET STORAGE EXTERNAL
        """
    )
