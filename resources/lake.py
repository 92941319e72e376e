"""The lake as Dagster configures it."""

import dagster as dg
from pydantic import Field

from debrief.lake import Lake
from debrief.settings import load_settings
from resources.attendance import attend, keeper_of_this_machine


class LakeResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Where the tables and training sets are."""

    url: str = Field(
        default="",
        description="A folder or an fsspec URL (s3://…). Empty: DEBRIEF_LAKE.",
    )

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Let it be known that the run, which is about to use the lake, is worked on."""
        if context.instance is not None and context.run is not None:
            attend(context.instance, context.run)

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """Say that this process is done with its part of the run."""
        if context.run is not None:
            keeper_of_this_machine().leave(context.run.run_id)

    def open(self) -> Lake:
        """Return the lake."""
        return Lake(self.url or load_settings().lake)
