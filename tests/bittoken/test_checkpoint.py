from __future__ import annotations

import hashlib
import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from bittoken.attention import PackedLayout
from bittoken.checkpoint import load, save
from bittoken.network import Network
from bittoken.vocabulary import NUM, Vocabulary
from numbench._version import __version__
from numbench.errors import BadInput, NumbenchError
from tests.bittoken import small

VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"combination": "weighted", "head": "mlp", "norm": "layer"},
    {"head": "layer-norm"},
    {"head": "gelu-mlp"},
    {"combination": "concat", "head": "none", "context": 77, "rope_base": 500.0},
    {"encoding": "subword"},
    {"encoding": "bittoken-no-reciprocal", "vocabulary": 64},
)
TRAINING = {"step": 1200, "tokens": 5 * 10**9, "data": {"max_digits": 15}, "recipe": [0.02, None]}


def hidden(network: Network) -> torch.Tensor:
    number = Vocabulary(network.config.encoding).ids[NUM]
    tokens, codes = small.packed([5, 20], 30, number)
    if network.encoding is None:
        codes = codes[:, :0]
    with torch.no_grad():
        out: torch.Tensor = network(tokens, codes, PackedLayout.from_lengths(np.array([5, 20])))
    return out


def rewrite_config(folder: Path, **changes: Any) -> None:
    """Change fields of `config.json`; those of the model as `model__NAME`; None removes a field."""
    config = json.loads((folder / "config.json").read_text())
    for name, value in changes.items():
        *path, last = name.split("__")
        fields = config[path[0]] if path else config
        fields[last] = value
        if value is None:
            del fields[last]
    (folder / "config.json").write_text(json.dumps(config))


def replace_weights(folder: Path, weights: dict[str, torch.Tensor]) -> None:
    """Store other weights and update their hash in the config."""
    save_file(weights, folder / "model.safetensors")
    content = (folder / "model.safetensors").read_bytes()
    rewrite_config(folder, weights_sha256=hashlib.sha256(content).hexdigest())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "saved", small.network(), TRAINING)
    return tmp_path / "saved"


@pytest.mark.parametrize("shape", VARIANTS, ids=str)
def test_saved_networks_are_restored_bit_for_bit(tmp_path: Path, shape: dict[str, Any]) -> None:
    network = small.network(**shape)
    save(tmp_path, network, TRAINING)
    loaded = load(tmp_path)
    assert loaded.network.config == network.config
    assert loaded.training == TRAINING
    assert loaded.vocabulary.base_tokens == Vocabulary(network.config.encoding).base_tokens
    stored = loaded.network.state_dict()
    assert {weights.dtype for weights in stored.values()} == {torch.float32}
    assert all(torch.equal(stored[name], w) for name, w in network.state_dict().items())
    assert not loaded.network.training
    assert torch.equal(hidden(loaded.network), hidden(network))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]


def test_config_names_the_format_and_the_version(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    assert (config["format"], config["version"]) == ("numbench-checkpoint", 2)
    assert config["numbench"] == __version__
    assert config["training"]["step"] == 1200


def test_bfloat16_halves_the_file_and_loads_as_float32(folder: Path, tmp_path: Path) -> None:
    network = small.network()
    save(tmp_path / "half", network, TRAINING, dtype=torch.bfloat16)
    sizes = [(path / "model.safetensors").stat().st_size for path in (folder, tmp_path / "half")]
    assert sizes[1] < 0.52 * sizes[0]
    stored = load(tmp_path / "half").network.state_dict()
    for name, weights in network.state_dict().items():
        assert stored[name].dtype == torch.float32
        assert torch.equal(stored[name], weights.bfloat16().float())
    assert {weights.dtype for weights in network.state_dict().values()} == {torch.float32}


def test_saving_replaces_an_existing_checkpoint(folder: Path) -> None:
    other = small.network(seed=1, layers=1)
    save(folder, other, {"step": 2})
    loaded = load(folder)
    assert (loaded.training, loaded.network.config.layers) == ({"step": 2}, 1)
    assert torch.equal(hidden(loaded.network), hidden(other))


def test_weights_of_another_checkpoint_are_rejected(folder: Path, tmp_path: Path) -> None:
    """For example after a power failure between the two renames."""
    save(tmp_path / "other", small.network(seed=1), TRAINING)
    (tmp_path / "other" / "model.safetensors").replace(folder / "model.safetensors")
    with pytest.raises(
        BadInput, match=r"model\.safetensors: the content does not match the SHA-256"
    ):
        load(folder)


def test_failed_saves_keep_the_previous_checkpoint(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = hidden(load(folder).network)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NumbenchError, match="cannot write the checkpoint: No space left"):
        save(folder, small.network(seed=1), TRAINING)
    assert torch.equal(hidden(load(folder).network), before)


def test_loading_draws_no_random_numbers(folder: Path) -> None:
    state = torch.random.get_rng_state()
    load(folder)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_text_tokenizers_are_saved_with_the_weights(tmp_path: Path) -> None:
    own = Vocabulary("bittoken").base_tokens
    source = tmp_path / "bpe.json"
    source.write_text(json.dumps({"model": {"type": "BPE", "vocab": {"b": 1, "a": 0, "ab": 2}}}))
    save(tmp_path / "saved", small.network(vocabulary=len(own) + 3), {}, text_tokenizer=source)
    loaded = load(tmp_path / "saved")
    assert loaded.vocabulary.tokens == (*own, "a", "b", "ab")
    assert loaded.token_ids.token_text(len(own) + 2) == "ab"
    save(tmp_path / "saved", loaded.network, {}, tmp_path / "saved" / "tokenizer.json")
    assert load(tmp_path / "saved").vocabulary.tokens == (*own, "a", "b", "ab")
    source.write_text(json.dumps({"model": {"vocab": {str(n): n for n in range(9)}}}))
    source.replace(tmp_path / "saved" / "tokenizer.json")
    with pytest.raises(BadInput, match=r"tokenizer\.json: the content does not match the SHA-256"):
        load(tmp_path / "saved")
    rewrite_config(tmp_path / "saved", text_tokenizer_sha256=None)
    with pytest.raises(BadInput, match="47 tokens, but the network only 41: copy the tokenizer"):
        load(tmp_path / "saved")
    (tmp_path / "saved" / "tokenizer.json").unlink()
    with pytest.raises(BadInput, match=r"tokenizer\.json: No such file"):
        load(tmp_path / "saved")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"version": 3},
            "unsupported format numbench-checkpoint 3; this version of numbench reads",
        ),
        ({"format": "other"}, "unsupported format other 2; this version"),
        ({"surprise": 1}, "unknown field surprise"),
        ({"model__surprise": 1}, "unknown field surprise"),
        ({"model__head": "deep"}, "unknown value .deep."),
        ({"model__encoding": "roman"}, "unknown encoding 'roman'"),
        ({"model__vocabulary": None}, "field model.vocabulary is missing"),
        ({"model__layers": 3}, "missing tensor transformer.h.2.attn.c_attn.bias and 9 more"),
        ({"model__layers": 1}, "unknown tensor transformer.h.1.attn"),
        ({"model__head": "none"}, "unknown tensor num_embedding_module.num_head.0.bias"),
        ({"model__width": 168}, "has shape .*, but config.json requires"),
        ({"model__heads": 3}, "multiple of twice model.heads"),
        ({"tokens": ["<|pad|>"]}, "the tokens differ from those of this version"),
        ({"text_tokenizer": "../x.json"}, "must be the name of a file in"),
        ({"weights_sha256": "0" * 64}, "does not match the SHA-256 in config.json"),
    ],
    ids=str,
)
def test_invalid_config_is_bad_input(folder: Path, changes: dict[str, Any], message: str) -> None:
    rewrite_config(folder, **changes)
    with pytest.raises(BadInput, match=message) as caught:
        load(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"combination": "zero-pad"}, "earlier definition of combination 'zero-pad': use numbench"),
        ({"combination": "concat", "norm": "layer"}, "combination 'concat' and norm 'layer'"),
        ({"norm": "layer"}, "earlier definition of norm 'layer'"),
        ({"combination": "weighted-sum"}, None),
        ({}, None),
    ],
    ids=str,
)
def test_checkpoints_of_the_first_version_load_if_their_definitions_are_unchanged(
    tmp_path: Path, shape: dict[str, Any], message: str | None
) -> None:
    network = small.network(**shape)
    save(tmp_path, network, TRAINING)
    rewrite_config(tmp_path, version=1)
    if message is None:
        assert torch.equal(hidden(load(tmp_path).network), hidden(network))
        return
    with pytest.raises(BadInput, match=message):
        load(tmp_path)


def test_missing_unknown_or_misshapen_tensors_are_bad_input(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    replace_weights(folder, weights | {"surprise": torch.zeros(1)})
    with pytest.raises(BadInput, match="unknown tensor surprise; the file does not match"):
        load(folder)
    replace_weights(folder, {name: w for name, w in weights.items() if name != "lm_head.weight"})
    with pytest.raises(BadInput, match=r"missing tensor lm_head\.weight; the file does not match"):
        load(folder)
    replace_weights(folder, weights | {"lm_head.weight": weights["lm_head.weight"].T.contiguous()})
    with pytest.raises(BadInput, match=r"lm_head\.weight has shape 160 × 38, but config"):
        load(folder)
    replace_weights(folder, weights)
    load(folder)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_missing_truncated_or_changed_files_are_bad_input(folder: Path, file: str) -> None:
    path = folder / file
    content = path.read_bytes()
    middle = len(content) // 2
    for damaged in (content[:middle], b"", content[:middle] + b"\xff" + content[middle + 1 :]):
        path.write_bytes(damaged)
        with pytest.raises(BadInput, match=str(path)):
            load(folder)
    path.unlink()
    with pytest.raises(BadInput, match=rf"{path}: No such file"):
        load(folder)


def test_loading_never_unpickles(folder: Path, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "unpickled",)

    content = pickle.dumps(Trap())
    (folder / "model.safetensors").write_bytes(content)
    rewrite_config(folder, weights_sha256=hashlib.sha256(content).hexdigest())
    with pytest.raises(BadInput, match="damaged or not a safetensors file"):
        load(folder)
    assert not (tmp_path / "unpickled").exists()
