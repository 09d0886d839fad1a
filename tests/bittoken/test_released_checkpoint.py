"""Loading checkpoints of the released code: settings, tokenizers, and files that are invalid.

That their networks compute what the released code does is tested in `test_reference_outputs`.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from bittoken.checkpoint import load
from bittoken.released_checkpoint import load_released, open_checkpoint
from bittoken.released_tokenizer import required_pieces
from bittoken.vocabulary import EOQ, NUM, Vocabulary
from numbench.errors import BadInput
from tests.bittoken import small
from tests.bittoken.released import (
    FIRST_ID,
    SMALL,
    TOKENS,
    digit_points,
    read_weights,
    rope,
    write_checkpoint,
)

IDS = {token: number for number, token in enumerate(TOKENS, FIRST_ID)}


def test_questions_are_split_by_longest_match(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    token_ids = load_released(tmp_path).token_ids
    assert token_ids.layout == "plain"
    assert token_ids.piece_to_ids[NUM] == (IDS["[NUM]"],)
    assert token_ids.piece_to_ids[EOQ] == (IDS["<|eoq|>"],)
    by_id = {number: token for token, number in IDS.items()}
    encoded = small.questions(token_ids, small.QUESTIONS[:2])
    names = ["|".join(by_id[token] for token in question.tokens) for question in encoded]
    assert names == [
        "<|bos|>|[NUM]|Ġ+|Ġ|[NUM]|<|eoq|>",
        "<|bos|>|<|intva|>|[NUM]|:|Ġ|A|Ġ|[NUM]|Ġ|B|Ġ|[NUM]|Ġ|C|Ġ|[NUM]|Ġ|D|<|eoq|>",
    ]
    assert encoded[0].codes[[1, 4], 0].tolist() == [
        struct.unpack("<q", struct.pack("<d", value))[0] for value in (1.0, -2.5)
    ]
    texts = [token_ids.token_text(IDS[token]) for token in ("A", "[NUM]", ",Ġ")]
    assert texts == ["A", NUM, ", "]


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
    (question,) = small.questions(load_released(tmp_path).token_ids, small.QUESTIONS[:1])
    split = [tokens[n - FIRST_ID] for n in question.tokens]
    assert split == ["<|bos|>", "[NUM]", "Ġ", "plus", "Ġ", "[NUM]", "<|q|>"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"combination": None}, 'missing field "combination"'),
        ({"head": "deep"}, "unknown value .deep."),
        ({"encoding": "roman"}, "unknown encoding 'roman'"),
        ({"extra": 1}, "unknown field extra"),
        ({"tokenizer": "nowhere.json"}, "nowhere.json: No such file"),
        (
            {"tokens": {"<|eoq|>": "<|lost|>"}},
            r"no token '<\|lost\|>', which numbench.json specifies for '<\|eoq\|>'",
        ),
        ({"tokens": {"<|eoqq|>": "A"}}, r"unknown piece '<\|eoqq\|>'"),
        ({"tokens": {"<|num|>": ["A", "B"]}}, r"'<\|num\|>' must be a single token"),
        (
            {"combination": "weighted"},
            "missing tensor num_embedding_module.input.bit_weight_matrix",
        ),
        ({"head": "mlp"}, "missing tensor num_embedding_module.num_head.2.bias"),
        ({"encoding": "digit"}, r"no token for '\.', '0', '1'.* and \d+ more"),
        ({"combination": "sum_scaled"}, "unknown value .sum_scaled."),
        (
            {"encoding": "base10", "combination": "concat"},
            "the released code has no network with encoding 'base10' and combination 'concat'",
        ),
        ({"encoding": "base10", "combination": None}, 'missing field "combination"'),
        ({"encoding": "fone-log"}, "unknown encoding 'fone-log'; use one of bittoken,"),
        ({"encoding": "xval"}, "missing tensor num_embedding_module.num_head.2.bias"),
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
        ({"vocab_size": 7}, "vocab_size is 7, but .* has 34"),
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
    with pytest.raises(BadInput, match=r"has id \d+, but the network has only 28 tokens"):
        load_released(tmp_path)


def test_models_that_write_numbers_as_text_need_digits_and_points() -> None:
    assert required_pieces(Vocabulary("subword")) == required_pieces(Vocabulary("digit"))
    assert {"-", ".", "0", "9"} <= set(required_pieces(Vocabulary("digit")))
    assert NUM not in required_pieces(Vocabulary("digit"))
    assert "-" in required_pieces(small.unsigned_vocabulary())
    assert "-" not in required_pieces(Vocabulary("bittoken"))


@pytest.mark.parametrize(
    ("combination", "name"),
    [("prod", "product"), ("zero_pad", "zero-pad"), ("weighted_sum", "weighted-sum")],
)
def test_combinations_can_have_the_names_of_the_released_code(
    tmp_path: Path, combination: str, name: str
) -> None:
    write_checkpoint(tmp_path, combination=combination)
    assert load_released(tmp_path).network.config.combination == name


def test_digits_of_fone_in_another_base_are_rejected(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    weights = read_weights(tmp_path)
    ((name, points),) = digit_points().items()
    for changed in (points.flip(1), points[:, :2]):
        tensors = weights | {name: changed.contiguous()}
        save_file(tensors, tmp_path / "model.safetensors")
        with pytest.raises(BadInput, match="is not that of base 10"):
            load_released(tmp_path)


def test_weights_in_bfloat16_are_evaluated_in_float32(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, dtype=torch.bfloat16)
    stored = read_weights(tmp_path)["transformer.wte.weight"]
    network = load_released(tmp_path).network
    assert stored.dtype == torch.bfloat16
    assert torch.equal(network.transformer["wte"].weight, stored.float())
    assert {p.dtype for p in network.parameters()} == {torch.float32}
