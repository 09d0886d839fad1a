"""Convert a GGUF file to a Hugging Face folder with 16-bit weights. usage: GGUF FOLDER"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

source, target = Path(sys.argv[1]), Path(sys.argv[2])
tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
loaded = AutoModelForCausalLM.from_pretrained(
    source.parent, gguf_file=source.name, dtype=torch.float32
)
# The configuration still says how the file was quantized.
config = loaded.config
for name in ("quantization_config", "_pre_quantization_dtype"):
    if hasattr(config, name):
        delattr(config, name)
config.dtype = torch.bfloat16
network = AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
weights = {name: tensor.to(torch.bfloat16) for name, tensor in loaded.state_dict().items()}
network.load_state_dict(weights, strict=False)
network.tie_weights()
network.generation_config.eos_token_id = tokenizer.eos_token_id
tokenizer.save_pretrained(target)
# Written last: the folder is complete if it has a configuration.
network.save_pretrained(target)
