"""The network: rows are independent, its parts follow their formulas, and answers are greedy."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
import torch

from bittoken.encodings.bittoken import BitToken
from bittoken.generation import GeneratedAnswer, default_max_tokens, generate
from bittoken.network import Combination, ModelConfig, Network, NumberInput
from bittoken.tokens import Samples, Vocabulary, encode_questions
from numbench.errors import BadInput
from numbench.tasks.prompts import Question
from tests.bittoken import small
from tests.support.case_tables import each_row

VOCABULARIES = {name: Vocabulary(name) for name in ("bittoken", "digit")}


class Plain(BitToken):
    """An encoding with vectors of `width` channels that are equal to its codes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def vector(self, codes: torch.Tensor) -> torch.Tensor:
        return codes.float()


@each_row(__file__, "combined_numbers")
def test_numbers_are_combined_with_their_embedding(
    combination: Combination, width: int, expected: list[float]
) -> None:
    config = ModelConfig(encoding="bittoken", vocabulary=9, width=5, combination=combination)
    module = NumberInput(config, Plain(width))
    if module.bit_weight_matrix is not None:
        weights = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, -2]])
        module.bit_weight_matrix.weight.data = weights
    embedded = torch.tensor([[[1.0, 2, 3, 4, 5], [6.0, 7, 8, 9, 10]]])
    codes = torch.tensor([10.0, 20, -30])[:width].expand(1, 2, -1)
    out = module(embedded, codes, torch.tensor([[True, False]]))
    assert out[0, 1].tolist() == embedded[0, 1].tolist()
    assert out[0, 0].tolist() == pytest.approx(expected, rel=1e-6)


def test_the_network_of_the_paper_has_117_million_parameters() -> None:
    with torch.device("meta"):
        network = Network(ModelConfig(encoding="bittoken", vocabulary=48_577))
    assert sum(weights.numel() for weights in network.parameters()) == 117_182_272


@pytest.mark.parametrize("shape", [{}, {"combination": "weighted"}, {"norm": "layer"}], ids=str)
def test_hidden_states_depend_on_earlier_tokens_of_their_row_only(shape: dict[str, str]) -> None:
    network, rows = small.network(**shape).double(), small.samples([1, 200, 3, 64, 17])
    together = small.hidden(network, rows)
    for row, length in enumerate(rows.lengths):
        (alone,) = small.hidden(network, small.take(rows, [row]))
        torch.testing.assert_close(together[row], alone, rtol=0, atol=1e-12)
        (start,) = small.hidden(
            network, Samples(*(part[[row], : length // 2 + 1] for part in rows[:-1]), [length])
        )
        torch.testing.assert_close(start, alone[: length // 2 + 1], rtol=0, atol=1e-12)
    assert together[1].std() > 0.1
    shifted = rows._replace(tokens=np.roll(rows.tokens, 5), codes=np.roll(rows.codes, 5, axis=1))
    (before, after) = (small.hidden(network, r)[1] for r in (rows, shifted))
    assert (before[:-5] - after[5:]).abs().max() > 0.01


VARIED = {"bittoken": {"num": 2.0, "eos": 3.2}, "digit": {"eos": 2.6}}
"""Biases with which answers end after different numbers of tokens."""

MANY = (
    *small.QUESTIONS,
    *(Question("", "mean", tuple(str(k * 1.5) for k in range(1, n))) for n in range(2, 30, 6)),
)


def answers_without_cache(network: Network, rows: Samples, limit: int) -> list[GeneratedAnswer]:
    """Greedy decoding of one question after another, recomputing all hidden states each time."""
    vocabulary, encoding = Vocabulary(network.config.encoding), network.encoding
    answers = []
    for row, length in enumerate(rows.lengths):
        tokens = rows.tokens[row, :length].tolist()
        codes = torch.from_numpy(rows.codes[row, :length])
        new, values = list[int](), list[float]()
        while len(new) < limit and new[-1:] != [vocabulary.eos_id]:
            with torch.no_grad():
                hidden = network(torch.tensor([tokens]), codes[None])[0, -1:]
                token = int(network.logits(hidden).argmax())
                code = torch.zeros(1, codes.shape[1], dtype=codes.dtype)
                if encoding is not None and token == vocabulary.number_id:
                    code = encoding.predict(network.number_outputs(hidden))
                    values.append(float(encoding.decode(code.numpy())[0]))
            codes = torch.cat([codes, code])
            tokens.append(token)
            new.append(token)
        answers.append(GeneratedAnswer(new, values))
    return answers


def shown(answers: Sequence[GeneratedAnswer]) -> list[tuple[list[int], str]]:
    """Return answers in a form in which NaN equals NaN."""
    return [(answer.tokens, repr(answer.values)) for answer in answers]


def biased_network(encoding: str, **biases: float) -> Network:
    """Return a network that is biased towards some tokens, so that answers vary."""
    network = small.network(encoding, norm="layer").double()
    vocabulary = VOCABULARIES[encoding]
    with torch.no_grad():
        for piece, factor in biases.items():
            row = network.lm_head.weight[
                {"num": vocabulary.number_id, "eos": vocabulary.eos_id}[piece]
            ]
            network.transformer["ln_f"].bias += factor * row / row.norm()
    return network


@pytest.mark.parametrize("encoding", VOCABULARIES)
def test_answers_equal_those_without_cache_and_batch(encoding: str) -> None:
    network = biased_network(encoding, **VARIED[encoding])
    rows = encode_questions(MANY, VOCABULARIES[encoding])
    expected = answers_without_cache(network, rows, 40)
    assert shown(generate(network, VOCABULARIES[encoding], rows, 40)) == shown(expected)
    backwards = small.take(rows, np.arange(len(MANY))[::-1])
    answers = generate(network, VOCABULARIES[encoding], backwards, 40)
    assert shown(answers) == shown(expected[::-1])
    # The comparison is meaningful only if answers differ in length and contain numbers.
    assert len({len(g.tokens) for g in expected}) > 5
    assert {g.tokens[-1] == VOCABULARIES[encoding].eos_id for g in expected} == {True, False}
    assert encoding == "digit" or sum(len(g.values) for g in expected) > 20


def test_answers_are_cut_off_at_their_limits() -> None:
    vocabulary = VOCABULARIES["digit"]
    network = biased_network("digit", eos=-100.0)
    rows = encode_questions(small.QUESTIONS, vocabulary)
    some = generate(network, vocabulary, rows, [1, 2, 3, 4, 50])
    assert [len(g.tokens) for g in some] == [1, 2, 3, 4, 50]
    assert {len(g.tokens) for g in generate(network, vocabulary, rows)} == {200}
    assert [default_max_tokens(VOCABULARIES[name]) for name in VOCABULARIES] == [64, 200]
    turns = iter([False, False, False, True])
    stopped = generate(network, vocabulary, rows, 50, lambda: next(turns))
    assert {len(g.tokens) for g in stopped} == {3}
    assert generate(network, vocabulary, small.take(rows, [])) == []
    ended = generate(biased_network("digit", eos=100.0), vocabulary, rows)
    assert {tuple(g.tokens) for g in ended} == {(vocabulary.eos_id,)}


def test_the_context_limits_question_and_answer() -> None:
    vocabulary = VOCABULARIES["digit"]
    network = biased_network("digit", eos=-100.0)
    network.config = msgspec.structs.replace(network.config, context=30)
    rows = encode_questions(small.QUESTIONS[:2], vocabulary)
    answers = generate(network, vocabulary, rows)
    assert [n + len(g.tokens) for n, g in zip(rows.lengths, answers, strict=True)] == [30, 30]
    long = encode_questions([Question("", "+", ("123456789012", "123456789012345"))], vocabulary)
    with pytest.raises(BadInput, match="of 30 tokens fills the model's context of 30"):
        generate(network, vocabulary, long)
