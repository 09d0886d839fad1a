"""Checkpoints in the format of the paper's own code.

Weights are not stored anywhere: they follow from the names and shapes of the parameters.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

NUMBER = "num_embedding_module."


def parameter(name: str, shape: Sequence[int]) -> torch.Tensor:
    """Return the weights of a parameter, by the rule of the reference outputs."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    normal = np.random.default_rng(seed).standard_normal(tuple(shape))
    if len(shape) == 1:
        values = 1 + 0.3 * normal if name.endswith("weight") else 0.2 * normal
    else:
        values = normal * (1.0 if "wte" in name else 0.06)
    return torch.from_numpy(values.astype(np.float32))


def rope(channels: int, base: float = 10_000.0) -> dict[str, torch.Tensor]:
    """Return the buffers of rotary positions as the paper's code computes them, in float32."""
    inv_freq = 1.0 / base ** (torch.arange(0, channels, 2).float() / channels)
    angles = torch.outer(torch.arange(1024).float(), inv_freq)
    buffers = {"inv_freq": inv_freq, "cos_cached": angles.cos(), "sin_cached": angles.sin()}
    return {f"transformer.rotary_emb.{name}": buffer for name, buffer in buffers.items()}


def digit_points() -> dict[str, torch.Tensor]:
    """Return FoNE's buffer: cos and sin of the ten digits' angles."""
    angles = 2 * torch.pi / 10 * torch.arange(10)
    return {f"{NUMBER}precomputed_cos_sin_matrix": torch.stack([angles.cos(), angles.sin()])}


def write_variant(folder: Path, outputs: Path, variant: str) -> dict[str, object]:
    """Write the checkpoint of a reference output; return the arguments of its conversion."""
    config = json.loads((outputs / f"{variant}.json").read_text())
    tensors = {name: parameter(name, shape) for name, shape in config["parameters"]}
    tensors |= rope(config["width"] // config["heads"])
    if config["encoding"] == "fone":
        tensors |= digit_points()
    assert {name: list(tensor.shape) for name, tensor in tensors.items()} == config["state_dict"]
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    study = {"n_layer": config["layers"], "n_head": config["heads"], "n_embd": config["width"]}
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", **study}))
    fields = {field: config[field] for field in ("encoding", "combination", "head")}
    return {**fields, "tokenizer": reference_tokenizer(outputs, config["encoding"])}


def reference_tokenizer(outputs: Path, encoding: str) -> Path:
    """Return the tokenizer of the reference outputs for an encoding."""
    name = encoding if encoding in ("digit", "subword") else "numbers"
    return outputs / f"tokenizer_{name}.json"
