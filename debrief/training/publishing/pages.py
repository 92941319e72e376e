"""The README of a published folder: for people, and in its header for loaders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from debrief.markdown import plain, table
from debrief.training.publishing.columns import as_features
from debrief.training.publishing.forms import Form
from debrief.training.publishing.one_set import PublishedSet

ALL = "default"


def readme(form: Form, sets: Sequence[PublishedSet], *, parquet: bool) -> str:
    """Return the page of a folder with these sets in it."""
    import yaml

    groups = {ALL: list(sets), **{made.name: [made] for made in sets}}
    configs = [
        {"config_name": name, "data_files": files, **({"default": True} if name == ALL else {})}
        for name, group in groups.items()
        if (files := _data_files(group))
    ]
    header: dict[str, Any] = {"configs": configs}
    if configs:
        # Written out for each, as loaders do not follow references.
        header["dataset_info"] = [
            {"config_name": config["config_name"], "features": as_features(form.columns)}
            for config in configs
        ]
    text = yaml.dump(header, Dumper=_plain_dumper(), sort_keys=False, allow_unicode=True)
    return f"---\n{text}---\n{_body(form, sets, parquet=parquet)}"


def _data_files(sets: Sequence[PublishedSet]) -> list[dict[str, Any]]:
    paths: dict[str, list[str]] = {}
    for made in sets:
        for side, count in made.lines.items():
            if count:
                paths.setdefault(side, []).append(f"{made.task}/{made.fingerprint}/{side}.jsonl")
    return [{"split": side, "path": found} for side, found in paths.items()]


def _body(form: Form, sets: Sequence[PublishedSet], *, parquet: bool) -> str:
    rows = [
        (
            f"`{plain(made.task)}`",
            f"`{plain(made.fingerprint)}`",
            str(made.lines["train"]),
            str(made.lines["eval"]),
            f"{made.size:,}",
            f"[card]({made.task}/{made.fingerprint}/card.md)",
        )
        for made in sets
    ]
    named = next((made.name for made in sets if any(made.lines.values())), ALL)
    beside = " The same lines are in the `.parquet` files beside them." if parquet else ""
    return "\n".join(
        [
            "# Training sets",
            "",
            f"As `{form.name}`, read by {form.reader}. {form.note}{beside}",
            "",
            table(("task", "fingerprint", "train", "eval", "bytes", "card"), rows),
            "",
            "A card says where a set's sessions are from, who judged them, what was left out, "
            "and under which licences the repositories stand.",
            "",
            "```python",
            "from datasets import load_dataset",
            "",
            'everything = load_dataset(".")',
            f'one = load_dataset(".", "{named}")',
            "```",
            "",
        ]
    )


def _plain_dumper() -> Any:
    import yaml

    # Ten times as fast where it is there, and the same text.
    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Dumper(base):  # type: ignore[misc]
        def ignore_aliases(self, data: object) -> bool:
            return True

    return Dumper
