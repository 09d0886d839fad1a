"""The text stream: all of the text once an epoch, the same again, and nothing twice."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bench.bittoken.data.packing import Samples
from bench.bittoken.text.stream import TextStream
from bench.bittoken.vocabulary import BOS, EOS, NUM
from bench.errors import BadInput
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
    (folder / "readme.md").write_text("no text of ours")
    return folder


ALL = [*documents(100), "A short text\r\nof 2 lines.\n", "Another one, 3.10 long."]


def stream(folder: Path, **settings: object) -> TextStream:
    wanted: dict[str, object] = {"seed": 1, "holdout": 4, "block": 16, "context": 32}
    wanted |= settings
    return TextStream(folder, CODEC, wanted.pop("context"), **wanted)  # type: ignore[arg-type]


def windows(samples: Samples) -> list[tuple[list[int], list[float]]]:
    """Tokens and values of each sample."""
    ends = np.cumsum(samples.lengths)
    found = []
    for end, length in zip(ends, samples.lengths, strict=True):
        tokens = samples.tokens[end - length : end]
        codes = samples.codes[end - length : end][tokens == IDS[NUM]]
        found.append((tokens.tolist(), codes[:, 0].view(np.float64).tolist()))
    return found


def texts(samples: Samples) -> list[str]:
    """The documents, put together from windows that lie one after the other."""
    found, tokens, values = list[str](), list[int](), list[float]()
    for more, numbers in windows(samples):
        repeated = 1 if tokens else 0
        if repeated:
            assert more[0] == tokens[-1]
        tokens += more[repeated:]
        values += numbers[1:] if repeated and more[0] == IDS[NUM] else numbers
        if tokens[-1] == IDS[EOS]:
            assert tokens[0] == IDS[BOS]
            found.append(CODEC.decode(np.array(tokens[1:-1], np.int64), np.array(values)))
            tokens, values = [], []
    assert not tokens
    return found


def one_pass(folder: Path, **settings: object) -> list[str]:
    return [text for samples in stream(folder, **settings).once(10**6) for text in texts(samples)]


def test_training_and_validation_hold_every_document_once_and_share_none(folder: Path) -> None:
    train, val = (one_pass(folder, split=split) for split in ("train", "val"))
    assert Counter(train + val) == Counter(ALL)
    assert 10 < len(val) < 45


def test_a_document_keeps_its_split_in_other_files_and_under_other_seeds(
    folder: Path, tmp_path: Path
) -> None:
    parquet(tmp_path / "all.parquet", ALL[::-1])
    assert set(one_pass(tmp_path, seed=9, split="val")) == set(one_pass(folder, split="val"))


@pytest.mark.parametrize(("split", "least"), [("train", 25), ("val", 6)])
def test_ranks_share_no_document_and_leave_none_out(folder: Path, split: str, least: int) -> None:
    ranks = [one_pass(folder, split=split, rank=rank, world=2) for rank in range(2)]
    assert not set(ranks[0]) & set(ranks[1])
    assert Counter(ranks[0] + ranks[1]) == Counter(one_pass(folder, split=split))
    assert min(map(len, ranks)) >= least


def test_samples_have_codes_at_numbers_one_token_without_loss_and_fit_the_context(
    folder: Path,
) -> None:
    samples = stream(folder).take(500)
    assert 500 - 32 < len(samples.tokens) <= 500
    assert samples.lengths.sum() == len(samples.tokens) and samples.lengths.max() <= 32
    assert samples.lengths.min() >= 2 and (samples.questions == 1).all()
    assert samples.codes.shape == (len(samples.tokens), 1)
    assert not samples.codes[samples.tokens != IDS[NUM]].any()
    assert samples.lengths.dtype == samples.questions.dtype == samples.tokens.dtype == np.int64


def test_every_token_but_the_first_of_a_document_is_predicted_once(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", ["xyz" * 41])
    found: list[tuple[list[int], list[float]]] = []
    for split in ("train", "val"):
        try:
            for samples in stream(tmp_path, split=split, context=10).once(1000):
                found += windows(samples)
        except BadInput:
            continue
    assert sum(len(tokens) - 1 for tokens, _ in found) == 123 + 1
    assert [len(tokens) for tokens, _ in found] == [10] * 13 + [8]
    assert all(a[-1] == b[0] for (a, _), (b, _) in pairwise(found))


def test_a_number_at_the_edge_of_two_windows_has_its_code_in_both(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", [f"{i},{i},{i},{i}" for i in range(20)])
    (samples,) = stream(tmp_path, context=4).once(10**6)
    # bos n , n | n , n , | , n eos
    first, second, third = windows(samples)[:3]
    value = first[1][0]
    assert (first[1], second[1], third[1]) == ([value] * 2, [value] * 2, [value])
    assert second[0][0] == IDS[NUM]


def test_the_same_settings_give_the_same_samples(folder: Path) -> None:
    first, second = (stream(folder).take(2000) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_the_order_is_shuffled_and_differs_by_seed_and_epoch(folder: Path) -> None:
    one, two = one_pass(folder, seed=1, block=200), one_pass(folder, seed=2, block=200)
    assert one != two and set(one) == set(two)
    assert [text for text in ALL if text in set(one)] != one
    endless = stream(folder, block=200)
    tokens = sum(len(samples.tokens) for samples in endless.once(10**6))
    again = texts_of_two_epochs(endless, tokens)
    assert again[: len(one)] == one and set(again[len(one) :]) == set(one)
    assert again[len(one) :] != one


def texts_of_two_epochs(endless: TextStream, tokens: int) -> list[str]:
    first = texts(endless.take(tokens))
    assert endless.epoch == 1
    second = texts(endless.take(tokens))
    assert endless.epoch == 2
    return first + second


def test_a_shuffled_block_holds_the_documents_next_to_each_other(folder: Path) -> None:
    inside = [text for text in documents(60) if text in set(one_pass(folder))]
    shuffled = [text for text in one_pass(folder, block=5) if text in set(inside)]
    assert shuffled != inside
    # Blocks of five begin behind the one document of a.txt, if that is for training.
    assert all(abs(inside.index(text) - place) < 5 for place, text in enumerate(shuffled))


@pytest.mark.parametrize("settings", [{}, {"block": 5}, {"rank": 1, "world": 2}, {"context": 7}])
@pytest.mark.parametrize("before", [0, 1, 3, 9, 40])
def test_a_restored_stream_goes_on_exactly(
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


def test_a_state_of_other_settings_or_other_text_is_refused(folder: Path, tmp_path: Path) -> None:
    state = stream(folder).state()
    with pytest.raises(BadInput, match="seed was 1 and is 2"):
        stream(folder, seed=2).restore(state)
    parquet(tmp_path / "all.parquet", ALL)
    with pytest.raises(BadInput, match="files was"):
        stream(tmp_path).restore(state)
    with pytest.raises(BadInput, match="place in the text cannot be read"):
        stream(folder).restore({"settings": {}, "place": {"epoch": "x"}})


def test_too_few_tokens_for_a_window_are_refused(folder: Path) -> None:
    with pytest.raises(BadInput, match="31 tokens"):
        stream(folder).take(31)
    with pytest.raises(BadInput, match="31 tokens"):
        next(stream(folder).once(31))
    assert len(stream(folder).take(32).tokens) > 0


@pytest.mark.parametrize(
    "settings", [{"context": 1}, {"holdout": 1}, {"block": 0}, {"rank": 2, "world": 2}]
)
def test_settings_that_leave_no_text_are_refused(folder: Path, settings: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="no text can be read with"):
        stream(folder, **settings)


def test_a_rank_without_text_says_so_instead_of_waiting_for_ever(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", ["", None])
    with pytest.raises(BadInput, match="too little text"):
        stream(tmp_path).take(100)
