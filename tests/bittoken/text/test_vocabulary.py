"""The text vocabulary: no numbers in it, nothing that it cannot write, kept in one file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.bittoken.text.bpe import ALPHABET, ByteBpe
from bench.bittoken.text.numbers import without_numbers
from bench.bittoken.text.sources import from_ranks, train
from bench.errors import BadInput
from tests.bittoken.text.small import ENTRIES, SMALL, parquet, rank_file

NO_DIGITS = st.text(st.characters(exclude_characters="0123456789", exclude_categories=["Cs"]))


def by_lowest_rank(word: bytes) -> list[bytes]:
    """BPE as it is defined: again and again the pair whose union has the lowest rank."""
    parts = [bytes([byte]) for byte in word]
    while True:
        ranked = [
            (ENTRIES.index(parts[i] + parts[i + 1]), i)
            for i in range(len(parts) - 1)
            if parts[i] + parts[i + 1] in ENTRIES
        ]
        if not ranked:
            return parts
        _, i = min(ranked)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> ByteBpe:
    return from_ranks(rank_file(tmp_path_factory.mktemp("ranks") / "gpt2.tiktoken"))


def test_ranks_without_the_entries_that_are_numbers(ranked: ByteBpe) -> None:
    assert ranked.spellings[246:] == [e for e in ENTRIES if e not in (b"12", b" 1", b" 12")]
    assert sorted(ranked.tokens[:246]) == sorted(ALPHABET)
    assert not any(set(token) & set("0123456789") for token in ranked.tokens)


@pytest.mark.parametrize(
    "word", ["the", " the", "thin", " and", "  ", "thethe", "tthe", " tand", "qzx", "unreached"]
)
def test_merges_of_ranks_are_those_of_lowest_rank_first(ranked: ByteBpe, word: str) -> None:
    (ids,) = ranked.encode([word])
    # One word by GPT-2's splitting, so that no boundary is in the way.
    assert [ranked.spellings[i] for i in ids] == by_lowest_rank(word.encode())


@given(NO_DIGITS)
def test_the_bytes_of_any_text_without_digits_come_back(text: str) -> None:
    (ids,) = SMALL.encode([text])
    assert b"".join(SMALL.spellings[i] for i in ids) == text.encode()


def test_a_special_token_in_a_text_is_spelled_as_text(ranked: ByteBpe) -> None:
    (ids,) = ranked.encode(["<|eos|>"])
    assert [ranked.spellings[i] for i in ids] == [b"<|", b"e", b"o", b"s", b"|", b">"]


def test_a_missing_rank_file_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nothing\.tiktoken.*openai-whisper"):
        from_ranks(tmp_path / "nothing.tiktoken")


@pytest.mark.parametrize("line", ["IQ==", "I?= 0", "IQ== x", "IQ== 0 0"])
def test_a_broken_line_of_ranks_is_named(tmp_path: Path, line: str) -> None:
    file = rank_file(tmp_path / "r.tiktoken")
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(BadInput, match=rf"r\.tiktoken:{256 + len(ENTRIES) + 1}: "):
        from_ranks(file)


def test_ranks_that_lack_bytes_are_no_vocabulary(tmp_path: Path) -> None:
    file = tmp_path / "r.tiktoken"
    file.write_text("IQ== 0\n")
    with pytest.raises(BadInput, match="lacks single bytes"):
        from_ranks(file)


def test_a_trained_vocabulary_knows_frequent_words_and_no_digit(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat 12 and the dog 1234\n" * 50)
    table = parquet(tmp_path / "b.parquet", ["zebra 55 zebra"] * 50)
    bpe = train([tmp_path / "a.txt", table], 275)
    assert {b" zebra", b"the"} <= set(bpe.spellings)
    assert len(bpe) <= 275 and not any(set(token) & set("0123456789") for token in bpe.tokens)


def test_training_gives_the_same_vocabulary_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some words that are here, here and there, other than those\n")
    first, second = (train([tmp_path / "a.txt"], 262) for _ in range(2))
    assert first.tokens == second.tokens and first.merges == second.merges
    assert len(first) == 262


def test_a_vocabulary_smaller_than_the_bytes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="at least 246"):
        train([tmp_path / "a.txt"], 245)
    with pytest.raises(BadInput, match="no files"):
        train([], 300)


def test_a_saved_vocabulary_is_the_same_when_loaded(tmp_path: Path, ranked: ByteBpe) -> None:
    ranked.save(tmp_path / "text.json")
    loaded = ByteBpe.load(tmp_path / "text.json")
    assert loaded.tokens == ranked.tokens and loaded.merges == ranked.merges
    assert loaded.encode(["the band"]) == ranked.encode(["the band"])


def changed(tmp_path: Path, change: str) -> Path:
    """The file of a vocabulary with one thing wrong."""
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
    ("change", "said"),
    [
        ("a digit", "holds a digit"),
        ("a gap", "ids are not"),
        ("a byte missing", "lacks single bytes"),
        ("no bytes", "no entry of a byte-level"),
        ("a merge of nothing", "names no entries"),
        ("added tokens", "change the text"),
        ("a normalizer", "change the text"),
    ],
)
def test_a_file_that_would_lose_text_is_refused(tmp_path: Path, change: str, said: str) -> None:
    with pytest.raises(BadInput, match=rf"text\.json.*{said}"):
        ByteBpe.load(changed(tmp_path, change))


def test_a_file_that_is_no_vocabulary_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text("{}")
    for name in ("text.json", "none.json"):
        with pytest.raises(BadInput, match=name):
            ByteBpe.load(tmp_path / name)


@given(st.text())
def test_nothing_but_numbers_is_left_out_of_the_training_text(text: str) -> None:
    pieces = without_numbers(text)
    assert not any(set(piece) & set("0123456789") for piece in pieces)
    kept = "".join(pieces)
    left = iter(text)
    assert all(character in left for character in kept)
    assert sum(map(len, pieces)) >= sum(not c.isascii() or c.isalpha() for c in text)
