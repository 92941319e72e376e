"""TRL: each recipe trains, and what its losses are taken over is what the model said."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.trainers.checks.words import Line, answers_of, lines_of, runs_of, says_the_same

TEMPLATES = ("qwen3", "qwen2_5", "qwen3_6", "glm4moe", "gptoss")


def sft(made: dict[str, Any]) -> dict[str, Any]:
    """Return what of the lines is trained on, by several models' templates, uncut."""
    trainer = made["trainer"]
    loaded = len(trainer.train_dataset) + len(trainer.eval_dataset)
    by_template = dict(_by_template(trainer.processing_class))
    masks = ", ".join(f"{name} {same}" for name, same in by_template.items())
    return {"loaded": loaded, "masks": masks, "exact": by_template["qwen3"]}


def _by_template(tokenizer: Any) -> Iterator[tuple[str, str]]:
    import trl
    from datasets import load_dataset

    folder = Path(trl.__file__).parent / "chat_templates"
    samples = load_dataset("sets/trl")
    lines = lines_of("trl")
    for name in TEMPLATES:
        tokenizer.chat_template = (folder / f"{name}.jinja").read_text(encoding="utf-8")
        trainer = trl.SFTTrainer(
            model="Qwen/Qwen3-0.6B",
            args=trl.SFTConfig("out/masks", max_length=None, assistant_only_loss=True),
            train_dataset=samples["train"],
            eval_dataset=samples["eval"],
            processing_class=tokenizer,
        )
        rows = [*trainer.train_dataset, *trainer.eval_dataset]
        runs = (_labelled(tokenizer, row["input_ids"], row["labels"]) for row in rows)
        same = sum(
            says_the_same(run, answers_of(line["completion"]))
            for run, line in zip(runs, lines, strict=True)
        )
        print(f"{name}: {same} of {len(lines)}", file=sys.stderr)
        yield name, f"{same} of {len(lines)}"


def _labelled(tokenizer: Any, ids: list[int], labels: list[int]) -> list[str]:
    return runs_of(tokenizer, ids, [label != -100 for label in labels])


def dpo(made: dict[str, Any]) -> dict[str, Any]:
    """Return whether DPO's loss is over the model's words alone."""
    trainer, lines = made["trainer"], lines_of("preference", "train")
    same = _collated(made, "preference", lines, ("chosen", "rejected"))
    return {**_alone(trainer), "masks": same, "exact": same}


def _alone(trainer: Any) -> dict[str, Any]:
    return {"loaded": len(trainer.train_dataset), "sides": ["train"]}


def kto(made: dict[str, Any]) -> dict[str, Any]:
    """Return whether KTO's loss is over the model's words alone."""
    trainer, lines = made["trainer"], lines_of("kto", "train")
    labels = [line["label"] for line in lines]
    same = _collated(made, "kto", lines, ("completion",))
    masks = f"{same} ({sum(labels)} desirable, {len(labels) - sum(labels)} not)"
    return {**_alone(trainer), "masks": masks, "exact": same}


def _collated(made: dict[str, Any], form: str, lines: list[Line], columns: tuple[str, ...]) -> str:
    """Return how many answers the recipe's collator leaves in the loss, uncut, and them alone."""
    import trl
    from datasets import load_dataset

    tokenizer, kind = made["tokenizer"], type(made["trainer"])
    collator = made["OwnWords"](pad_token_id=tokenizer.pad_token_id)
    config = {"DPOTrainer": trl.DPOConfig, "KTOTrainer": trl.KTOConfig}[kind.__name__]
    uncut = kind(
        model="Qwen/Qwen3-0.6B",
        args=config("out/masks", max_length=None, per_device_train_batch_size=2),
        train_dataset=load_dataset(f"sets/{form}", split="train"),
        processing_class=tokenizer,
        data_collator=collator,
    )
    same = 0
    for row, line in zip(uncut.train_dataset, lines, strict=True):
        batch = collator([row])
        for place, column in enumerate(columns):
            ids, mask = batch["input_ids"][place], batch["completion_mask"][place]
            runs = runs_of(tokenizer, ids.tolist(), mask.bool().tolist())
            same += says_the_same(runs, answers_of(line[column]))
    return f"{same} of {len(lines) * len(columns)}"


def reward(made: dict[str, Any]) -> dict[str, Any]:
    """Return how many pairs the trainer of reward models has."""
    return {**_alone(made["trainer"]), "masks": "none: a conversation is scored as a whole"}
