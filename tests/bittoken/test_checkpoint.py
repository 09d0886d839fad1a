"""Checkpoints are restored bit for bit; files that are damaged or do not match are refused."""

import hashlib
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from bittoken.checkpoint import (
    bundled_checkpoint_names,
    checkpoint_folder,
    load_checkpoint,
    save_checkpoint,
)
from bittoken.tokens import Vocabulary
from numbench._version import __version__
from numbench.errors import BadInput, NumbenchError
from tests.bittoken import small
from tests.support.case_tables import each_row

VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"combination": "weighted", "head": "mlp", "norm": "layer"},
    {"encoding": "subword", "context": 77, "rope_base": 500.0},
    {"encoding": "bittoken-no-reciprocal", "vocabulary": 64, "head": "layer-norm"},
)
TRAINING = {"step": 1200, "tokens": 5 * 10**9, "recipe": {"optimizer": [0.02, None]}}


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


def replace_file(folder: Path, name: str, content: bytes) -> None:
    """Write other content and its hash."""
    (folder / name).write_bytes(content)
    hashes = json.loads((folder / "config.json").read_text())["sha256"]
    rewrite_config(folder, sha256=hashes | {name: hashlib.sha256(content).hexdigest()})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "saved", small.network(), TRAINING)
    return tmp_path / "saved"


@pytest.mark.parametrize("shape", VARIANTS, ids=str)
def test_saved_networks_are_restored_bit_for_bit(folder: Path, shape: dict[str, Any]) -> None:
    network = small.network(**shape)
    save_checkpoint(folder, network, TRAINING)
    state = torch.random.get_rng_state()
    loaded = load_checkpoint(folder)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert loaded.network.config == network.config and loaded.training == TRAINING
    assert loaded.vocabulary.tokens == Vocabulary(network.config.encoding).tokens
    stored = loaded.network.state_dict()
    assert all(torch.equal(stored[name], w) for name, w in network.state_dict().items())
    rows = small.samples([5, 20], network.config.encoding)
    both = (small.hidden(net, rows) for net in (loaded.network, network))
    assert all(torch.equal(a, b) for a, b in zip(*both, strict=True))
    assert not loaded.network.training
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    config = json.loads((folder / "config.json").read_text())
    assert (config["format"], config["version"], config["numbench"]) == ("bittoken", 1, __version__)


def test_other_weights_keep_their_type_and_load_as_float32(tmp_path: Path) -> None:
    network = small.network()
    halves = {name: weights.bfloat16() for name, weights in network.state_dict().items()}
    save_checkpoint(tmp_path, network, TRAINING, weights=halves)
    size = (tmp_path / "model.safetensors").stat().st_size
    assert size < 2.1 * sum(weights.numel() for weights in halves.values())
    for name, weights in load_checkpoint(tmp_path).network.state_dict().items():
        assert torch.equal(weights, halves[name].float())


def test_failed_saves_keep_the_previous_checkpoint(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = load_checkpoint(folder).network.state_dict()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NumbenchError, match="cannot write the checkpoint: No space left"):
        save_checkpoint(folder, small.network(seed=1), TRAINING)
    after = load_checkpoint(folder).network.state_dict()
    assert all(torch.equal(before[name], weights) for name, weights in after.items())


def test_text_tokenizers_are_saved_with_the_weights(tmp_path: Path) -> None:
    own, saved = Vocabulary("bittoken").base_tokens, tmp_path / "saved"
    source = tmp_path / "bpe.json"
    source.write_text(json.dumps({"model": {"type": "BPE", "vocab": {"b": 1, "a": 0, "ab": 2}}}))
    save_checkpoint(saved, small.network(vocabulary=len(own) + 3), {}, text_tokenizer=source)
    loaded = load_checkpoint(saved)
    assert loaded.vocabulary.tokens == (*own, "a", "b", "ab")
    names = [path.name for path in loaded.files]
    assert names == ["config.json", "model.safetensors", "tokenizer.json"]
    many = json.dumps({"model": {"vocab": {str(n): n for n in range(9)}}}).encode()
    messages = {many: "47 tokens, but the network only 41", b"{}": r"tokenizer\.json"}
    for content, message in messages.items():
        replace_file(saved, "tokenizer.json", content)
        with pytest.raises(BadInput, match=message):
            load_checkpoint(saved)


@each_row(__file__, "wrong_configs")
def test_invalid_config_is_bad_input(folder: Path, changes: dict[str, Any], message: str) -> None:
    rewrite_config(folder, **changes)
    with pytest.raises(BadInput, match=message) as caught:
        load_checkpoint(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_missing_truncated_or_changed_files_are_bad_input(folder: Path, file: str) -> None:
    path = folder / file
    content = path.read_bytes()
    middle = len(content) // 2
    for damaged in (content[:middle], b"", content[:middle] + b"\xff" + content[middle + 1 :]):
        path.write_bytes(damaged)
        with pytest.raises(BadInput, match=str(path)):
            load_checkpoint(folder)
    path.unlink()
    with pytest.raises(BadInput, match=str(folder)):
        load_checkpoint(folder)


def test_loading_never_unpickles(folder: Path, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "unpickled",)

    replace_file(folder, "model.safetensors", pickle.dumps(Trap()))
    with pytest.raises(BadInput, match="damaged or not a safetensors file"):
        load_checkpoint(folder)
    assert not (tmp_path / "unpickled").exists()


def test_a_name_is_a_bundled_model_and_a_path_a_local_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small").mkdir()
    assert bundled_checkpoint_names() == ["small"]
    assert (checkpoint_folder("small") / "model.safetensors").is_file()
    assert checkpoint_folder("./small").resolve() == tmp_path / "small"
    assert checkpoint_folder("~/small") == Path.home() / "small"
