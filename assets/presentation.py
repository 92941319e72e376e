"""Turn what a stage shows into Dagster's metadata."""

import re
from collections.abc import Mapping
from typing import Any, get_args

import dagster as dg
import msgspec

from debrief.markdown import shorten
from debrief.stages.shown import Figures, ShownPage, ShownTable

_MOST_ROWS, _LONGEST_CELL = 50, 200
_IN_A_WINDOW = 1_000
"""Characters from which on the UI shows Markdown in a window of its own, where no table is cut."""

_MODULES = re.compile(r"\b\w+\.(?:\w+\.)*(?=\w)")

Metadata = Mapping[str, Any]


def metadata_of(figures: Figures) -> Metadata:
    """Return figures as metadata; of a long table, the first rows and how many there are."""
    made: dict[str, Any] = {}
    for name, value in figures.items():
        if isinstance(value, ShownTable):
            made[name] = table(value)
            if len(value.rows) > _MOST_ROWS:
                made[f"{name}_rows"] = len(value.rows)
        elif isinstance(value, ShownPage):
            made[name] = dg.MetadataValue.md(value.text.ljust(_IN_A_WINDOW))
        else:
            made[name] = value
    return made


def table(shown: ShownTable) -> dg.TableMetadataValue:
    """Return the first rows of a table as metadata."""
    records = [
        dg.TableRecord(dict(zip(shown.headings, map(_cell, row), strict=True)))
        for row in shown.rows[:_MOST_ROWS]
    ]
    columns = [dg.TableColumn(heading) for heading in shown.headings]
    return dg.MetadataValue.table(records, dg.TableSchema(columns))


def _cell(value: object) -> str | int | float | None:
    if isinstance(value, float):
        return float(f"{value:.3g}")
    return value if isinstance(value, int | None) else shorten(str(value), _LONGEST_CELL)


def column_schema(row_type: type[msgspec.Struct]) -> dg.TableSchema:
    """Return the columns of a row type, with their types."""
    return dg.TableSchema(
        [
            dg.TableColumn(
                field.encode_name,
                _type_name(field.type),
                constraints=dg.TableColumnConstraints(nullable=type(None) in get_args(field.type)),
            )
            for field in msgspec.structs.fields(row_type)
        ]
    )


def _type_name(kind: Any) -> str:
    """Return a type as people write it, without the modules of its parts."""
    name = kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
    return _MODULES.sub("", name)
