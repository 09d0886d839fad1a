#!/usr/bin/env bash
# Runs the CUDA tests and the comparison of encodings, on a machine that has PyTorch and a GPU:
#
#     bash studies/multitask/gpu.sh OUT [arguments of studies.multitask.gpu]
#
# It takes at most nine minutes on an H100 and writes at most eight files, of a few megabytes, to OUT. Missing
# packages are installed to build/site; without a network, put their wheels into the folder wheels/ first.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1
shift
mkdir -p "$out"
site=$PWD/build/site
missing=$(python3 - <<'PYTHON'
from importlib.util import find_spec

MODULES = "msgspec numpy pandas pyarrow filelock matplotlib safetensors tokenizers tenacity scipy markupsafe pytest"
print(*[module for module in MODULES.split() if find_spec(module) is None])
PYTHON
)
if [ -n "$missing" ]; then
    source=()
    if [ -d wheels ]; then source=(--no-index --find-links wheels --no-deps); fi
    # shellcheck disable=SC2086
    python3 -m pip install --quiet --target "$site" "${source[@]}" $missing
fi
export PYTHONPATH=$PWD/bench:$PWD:$site
# Checkpoints are a plugin of numbench, known by the entry points of an installed package.
python3 - "$site/numbench-0.dist-info" <<'PYTHON'
import sys
import tomllib
from pathlib import Path

folder, project = Path(sys.argv[1]), tomllib.loads(Path("pyproject.toml").read_text())["project"]
folder.mkdir(parents=True, exist_ok=True)
(folder / "METADATA").write_text(f"Name: {project['name']}\nVersion: 0\n")
lines = [
    f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
    for group, entries in project["entry-points"].items()
]
(folder / "entry_points.txt").write_text("\n".join(lines))
PYTHON
timeout 120 python3 -m pytest -c /dev/null --rootdir "$PWD" --noconftest -p no:cacheprovider -q -rs \
    tests/bittoken/test_cuda.py 2>&1 | tee "$out/cuda-tests.txt" || true
# Whatever happens, nine minutes are the end; logs and scores are written after each encoding.
timeout $((535 - SECONDS)) python3 -m studies.multitask.gpu "$out" "$@"
