"""Checkpoints of the released code compute what the study's own network computed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from bittoken.attention import PackedLayout
from bittoken.checkpoint import LoadedCheckpoint
from bittoken.generation import generate
from bittoken.released_checkpoint import load_released
from numbench.errors import BadInput
from tests.bittoken import small
from tests.bittoken.released import write_variant
from tests.bittoken.test_generation import generate_without_cache, is_equal

TOLERANCE = 1e-4
VARIANTS = (
    "base10-sum-linear-rms",
    "base10-zero_pad-linear-rms",
    "bittoken-concat-linear-rms",
    "bittoken-prod-linear-rms",
    "bittoken-sum-linear-layer",
    "bittoken-sum-linear-rms",
    "bittoken-sum-mlp-rms",
    "bittoken-sum-none-rms",
    "bittoken-weighted-linear-rms",
    "bittoken-weighted_sum-linear-rms",
    "bittoken-zero_pad-linear-rms",
    "digit-sum-none-rms",
    "fone-sum-none-rms",
    "subword-sum-none-rms",
    "xval-prod-linear-rms",
    "xval-prod-mlp-rms",
)
each_variant = pytest.mark.parametrize("variant", VARIANTS)


def hidden_states(
    loaded: LoadedCheckpoint, token_ids: np.ndarray, values: np.ndarray, copies: int = 1
) -> torch.Tensor:
    """Return the hidden states of the tokens, packed `copies` times."""
    tokens, numbers = np.tile(token_ids, copies), np.tile(values, copies)
    encoding = loaded.network.encoding
    codes = np.zeros((len(tokens), 0)) if encoding is None else encoding.encode(numbers)
    layout = PackedLayout.from_lengths(np.full(copies, len(token_ids)))
    with torch.no_grad():
        return loaded.network(torch.from_numpy(tokens), torch.from_numpy(codes), layout)


def test_every_reference_output_is_compared(reference_outputs: Path) -> None:
    assert {path.stem for path in reference_outputs.glob("*.npz")} == set(VARIANTS)


@each_variant
def test_outputs_equal_those_of_the_study(
    variant: str, tmp_path: Path, reference_outputs: Path
) -> None:
    write_variant(tmp_path, reference_outputs, variant)
    expected = np.load(reference_outputs / f"{variant}.npz")
    loaded = load_released(tmp_path)
    assert {p.dtype for p in loaded.network.parameters()} == {torch.float32}
    hidden = hidden_states(loaded, expected["token_ids"], expected["values"])
    logits = loaded.network.logits(hidden).detach().numpy()
    assert expected["logits"].std() > 0.5
    np.testing.assert_allclose(logits, expected["logits"], rtol=0, atol=TOLERANCE)
    assert (logits.argmax(-1) == expected["logits"].argmax(-1)).all()
    if "number_head" in expected:
        outputs = loaded.network.number_outputs(hidden).detach().numpy()
        np.testing.assert_allclose(outputs, expected["number_head"], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("variant", ["fone-sum-none-rms", "base10-zero_pad-linear-rms"])
def test_packed_samples_do_not_affect_each_other(
    variant: str, tmp_path: Path, reference_outputs: Path
) -> None:
    write_variant(tmp_path, reference_outputs, variant)
    expected = np.load(reference_outputs / f"{variant}.npz")
    loaded = load_released(tmp_path)
    hidden = hidden_states(loaded, expected["token_ids"], expected["values"], copies=3)
    logits = loaded.network.logits(hidden).detach().numpy()
    for part in np.split(logits, 3):
        np.testing.assert_allclose(part, expected["logits"], rtol=0, atol=TOLERANCE)


def test_numbers_of_fone_are_read_from_normalised_hidden_states(
    tmp_path: Path, reference_outputs: Path
) -> None:
    """The outputs contain no numbers of FoNE, so they are computed here, digit by digit."""
    write_variant(tmp_path, reference_outputs, "fone-sum-none-rms")
    expected = np.load(reference_outputs / "fone-sum-none-rms.npz")
    loaded = load_released(tmp_path)
    hidden = hidden_states(loaded, expected["token_ids"], expected["values"])
    norm = loaded.network.num_embedding_module["num_head"][0]
    weight, bias = (p.detach().double().numpy() for p in (norm.weight, norm.bias))
    x = hidden.double().numpy()
    centred = x - x.mean(-1, keepdims=True)
    normalised = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias
    angles = 2 * np.pi / 10 * np.arange(10)
    truth = []
    for row in normalised:
        digits = [
            int((row[2 * n] * np.cos(angles) + row[2 * n + 1] * np.sin(angles)).argmax())
            for n in range(49)
        ]
        truth.append(sum(digit * 10.0 ** (n - 32) for n, digit in enumerate(digits)))
    encoding = loaded.network.encoding
    assert encoding is not None
    codes = encoding.torch_predict_codes(loaded.network.number_outputs(hidden))
    np.testing.assert_allclose(encoding.decode(codes.numpy()), truth, rtol=1e-14)
    assert len(set(truth)) > 10


@pytest.mark.parametrize(
    ("variant", "field", "value", "message"),
    [
        ("bittoken-sum-linear-rms", "head", "none", "unknown tensor num_embedding_module.num_head"),
        ("bittoken-sum-linear-rms", "head", "mlp", "missing tensor num_embedding_module.num_head"),
        ("bittoken-sum-mlp-rms", "head", "linear", "unknown tensor num_embedding_module.num_head"),
        ("bittoken-weighted-linear-rms", "combination", "sum", "unknown tensor .*bit_weight"),
        ("bittoken-sum-linear-rms", "combination", "weighted", "missing tensor .*bit_weight"),
        ("bittoken-sum-linear-rms", "encoding", "xval", "missing tensor .*num_head.2"),
        ("bittoken-sum-linear-rms", "encoding", "base10", "needs 420 channels"),
        ("base10-sum-linear-rms", "encoding", "bittoken", "has shape 210, but .* requires 64"),
        ("fone-sum-none-rms", "encoding", "bittoken", "unknown tensor num_embedding_module"),
        ("digit-sum-none-rms", "encoding", "fone", "no token for '<|num|>'"),
    ],
)
def test_settings_that_contradict_the_tensors_are_refused(
    variant: str, field: str, value: str, message: str, tmp_path: Path, reference_outputs: Path
) -> None:
    write_variant(tmp_path, reference_outputs, variant)
    path = tmp_path / "numbench.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(BadInput, match=message) as caught:
        load_released(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("variant", "factor"),
    [("fone-sum-none-rms", 4), ("base10-zero_pad-linear-rms", -4), ("xval-prod-mlp-rms", 4)],
)
def test_generated_numbers_are_inputs_of_the_next_step(
    variant: str, factor: float, tmp_path: Path, reference_outputs: Path
) -> None:
    """Answers equal those without a cache, in which every number is encoded again."""
    write_variant(tmp_path, reference_outputs, variant)
    loaded = load_released(tmp_path)
    network, token_ids = loaded.network.double(), loaded.token_ids
    # With this factor, numbers are generated at all.
    network.lm_head.weight.data[token_ids.number_id] *= factor
    questions = small.questions(token_ids)
    expected = [generate_without_cache(network, token_ids, question, 12) for question in questions]
    assert is_equal(generate(network, token_ids, questions, 12), expected)
    encoding = network.encoding
    assert encoding is not None
    values = [value for answer in expected for value in answer.values]
    assert len(set(values)) > 5
    assert all(value >= 0 for value in values) or encoding.signed
