"""Dagster's definitions: jobs, schedule, sensors, and the commands that launch runs."""

import warnings

for _message in (
    ".*`backfill_policy`.*",
    ".*`allow_nonexistent_upstream_partitions`.*",
    ".*`use_user_code_server`.*",
    ".*`owners` of initializer `SensorDefinition.*",
):
    # Beta and preview parts that the pinned Dagster has; each would warn at every start.
    warnings.filterwarnings("ignore", message=_message)
