"""Trainers that take a configuration, and what they make of the lines."""

from __future__ import annotations

import json
import shlex
from typing import Any

from tools.trainers.checks.words import answers_of, lines_of, runs_of, says_the_same

_UNCUT = 1_000_000


def _tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained("Qwen/Qwen3-0.6B")


def _runs(tokenizer: Any, row: dict[str, Any]) -> list[str]:
    return runs_of(tokenizer, row["input_ids"], [label != -100 for label in row["labels"]])


def _masks(same: int, lines: list[Any]) -> dict[str, str]:
    return dict.fromkeys(("masks", "exact"), f"{same} of {len(lines)}")


def llama_factory(recipe: str) -> dict[str, Any]:
    """Return what LLaMA-Factory's own loader has of the lines."""
    import yaml
    from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
    from llamafactory.hparams import get_train_args

    def rows(cut: int) -> list[Any]:
        given = {**yaml.safe_load(recipe), "use_cpu": True, "report_to": "none", "cutoff_len": cut}
        model, data, training, *_ = get_train_args(given)
        tokenizer = _tokenizer()
        template = get_template_and_fix_tokenizer(tokenizer, data)
        sets = get_dataset(
            template, model, data, training, stage=given["stage"], tokenizer=tokenizer
        )
        return [*sets["train_dataset"], *sets["eval_dataset"]]

    tokenizer, lines = _tokenizer(), lines_of("sharegpt")
    same = sum(
        says_the_same(_runs(tokenizer, row), [*map(_answer, _said(line))])
        for row, line in zip(rows(_UNCUT), lines, strict=True)
    )
    given = yaml.safe_load(recipe)
    return {"loaded": len(rows(given["cutoff_len"])), **_masks(same, lines)}


def _said(line: dict[str, Any]) -> list[dict[str, str]]:
    return [one for one in line["conversations"] if one["from"] in ("gpt", "function_call")]


def _answer(turn: dict[str, str]) -> dict[str, Any]:
    """Return words, or a call with the words before it, as an assistant's message."""
    if turn["from"] == "gpt":
        return {"content": turn["value"]}
    words, mark, called = turn["value"].partition("\n<tool_call>\n")
    call = json.loads(called.removesuffix("\n</tool_call>") if mark else turn["value"])
    return {"content": words if mark else "", "tool_calls": [{"function": call}]}


def axolotl(recipe: str) -> dict[str, Any]:
    """Return what axolotl's strategy for chat templates makes of the lines."""
    import yaml
    from axolotl.prompt_strategies.chat_template import load
    from axolotl.utils.dict import DictDefault
    from axolotl.utils.schemas.datasets import SFTDataset

    given = DictDefault(yaml.safe_load(recipe))
    of_set = SFTDataset(**given.datasets[0]).model_dump(exclude_none=True)
    tokenizer, lines, same, loaded = _tokenizer(), lines_of("axolotl"), 0, 0
    strategy = load(tokenizer, DictDefault({**given, "sequence_len": _UNCUT}), ds_cfg=of_set)
    for line in lines:
        row = strategy.tokenize_prompt(line)
        loaded += any(label != -100 for label in row["labels"])
        same += says_the_same(_runs(tokenizer, row), answers_of(line["messages"], "train"))
    return {"loaded": loaded, **_masks(same, lines)}


def swift(recipe: str) -> dict[str, Any]:
    """Return what `swift sft` made of the lines, after two steps of it."""
    from swift.pipelines import SwiftSft

    _, _, *given = shlex.split(recipe)
    small = "--max_steps 2 --torch_dtype float32 --report_to none --dataset_shuffle false"
    ran = SwiftSft([*given, *small.split()])
    ran.main()
    loaded = sum(map(len, ran._prepare_dataset()))
    ran.template.max_length = _UNCUT
    tokenizer, lines, same = ran.template.tokenizer, lines_of("swift"), 0
    for row, line in zip(
        (row for side in ran._prepare_dataset() for row in side), lines, strict=True
    ):
        same += says_the_same(_runs(tokenizer, row), answers_of(line["messages"], "loss"))
    return {"loaded": loaded, **_masks(same, lines)}


def verl(recipe: str) -> dict[str, Any]:
    """Return how many prompts verl's dataset has."""
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset

    given = OmegaConf.create(recipe).data
    given.cache_dir = "out/verl"
    files = (given.train_files, given.val_files)
    made = [RLHFDataset(data_files=file, tokenizer=_tokenizer(), config=given) for file in files]
    assert all(one[place]["raw_prompt"] for one in made for place in range(len(one)))
    return {"loaded": sum(map(len, made)), "masks": "none: it samples its own answers"}
