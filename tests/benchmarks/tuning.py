"""That training sets train: rendered by TRL's own templates, and a tiny model tuned on them.

Needs what the project does not: ``pip install torch trl transformers`` in an environment of its
own, then ``python tests/benchmarks/tuning.py FOLDER``, the folder being what
``debrief export --format trl`` wrote (with ``--single-calls`` here too where it was given there:
then no template may refuse a line). Every line is rendered through the chat templates of
tool-calling models that TRL ships; then a randomly initialised model of a few hundred thousand
weights is tuned on the train split with TRL's ``SFTTrainer``, and its loss has to fall.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

TEMPLATES = ("qwen3", "qwen2_5", "gptoss", "glm4moe", "llama3_1")
MAY_REFUSE = {"llama3_1": "This model only supports single tool-calls at once!"}


def render_all(rows: list[dict[str, Any]], may_refuse: dict[str, str]) -> list[str]:
    """Render every line through every template; return the first template's texts."""
    import trl
    from transformers.utils.chat_template_utils import (
        render_jinja_template,
    )

    texts: list[str] = []
    for name in TEMPLATES:
        template = (Path(trl.__file__).parent / "chat_templates" / f"{name}.jinja").read_text()
        outcomes: Counter[str] = Counter()
        for row in rows:
            try:
                (text,), _ = render_jinja_template(
                    [row["messages"]], tools=json.loads(row["tools"]), chat_template=template
                )
            except Exception as error:
                if may_refuse.get(name) != str(error):
                    raise
                outcomes[f"refused: {error}"] += 1
                continue
            for message in row["messages"]:
                if message["role"] == "user" and message["content"].strip() not in text:
                    raise AssertionError(f"{name} lost a prompt of {row['session_id']}")
                for call in message.get("tool_calls") or ():
                    assert call["function"]["name"] in text, name
            outcomes["rendered"] += 1
            if name == TEMPLATES[0]:
                texts.append(text)
        print(f"{name:10} {dict(outcomes)}")
    return texts


def tune(dataset: Any, texts: list[str], steps: int) -> list[float]:
    """Tune a tiny random model; return the loss of each step."""
    import torch
    import trl
    from tokenizers import ByteLevelBPETokenizer
    from transformers import (
        LlamaConfig,
        LlamaForCausalLM,
        PreTrainedTokenizerFast,
    )

    torch.manual_seed(0)
    learned = ByteLevelBPETokenizer()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    learned.train_from_iterator(texts, vocab_size=2_000, special_tokens=special)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=learned._tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    template = Path(trl.__file__).parent / "chat_templates" / f"{TEMPLATES[0]}.jinja"
    tokenizer.chat_template = template.read_text()
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )
    with tempfile.TemporaryDirectory() as scratch:
        trainer = trl.SFTTrainer(
            model=model,
            processing_class=tokenizer,
            train_dataset=dataset,
            args=trl.SFTConfig(
                output_dir=scratch,
                max_steps=steps,
                per_device_train_batch_size=2,
                learning_rate=5e-3,
                max_length=512,
                logging_steps=1,
                report_to=[],
                use_cpu=True,
                save_strategy="no",
                bf16=False,
            ),
        )
        trainer.train()
        return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def main() -> None:
    """Render, tune, and say whether the loss fell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="what `debrief export --format trl` wrote")
    parser.add_argument("--single-calls", action="store_true", help="no template may refuse")
    parser.add_argument("--steps", type=int, default=30)
    given = parser.parse_args()
    from datasets import load_dataset

    with tempfile.TemporaryDirectory() as cache:
        splits = load_dataset(given.folder, cache_dir=cache)
        print({name: len(split) for name, split in splits.items()})
        rows = [row for split in splits.values() for row in split]
        texts = render_all(rows, {} if given.single_calls else MAY_REFUSE)
        losses = tune(splits["train"], texts, given.steps)
    first, last = sum(losses[:3]) / 3, sum(losses[-3:]) / 3
    print("loss", " ".join(f"{loss:.2f}" for loss in losses))
    print(f"first three {first:.2f}, last three {last:.2f}")
    sys.exit(0 if last < first else 1)


if __name__ == "__main__":
    main()
