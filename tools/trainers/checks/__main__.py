"""Runs one recipe, given on standard input, and prints what came of it as JSON, the last line.

    python -m tools.trainers.checks TRAINER

In a folder with ``sets/``. A model of the recipes' name is made there, tiny and random.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tools.trainers.checks import others, services, trl

_PROGRAMS = {
    "SFTTrainer": ("trl", trl.sft, "trained"),
    "DPOTrainer": ("trl", trl.dpo, "trained"),
    "RewardTrainer": ("trl", trl.reward, "trained"),
    "KTOTrainer": ("trl", trl.kto, "trained"),
    "OpenAI": ("openai", services.openai, "sent to a stand-in that checks by the client's types"),
    "Mistral": ("mistral-common", services.mistral, "its own validator, v5"),
    "verifiers": ("verifiers", services.verifiers, "loaded as a taskset"),
}
"""By trainer: the package, what looks at the names a recipe leaves, and how far it went."""
_CONFIGURATIONS = {
    "LLaMA-Factory": ("llamafactory", others.llama_factory, "its loader; torchaudio stood in for"),
    "axolotl": ("axolotl", others.axolotl, "its strategy"),
    "ms-swift": ("ms-swift", others.swift, "trained"),
    "verl": ("verl", others.verl, "its dataset"),
}
MODEL = Path("Qwen/Qwen3-0.6B")


def _make_model() -> None:
    """Make a model of one small layer, with a tokenizer of what the sets say."""
    import trl as library
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    marks = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    pairs = Tokenizer(models.BPE())
    pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pairs.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=16_000, special_tokens=marks, initial_alphabet=letters)
    pairs.train([f"sets/messages/{side}.jsonl" for side in ("train", "eval")], trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pairs, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    templates = Path(library.__file__).parent / "chat_templates"
    tokenizer.chat_template = (templates / "qwen3.jinja").read_text(encoding="utf-8")
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    Qwen3ForCausalLM(config).save_pretrained(MODEL)
    tokenizer.save_pretrained(MODEL)


def _train_little() -> None:
    """Let trainers run without a GPU, and stop them after two steps of two rows each."""
    import transformers
    from transformers import training_args

    training_args.is_torch_bf16_gpu_available = lambda: True
    train = transformers.Trainer.train

    def two_steps(self: Any, *args: Any, **options: Any) -> Any:
        self.args.max_steps, self._train_batch_size = 2, 2
        return train(self, *args, **options)

    transformers.Trainer.train = two_steps


def _left_by(program: str) -> dict[str, Any]:
    """Return the names that a program leaves, once it has run."""
    names: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(program, "recipe", "exec"), names)
    return names


def main() -> None:
    """Run a recipe."""
    trainer, recipe = sys.argv[1], sys.stdin.read()
    if not MODEL.exists():
        _make_model()
    if trainer in _PROGRAMS:
        package, look, how = _PROGRAMS[trainer]
        if package == "trl":
            _train_little()
        with services.service() as address:
            os.environ |= {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "none"}
            found = look(_left_by(recipe))
    else:
        package, read, how = _CONFIGURATIONS[trainer]
        found = read(recipe)
    print(json.dumps({"version": version(package), "how": how, **found}))


if __name__ == "__main__":
    main()
