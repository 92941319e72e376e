"""The training line of each record, made once."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns; lines of records that are there are made by the first export of each."""
    op.execute(
        """
        ALTER TABLE sessions
            ADD COLUMN line text,
            ADD COLUMN line_reason text NOT NULL DEFAULT '',
            ADD COLUMN line_version integer,
            ALTER COLUMN line SET STORAGE EXTERNAL
        """
    )


def downgrade() -> None:
    """Drop them; lines can be made again."""
    op.execute(
        "ALTER TABLE sessions DROP COLUMN line, DROP COLUMN line_reason, DROP COLUMN line_version"
    )
