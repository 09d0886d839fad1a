"""Documents, and a text vocabulary trained on them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tokenizers import Tokenizer, models, pre_tokenizers, trainers


def documents(count: int) -> list[str]:
    """Return distinct documents of different lengths, with numbers."""
    return [f"Document the {i} costs {i}.5 in " + "the end " * (i % 7) for i in range(count)]


def parquet(path: Path, texts: list[str | None], column: str = "text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"id": list(range(len(texts))), column: texts})
    pq.write_table(table, path, row_group_size=90)
    return path


def gpt2_vocabulary(path: Path) -> Path:
    """Write a vocabulary of GPT-2's kind, trained on the documents, with digits and eos."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=340, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([*documents(300), "10 11 12"], trainer)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.save(str(path))
    return path
