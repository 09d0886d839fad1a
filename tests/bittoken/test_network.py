from __future__ import annotations

import numpy as np
import pytest
import torch

from bench.bittoken.attention import Layout
from bench.bittoken.config import Combination, ModelConfig
from bench.bittoken.encodings.bits import BitToken
from bench.bittoken.inputs import NumberInput
from bench.bittoken.network import Network
from bench.bittoken.vocabulary import NUM, Vocabulary
from bench.errors import BadInput
from tests.bittoken import small

SIZE = len(Vocabulary("bittoken"))
NUMBER = Vocabulary("bittoken").ids[NUM]
LENGTHS = [1, 200, 3, 64, 65, 2, 17, 130]


class Plain(BitToken):
    """An encoding whose vectors are its codes, of `width` channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def torch_vector(self, codes: torch.Tensor) -> torch.Tensor:
        return codes.float()


def combined(combination: Combination, encoding: BitToken, codes: list[float]) -> list[float]:
    """The embedding (1, 2, 3, 4, 5) of a number and a plain token, with `codes` put in."""
    config = ModelConfig(encoding="bittoken", vocabulary=9, width=5, combination=combination)
    module = NumberInput(config, encoding)
    if module.bit_weight_matrix is not None:
        weights = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, -2]])
        module.bit_weight_matrix.weight.data = weights
    embedded = torch.tensor([[1.0, 2, 3, 4, 5], [6.0, 7, 8, 9, 10]])
    rows = torch.tensor([codes, codes])
    out = module(embedded, rows, torch.tensor([True, False]))
    assert out[1].tolist() == embedded[1].tolist()
    values: list[float] = out[0].tolist()
    return values


@pytest.mark.parametrize(
    ("combination", "expected"),
    [
        ("sum", [11, 22, -27, 4, 5]),
        ("product", [10, 40, -90, 4, 5]),
        ("concat", [10, 20, -30, 4, 5]),
        ("zero-pad", [10, 20, -30, 0, 0]),
        ("weighted", [10, 20, -30, 0, 60]),
        ("weighted-sum", [11, 22, -27, 4, 65]),
    ],
)
def test_a_number_enters_as_the_combination_says(
    combination: Combination, expected: list[float]
) -> None:
    assert combined(combination, Plain(3), [10, 20, -30]) == expected


@pytest.mark.parametrize("combination", ["sum", "zero-pad", "weighted"])
def test_an_encoding_of_one_channel_scales_the_embedding(combination: Combination) -> None:
    assert combined(combination, Plain(1), [-2.5]) == [-2.5, -5, -7.5, -10, -12.5]


def test_the_papers_network_has_117_million_parameters() -> None:
    with torch.device("meta"):
        network = Network(ModelConfig(encoding="bittoken", vocabulary=48_577))
    assert sum(weights.numel() for weights in network.parameters()) == 117_182_272


def test_the_number_heads_are_those_of_the_ablation() -> None:
    hidden = torch.randn(3, 160, dtype=torch.float64)
    x = hidden.numpy()
    first = small.network(head="none").double()
    assert torch.equal(first.numbers(hidden), hidden[:, :64])
    linear = small.network(head="linear").double()
    (layer,) = linear.num_embedding_module["num_head"].children()
    w, b = (value.detach().numpy() for value in layer.parameters())
    assert w.shape == (64, 160)
    np.testing.assert_allclose(linear.numbers(hidden).detach(), x @ w.T + b, rtol=1e-12)
    mlp = small.network(head="mlp").double()
    w1, b1, w2, b2 = (
        value.detach().numpy() for value in mlp.num_embedding_module["num_head"].parameters()
    )
    expected = np.maximum(x @ w1.T + b1, 0) @ w2.T + b2
    np.testing.assert_allclose(mlp.numbers(hidden).detach(), expected, rtol=1e-10)


def test_both_norms_are_the_textbooks() -> None:
    x = torch.tensor([[1.0, -2.0, 3.0, 6.0] * 40], dtype=torch.float64)
    rms = small.network(norm="rms").double().transformer["ln_f"]
    gain = rms.weight.detach()
    torch.testing.assert_close(rms(x).detach(), x / 12.5**0.5 * gain, rtol=1e-12, atol=0)
    layer = small.network(norm="layer").double().transformer["ln_f"]
    gain, bias = layer.weight.detach(), layer.bias.detach()
    # Mean 2 and variance 8.5; PyTorch's ε is 1e-5.
    expected = (x - 2) / (8.5 + 1e-5) ** 0.5 * gain + bias
    torch.testing.assert_close(layer(x).detach(), expected, rtol=1e-12, atol=1e-12)


def alone(network: Network, tokens: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """The hidden states of LENGTHS's samples, each run by itself."""
    parts = zip(tokens.split(LENGTHS), codes.split(LENGTHS), strict=True)
    return torch.cat([network(t, c, Layout.of(np.array([len(t)]))) for t, c in parts])


@pytest.mark.parametrize("combination", ["sum", "zero-pad", "weighted"])
def test_packed_samples_have_the_hidden_states_of_each_alone(combination: str) -> None:
    network = small.network(combination=combination).double()
    tokens, codes = small.packed(LENGTHS, SIZE, NUMBER)
    together = network(tokens, codes, Layout.of(np.array(LENGTHS)))
    expected = alone(network, tokens, codes)
    torch.testing.assert_close(together, expected, rtol=0, atol=1e-12)
    assert expected.std() > 0.1


def test_packed_samples_have_the_gradients_of_each_alone() -> None:
    gradients = []
    tokens, codes = small.packed(LENGTHS, SIZE, NUMBER)
    for together in (True, False):
        network = small.network().double()
        layout = Layout.of(np.array(LENGTHS))
        hidden = network(tokens, codes, layout) if together else alone(network, tokens, codes)
        (network.logits(hidden).sin().sum() + network.numbers(hidden).cos().sum()).backward()
        gradients.append({name: weights.grad for name, weights in network.named_parameters()})
    for name, gradient in gradients[0].items():
        scale = gradient.abs().max()
        assert scale > 0, name
        torch.testing.assert_close(gradient, gradients[1][name], rtol=0, atol=1e-12 * float(scale))


def test_at_16_bits_packing_changes_no_more_than_rounding_does() -> None:
    """Not more than bfloat16 itself takes from the hidden states of each sample alone."""
    exact = small.network().double()
    tokens, codes = small.packed(LENGTHS, SIZE, NUMBER)
    with torch.no_grad():
        truth = alone(exact, tokens, codes)
        network = small.network().bfloat16()
        apart = (alone(network, tokens, codes).double() - truth).pow(2).mean().sqrt()
        packed = network(tokens, codes, Layout.of(np.array(LENGTHS))).double()
    together = (packed - truth).pow(2).mean().sqrt()
    assert apart < 0.1 * truth.pow(2).mean().sqrt()
    assert together < 1.25 * apart


def test_changing_one_sample_changes_no_bit_of_another() -> None:
    network = small.network()
    tokens, codes = small.packed(LENGTHS, SIZE, NUMBER)
    layout = Layout.of(np.array(LENGTHS))
    before = network(tokens, codes, layout)
    start, end = 1, 201
    tokens[start:end] = (tokens[start:end] + 7) % SIZE
    codes[start:end] += 12345
    same = (before == network(tokens, codes, layout)).all(-1)
    assert not same[start:end].any()
    assert same[:start].all() and same[end:].all()


def test_a_sample_reads_alike_wherever_it_stands() -> None:
    network = small.network().double()
    tokens, codes = small.packed([9], SIZE, NUMBER)
    hidden = network(tokens.repeat(3), codes.repeat(3, 1), Layout.of(np.array([9, 9, 9])))
    torch.testing.assert_close(hidden[:9], hidden[9:18], rtol=0, atol=1e-13)
    joined = network(tokens.repeat(3), codes.repeat(3, 1), Layout.of(np.array([27])))
    assert (joined[9:18] - hidden[9:18]).abs().max() > 0.01


def test_positions_restart_so_that_angles_stay_exact_far_into_a_run() -> None:
    """In float32 an angle at position 40,000 would be off by about 0.002."""
    network = small.network(layers=1)
    tokens, codes = small.packed([40_009], SIZE, NUMBER)
    layout = Layout.of(np.array([1] * 40_000 + [9]))
    with torch.no_grad():
        far = network(tokens, codes, layout)[-9:]
        near = network(tokens[-9:], codes[-9:], Layout.of(np.array([9])))
    torch.testing.assert_close(far, near, rtol=0, atol=2e-5)


def test_codes_matter_at_number_tokens_alone() -> None:
    network = small.network()
    tokens, codes = small.packed([12], SIZE, NUMBER)
    layout = Layout.of(np.array([12]))
    before = network(tokens, codes, layout)
    noise = torch.where((tokens == NUMBER)[:, None], codes, 99)
    assert torch.equal(network(tokens, noise, layout), before)
    assert not torch.equal(network(tokens, codes + 1, layout), before)


def test_a_network_that_spells_numbers_has_no_number_head() -> None:
    network = small.network("digit")
    tokens = torch.arange(10)
    hidden = network(tokens, torch.zeros(10, 0), Layout.of(np.array([10])))
    assert network.logits(hidden).shape == (10, len(Vocabulary("digit")))
    assert not any("num_" in name for name in network.state_dict())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 0}, "model.layers is 0: it must be at least 1"),
        ({"width": 100}, "multiple of twice model.heads"),
        ({"width": 96}, "BitToken needs 128 channels"),
        ({"encoding": "roman"}, "unknown encoding 'roman'"),
    ],
)
def test_a_shape_that_no_network_has_is_bad_input(changes: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        small.network(**changes)  # type: ignore[arg-type]
