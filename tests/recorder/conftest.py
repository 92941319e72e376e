"""What the recorder's tests share."""

from tests.postgres import postgres_server, postgres_url, record_store, shared_store

__all__ = ["postgres_server", "postgres_url", "record_store", "shared_store"]
