"""The records' exact text, their status, the order they came in, and columns to filter by."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns, and fill them from the jsonb where sessions are stored already.

    The bytes that those were sent as are gone; the text that jsonb gives stands in for them. From
    then on the jsonb is derived from the text: from Postgres 18 on when it is read, before that
    as a stored copy. Text is kept uncompressed: it is written once, and exported whole.
    """
    op.execute("CREATE SEQUENCE sessions_changed_seq")
    op.execute(
        """
        ALTER TABLE sessions
            ADD COLUMN received_at timestamptz NOT NULL DEFAULT now(),
            ADD COLUMN record_text text,
            ADD COLUMN size integer,
            ADD COLUMN sha256 text,
            ADD COLUMN status text NOT NULL DEFAULT 'draft',
            ADD COLUMN verified boolean NOT NULL DEFAULT false,
            ADD COLUMN files integer NOT NULL DEFAULT 0,
            ADD COLUMN validated boolean NOT NULL DEFAULT false,
            ADD COLUMN redactions integer NOT NULL DEFAULT 0,
            ADD COLUMN not_ready text[] NOT NULL DEFAULT '{}',
            ADD COLUMN number bigint,
            ADD COLUMN changed bigint,
            ADD CONSTRAINT sessions_status CHECK (status IN ('draft', 'ready')),
            ALTER COLUMN record_text SET STORAGE EXTERNAL
        """
    )
    op.execute(
        """
        UPDATE sessions SET
            received_at = created_at,
            record_text = record::text,
            size = octet_length(record::text),
            sha256 = encode(sha256(convert_to(record::text, 'UTF8')), 'hex'),
            verified = coalesce(record @> '{"meta": {"verified": true}}', false),
            files = CASE jsonb_typeof(record #> '{meta,changes}')
                WHEN 'array' THEN jsonb_array_length(record #> '{meta,changes}') ELSE 0 END,
            not_ready = ARRAY['it was stored before records were checked'],
            number = ordered.number,
            changed = ordered.number
        FROM (
            SELECT id, row_number() OVER (ORDER BY created_at, id) AS number FROM sessions
        ) AS ordered
        WHERE ordered.id = sessions.id
        """
    )
    op.execute(
        """
        ALTER TABLE sessions
            ALTER COLUMN record_text SET NOT NULL,
            ALTER COLUMN size SET NOT NULL,
            ALTER COLUMN sha256 SET NOT NULL,
            ALTER COLUMN number SET NOT NULL,
            ALTER COLUMN changed SET NOT NULL,
            ALTER COLUMN changed SET DEFAULT nextval('sessions_changed_seq'),
            ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY,
            ALTER COLUMN verified DROP DEFAULT,
            ALTER COLUMN files DROP DEFAULT,
            ALTER COLUMN validated DROP DEFAULT,
            ALTER COLUMN redactions DROP DEFAULT,
            DROP COLUMN record
        """
    )
    version = op.get_bind().exec_driver_sql("SHOW server_version_num").scalar_one()
    kept = "VIRTUAL" if int(version) >= 180000 else "STORED"
    op.execute(
        f"""
        ALTER TABLE sessions ADD COLUMN record jsonb NOT NULL
            GENERATED ALWAYS AS (record_text::jsonb) {kept}
        """
    )
    op.execute(
        """
        SELECT setval(name, (SELECT coalesce(max(number), 0) + 1 FROM sessions), false)
        FROM (VALUES (pg_get_serial_sequence('sessions', 'number')), ('sessions_changed_seq'))
            AS sequences (name)
        """
    )
    op.execute("ALTER SEQUENCE sessions_changed_seq OWNED BY sessions.changed")
    op.create_index("sessions_changed", "sessions", ["changed"], unique=True)
    op.create_index("sessions_number", "sessions", ["number"], unique=True)
    op.create_index("sessions_task_number", "sessions", ["task_id", "number"])


def downgrade() -> None:
    """Drop what was added; records are kept as jsonb."""
    op.execute("ALTER TABLE sessions ADD COLUMN plain jsonb")
    op.execute("UPDATE sessions SET plain = record_text::jsonb")
    op.execute(
        """
        ALTER TABLE sessions
            DROP COLUMN record, DROP COLUMN received_at, DROP COLUMN record_text,
            DROP COLUMN size, DROP COLUMN sha256, DROP COLUMN status, DROP COLUMN verified,
            DROP COLUMN files, DROP COLUMN validated, DROP COLUMN redactions,
            DROP COLUMN not_ready, DROP COLUMN number, DROP COLUMN changed,
            ALTER COLUMN plain SET NOT NULL
        """
    )
    op.execute("ALTER TABLE sessions RENAME COLUMN plain TO record")
