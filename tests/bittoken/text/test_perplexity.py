"""Perplexity, against numbers worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from bench.bittoken.data.packing import Samples
from bench.bittoken.text.perplexity import perplexity
from bench.bittoken.text.stream import TextStream
from bench.bittoken.vocabulary import BOS, EOS, NUM
from tests.bittoken.text.small import codec, documents, parquet

CODEC = codec()
VOCABULARY = CODEC.vocabulary
IDS = VOCABULARY.ids
WORD = CODEC.first


def samples(*rows: list[int], questions: int = 1) -> Samples:
    tokens = np.array([token for row in rows for token in row], np.int64)
    lengths = np.array([len(row) for row in rows], np.int64)
    codes = np.zeros((len(tokens), 1), np.int64)
    return Samples(tokens, codes, lengths, np.full(len(rows), questions))


TWO = samples([IDS[BOS], WORD, IDS[NUM], IDS[EOS]], [WORD, IDS["-"], WORD])
SCORES = np.log([np.nan, 1 / 2, 1 / 8, 1 / 4, np.nan, 1 / 16, 1 / 4])


def test_all_tokens_and_text_only_by_hand() -> None:
    found = perplexity(lambda _: SCORES, [TWO], VOCABULARY)
    # 1 + 3 + 2 + 4 + 2 bits over five tokens; 1 + 2 + 2 bits over the three of text.
    assert found.all == pytest.approx(2 ** (12 / 5))
    assert found.text == pytest.approx(2 ** (5 / 3))
    assert (found.all_tokens, found.text_tokens) == (5, 3)


def test_windows_count_by_their_tokens() -> None:
    one = samples([IDS[BOS], WORD])
    scores = iter([SCORES, np.log([1.0, 1 / 64])])
    found = perplexity(lambda _: next(scores), [TWO, one], VOCABULARY)
    assert found.all == pytest.approx(2 ** ((12 + 6) / 6))
    assert found.text == pytest.approx(2 ** ((5 + 6) / 4))


def test_tokens_without_loss_do_not_count() -> None:
    asked = samples([WORD, WORD, WORD, WORD], questions=3)
    scores = np.log([0.1, 0.1, 0.1, 0.5])
    assert perplexity(lambda _: scores, [asked], VOCABULARY) == pytest.approx((2.0, 2.0, 1, 1))


def test_a_uniform_guess_has_the_perplexity_of_the_vocabulary(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", documents(60))
    text = TextStream(tmp_path, CODEC, 16, seed=0, split="val", holdout=3)

    def uniform(given: Samples) -> np.ndarray:
        return np.full(len(given.tokens), -math.log(len(VOCABULARY)))

    found = perplexity(uniform, text.once(64), VOCABULARY)
    assert found.all == pytest.approx(len(VOCABULARY)) == found.text
    assert found.all_tokens > found.text_tokens > 100


def test_what_is_not_predicted_has_no_perplexity() -> None:
    assert perplexity(lambda _: SCORES, [], VOCABULARY) == (None, None, 0, 0)
    number = samples([IDS[BOS], IDS[NUM]])
    found = perplexity(lambda _: np.log([1.0, 0.5]), [number], VOCABULARY)
    assert found.text is None and found.all == pytest.approx(2.0)


def test_what_is_impossible_has_an_infinite_perplexity() -> None:
    one = samples([IDS[BOS], WORD])
    assert perplexity(lambda _: np.array([0.0, -np.inf]), [one], VOCABULARY).all == math.inf
    assert perplexity(lambda _: np.array([0.0, -1e9]), [one], VOCABULARY).all == math.inf


@pytest.mark.parametrize("scores", [[0.0, 0.7], [0.0, math.nan], [-1.0], [[-1.0, -1.0]]])
def test_what_is_no_log_probability_is_refused(scores: list[float]) -> None:
    one = samples([IDS[BOS], WORD])
    with pytest.raises(ValueError, match="score"):
        perplexity(lambda _: np.array(scores), [one], VOCABULARY)


def test_scores_are_added_up_in_float64() -> None:
    many = samples([WORD] * 200_001)
    scores = np.full(200_001, -np.float32(0.1), np.float32)
    found = perplexity(lambda _: scores, [many], VOCABULARY)
    assert found.all == pytest.approx(math.exp(float(np.float32(0.1))), rel=1e-12)
