"""The text of a training and its text vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from bittoken.text.bpe import ByteBpe, load_tiktoken_ranks, train_bpe
from bittoken.text.codec import TextCodec
from bittoken.text.documents import text_files
from bittoken.text.stream import Split, TextStream
from bittoken.training.recipe import Recipe
from bittoken.vocabulary import Vocabulary
from numbench.errors import BadInput

TOKENIZER_FILE = "tokenizer.json"


class ProcessGroup(Protocol):
    """The part of `DistributedContext` that the text of a process depends on."""

    rank: int
    world_size: int

    @property
    def is_main_process(self) -> bool: ...

    def barrier(self) -> None: ...


class TextData:
    """The text vocabulary, stored in the training's folder, and streams of the recipe's text."""

    def __init__(self, recipe: Recipe, folder: Path, distributed: ProcessGroup) -> None:
        """Raises BadInput if the folder of text is missing or the vocabulary cannot be loaded."""
        assert recipe.data.text is not None
        self._recipe, self._distributed = recipe, distributed
        self._text = Path(recipe.data.text)
        self.tokenizer_path = folder / TOKENIZER_FILE
        if not self._text.is_dir():
            raise BadInput(
                f"data.text: folder {self._text} does not exist; put FineWeb's .parquet files or "
                ".txt files there, use another folder (--set data.text=FOLDER), or remove the task "
                "text"
            )
        if distributed.is_main_process and not self.tokenizer_path.is_file():
            self._vocabulary().save(self.tokenizer_path)
        distributed.barrier()
        self.bpe = ByteBpe.load(self.tokenizer_path)

    def stream(self, split: Split, vocabulary: Vocabulary) -> TextStream:
        """Return the text of a split: "train" is divided among processes, "val" is not."""
        is_shared = split == "val"
        return TextStream(
            self._text,
            TextCodec(vocabulary, self.bpe),
            self._recipe.model.context,
            seed=self._recipe.training.seed,
            rank=0 if is_shared else self._distributed.rank,
            world=1 if is_shared else self._distributed.world_size,
            split=split,
        )

    def _vocabulary(self) -> ByteBpe:
        path = self._recipe.data.text_vocabulary
        if path is None:
            return train_bpe(text_files(self._text), self._recipe.data.text_size)
        return load_text_vocabulary(Path(path))


def load_text_vocabulary(path: Path) -> ByteBpe:
    """Load a saved tokenizer (.json) or a file of ranks. Raises BadInput if it is invalid."""
    return ByteBpe.load(path) if path.suffix == ".json" else load_tiktoken_ranks(path)


def open_text_data(recipe: Recipe, folder: Path, distributed: ProcessGroup) -> TextData | None:
    """Return the recipe's text data, None if it trains on numbers only."""
    return None if recipe.data.text is None else TextData(recipe, folder, distributed)
