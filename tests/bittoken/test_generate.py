from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from bench.bittoken.attention import Layout
from bench.bittoken.cache import Cache
from bench.bittoken.generate import Generated, generate, usual_limit
from bench.bittoken.lexicon import Lexicon
from bench.bittoken.network import Network
from bench.bittoken.question import Encoded
from bench.bittoken.vocabulary import Vocabulary
from bench.errors import BadInput
from bench.tasks.phrasing import Question
from tests.bittoken import small

LEXICONS = {name: Lexicon.of(Vocabulary(name)) for name in ("bittoken", "digit")}
VARIED = {"bittoken": {"num": 2.0, "eos": 3.2}, "digit": {"eos": 3.0}}
"""Leanings under which answers end at many different places."""

MANY = (
    *small.QUESTIONS,
    *(Question("", "mean", tuple(str(k * 1.5) for k in range(1, n))) for n in range(2, 30)),
)


def plainly(network: Network, lexicon: Lexicon, question: Encoded, limit: int) -> Generated:
    """Greedy decoding of one question, all recomputed for each token."""
    tokens, codes = question.tokens.tolist(), torch.from_numpy(question.codes)
    encoding, new, values = network.encoding, [], []
    while len(new) < limit and new[-1:] != [lexicon.end]:
        with torch.no_grad():
            hidden = network(torch.tensor(tokens), codes, Layout.of(np.array([len(tokens)])))[-1:]
            token = int(network.logits(hidden).argmax())
            code = torch.zeros(1, codes.shape[1], dtype=codes.dtype)
            if encoding is not None and token == lexicon.number:
                code = encoding.torch_decide(network.numbers(hidden))
                values.append(float(encoding.value(code.numpy())[0]))
        codes = torch.cat([codes, code])
        tokens.append(token)
        new.append(token)
    return Generated(new, values, new[-1] == lexicon.end)


def same(found: Sequence[Generated], expected: Sequence[Generated]) -> bool:
    """NaN is one value here."""
    return [(g.tokens, list(map(repr, g.values)), g.ended) for g in found] == [
        (g.tokens, list(map(repr, g.values)), g.ended) for g in expected
    ]


def favoured(encoding: str, **pushes: float) -> Network:
    """A network whose hidden states lean towards some tokens, so that their answers are varied."""
    network = small.network(encoding, norm="layer").double()
    lexicon = LEXICONS[encoding]
    with torch.no_grad():
        bias = network.transformer["ln_f"].bias
        for piece, push in pushes.items():
            row = network.lm_head.weight[{"num": lexicon.number, "eos": lexicon.end}[piece]]
            bias += push * row / row.norm()
    return network


@pytest.mark.parametrize("encoding", LEXICONS)
def test_many_at_once_are_answered_as_each_is_token_by_token(encoding: str) -> None:
    lexicon = LEXICONS[encoding]
    network = favoured(encoding, **VARIED[encoding])
    asked = small.questions(lexicon, MANY)
    expected = [plainly(network, lexicon, question, 40) for question in asked]
    assert same(generate(network, lexicon, asked, 40), expected)
    # The test says nothing unless answers end at different places and hold numbers.
    assert len({len(g.tokens) for g in expected}) > 5
    assert {g.ended for g in expected} == {True, False}
    if encoding == "bittoken":
        assert sum(len(g.values) for g in expected) > 20


@pytest.mark.parametrize("encoding", LEXICONS)
def test_a_batch_is_answered_as_one_by_one(encoding: str) -> None:
    lexicon = LEXICONS[encoding]
    network = favoured(encoding, **VARIED[encoding])
    asked = small.questions(lexicon, MANY)
    together = generate(network, lexicon, asked, 30)
    assert same(together, [generate(network, lexicon, [one], 30)[0] for one in asked])
    backwards = generate(network, lexicon, asked[::-1], 30)
    assert same(together, backwards[::-1])


def test_cached_hidden_states_are_those_of_the_whole_sample() -> None:
    """Also far beyond the cache's first room, and after samples have left the batch."""
    network = small.network().double()
    lexicon = LEXICONS["bittoken"]
    lengths, more = [3, 90, 11], 70
    tokens, codes = small.packed([n + more for n in lengths], 38, lexicon.number)
    samples = list(
        zip(
            tokens.split([n + more for n in lengths]),
            codes.split([n + more for n in lengths]),
            strict=True,
        )
    )
    with torch.no_grad():
        whole = [network(t, c, Layout.of(np.array([len(t)]))) for t, c in samples]
        cache = Cache(network.config.layers)
        heads = [(t[:n], c[:n]) for (t, c), n in zip(samples, lengths, strict=True)]
        first = network(
            torch.cat([t for t, _ in heads]),
            torch.cat([c for _, c in heads]),
            Layout.of(np.array(lengths)),
            cache,
        )
        for found, states, n in zip(first.split(lengths), whole, lengths, strict=True):
            torch.testing.assert_close(found, states[:n], rtol=0, atol=1e-11)
        open_samples = [0, 1, 2]
        for step in range(more):
            if step == 30:
                open_samples = [0, 2]
                cache.keep(torch.tensor([0, 2]))
            at = [lengths[n] + step for n in open_samples]
            found = network(
                torch.stack([samples[n][0][k] for n, k in zip(open_samples, at, strict=True)]),
                torch.stack([samples[n][1][k] for n, k in zip(open_samples, at, strict=True)]),
                cache.step(torch.tensor(at)),
                cache,
            )
            expected = torch.stack([whole[n][k] for n, k in zip(open_samples, at, strict=True)])
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)


def test_every_generated_token_is_the_likeliest_after_the_whole_text_before_it() -> None:
    """Teacher-forced: question and answer in one run, numbers as their encodings."""
    lexicon = LEXICONS["bittoken"]
    network = favoured("bittoken", **VARIED["bittoken"])
    encoding = network.encoding
    assert encoding is not None
    for question in small.questions(lexicon, MANY[::3]):
        (answer,) = generate(network, lexicon, [question], 25)
        tokens = np.concatenate([question.tokens, answer.tokens])
        codes = np.zeros((len(tokens), 1), np.int64)
        codes[: len(question.tokens)] = question.codes
        places = np.flatnonzero(np.array(answer.tokens) == lexicon.number)
        assert not any(map(math.isnan, answer.values)), "a NaN's bits are lost in a float"
        codes[len(question.tokens) + places] = encoding.code(np.array(answer.values))
        with torch.no_grad():
            hidden = network(
                torch.from_numpy(tokens),
                torch.from_numpy(codes),
                Layout.of(np.array([len(tokens)])),
            )[len(question.tokens) - 1 : -1]
            assert network.logits(hidden).argmax(-1).tolist() == answer.tokens
            decided = encoding.torch_decide(network.numbers(hidden))[places]
        assert encoding.value(decided.numpy()).tolist() == answer.values


def test_limits_cut_answers_off() -> None:
    lexicon = LEXICONS["digit"]
    network = favoured("digit", eos=-100.0)
    asked = small.questions(lexicon)
    assert {(len(g.tokens), g.ended) for g in generate(network, lexicon, asked, 7)} == {(7, False)}
    each = generate(network, lexicon, asked, [1, 2, 3, 4, 50])
    assert [len(g.tokens) for g in each] == [1, 2, 3, 4, 50]
    assert {len(g.tokens) for g in generate(network, lexicon, asked)} == {200}
    assert [usual_limit(LEXICONS[name]) for name in ("bittoken", "digit")] == [64, 200]


def test_an_answer_ends_with_its_end_token() -> None:
    lexicon = LEXICONS["bittoken"]
    answers = generate(favoured("bittoken", eos=100.0), lexicon, small.questions(lexicon))
    assert {tuple(g.tokens) for g in answers} == {(lexicon.end,)}
    assert all(g.ended and not g.values for g in answers)


def test_the_context_bounds_question_and_answer_together() -> None:
    lexicon = LEXICONS["digit"]
    network = small.network("digit", context=30)
    asked = small.questions(lexicon, small.QUESTIONS[:2])
    with torch.no_grad():
        network.lm_head.weight[lexicon.end] = 0
    answers = generate(network, lexicon, asked)
    for question, answer in zip(asked, answers, strict=True):
        assert answer.ended or len(question.tokens) + len(answer.tokens) == 30
    long = small.questions(lexicon, [Question("", "+", ("123456789012345", "123456789012345"))])
    with pytest.raises(BadInput, match="33 tokens fills the model's context of 30"):
        generate(network, lexicon, long)


def test_open_answers_are_cut_off_when_told_to_stop() -> None:
    lexicon = LEXICONS["digit"]
    network = favoured("digit", eos=-100.0)
    turns = iter([False, False, False, True])
    answers = generate(network, lexicon, small.questions(lexicon), 50, lambda: next(turns))
    assert {(len(g.tokens), g.ended) for g in answers} == {(3, False)}
    assert generate(network, lexicon, []) == []
