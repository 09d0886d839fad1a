"""Text next to numbers: documents, vocabulary, tokens and windows."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from tokenizers import decoders

from bittoken.text import TextData, make_tokenizer, read_documents, split_of, text_pieces
from bittoken.tokens import Vocabulary, read_text_tokens
from numbench.core.decimal_numbers import format_decimal, parse_decimal
from numbench.errors import BadInput
from tests.bittoken.texts import documents, gpt2_vocabulary, parquet
from tests.support.case_tables import each_row

CONTEXT = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with texts and a text vocabulary."""
    folder = tmp_path_factory.mktemp("text")
    parquet(folder / "text" / "a.parquet", [*documents(600), None, ""])
    make_tokenizer(folder / "tokenizer.json", gpt2_vocabulary(folder / "gpt2.json"))
    return folder


def vocabulary(folder: Path, encoding: str = "bittoken") -> Vocabulary:
    return Vocabulary(encoding, read_text_tokens(folder / "tokenizer.json"))


def text_data(folder: Path, encoding: str = "bittoken", seed: int = 0) -> TextData:
    words = vocabulary(folder, encoding)
    return TextData(folder / "text", folder / "tokenizer.json", words, CONTEXT, seed)


def decoded(tokens: Sequence[int], values: Sequence[float], words: Vocabulary) -> str:
    """Return the text of tokens; numbers in their shortest form."""
    parts, numbers = [], iter(values)
    for token in tokens:
        if token == words.number_id:
            parts.append(format_decimal(parse_decimal(repr(next(numbers)))))
        else:
            parts.append(words.tokens[token])
    return str(decoders.ByteLevel().decode(parts))


@each_row(__file__, "texts")
@pytest.mark.parametrize("encoding", ["bittoken", "fone", "digit", "subword"])
def test_text_becomes_tokens_without_loss(
    folder: Path, encoding: str, text: str, numbers: tuple[float, ...]
) -> None:
    words = vocabulary(folder, encoding)
    ((tokens, values, first_target),) = text_data(folder, encoding).encode([text])
    assert [words.tokens[t] for t in (tokens[0], tokens[-1])] == ["<|bos|>", "<|eos|>"]
    assert first_target == 1
    assert decoded(tokens[1:-1], values, words) == text
    expected = [] if words.encoding is None else [*numbers]
    assert values == (expected if encoding == "bittoken" else [abs(n) for n in expected])
    if encoding == "subword" and "123456789012345" in text:
        assert [words.tokens[t] for t in tokens].count("123") == 2


def test_the_text_vocabulary_has_no_special_tokens_and_no_digits(folder: Path) -> None:
    own = read_text_tokens(folder / "tokenizer.json")
    assert {" ", "Ġthe", "Document"} <= {*own, " "} and "<|endoftext|>" not in own
    assert not any(set(token) & set("0123456789") for token in own)
    gpt2 = json.loads((folder / "gpt2.json").read_text())["model"]["vocab"]
    assert own == [t for t in sorted(gpt2, key=gpt2.get) if not set(t) & set("0123456789")]


@pytest.mark.parametrize("content", ["{}", '{"model": {"vocab": {"a": 0}, "merges": []}}', "x"])
def test_a_damaged_vocabulary_is_reported(tmp_path: Path, content: str) -> None:
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(BadInput, match=r"bad\.json"):
        make_tokenizer(tmp_path / "made.json", tmp_path / "bad.json")


@each_row(__file__, "textless_folders")
def test_a_folder_without_text_is_reported(tmp_path: Path, name: str, problem: str) -> None:
    parquet(tmp_path / "other" / "a.parquet", ["x"], column="body")
    damaged = parquet(tmp_path / "damaged" / "a.parquet", ["x"])
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.raises(BadInput, match=problem):
        text_pieces(tmp_path / name)


def test_windows_overlap_by_one_token_and_predict_each_token_once(folder: Path) -> None:
    data, words = text_data(folder), vocabulary(folder)
    read = [text for piece in text_pieces(folder / "text") for text in read_documents(piece, "val")]
    assert read == [text for text in documents(600) if split_of(text) == "val"] and read
    tokens, values, found = list[int](), list[float](), 0
    for window in data.draw("val", 0, 400):
        assert len(window.tokens) <= CONTEXT and window.first_target == 1
        assert not tokens or window.tokens[0] == tokens[-1]
        repeated = bool(tokens) and tokens[-1] == words.number_id
        tokens += window.tokens[1:] if tokens else window.tokens
        values += window.values[repeated:]
        if tokens[-1] == words.eos_id:
            assert decoded(tokens[1:-1], values, words) in read
            tokens, values, found = [], [], found + 1
    assert found > 5


def test_drawn_windows_depend_on_seed_split_and_number_alone(folder: Path) -> None:
    cases = [("train", 3, 0), ("train", 3, 0), ("train", 4, 0), ("train", 3, 1), ("val", 3, 0)]
    first, again, *others = (
        text_data(folder, seed=seed).draw(split, key, 5000)  # type: ignore[arg-type]
        for split, key, seed in cases
    )
    assert first == again and 5000 <= sum(len(w.tokens) for w in first) < 5000 + CONTEXT
    assert not any(a[:9] == b[:9] for a, b in pairwise([first, *others]))


def test_too_little_text_is_reported(folder: Path, tmp_path: Path) -> None:
    parquet(tmp_path / "few" / "a.parquet", [t for t in documents(99) if split_of(t) == "train"])
    data = TextData(tmp_path / "few", folder / "tokenizer.json", vocabulary(folder), CONTEXT)
    with pytest.raises(BadInput, match="too little text: no val document"):
        data.draw("val", 0, 10)
