"""Tiny causal language models with random weights, and tokenizers trained on a few words."""

from pathlib import Path
from typing import Any

WORDS = (
    "You are an expert in numeracy. Return one JSON object.",
    "What is 1 + 2? What is 345.67 - 89.1? Which of 12, 13.5, 0.7 is the minimum?",
    '{"answer": 42}',
)
PLAIN_TURNS = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>"
)
SWITCH = "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"
OPENED = "<think>\n"
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}" + PLAIN_TURNS
)


def save(folder: Path, template: str | None = None, kind: str = "llama", **changes: Any) -> Path:
    """Write a model folder by `save_pretrained`. Equal arguments give equal weights."""
    import torch

    tokenizer = _tokenizer(template)
    end = tokenizer.eos_token_id
    torch.manual_seed(0)
    network = (
        _llama(len(tokenizer), end, changes) if kind == "llama" else _gpt2(len(tokenizer), end)
    )
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(template: str | None) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator(
        WORDS,
        trainers.BpeTrainer(
            vocab_size=320,
            special_tokens=["<|end|>"],
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|end|>")
    tokenizer.chat_template = template
    return tokenizer


def _llama(words: int, end: int, changes: dict[str, Any]) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    shape: dict[str, Any] = {
        "vocab_size": words,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 512,
        "eos_token_id": end,
        "bos_token_id": None,
    }
    return LlamaForCausalLM(LlamaConfig(**(shape | {"initializer_range": 0.3} | changes)))


def _gpt2(words: int, end: int) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=words, n_embd=32, n_layer=2, n_head=4, n_positions=160, initializer_range=0.3
    )
    config.eos_token_id, config.bos_token_id = end, None
    return GPT2LMHeadModel(config)
