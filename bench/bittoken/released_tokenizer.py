"""Token ids of networks of the study's released code, from their `tokenizer.json`.

The released tokenizers consist of added tokens alone and split text by longest match. A special
token is found by its name or a common alternative name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bittoken.checkpoint import TokenizerFile
from bittoken.token_ids import REPLACEMENT_CHARACTER, TokenIds
from bittoken.vocabulary import (
    BOS,
    CHOICE_LETTERS,
    COMMA,
    EOQ,
    EOS,
    INFIX_OPERATOR_TOKENS,
    LIST_OPERATOR_TOKENS,
    MINUS,
    NUM,
    POINT,
    Vocabulary,
)
from numbench.errors import BadInput
from numbench.jsonl import read_json

_ALIASES = {
    BOS: ("[BOS]", "<bos>", "<s>", "<|begin_of_text|>", "<|endoftext|>"),
    EOS: ("[EOS]", "<eos>", "</s>", "<|end_of_text|>", "<|endoftext|>"),
    EOQ: ("[EOQ]", "<eoq>", "<|end_of_question|>", "<|endofquestion|>", "<|sep|>", "[SEP]"),
    NUM: ("[NUM]", "<num>", "<NUM>", "<|NUM|>", "<|number|>", "[NUMBER]"),
}
"""Common alternative names of special tokens, the most likely first."""

_MAX_LISTED = 8
"""Missing pieces listed in an error message."""


def released_token_ids(
    encoding: str, path: Path, overrides: Mapping[str, Sequence[str]], size: int
) -> TokenIds:
    """Return the token ids of a network with the tokenizer file `path`.

    overrides: the tokens of some pieces. size: the number of token ids of the network.

    Raises BadInput if a piece has no tokens or an id is not below `size`.
    """
    vocabulary = Vocabulary(encoding)
    pieces = required_pieces(vocabulary)
    unknown = sorted(set(overrides) - set(pieces))
    if unknown:
        raise BadInput(f'numbench.json: unknown piece {unknown[0]!r} in "tokens"')
    ids = _read_token_ids(path, size)
    piece_to_ids: dict[str, tuple[int, ...]] = {token: (n,) for token, n in ids.items()}
    for piece, tokens in _other_names(pieces, ids, overrides).items():
        for token in tokens:
            if token not in ids:
                raise BadInput(
                    f"{path}: no token {token!r}, which numbench.json specifies for {piece!r}"
                )
        piece_to_ids[piece] = tuple(ids[token] for token in tokens)
    texts = [REPLACEMENT_CHARACTER] * size
    for piece, token_ids in piece_to_ids.items():
        if len(token_ids) == 1:
            texts[token_ids[0]] = piece
    released = TokenIds(vocabulary, piece_to_ids, tuple(texts), "plain")
    _check_pieces(released, pieces, path)
    return released


def required_pieces(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the pieces of text that questions and answers consist of."""
    pieces = (
        BOS, EOS, EOQ,
        *LIST_OPERATOR_TOKENS.values(), *INFIX_OPERATOR_TOKENS.values(),
        COMMA, ": ", " ", *CHOICE_LETTERS,
    )  # fmt: skip
    if vocabulary.encoding is None:
        return (*pieces, MINUS, POINT, *"0123456789")
    return (*pieces, NUM) if vocabulary.encoding.signed else (*pieces, NUM, MINUS)


def _read_token_ids(path: Path, size: int) -> dict[str, int]:
    """Return the ids of all tokens in `tokenizer.json`, with byte-level spaces as spaces."""
    file = read_json(path, TokenizerFile)
    ids = {_decode_spaces(token): token_id for token, token_id in file.model.vocab.items()}
    ids |= {token.content: token.id for token in file.added_tokens}
    ids.pop("", None)
    if not ids:
        raise BadInput(f"{path}: no tokens; use the tokenizer.json of the checkpoint")
    invalid = [token for token, token_id in ids.items() if not 0 <= token_id < size]
    if invalid:
        raise BadInput(
            f"{path}: token {invalid[0]!r} has id {ids[invalid[0]]}, but the network has only "
            f"{size} tokens; use the tokenizer.json of this checkpoint"
        )
    return ids


def _decode_spaces(token: str) -> str:
    return token.replace("Ġ", " ")


def _other_names(
    pieces: Sequence[str], ids: Mapping[str, int], overrides: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Return the tokens of the pieces that are overridden or have a common alternative name."""
    names = {}
    for piece in pieces:
        tokens = [_decode_spaces(token) for token in overrides.get(piece, ())]
        if not tokens and piece not in ids:
            tokens = [name for name in _ALIASES.get(piece, ()) if name in ids][:1]
        if tokens:
            names[piece] = tokens
    return names


def _check_pieces(released: TokenIds, pieces: Sequence[str], path: Path) -> None:
    """Raise BadInput if a piece has no tokens, or a special token more than one."""
    missing = [piece for piece in pieces if not _has_tokens(released, piece)]
    if missing:
        names = ", ".join(map(repr, missing[:_MAX_LISTED]))
        more = f" and {len(missing) - _MAX_LISTED} more" if len(missing) > _MAX_LISTED else ""
        raise BadInput(
            f"{path}: no token for {names}{more}; specify them in numbench.json, for example "
            f'"tokens": {{"{missing[0]}": "TOKEN IN tokenizer.json"}}'
        )
    for piece in (EOS, NUM) if NUM in pieces else (EOS,):
        if len(released.piece_to_ids[piece]) != 1:
            raise BadInput(f"{path}: {piece!r} must be a single token; specify it in numbench.json")


def _has_tokens(released: TokenIds, piece: str) -> bool:
    if piece.startswith("<|"):
        return piece in released.piece_to_ids
    try:
        released.encode(piece)
    except BadInput:
        return False
    return True
