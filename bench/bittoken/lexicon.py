"""Where the pieces of questions and answers lie among a network's token ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.bittoken.vocabulary import EOS, NUM, Vocabulary

UNKNOWN = "\ufffd"


@dataclass(frozen=True)
class Lexicon:
    """The way from a vocabulary's own pieces to ids and back.

    ids: the ids that spell each piece, in the order in which they are read. texts: by id, what a
    token contributes to an answer's text.
    """

    vocabulary: Vocabulary
    ids: Mapping[str, tuple[int, ...]]
    texts: tuple[str, ...]

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Lexicon:
        """That of a network of ours: one id for each piece."""
        ids = {piece: (number,) for piece, number in vocabulary.ids.items()}
        return cls(vocabulary, ids, vocabulary.tokens)

    def text(self, token: int) -> str:
        """What a token says; an id that stands for nothing is no part of any answer."""
        return self.texts[token] if token < len(self.texts) else UNKNOWN

    @property
    def number(self) -> int:
        """The id of the number token."""
        return self.ids[NUM][0]

    @property
    def end(self) -> int:
        """The id of the token that ends a sample."""
        return self.ids[EOS][0]
