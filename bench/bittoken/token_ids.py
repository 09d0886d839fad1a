"""Mapping between text and the token ids of a network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from bittoken.sample_layout import Layout
from bittoken.vocabulary import EOS, NUM, Vocabulary
from numbench.errors import BadInput

REPLACEMENT_CHARACTER = "\ufffd"


@dataclass(frozen=True)
class TokenIds:
    """The token ids of a network, and the layout of its samples.

    piece_to_ids: the ids of each piece of text; for a network trained by numbench the base tokens
    of the vocabulary, with one id each. id_to_text: the text of each token id in an answer.
    """

    vocabulary: Vocabulary
    piece_to_ids: Mapping[str, tuple[int, ...]]
    id_to_text: tuple[str, ...]
    layout: Layout = "brackets"

    @classmethod
    def from_vocabulary(cls, vocabulary: Vocabulary) -> TokenIds:
        """Return the ids of a network trained by numbench: one id for each piece."""
        ids = {piece: (token_id,) for piece, token_id in vocabulary.ids.items()}
        return cls(vocabulary, ids, vocabulary.tokens)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text without number tokens: from left to right, the longest match.

        Raises BadInput if no piece matches.
        """
        ids: list[int] = []
        start = 0
        while start < len(text):
            piece = next(
                (
                    text[start:end]
                    for end in range(min(start + self._longest, len(text)), start, -1)
                    if text[start:end] in self.piece_to_ids
                ),
                None,
            )
            if piece is None:
                raise BadInput(f"the tokenizer has no token for {text[start:]!r}")
            ids += self.piece_to_ids[piece]
            start += len(piece)
        return ids

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self.piece_to_ids))

    def token_text(self, token_id: int) -> str:
        """Return the text of a token; for an unused id the replacement character, never valid."""
        return (
            self.id_to_text[token_id] if token_id < len(self.id_to_text) else REPLACEMENT_CHARACTER
        )

    @property
    def number_id(self) -> int | None:
        """The id of the number token; None if numbers are written as text."""
        return None if self.vocabulary.encoding is None else self.piece_to_ids[NUM][0]

    @property
    def eos_id(self) -> int:
        """The id of the end-of-sample token."""
        return self.piece_to_ids[EOS][0]
