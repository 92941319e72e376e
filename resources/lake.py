"""The lake as Dagster configures it."""

import dagster as dg
from pydantic import Field

from debrief.lake import Lake
from debrief.settings import load_settings


class LakeResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Where the tables and training sets are."""

    url: str = Field(
        default="",
        description="A folder or an fsspec URL (s3://…). Empty: DEBRIEF_LAKE.",
    )

    def open(self) -> Lake:
        """Return the lake."""
        return Lake(self.url or load_settings().lake)
