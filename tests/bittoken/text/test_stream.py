"""The text stream: every document once per epoch, deterministic, resumable."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bittoken.data.packing import Samples
from bittoken.text.stream import TextStream
from bittoken.vocabulary import BOS, EOS, NUM
from numbench.errors import BadInput
from tests.bittoken.text.small import codec, documents, parquet

CODEC = codec()
IDS = CODEC.vocabulary.ids


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hundred documents in two Parquet files, and two in .txt files."""
    folder = tmp_path_factory.mktemp("fineweb")
    parquet(folder / "10B" / "b.parquet", documents(60))
    parquet(folder / "10B" / "c.parquet", [None, "", *documents(100, 60)], group=50)
    (folder / "a.txt").write_bytes(b"A short text\r\nof 2 lines.\n")
    (folder / "d.txt").write_text("Another one, 3.10 long.")
    (folder / "readme.md").write_text("not a text file")
    return folder


ALL = [*documents(100), "A short text\r\nof 2 lines.\n", "Another one, 3.10 long."]


def stream(folder: Path, **settings: object) -> TextStream:
    merged: dict[str, object] = {"seed": 1, "holdout": 4, "block": 16, "context": 32}
    merged |= settings
    return TextStream(folder, CODEC, merged.pop("context"), **merged)  # type: ignore[arg-type]


def windows(samples: Samples) -> list[tuple[list[int], list[float]]]:
    """Return tokens and values of each sample."""
    ends = np.cumsum(samples.lengths)
    result = []
    for end, length in zip(ends, samples.lengths, strict=True):
        tokens = samples.tokens[end - length : end]
        codes = samples.codes[end - length : end][tokens == IDS[NUM]]
        result.append((tokens.tolist(), codes[:, 0].view(np.float64).tolist()))
    return result


def texts(samples: Samples) -> list[str]:
    """Return the documents, joined from consecutive windows."""
    result, tokens, values = list[str](), list[int](), list[float]()
    for more, numbers in windows(samples):
        repeated = 1 if tokens else 0
        if repeated:
            assert more[0] == tokens[-1]
        tokens += more[repeated:]
        values += numbers[1:] if repeated and more[0] == IDS[NUM] else numbers
        if tokens[-1] == IDS[EOS]:
            assert tokens[0] == IDS[BOS]
            result.append(CODEC.decode(np.array(tokens[1:-1], np.int64), np.array(values)))
            tokens, values = [], []
    assert not tokens
    return result


def one_pass(folder: Path, **settings: object) -> list[str]:
    return [
        text for samples in stream(folder, **settings).single_pass(10**6) for text in texts(samples)
    ]


def test_splits_have_every_document_once_and_share_none(folder: Path) -> None:
    train, val = (one_pass(folder, split=split) for split in ("train", "val"))
    assert Counter(train + val) == Counter(ALL)
    assert 10 < len(val) < 45


def test_split_depends_only_on_the_document(folder: Path, tmp_path: Path) -> None:
    parquet(tmp_path / "all.parquet", ALL[::-1])
    assert set(one_pass(tmp_path, seed=9, split="val")) == set(one_pass(folder, split="val"))


@pytest.mark.parametrize(("split", "least"), [("train", 25), ("val", 6)])
def test_ranks_divide_the_documents(folder: Path, split: str, least: int) -> None:
    ranks = [one_pass(folder, split=split, rank=rank, world=2) for rank in range(2)]
    assert not set(ranks[0]) & set(ranks[1])
    assert Counter(ranks[0] + ranks[1]) == Counter(one_pass(folder, split=split))
    assert min(map(len, ranks)) >= least


def test_samples_have_codes_at_numbers_and_fit_the_context(
    folder: Path,
) -> None:
    samples = stream(folder).take(500)
    assert 500 - 32 < len(samples.tokens) <= 500
    assert samples.lengths.sum() == len(samples.tokens) and samples.lengths.max() <= 32
    assert samples.lengths.min() >= 2 and (samples.prompt_lengths == 1).all()
    assert samples.codes.shape == (len(samples.tokens), 1)
    assert not samples.codes[samples.tokens != IDS[NUM]].any()
    assert samples.lengths.dtype == samples.prompt_lengths.dtype == samples.tokens.dtype == np.int64


def test_every_token_but_bos_is_predicted_once(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", ["xyz" * 41])
    result: list[tuple[list[int], list[float]]] = []
    for split in ("train", "val"):
        try:
            for samples in stream(tmp_path, split=split, context=10).single_pass(1000):
                result += windows(samples)
        except BadInput:
            continue
    assert sum(len(tokens) - 1 for tokens, _ in result) == 123 + 1
    assert [len(tokens) for tokens, _ in result] == [10] * 13 + [8]
    assert all(a[-1] == b[0] for (a, _), (b, _) in pairwise(result))


def test_number_shared_by_two_windows_has_its_code_in_both(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", [f"{i},{i},{i},{i}" for i in range(20)])
    (samples,) = stream(tmp_path, context=4).single_pass(10**6)
    # bos n , n | n , n , | , n eos
    first, second, third = windows(samples)[:3]
    value = first[1][0]
    assert (first[1], second[1], third[1]) == ([value] * 2, [value] * 2, [value])
    assert second[0][0] == IDS[NUM]


def test_same_settings_give_the_same_samples(folder: Path) -> None:
    first, second = (stream(folder).take(2000) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_order_is_shuffled_by_seed_and_epoch(folder: Path) -> None:
    one, two = one_pass(folder, seed=1, block=200), one_pass(folder, seed=2, block=200)
    assert one != two and set(one) == set(two)
    assert [text for text in ALL if text in set(one)] != one
    endless = stream(folder, block=200)
    tokens = sum(len(samples.tokens) for samples in endless.single_pass(10**6))
    again = texts_of_two_epochs(endless, tokens)
    assert again[: len(one)] == one and set(again[len(one) :]) == set(one)
    assert again[len(one) :] != one


def texts_of_two_epochs(endless: TextStream, tokens: int) -> list[str]:
    first = texts(endless.take(tokens))
    assert endless.epoch == 1
    second = texts(endless.take(tokens))
    assert endless.epoch == 2
    return first + second


def test_documents_are_shuffled_within_blocks(folder: Path) -> None:
    inside = [text for text in documents(60) if text in set(one_pass(folder))]
    shuffled = [text for text in one_pass(folder, block=5) if text in set(inside)]
    assert shuffled != inside
    # Blocks of five start after the document of a.txt, if it is in the training split.
    assert all(abs(inside.index(text) - index) < 5 for index, text in enumerate(shuffled))


@pytest.mark.parametrize("settings", [{}, {"block": 5}, {"rank": 1, "world": 2}, {"context": 7}])
@pytest.mark.parametrize("before", [0, 1, 3, 9, 40])
def test_restored_stream_continues_exactly(
    folder: Path, before: int, settings: dict[str, object]
) -> None:
    original = stream(folder, **settings)
    for _ in range(before):
        original.take(150)
    state = json.loads(json.dumps(original.state()))
    restored = stream(folder, **settings)
    restored.take(40)
    restored.restore(state)
    assert restored.epoch == original.epoch and restored.state() == original.state()
    for _ in range(30):
        for a, b in zip(original.take(150), restored.take(150), strict=True):
            assert np.array_equal(a, b)
    assert original.epoch > 0


def test_state_of_other_settings_or_text_is_rejected(folder: Path, tmp_path: Path) -> None:
    state = stream(folder).state()
    with pytest.raises(BadInput, match="seed was 1 and is now 2"):
        stream(folder, seed=2).restore(state)
    parquet(tmp_path / "all.parquet", ALL)
    with pytest.raises(BadInput, match="files was"):
        stream(tmp_path).restore(state)
    with pytest.raises(BadInput, match="saved position in the text is invalid"):
        stream(folder).restore({"settings": {}, "place": {"epoch": "x"}})


def test_too_few_tokens_for_a_window_are_rejected(folder: Path) -> None:
    with pytest.raises(BadInput, match="31 tokens"):
        stream(folder).take(31)
    with pytest.raises(BadInput, match="31 tokens"):
        next(stream(folder).single_pass(31))
    assert len(stream(folder).take(32).tokens) > 0


@pytest.mark.parametrize(
    "settings", [{"context": 1}, {"holdout": 1}, {"block": 0}, {"rank": 2, "world": 2}]
)
def test_invalid_settings_are_rejected(folder: Path, settings: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="cannot read text with"):
        stream(folder, **settings)


def test_rank_without_text_is_reported_instead_of_looping(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", ["", None])
    with pytest.raises(BadInput, match="too little text"):
        stream(tmp_path).take(100)
