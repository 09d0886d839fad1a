"""Checkpoints of the released code, written by the tests according to its format."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from numbench.bittoken.attention import PackedLayout
from numbench.bittoken.checkpoint import LoadedCheckpoint, load
from numbench.bittoken.encodings import ENCODINGS
from numbench.bittoken.generation import generate
from numbench.bittoken.released_checkpoint import load_released, open_checkpoint, required_pieces
from numbench.bittoken.vocabulary import EOQ, NUM, Vocabulary
from numbench.errors import BadInput
from tests.bittoken import reference, small

SPECIAL = ("<|bos|>", "<|eos|>", "<|eoq|>", "[NUM]", "<|min|>", "<|max|>", "<|asc|>", "<|desc|>",
           "<|intva|>", "<|mean|>", "<|std|>")  # fmt: skip
TOKENS = (
    "Ġ",
    "A",
    "B",
    "C",
    "[",
    "]",
    ",",
    "Ġ+",
    "Ġ-",
    "-",
    "Ġ*",
    "Ġ/",
    "Ġ^",
    ",Ġ",
    "the",
    *SPECIAL,
)
SMALL = {"width": 144, "layers": 3, "heads": 6, "size": len(TOKENS) + 4}
SAMPLES = (
    (1, 2, 17.0, 3),
    (15, 8, 0.1, 9, -2.5e7, 4, 5),
    (5,),
    (-0.0, 1e-300, 3.0),
    tuple(float(n) if n % 3 else n % 20 for n in range(1, 60)),
)


def write_checkpoint(
    folder: Path,
    head: str = "linear",
    combination: str = "zero-pad",
    shape: dict[str, int] = SMALL,
    tokens: Sequence[str] = TOKENS,
    dtype: torch.dtype = torch.float32,
    settings: dict[str, Any] | None = None,
) -> dict[str, np.ndarray]:
    """Write a random checkpoint; return its weights as float64, without the RoPE buffers."""
    rng = np.random.default_rng(0)
    width, size = shape["width"], shape["size"]

    def matrix(*sides: int, scale: float = 0.2) -> np.ndarray:
        return rng.normal(size=sides).astype(np.float32).astype(np.float64) * scale

    weights = {
        "transformer.wte.weight": matrix(size, width, scale=1.0),
        "lm_head.weight": matrix(size, width),
        "transformer.ln_f.weight": 1 + matrix(width),
    }
    for layer in range(shape["layers"]):
        prefix = f"transformer.h.{layer}"
        weights |= {f"{prefix}.ln_{n}.weight": 1 + matrix(width) for n in (1, 2)}
        for name, sides in (
            ("attn.c_attn", (width, 3 * width)),
            ("attn.c_proj", (width, width)),
            ("mlp.c_fc", (width, 4 * width)),
            ("mlp.c_proj", (4 * width, width)),
        ):
            weights[f"{prefix}.{name}.weight"] = matrix(*sides, scale=0.1)
            weights[f"{prefix}.{name}.bias"] = matrix(sides[1])
    heads = [(64, width)] if head == "linear" else [(width, width), (64, width)]
    for number, sides in enumerate(heads):
        weights[f"num_embedding_module.num_head.{2 * number}.weight"] = matrix(*sides)
        weights[f"num_embedding_module.num_head.{2 * number}.bias"] = matrix(sides[0])
    if combination.startswith("weighted"):
        weights["num_embedding_module.bit_weight_matrix.weight"] = matrix(width, 128)
    stored = {name: torch.from_numpy(value).to(dtype) for name, value in weights.items()}
    buffers = rope(width // shape["heads"])
    folder.mkdir(parents=True, exist_ok=True)
    save_file(stored | {k: v.to(dtype) for k, v in buffers.items()}, folder / "model.safetensors")
    config = {"model_type": "gpt2", "n_layer": shape["layers"], "n_head": shape["heads"]}
    (folder / "config.json").write_text(json.dumps(config | {"n_embd": width, "vocab_size": size}))
    vocab = {token: n + 3 for n, token in enumerate(tokens) if not token.startswith(("<|", "[N"))}
    added = [{"id": n + 3, "content": t} for n, t in enumerate(tokens) if t not in vocab]
    path = folder / "tokens" / "tokenizer.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"model": {"vocab": vocab}, "added_tokens": added}))
    fields = {"encoding": "bittoken", "combination": combination, "head": head}
    fields["tokenizer"] = "tokens/tokenizer.json"
    (folder / "numbench.json").write_text(json.dumps(fields | (settings or {})))
    return {name: value.double().numpy() for name, value in stored.items()}


def rope(channels: int, base: float = 10_000.0, length: int = 1024) -> dict[str, torch.Tensor]:
    """Return the buffers as the released code computes them, in float32."""
    inv_freq = 1.0 / base ** (torch.arange(0, channels, 2).float() / channels)
    angles = torch.outer(torch.arange(length).float(), inv_freq)
    both = torch.cat([angles, angles], dim=-1)
    prefix = "transformer.rotary_emb."
    return {
        f"{prefix}inv_freq": inv_freq,
        f"{prefix}cos_cached": both.cos(),
        f"{prefix}sin_cached": both.sin(),
    }


def run(
    loaded: LoadedCheckpoint, samples: Sequence[Sequence[int | float]], dtype: torch.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Return the logits and number outputs of packed samples, as float64."""
    number = loaded.token_ids.number_id
    tokens = [number if isinstance(t, float) else t for sample in samples for t in sample]
    values = [t if isinstance(t, float) else 0.0 for sample in samples for t in sample]
    codes = torch.from_numpy(ENCODINGS["bittoken"].encode(np.array(values)))
    network = loaded.network.to(dtype)
    with torch.no_grad():
        layout = PackedLayout.from_lengths(np.array([len(sample) for sample in samples]))
        hidden = network(torch.tensor(tokens), codes, layout)
        return network.logits(hidden).double().numpy(), network.number_outputs(
            hidden
        ).double().numpy()


def expected(
    weights: dict[str, np.ndarray], combination: str, heads: int, number: int, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the same, computed by the reference for each sample."""
    parts = []
    for sample in SAMPLES:
        x = reference.inputs(weights, combination, sample, number)
        parts.append(reference.hidden(weights, x, heads, eps=eps))
    states = np.concatenate(parts)
    return reference.logits(weights, states), reference.numbers(weights, states)


def assert_near(actual: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Compare outputs relative to their standard deviation."""
    assert expected.std() > 0.1
    assert np.abs(actual - expected).max() < tolerance * expected.std()


@pytest.mark.parametrize("head", ["linear", "mlp"])
@pytest.mark.parametrize("combination", ["sum", "zero-pad", "weighted", "weighted-sum"])
def test_outputs_match_the_reference(tmp_path: Path, combination: str, head: str) -> None:
    weights = write_checkpoint(tmp_path, head, combination)
    loaded = load_released(tmp_path)
    for dtype, tolerance in ((torch.float32, 2e-5), (torch.float64, 1e-10)):
        truth = expected(
            weights, combination, 6, loaded.token_ids.number_id, float(torch.finfo(dtype).eps)
        )
        for actual, reference_output in zip(run(loaded, SAMPLES, dtype), truth, strict=True):
            assert_near(actual, reference_output, tolerance)


def test_packed_outputs_equal_those_of_each_sample(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    loaded = load_released(tmp_path)
    together = run(loaded, SAMPLES, torch.float64)
    separate = [run(loaded, [sample], torch.float64) for sample in SAMPLES]
    for packed, parts in zip(together, zip(*separate, strict=True), strict=True):
        np.testing.assert_allclose(packed, np.concatenate(parts), rtol=0, atol=1e-12)


@pytest.mark.heavy
def test_network_of_the_paper_in_bfloat16_matches_the_reference(tmp_path: Path) -> None:
    shape = {"width": 768, "layers": 6, "heads": 6, "size": 48_577}
    weights = write_checkpoint(tmp_path, shape=shape, dtype=torch.bfloat16)
    loaded = load_released(tmp_path)
    assert sum(p.numel() for p in loaded.network.parameters()) == 117_182_272
    assert {p.dtype for p in loaded.network.parameters()} == {torch.float32}
    eps = float(torch.finfo(torch.float32).eps)
    truth = expected(weights, "zero-pad", 6, loaded.token_ids.number_id, eps)
    for actual, reference_output in zip(run(loaded, SAMPLES, torch.float32), truth, strict=True):
        assert_near(actual, reference_output, 1e-4)


def test_pieces_are_matched_with_tokens_of_the_tokenizer(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    token_ids = load_released(tmp_path).token_ids
    ids = {token: n + 3 for n, token in enumerate(TOKENS)}
    assert token_ids.piece_to_ids[NUM] == (ids["[NUM]"],)
    assert token_ids.piece_to_ids[" + "] == (ids["Ġ+"], ids["Ġ"])
    assert token_ids.piece_to_ids[", "] == (ids[",Ġ"],)
    assert token_ids.piece_to_ids[EOQ] == (ids["<|eoq|>"],)
    encoded = small.questions(token_ids, small.QUESTIONS[:2])
    by_id = {number: token for token, number in ids.items()}
    names = [[by_id[token] for token in question.tokens] for question in encoded]
    n = "[NUM]"
    assert names[0] == ["<|bos|>", n, "Ġ+", "Ġ", n, "<|eoq|>"]
    assert names[1] == [
        "<|bos|>", "<|intva|>", n, "[", n, ",Ġ", n, ",Ġ", n, "]", "<|eoq|>"
    ]  # fmt: skip
    assert encoded[0].codes[[1, 4], 0].tolist() == [
        struct.unpack("<q", struct.pack("<d", value))[0] for value in (1.0, -2.5)
    ]
    assert [token_ids.token_text(ids[token]) for token in ("A", "[NUM]", ",Ġ")] == ["A", NUM, ", "]


def test_generated_answers_match_the_reference(tmp_path: Path) -> None:
    """Each token is the most probable one according to the reference."""
    weights = write_checkpoint(tmp_path)
    loaded = load_released(tmp_path)
    token_ids, number = loaded.token_ids, loaded.token_ids.number_id
    loaded.network.lm_head.weight.data[number] *= 4  # so that numbers are generated at all
    weights["lm_head.weight"][number] *= 4
    number_count = 0
    for question_text in small.QUESTIONS:
        (question,) = small.questions(token_ids, [question_text])
        (answer,) = generate(loaded.network, token_ids, [question], 12)
        values = iter([*map(float, question_text.operands), *answer.values])
        tokens = [*question.tokens, *answer.tokens]
        sample = [next(values) if token == number else int(token) for token in tokens]
        x = reference.inputs(weights, "zero-pad", sample, number)
        states = reference.hidden(weights, x, 6)[len(question.tokens) - 1 : -1]
        assert reference.logits(weights, states).argmax(-1).tolist() == answer.tokens
        outputs = reference.numbers(weights, states)[np.array(answer.tokens) == number]
        assert [reference.bits(value) for value in answer.values] == (outputs > 0).tolist()
        number_count += len(outputs)
    assert number_count > 3


def test_native_and_released_checkpoints_are_distinguished(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "released")
    path = tmp_path / "released" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": "4.2", "format": [1]}))
    loaded = open_checkpoint(tmp_path / "released")
    assert [path.name for path in loaded.files] == [
        "config.json", "numbench.json", "model.safetensors", "tokenizer.json"
    ]  # fmt: skip
    with pytest.raises(BadInput, match=r"format \[1\] 4\.2"):
        load(tmp_path / "released")


def test_missing_settings_error_contains_a_valid_example(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    (tmp_path / "numbench.json").unlink()
    with pytest.raises(BadInput, match="does not specify the number encoding") as caught:
        load_released(tmp_path)
    message = str(caught.value)
    assert str(tmp_path / "numbench.json") in message
    example = json.loads(message[message.index("{") :])
    write_checkpoint(tmp_path, settings=example | {"tokenizer": "tokens/tokenizer.json"})
    load_released(tmp_path)


def test_settings_can_name_the_tokens_of_pieces(tmp_path: Path) -> None:
    tokens = [{"<|eoq|>": "<|q|>", "<|max|>": "<|most|>", "Ġ+": "plus"}.get(t, t) for t in TOKENS]
    write_checkpoint(tmp_path, tokens=tokens)
    with pytest.raises(BadInput, match=r"no token for '<\|eoq\|>', '<\|max\|>', ' \+ '; specify"):
        load_released(tmp_path)
    names = {"<|eoq|>": "<|q|>", "<|max|>": "<|most|>", " + ": ["Ġ", "plus", "Ġ"]}
    write_checkpoint(tmp_path, tokens=tokens, settings={"tokens": names})
    token_ids = load_released(tmp_path).token_ids
    assert [tokens[n - 3] for n in token_ids.piece_to_ids[" + "]] == ["Ġ", "plus", "Ġ"]
    assert tokens[token_ids.piece_to_ids[EOQ][0] - 3] == "<|q|>"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"combination": None}, 'missing field "combination"'),
        ({"head": "deep"}, "unknown value .deep."),
        ({"encoding": "roman"}, "unknown encoding 'roman'"),
        ({"extra": 1}, "unknown field extra"),
        ({"tokenizer": "nowhere.json"}, "nowhere.json: No such file"),
        ({"tokens": {"<|eoq|>": "<|lost|>"}}, r"no token for '<\|eoq\|>'"),
        ({"tokens": {"<|eoqq|>": "A"}}, r"unknown piece '<\|eoqq\|>'"),
        ({"tokens": {"<|num|>": ["A", "B"]}}, r"'<\|num\|>' must be a single token"),
        (
            {"combination": "weighted"},
            "missing tensor num_embedding_module.input.bit_weight_matrix",
        ),
        ({"head": "mlp"}, "missing tensor num_embedding_module.num_head.2.bias"),
        ({"encoding": "digit"}, r"no token for '\.', '0', '1'.* and \d+ more"),
    ],
    ids=str,
)
def test_invalid_settings_are_bad_input(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    write_checkpoint(tmp_path, settings=settings)
    with pytest.raises(BadInput, match=message) as caught:
        load_released(tmp_path)
    assert "\n" not in str(caught.value)


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    weights: dict[str, torch.Tensor] = load_file(folder / "model.safetensors")
    return weights


def test_unsupported_rotary_positions_are_rejected(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    weights = read_weights(tmp_path)
    for base in (500_000.0, 9_000.0):
        for name, buffer in rope(24, base).items():
            save_file(weights | {name: buffer}, tmp_path / "model.safetensors")
            with pytest.raises(BadInput, match=f"rotary embedding {name} does not match rope_base"):
                load_released(tmp_path)
    save_file(weights | {"transformer.rotary_emb.x": torch.ones(1)}, tmp_path / "model.safetensors")
    with pytest.raises(BadInput, match=r"unknown tensor transformer\.rotary_emb\.x"):
        load_released(tmp_path)
    without_rope = {name: w for name, w in weights.items() if "rotary" not in name}
    save_file(without_rope, tmp_path / "model.safetensors")
    load_released(tmp_path)
    save_file(without_rope | rope(24, 500_000.0), tmp_path / "model.safetensors")
    config = json.loads((tmp_path / "config.json").read_text()) | {"rope_theta": 500_000.0}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert load_released(tmp_path).network.config.rope_base == 500_000.0


def test_missing_head_count_is_derived_from_the_buffers(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert load_released(tmp_path).network.config.heads == 6


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"n_layer": 4}, "n_layer is 4, but .* has 3"),
        ({"n_embd": 768}, "n_embd is 768, but .* has 144"),
        ({"vocab_size": 7}, "vocab_size is 7, but .* has 30"),
        ({"n_head": 5}, "multiple of twice model.heads"),
    ],
    ids=str,
)
def test_config_that_contradicts_the_weights_is_bad_input(
    tmp_path: Path, config: dict[str, int], message: str
) -> None:
    write_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"n_head": 6} | config))
    with pytest.raises(BadInput, match=message):
        load_released(tmp_path)


def test_invalid_tensors_are_bad_input(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    weights = read_weights(tmp_path)
    name = "transformer.h.1.attn.c_attn.weight"
    for changed, message in (
        ({**weights, name: weights[name].T.contiguous()}, f"{name} has shape 144 × 432"),
        ({**weights, "transformer.h.0.attn.bias": torch.ones(1)}, "unknown tensor transformer.h.0"),
        ({k: v for k, v in weights.items() if k != name}, f"missing tensor {name}"),
        ({"x": torch.ones(1)}, "no matrix transformer.wte.weight"),
    ):
        save_file(changed, tmp_path / "model.safetensors")
        with pytest.raises(BadInput, match=message):
            load_released(tmp_path)


def test_tokenizers_of_other_networks_are_rejected(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, shape=SMALL | {"size": len(TOKENS)})
    with pytest.raises(BadInput, match=r"has id \d+, but the network has only 26 tokens"):
        load_released(tmp_path)


def test_models_that_write_numbers_as_text_need_digits_and_points() -> None:
    assert (
        len(required_pieces(Vocabulary("subword")))
        == len(required_pieces(Vocabulary("digit"))) + 1100
    )
    assert {"-", "."} <= set(required_pieces(Vocabulary("digit")))
    assert NUM not in required_pieces(Vocabulary("digit"))
    assert "-" in required_pieces(small.unsigned_vocabulary())
    assert "-" not in required_pieces(Vocabulary("bittoken"))
