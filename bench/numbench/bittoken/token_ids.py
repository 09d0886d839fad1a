"""Mapping between the vocabulary's tokens and the token ids of a network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from numbench.bittoken.vocabulary import EOS, NUM, Vocabulary

REPLACEMENT_CHARACTER = "\ufffd"


@dataclass(frozen=True)
class TokenIds:
    """The token ids of a network, for each piece (base token) of the vocabulary.

    piece_to_ids: the ids of each piece; more than one if the network's tokenizer splits it.
    id_to_text: the text of each token id in an answer.
    """

    vocabulary: Vocabulary
    piece_to_ids: Mapping[str, tuple[int, ...]]
    id_to_text: tuple[str, ...]

    @classmethod
    def from_vocabulary(cls, vocabulary: Vocabulary) -> TokenIds:
        """Return the ids of a network trained by numbench: one id for each piece."""
        ids = {piece: (token_id,) for piece, token_id in vocabulary.ids.items()}
        return cls(vocabulary, ids, vocabulary.tokens)

    def token_text(self, token_id: int) -> str:
        """Return the text of a token; for an unused id the replacement character, never valid."""
        return (
            self.id_to_text[token_id] if token_id < len(self.id_to_text) else REPLACEMENT_CHARACTER
        )

    @property
    def number_id(self) -> int:
        """The id of the number token."""
        return self.piece_to_ids[NUM][0]

    @property
    def eos_id(self) -> int:
        """The id of the end-of-sample token."""
        return self.piece_to_ids[EOS][0]
