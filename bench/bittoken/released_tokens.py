"""The pieces of our questions among the tokens of a released `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from bench.bittoken.checkpoint import read_json
from bench.bittoken.lexicon import UNKNOWN, Lexicon
from bench.bittoken.vocabulary import (
    BOS,
    CLOSE,
    COMMA,
    EOQ,
    EOS,
    INFIX,
    LIST_TASKS,
    MINUS,
    NUM,
    OPEN,
    POINT,
    Vocabulary,
)
from bench.errors import BadInput

_OTHER_NAMES = {
    BOS: ("[BOS]", "<bos>", "<s>", "<|begin_of_text|>", "<|endoftext|>"),
    EOS: ("[EOS]", "<eos>", "</s>", "<|end_of_text|>", "<|endoftext|>"),
    EOQ: ("[EOQ]", "<eoq>", "<|end_of_question|>", "<|endofquestion|>", "<|sep|>", "[SEP]"),
    NUM: ("[NUM]", "<num>", "<NUM>", "<|NUM|>", "<|number|>", "[NUMBER]"),
}
"""Other usual names of special tokens, the likelier first."""

_SHOWN = 8


class _Added(Struct, frozen=True):
    content: str
    id: int


class _Model(Struct, frozen=True):
    vocab: dict[str, int] = {}


class _Tokenizer(Struct, frozen=True):
    """What we read of a `tokenizer.json`."""

    model: _Model = _Model()
    added_tokens: list[_Added] = []


def released_lexicon(
    encoding: str, path: Path, renamed: Mapping[str, Sequence[str]], size: int
) -> Lexicon:
    """The lexicon of a network with `size` token ids whose tokenizer is the file `path`.

    renamed: by our piece, the tokens that spell it. BadInput where a piece is not found or an id
    lies beyond the network's.
    """
    vocabulary = Vocabulary(encoding)
    known = _known(path, size)
    spelled, missing = {}, []
    for piece in needed(vocabulary):
        tokens = [_blanks(token) for token in renamed.get(piece, ())] or _spelling(piece, known)
        if not tokens or any(token not in known for token in tokens):
            missing.append(piece)
        else:
            spelled[piece] = tuple(known[token] for token in tokens)
    strange = sorted(set(renamed) - set(needed(vocabulary)))
    if strange:
        raise BadInput(f'numbench.json: "tokens" names {strange[0]!r}, which no question needs')
    if missing:
        shown = ", ".join(map(repr, missing[:_SHOWN]))
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise BadInput(
            f"{path} has no token for {shown}{more}: name them in numbench.json, such as "
            f'"tokens": {{"{missing[0]}": "THEIR TOKEN"}}'
        )
    _check_single(spelled, vocabulary, path)
    texts = [UNKNOWN] * size
    for token, number in known.items():
        texts[number] = token
    for piece, numbers in spelled.items():
        if len(numbers) == 1:
            texts[numbers[0]] = piece
    return Lexicon(vocabulary, spelled, tuple(texts))


def needed(vocabulary: Vocabulary) -> tuple[str, ...]:
    """The pieces that questions and their answers are made of."""
    pieces = (BOS, EOS, EOQ, *LIST_TASKS.values(), *INFIX.values(), OPEN, COMMA, CLOSE)
    if vocabulary.encoding is not None:
        return (*pieces, NUM) if vocabulary.encoding.signed else (*pieces, NUM, MINUS)
    digits = tuple(token for token in vocabulary.own if token.isdecimal())
    return (*pieces, MINUS, POINT, *digits)


def _known(path: Path, size: int) -> dict[str, int]:
    """Ids by token, the blanks of a byte-level tokenizer written as blanks."""
    read = read_json(path, _Tokenizer)
    found = {_blanks(token): number for token, number in read.model.vocab.items()}
    found |= {token.content: token.id for token in read.added_tokens}
    if not found:
        raise BadInput(f"{path} holds no tokens: give the tokenizer.json of the checkpoint")
    beyond = [token for token, number in found.items() if not 0 <= number < size]
    if beyond:
        raise BadInput(
            f"{path}: token {beyond[0]!r} has id {found[beyond[0]]}, but the network knows {size} "
            "tokens: give the tokenizer.json of this checkpoint"
        )
    return found


def _blanks(token: str) -> str:
    return token.replace("Ġ", " ")


def _spelling(piece: str, known: Mapping[str, int]) -> list[str]:
    """The tokens that spell a piece; none where there are none."""
    if piece in known:
        return [piece]
    if piece.startswith("<|"):
        return [name for name in _OTHER_NAMES.get(piece, ()) if name in known][:1]
    tokens, rest = [], piece
    while rest:
        token = next((rest[:n] for n in range(len(rest), 0, -1) if rest[:n] in known), None)
        if token is None:
            return []
        tokens.append(token)
        rest = rest[len(token) :]
    return tokens


def _check_single(spelled: Mapping[str, Sequence[int]], vocabulary: Vocabulary, path: Path) -> None:
    """BadInput where what ends an answer, or holds a number, is not one token of its own."""
    for piece in (EOS, NUM) if vocabulary.encoding is not None else (EOS,):
        if len(spelled[piece]) != 1:
            raise BadInput(f"{path}: {piece!r} is to be one token: name it in numbench.json")
