from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from bittoken.attention import KeyValueCache, PackedLayout
from bittoken.generation import GeneratedAnswer, default_max_tokens, generate
from bittoken.network import Network
from bittoken.token_ids import TokenIds
from bittoken.tokenizer import EncodedQuestion
from bittoken.vocabulary import Vocabulary
from numbench.errors import BadInput
from numbench.tasks.prompts import Question
from tests.bittoken import small

TOKEN_IDS = {name: TokenIds.from_vocabulary(Vocabulary(name)) for name in ("bittoken", "digit")}
VARIED = {"bittoken": {"num": 2.0, "eos": 3.2}, "digit": {"eos": 2.6}}
"""Biases with which answers end after different numbers of tokens."""

MANY = (
    *small.QUESTIONS,
    *(Question("", "mean", tuple(str(k * 1.5) for k in range(1, n))) for n in range(2, 30, 3)),
)


def generate_without_cache(
    network: Network, token_ids: TokenIds, question: EncodedQuestion, limit: int
) -> GeneratedAnswer:
    """Greedy decoding of one question, recomputing all hidden states for each token."""
    tokens, codes = question.tokens.tolist(), torch.from_numpy(question.codes)
    encoding, new, values = network.encoding, [], []
    while len(new) < limit and new[-1:] != [token_ids.eos_id]:
        with torch.no_grad():
            hidden = network(
                torch.tensor(tokens), codes, PackedLayout.from_lengths(np.array([len(tokens)]))
            )[-1:]
            token = int(network.logits(hidden).argmax())
            code = torch.zeros(1, codes.shape[1], dtype=codes.dtype)
            if encoding is not None and token == token_ids.number_id:
                code = encoding.torch_predict_codes(network.number_outputs(hidden))
                values.append(float(encoding.decode(code.numpy())[0]))
        codes = torch.cat([codes, code])
        tokens.append(token)
        new.append(token)
    return GeneratedAnswer(new, values, new[-1] == token_ids.eos_id)


def is_equal(answers: Sequence[GeneratedAnswer], expected: Sequence[GeneratedAnswer]) -> bool:
    """Compare answers; NaN equals NaN."""
    return [(g.tokens, list(map(repr, g.values)), g.ended) for g in answers] == [
        (g.tokens, list(map(repr, g.values)), g.ended) for g in expected
    ]


def biased_network(encoding: str, **biases: float) -> Network:
    """Return a network that is biased towards some tokens, so that answers vary."""
    network = small.network(encoding, norm="layer").double()
    token_ids = TOKEN_IDS[encoding]
    with torch.no_grad():
        bias = network.transformer["ln_f"].bias
        for piece, factor in biases.items():
            row = network.lm_head.weight[
                {"num": token_ids.number_id, "eos": token_ids.eos_id}[piece]
            ]
            bias += factor * row / row.norm()
    return network


@pytest.mark.parametrize("encoding", TOKEN_IDS)
def test_batched_answers_equal_those_without_cache(encoding: str) -> None:
    token_ids = TOKEN_IDS[encoding]
    network = biased_network(encoding, **VARIED[encoding])
    questions = small.questions(token_ids, MANY)
    expected = [generate_without_cache(network, token_ids, question, 40) for question in questions]
    assert is_equal(generate(network, token_ids, questions, 40), expected)
    # The comparison is meaningful only if answers differ in length and contain numbers.
    assert len({len(g.tokens) for g in expected}) > 5
    assert {g.ended for g in expected} == {True, False}
    if encoding == "bittoken":
        assert sum(len(g.values) for g in expected) > 20


@pytest.mark.parametrize("encoding", TOKEN_IDS)
def test_batched_answers_equal_single_answers(encoding: str) -> None:
    token_ids = TOKEN_IDS[encoding]
    network = biased_network(encoding, **VARIED[encoding])
    questions = small.questions(token_ids, MANY)
    together = generate(network, token_ids, questions, 30)
    assert is_equal(together, [generate(network, token_ids, [one], 30)[0] for one in questions])
    backwards = generate(network, token_ids, questions[::-1], 30)
    assert is_equal(together, backwards[::-1])


def test_cached_hidden_states_equal_those_without_cache() -> None:
    """Including beyond the initial capacity of the cache, and after samples have been removed."""
    network = small.network().double()
    token_ids = TOKEN_IDS["bittoken"]
    lengths, added = [3, 90, 11], 70
    tokens, codes = small.packed([n + added for n in lengths], 38, token_ids.number_id)
    samples = list(
        zip(
            tokens.split([n + added for n in lengths]),
            codes.split([n + added for n in lengths]),
            strict=True,
        )
    )
    with torch.no_grad():
        whole = [network(t, c, PackedLayout.from_lengths(np.array([len(t)]))) for t, c in samples]
        cache = KeyValueCache(network.config.layers)
        prefixes = [(t[:n], c[:n]) for (t, c), n in zip(samples, lengths, strict=True)]
        first = network(
            torch.cat([t for t, _ in prefixes]),
            torch.cat([c for _, c in prefixes]),
            PackedLayout.from_lengths(np.array(lengths)),
            cache,
        )
        for cached, states, n in zip(first.split(lengths), whole, lengths, strict=True):
            torch.testing.assert_close(cached, states[:n], rtol=0, atol=1e-11)
        unfinished = [0, 1, 2]
        for step in range(added):
            if step == 30:
                unfinished = [0, 2]
                cache.select(torch.tensor([0, 2]))
            positions = [lengths[n] + step for n in unfinished]
            cached = network(
                torch.stack([samples[n][0][k] for n, k in zip(unfinished, positions, strict=True)]),
                torch.stack([samples[n][1][k] for n, k in zip(unfinished, positions, strict=True)]),
                cache.next_layout(torch.tensor(positions)),
                cache,
            )
            expected = torch.stack(
                [whole[n][k] for n, k in zip(unfinished, positions, strict=True)]
            )
            torch.testing.assert_close(cached, expected, rtol=0, atol=1e-11)


def test_generated_tokens_equal_teacher_forced_predictions() -> None:
    """Question and answer in one forward pass, with the encodings of generated numbers."""
    token_ids = TOKEN_IDS["bittoken"]
    network = biased_network("bittoken", **VARIED["bittoken"])
    encoding = network.encoding
    assert encoding is not None
    for question in small.questions(token_ids, MANY[::3]):
        (answer,) = generate(network, token_ids, [question], 25)
        tokens = np.concatenate([question.tokens, answer.tokens])
        codes = np.zeros((len(tokens), 1), np.int64)
        codes[: len(question.tokens)] = question.codes
        positions = np.flatnonzero(np.array(answer.tokens) == token_ids.number_id)
        assert not any(map(math.isnan, answer.values)), "a NaN's bits are lost in a float"
        codes[len(question.tokens) + positions] = encoding.encode(np.array(answer.values))
        with torch.no_grad():
            hidden = network(
                torch.from_numpy(tokens),
                torch.from_numpy(codes),
                PackedLayout.from_lengths(np.array([len(tokens)])),
            )[len(question.tokens) - 1 : -1]
            assert network.logits(hidden).argmax(-1).tolist() == answer.tokens
            predicted = encoding.torch_predict_codes(network.number_outputs(hidden))[positions]
        assert encoding.decode(predicted.numpy()).tolist() == answer.values


def test_answers_are_cut_off_at_max_tokens() -> None:
    token_ids = TOKEN_IDS["digit"]
    network = biased_network("digit", eos=-100.0)
    questions = small.questions(token_ids)
    assert {(len(g.tokens), g.ended) for g in generate(network, token_ids, questions, 7)} == {
        (7, False)
    }
    each = generate(network, token_ids, questions, [1, 2, 3, 4, 50])
    assert [len(g.tokens) for g in each] == [1, 2, 3, 4, 50]
    assert {len(g.tokens) for g in generate(network, token_ids, questions)} == {200}
    assert [default_max_tokens(TOKEN_IDS[name]) for name in ("bittoken", "digit")] == [64, 200]


def test_answers_end_with_the_end_of_sample_token() -> None:
    token_ids = TOKEN_IDS["bittoken"]
    answers = generate(biased_network("bittoken", eos=100.0), token_ids, small.questions(token_ids))
    assert {tuple(g.tokens) for g in answers} == {(token_ids.eos_id,)}
    assert all(g.ended and not g.values for g in answers)


def test_context_limits_question_and_answer() -> None:
    token_ids = TOKEN_IDS["digit"]
    network = small.network("digit", context=30)
    questions = small.questions(token_ids, small.QUESTIONS[:2])
    with torch.no_grad():
        network.lm_head.weight[token_ids.eos_id] = 0
    answers = generate(network, token_ids, questions)
    for question, answer in zip(questions, answers, strict=True):
        assert answer.ended or len(question.tokens) + len(answer.tokens) == 30
    long = small.questions(token_ids, [Question("", "+", ("123456789012345", "123456789012345"))])
    with pytest.raises(BadInput, match="33 tokens fills the model's context of 30 tokens"):
        generate(network, token_ids, long)


def test_should_stop_cuts_off_unfinished_answers() -> None:
    token_ids = TOKEN_IDS["digit"]
    network = biased_network("digit", eos=-100.0)
    turns = iter([False, False, False, True])
    answers = generate(network, token_ids, small.questions(token_ids), 50, lambda: next(turns))
    assert {(len(g.tokens), g.ended) for g in answers} == {(3, False)}
    assert generate(network, token_ids, []) == []
