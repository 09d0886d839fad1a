"""The text that a training reads, and the vocabulary for it."""

from __future__ import annotations

from pathlib import Path

from bench.bittoken.text.bpe import ByteBpe
from bench.bittoken.text.codec import TextCodec
from bench.bittoken.text.documents import text_files
from bench.bittoken.text.sources import from_ranks, train
from bench.bittoken.text.stream import Split, TextStream
from bench.bittoken.training.crew import Crew
from bench.bittoken.training.recipe import Recipe
from bench.bittoken.vocabulary import Vocabulary
from bench.errors import BadInput

TOKENIZER = "tokenizer.json"


class TextSide:
    """A text vocabulary, kept in the training's folder, and the streams of the recipe's text."""

    def __init__(self, recipe: Recipe, folder: Path, crew: Crew) -> None:
        """BadInput where the recipe names no folder of text, or its vocabulary does not load."""
        assert recipe.data.text is not None
        self._recipe, self._crew = recipe, crew
        self._text = Path(recipe.data.text)
        self.file = folder / TOKENIZER
        if not self._text.is_dir():
            raise BadInput(
                f"data.text: there is no folder {self._text}: put FineWeb's .parquet files or .txt "
                "files there, name another by --set data.text=FOLDER, or leave out the task text"
            )
        if crew.leads and not self.file.is_file():
            self._vocabulary().save(self.file)
        crew.wait()
        self.bpe = ByteBpe.load(self.file)

    def stream(self, split: Split, vocabulary: Vocabulary) -> TextStream:
        """Text of a split: each process trains on its own part and validates on the same."""
        alone = split == "val"
        return TextStream(
            self._text,
            TextCodec(vocabulary, self.bpe),
            self._recipe.model.context,
            seed=self._recipe.training.seed,
            rank=0 if alone else self._crew.rank,
            world=1 if alone else self._crew.world,
            split=split,
        )

    def _vocabulary(self) -> ByteBpe:
        named = self._recipe.data.text_vocabulary
        if named is None:
            return train(text_files(self._text), self._recipe.data.text_size)
        return read_vocabulary(Path(named))


def read_vocabulary(path: Path) -> ByteBpe:
    """The vocabulary of a saved tokenizer (.json) or of a file of ranks. BadInput for neither."""
    return ByteBpe.load(path) if path.suffix == ".json" else from_ranks(path)


def open_text(recipe: Recipe, folder: Path, crew: Crew) -> TextSide | None:
    """The text side of a recipe, None where it trains on numbers alone."""
    return None if recipe.data.text is None else TextSide(recipe, folder, crew)
