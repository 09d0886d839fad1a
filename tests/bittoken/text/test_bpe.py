"""The text vocabulary: no digits, can write any text, saved in one file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittoken.text.bpe import ALPHABET, ByteBpe, load_tiktoken_ranks, train_bpe
from bittoken.text.number_parsing import text_between_numbers
from numbench.errors import BadInput
from tests.bittoken.text.small import ENTRIES, SMALL, parquet, rank_file

NO_DIGITS = st.text(st.characters(exclude_characters="0123456789", exclude_categories=["Cs"]))


def by_lowest_rank(word: bytes) -> list[bytes]:
    """Reference BPE: repeatedly merge the pair whose union has the lowest rank."""
    parts = [bytes([byte]) for byte in word]
    while True:
        gpt2_like = [
            (ENTRIES.index(parts[i] + parts[i + 1]), i)
            for i in range(len(parts) - 1)
            if parts[i] + parts[i + 1] in ENTRIES
        ]
        if not gpt2_like:
            return parts
        _, i = min(gpt2_like)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


@pytest.fixture(scope="module")
def gpt2_like(tmp_path_factory: pytest.TempPathFactory) -> ByteBpe:
    return load_tiktoken_ranks(rank_file(tmp_path_factory.mktemp("ranks") / "gpt2.tiktoken"))


def test_tokens_with_digits_are_removed_from_ranks(gpt2_like: ByteBpe) -> None:
    assert gpt2_like.token_bytes[246:] == [e for e in ENTRIES if e not in (b"12", b" 1", b" 12")]
    assert sorted(gpt2_like.tokens[:246]) == sorted(ALPHABET)
    assert not any(set(token) & set("0123456789") for token in gpt2_like.tokens)


@pytest.mark.parametrize(
    "word", ["the", " the", "thin", " and", "  ", "thethe", "tthe", " tand", "qzx", "unreached"]
)
def test_merges_from_ranks_follow_the_lowest_rank(gpt2_like: ByteBpe, word: str) -> None:
    (ids,) = gpt2_like.encode([word])
    # A single word by GPT-2's pre-tokenization.
    assert [gpt2_like.token_bytes[i] for i in ids] == by_lowest_rank(word.encode())


@given(NO_DIGITS)
def test_any_text_without_digits_round_trips(text: str) -> None:
    (ids,) = SMALL.encode([text])
    assert b"".join(SMALL.token_bytes[i] for i in ids) == text.encode()


def test_special_token_in_text_is_ordinary_text(gpt2_like: ByteBpe) -> None:
    (ids,) = gpt2_like.encode(["<|eos|>"])
    assert [gpt2_like.token_bytes[i] for i in ids] == [b"<|", b"e", b"o", b"s", b"|", b">"]


def test_missing_rank_file_names_its_source(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nothing\.tiktoken.*openai-whisper"):
        load_tiktoken_ranks(tmp_path / "nothing.tiktoken")


@pytest.mark.parametrize("line", ["IQ==", "I?= 0", "IQ== x", "IQ== 0 0"])
def test_invalid_line_of_ranks_is_reported_with_its_number(tmp_path: Path, line: str) -> None:
    file = rank_file(tmp_path / "r.tiktoken")
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(BadInput, match=rf"r\.tiktoken:{256 + len(ENTRIES) + 1}: "):
        load_tiktoken_ranks(file)


def test_ranks_without_all_bytes_are_rejected(tmp_path: Path) -> None:
    file = tmp_path / "r.tiktoken"
    file.write_text("IQ== 0\n")
    with pytest.raises(BadInput, match="lacks single-byte tokens"):
        load_tiktoken_ranks(file)


def test_trained_vocabulary_has_frequent_words_and_no_digit(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat 12 and the dog 1234\n" * 50)
    table = parquet(tmp_path / "b.parquet", ["zebra 55 zebra"] * 50)
    bpe = train_bpe([tmp_path / "a.txt", table], 275)
    assert {b" zebra", b"the"} <= set(bpe.token_bytes)
    assert len(bpe) <= 275 and not any(set(token) & set("0123456789") for token in bpe.tokens)


def test_training_is_deterministic(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some words that are here, here and there, other than those\n")
    first, second = (train_bpe([tmp_path / "a.txt"], 262) for _ in range(2))
    assert first.tokens == second.tokens and first.merges == second.merges
    assert len(first) == 262


def test_vocabulary_smaller_than_the_byte_alphabet_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="at least 246"):
        train_bpe([tmp_path / "a.txt"], 245)
    with pytest.raises(BadInput, match="no files"):
        train_bpe([], 300)


def test_saved_vocabulary_loads_unchanged(tmp_path: Path, gpt2_like: ByteBpe) -> None:
    gpt2_like.save(tmp_path / "text.json")
    loaded = ByteBpe.load(tmp_path / "text.json")
    assert loaded.tokens == gpt2_like.tokens and loaded.merges == gpt2_like.merges
    assert loaded.encode(["the band"]) == gpt2_like.encode(["the band"])


def invalid_file(tmp_path: Path, change: str) -> Path:
    """Write the file of a vocabulary with one error."""
    SMALL.save(tmp_path / "text.json")
    content = json.loads((tmp_path / "text.json").read_text())
    vocab = content["model"]["vocab"]
    if change == "a digit":
        vocab["5"] = len(vocab)
    elif change == "a gap":
        vocab["the"] = len(vocab)
    elif change == "a byte missing":
        vocab["xx"] = vocab.pop("Ā")
    elif change == "no bytes":
        vocab["→"] = len(vocab)
    elif change == "a merge of nothing":
        content["model"]["merges"].append(["q", "q"])
    elif change == "added tokens":
        content["added_tokens"].append({"id": 0, "content": "<|eos|>", "special": True})
    else:
        content["normalizer"] = {"type": "Lowercase"}
    (tmp_path / "text.json").write_text(json.dumps(content))
    return tmp_path / "text.json"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("a digit", "contains a digit"),
        ("a gap", "ids are not"),
        ("a byte missing", "lacks single-byte tokens"),
        ("no bytes", "not a token of a byte-level"),
        ("a merge of nothing", "refers to unknown tokens"),
        ("added tokens", "change the text"),
        ("a normalizer", "change the text"),
    ],
)
def test_file_that_would_lose_text_is_rejected(tmp_path: Path, change: str, message: str) -> None:
    with pytest.raises(BadInput, match=rf"text\.json.*{message}"):
        ByteBpe.load(invalid_file(tmp_path, change))


def test_file_that_is_not_a_vocabulary_is_reported(tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text("{}")
    for name in ("text.json", "none.json"):
        with pytest.raises(BadInput, match=name):
            ByteBpe.load(tmp_path / name)


@given(st.text())
def test_only_numbers_are_removed_from_the_training_text(text: str) -> None:
    pieces = text_between_numbers(text)
    assert not any(set(piece) & set("0123456789") for piece in pieces)
    kept = "".join(pieces)
    remaining = iter(text)
    assert all(character in remaining for character in kept)
    assert sum(map(len, pieces)) >= sum(not c.isascii() or c.isalpha() for c in text)
