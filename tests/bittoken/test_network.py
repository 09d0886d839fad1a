from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from bittoken.attention import PackedLayout
from bittoken.config import Combination, ModelConfig, Norm
from bittoken.encodings.bittoken import BitToken
from bittoken.network import Network, NumberInput
from bittoken.vocabulary import NUM, Vocabulary
from numbench.errors import BadInput
from tests.bittoken import small

SIZE = len(Vocabulary("bittoken"))
NUMBER = Vocabulary("bittoken").ids[NUM]
F = (5 / 3) ** 0.5
"""The factor of "zero-pad" for 3 channels in a network of width 5."""

LENGTHS = [1, 200, 3, 64, 65, 2, 17, 130]


class Plain(BitToken):
    """An encoding with vectors of `width` channels that are equal to its codes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def torch_vector(self, codes: torch.Tensor) -> torch.Tensor:
        return codes.float()


def combined(combination: Combination, encoding: BitToken, codes: list[float]) -> list[float]:
    """Return the embedding (1, 2, 3, 4, 5) combined with `codes`."""
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
        ("concat", [10, 20, -30, 4 / 20.5**0.5, 5 / 20.5**0.5]),
        ("zero-pad", [10 * F, 20 * F, -30 * F, 0, 0]),
        ("weighted", [10, 20, -30, 0, 60]),
        ("weighted-sum", [11, 22, -27, 4, 65]),
    ],
)
def test_numbers_are_combined_with_their_embedding(
    combination: Combination, expected: list[float]
) -> None:
    actual = combined(combination, Plain(3), [10, 20, -30])
    assert actual == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("combination", ["sum", "zero-pad", "weighted"])
def test_single_channel_encodings_scale_the_embedding(combination: Combination) -> None:
    assert combined(combination, Plain(1), [-2.5]) == [-2.5, -5, -7.5, -10, -12.5]


def test_network_of_the_paper_has_117_million_parameters() -> None:
    with torch.device("meta"):
        network = Network(ModelConfig(encoding="bittoken", vocabulary=48_577))
    assert sum(weights.numel() for weights in network.parameters()) == 117_182_272


def test_number_heads_match_their_formulas() -> None:
    hidden = torch.randn(3, 160, dtype=torch.float64)
    x = hidden.numpy()
    first = small.network(head="none").double()
    assert torch.equal(first.number_outputs(hidden), hidden[:, :64])
    linear = small.network(head="linear").double()
    (layer,) = linear.num_embedding_module["num_head"].children()
    w, b = (value.detach().numpy() for value in layer.parameters())
    assert w.shape == (64, 160)
    np.testing.assert_allclose(linear.number_outputs(hidden).detach(), x @ w.T + b, rtol=1e-12)
    erf = np.vectorize(math.erf)
    for head, width, activation in (
        ("mlp", 80, lambda value: np.maximum(value, 0)),
        ("gelu-mlp", 3072, lambda value: value * (1 + erf(value / 2**0.5)) / 2),
    ):
        mlp = small.network(head=head).double()
        w1, b1, w2, b2 = (
            value.detach().numpy() for value in mlp.num_embedding_module["num_head"].parameters()
        )
        assert w1.shape == (width, 160) and w2.shape == (64, width)
        expected = activation(x @ w1.T + b1) @ w2.T + b2
        np.testing.assert_allclose(mlp.number_outputs(hidden).detach(), expected, rtol=1e-9)
    norm = small.network(head="layer-norm").double()
    w, b = (value.detach().numpy() for value in norm.num_embedding_module["num_head"].parameters())
    scale = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    expected = ((x - x.mean(-1, keepdims=True)) / scale * w + b)[:, :64]
    np.testing.assert_allclose(norm.number_outputs(hidden).detach(), expected, rtol=1e-10)


def test_norms_match_their_formulas() -> None:
    x = torch.tensor([[1.0, -2.0, 3.0, 6.0] * 40], dtype=torch.float64)
    rms = small.network(norm="rms").double().transformer["ln_f"]
    gain = rms.weight.detach()
    torch.testing.assert_close(rms(x).detach(), x / 12.5**0.5 * gain, rtol=1e-12, atol=0)
    layer = small.network(norm="layer").double().transformer["ln_f"]
    gain, bias = layer.weight.detach(), layer.bias.detach()
    # Mean 2 and variance 8.5; PyTorch's ε is 1e-5.
    expected = (x - 2) / (8.5 + 1e-5) ** 0.5 * gain + bias
    torch.testing.assert_close(layer(x).detach(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_queries_and_keys_have_the_norm_of_the_network(norm: Norm) -> None:
    """A constant added to all their channels changes nothing if LayerNorm subtracts it."""
    network = small.network(norm=norm).double()
    attention = network.transformer["h"][0].attn
    layout = PackedLayout.from_lengths(np.array([7]))
    angles = (torch.ones(7, 1, 20).double(), torch.zeros(7, 1, 20).double())
    x = torch.randn(7, 160, dtype=torch.float64, generator=torch.manual_seed(0))
    before = attention(x, layout, angles)
    attention.c_attn.bias.data[:320] += 3.0
    is_same = torch.allclose(before, attention(x, layout, angles), rtol=0, atol=1e-9)
    assert is_same == (norm == "layer")


def hidden_per_sample(network: Network, tokens: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """Return the hidden states of the samples, computed separately."""
    parts = zip(tokens.split(LENGTHS), codes.split(LENGTHS), strict=True)
    return torch.cat(
        [network(t, c, PackedLayout.from_lengths(np.array([len(t)]))) for t, c in parts]
    )


@pytest.mark.parametrize("combination", ["sum", "zero-pad", "weighted"])
def test_packed_hidden_states_equal_those_of_each_sample(combination: str) -> None:
    network = small.network(combination=combination).double()
    tokens, codes = small.packed(LENGTHS, SIZE, NUMBER)
    together = network(tokens, codes, PackedLayout.from_lengths(np.array(LENGTHS)))
    expected = hidden_per_sample(network, tokens, codes)
    torch.testing.assert_close(together, expected, rtol=0, atol=1e-12)
    assert expected.std() > 0.1


def test_packed_gradients_equal_those_of_each_sample() -> None:
    gradients = []
    tokens, codes = small.packed(LENGTHS, SIZE, NUMBER)
    for together in (True, False):
        network = small.network().double()
        layout = PackedLayout.from_lengths(np.array(LENGTHS))
        hidden = (
            network(tokens, codes, layout)
            if together
            else hidden_per_sample(network, tokens, codes)
        )
        (network.logits(hidden).sin().sum() + network.number_outputs(hidden).cos().sum()).backward()
        gradients.append({name: weights.grad for name, weights in network.named_parameters()})
    for name, gradient in gradients[0].items():
        scale = gradient.abs().max()
        assert scale > 0, name
        torch.testing.assert_close(gradient, gradients[1][name], rtol=0, atol=1e-12 * float(scale))


def test_packing_in_bfloat16_adds_no_more_than_rounding_errors() -> None:
    """Compared with the rounding errors of samples computed separately."""
    exact = small.network().double()
    tokens, codes = small.packed(LENGTHS, SIZE, NUMBER)
    with torch.no_grad():
        truth = hidden_per_sample(exact, tokens, codes)
        network = small.network().bfloat16()
        separate_error = (
            (hidden_per_sample(network, tokens, codes).double() - truth).pow(2).mean().sqrt()
        )
        packed = network(tokens, codes, PackedLayout.from_lengths(np.array(LENGTHS))).double()
    packed_error = (packed - truth).pow(2).mean().sqrt()
    assert separate_error < 0.1 * truth.pow(2).mean().sqrt()
    assert packed_error < 1.25 * separate_error


def test_samples_do_not_affect_each_other() -> None:
    network = small.network()
    tokens, codes = small.packed(LENGTHS, SIZE, NUMBER)
    layout = PackedLayout.from_lengths(np.array(LENGTHS))
    before = network(tokens, codes, layout)
    start, end = 1, 201
    tokens[start:end] = (tokens[start:end] + 7) % SIZE
    codes[start:end] += 12345
    is_equal = (before == network(tokens, codes, layout)).all(-1)
    assert not is_equal[start:end].any()
    assert is_equal[:start].all() and is_equal[end:].all()


def test_hidden_states_do_not_depend_on_the_position_of_the_sample() -> None:
    network = small.network().double()
    tokens, codes = small.packed([9], SIZE, NUMBER)
    hidden = network(
        tokens.repeat(3), codes.repeat(3, 1), PackedLayout.from_lengths(np.array([9, 9, 9]))
    )
    torch.testing.assert_close(hidden[:9], hidden[9:18], rtol=0, atol=1e-13)
    joined = network(
        tokens.repeat(3), codes.repeat(3, 1), PackedLayout.from_lengths(np.array([27]))
    )
    assert (joined[9:18] - hidden[9:18]).abs().max() > 0.01


def test_positions_are_exact_late_in_a_packed_sequence() -> None:
    """In float32 an angle at position 40,000 would be off by about 0.002."""
    network = small.network(layers=1)
    tokens, codes = small.packed([40_009], SIZE, NUMBER)
    layout = PackedLayout.from_lengths(np.array([1] * 40_000 + [9]))
    with torch.no_grad():
        far = network(tokens, codes, layout)[-9:]
        near = network(tokens[-9:], codes[-9:], PackedLayout.from_lengths(np.array([9])))
    torch.testing.assert_close(far, near, rtol=0, atol=2e-5)


def test_codes_matter_only_for_number_tokens() -> None:
    network = small.network()
    tokens, codes = small.packed([12], SIZE, NUMBER)
    layout = PackedLayout.from_lengths(np.array([12]))
    before = network(tokens, codes, layout)
    noise = torch.where((tokens == NUMBER)[:, None], codes, 99)
    assert torch.equal(network(tokens, noise, layout), before)
    assert not torch.equal(network(tokens, codes + 1, layout), before)


def test_networks_that_write_numbers_as_text_have_no_number_head() -> None:
    network = small.network("digit")
    tokens = torch.arange(10)
    hidden = network(tokens, torch.zeros(10, 0), PackedLayout.from_lengths(np.array([10])))
    assert network.logits(hidden).shape == (10, len(Vocabulary("digit")))
    assert not any("num_" in name for name in network.state_dict())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 0}, "model.layers is 0; it must be at least 1"),
        ({"width": 100}, "multiple of twice model.heads"),
        ({"width": 96}, "BitToken needs 128 channels"),
        (
            {"width": 32, "encoding": "bittoken-no-reciprocal", "head": "layer-norm"},
            "needs 64 channels",
        ),
        ({"encoding": "roman"}, "unknown encoding 'roman'"),
    ],
)
def test_invalid_configurations_are_bad_input(changes: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        small.network(**changes)  # type: ignore[arg-type]
