"""This version resumes run folders of earlier ones with the same requests."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from numbench.errors import BadInput
from numbench.journal.run_folder import read_run
from numbench.runner.execution import run
from numbench.runner.spec import HorizonSpec, RunSpec
from numbench.scoring import is_correct
from tests.support.servers import chat, serve

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.mark.parametrize("name", ["served", "horizon"])
def test_a_run_of_0_2_resumes_with_the_same_requests(tmp_path: Path, name: str) -> None:
    """Half of its answers are there; the server moved, as `run.json` says."""
    out = Path(shutil.copytree(FIXTURES / f"run-0.2.0-{name}", tmp_path / "run"))
    lines = (out / "responses.jsonl").read_bytes().splitlines(keepends=True)
    kept = len(lines) // 2
    (out / "responses.jsonl").write_bytes(b"".join(lines[:kept]) + lines[kept][:30])
    info = json.loads((out / "run.json").read_text())
    with serve(lambda _: chat()) as server:
        url = info["settings"]["base_url"] = f"{server.url}/v1"
        (out / "run.json").write_text(json.dumps(info))
        spec: RunSpec = HorizonSpec(
            "openai/served", base_url=url, tasks=("copy",), max_items=24, out=out
        )
        if name == "served":
            spec = RunSpec(
                "openai/served",
                base_url=url,
                dataset="v1",
                tasks=("addition", "sorting", "minmax"),
                limit=2,
                few_shot=1,
                temperature=0.5,
                seed=7,
                samples=2,
                max_tokens=64,
                structured=True,
                params={"top_k": 5},
                headers={"X-Title": "t"},
                out=out,
            )
        done = run(spec, is_correct)
        assert (done.answered, done.skipped) == (len(lines) - kept, kept)
        assert len(server.received) == len(lines) - kept
        with pytest.raises(BadInput, match="choose another --out"):
            run(replace(spec, max_tokens=65), is_correct)
    after = read_run(out)
    assert (out / "responses.jsonl").read_bytes().startswith(b"".join(lines[:kept]))
    assert after.info.requests == info["requests"]
    examples = after.info.settings.pop("few_shot_sha256", {})
    # It was one hash for all tasks.
    assert (list(examples) == info["tasks"]) == bool(info["settings"].pop("few_shot_sha256", ""))
    assert after.info.settings == info["settings"]
