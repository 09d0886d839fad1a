"""Perplexity compared with values computed by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from bittoken.data.packing import Samples
from bittoken.perplexity import perplexity
from bittoken.text.stream import TextStream
from bittoken.vocabulary import BOS, EOS, NUM
from tests.bittoken.text.small import codec, documents, parquet

CODEC = codec()
VOCABULARY = CODEC.vocabulary
IDS = VOCABULARY.ids
WORD = CODEC.text_offset


def samples(*rows: list[int], prompt_length: int = 1) -> Samples:
    tokens = np.array([token for row in rows for token in row], np.int64)
    lengths = np.array([len(row) for row in rows], np.int64)
    codes = np.zeros((len(tokens), 1), np.int64)
    return Samples(tokens, codes, lengths, np.full(len(rows), prompt_length))


TWO = samples([IDS[BOS], WORD, IDS[NUM], IDS[EOS]], [WORD, IDS["-"], WORD])
SCORES = np.log([np.nan, 1 / 2, 1 / 8, 1 / 4, np.nan, 1 / 16, 1 / 4])


def test_perplexity_of_all_tokens_and_of_text() -> None:
    result = perplexity(lambda _: SCORES, [TWO], VOCABULARY)
    # 1 + 3 + 2 + 4 + 2 bits over five tokens; 1 + 2 + 2 bits over the three of text.
    assert result.all == pytest.approx(2 ** (12 / 5))
    assert result.text == pytest.approx(2 ** (5 / 3))
    assert (result.all_tokens, result.text_tokens) == (5, 3)


def test_windows_are_weighted_by_their_tokens() -> None:
    one = samples([IDS[BOS], WORD])
    scores = iter([SCORES, np.log([1.0, 1 / 64])])
    result = perplexity(lambda _: next(scores), [TWO, one], VOCABULARY)
    assert result.all == pytest.approx(2 ** ((12 + 6) / 6))
    assert result.text == pytest.approx(2 ** ((5 + 6) / 4))


def test_tokens_without_loss_are_ignored() -> None:
    with_prompt = samples([WORD, WORD, WORD, WORD], prompt_length=3)
    scores = np.log([0.1, 0.1, 0.1, 0.5])
    assert perplexity(lambda _: scores, [with_prompt], VOCABULARY) == pytest.approx(
        (2.0, 2.0, 1, 1)
    )


def test_uniform_scores_have_the_perplexity_of_the_vocabulary(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", documents(60))
    text = TextStream(tmp_path, CODEC, 16, seed=0, split="val", holdout=3)

    def uniform(windows: Samples) -> np.ndarray:
        return np.full(len(windows.tokens), -math.log(len(VOCABULARY)))

    result = perplexity(uniform, text.single_pass(64), VOCABULARY)
    assert result.all == pytest.approx(len(VOCABULARY)) == result.text
    assert result.all_tokens > result.text_tokens > 100


def test_perplexity_is_none_without_predicted_tokens() -> None:
    assert perplexity(lambda _: SCORES, [], VOCABULARY) == (None, None, 0, 0)
    number = samples([IDS[BOS], IDS[NUM]])
    result = perplexity(lambda _: np.log([1.0, 0.5]), [number], VOCABULARY)
    assert result.text is None and result.all == pytest.approx(2.0)


def test_impossible_tokens_give_infinite_perplexity() -> None:
    one = samples([IDS[BOS], WORD])
    assert perplexity(lambda _: np.array([0.0, -np.inf]), [one], VOCABULARY).all == math.inf
    assert perplexity(lambda _: np.array([0.0, -1e9]), [one], VOCABULARY).all == math.inf


@pytest.mark.parametrize("scores", [[0.0, 0.7], [0.0, math.nan], [-1.0], [[-1.0, -1.0]]])
def test_scores_that_are_not_log_probabilities_are_rejected(scores: list[float]) -> None:
    one = samples([IDS[BOS], WORD])
    with pytest.raises(ValueError, match="score"):
        perplexity(lambda _: np.array(scores), [one], VOCABULARY)


def test_scores_are_summed_in_float64() -> None:
    many = samples([WORD] * 200_001)
    scores = np.full(200_001, -np.float32(0.1), np.float32)
    result = perplexity(lambda _: scores, [many], VOCABULARY)
    assert result.all == pytest.approx(math.exp(float(np.float32(0.1))), rel=1e-12)
