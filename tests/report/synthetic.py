"""Small runs whose answers depend on nothing but their questions, for reports as a whole."""

import hashlib
import secrets
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

import numbench as nb
from numbench import tasks
from numbench.dataset.store import write_dataset
from numbench.journal.run_folder import read_run, write_run
from numbench.records import Item, Response, RunInfo, Usage
from numbench.tasks.prompts import load_prompt_set

TASKS = ("minmax", "interval", "addition", "multiplication", "std")


def write_runs(folder: Path) -> Path:
    """Write two datasets and runs on them, and return the folder of the runs.

    One model at three levels, of which one asked fewer tasks and one each question three times; a
    run with another wording and one in another form; a run on the second dataset; a measurement of
    horizons, and a memory test.
    """
    nb.generate("one", tasks=TASKS, size=30, seed=5, out=folder / "data/one")
    nb.generate("two", tasks=("addition",), size=30, seed=6, out=folder / "data/two")
    runs = folder / "runs"
    plain = _answer(folder, "baseline/float64", "one")
    _copy(plain, runs / "none", "Model A", "none", wrong=0.6, tokens=20)
    _copy(plain, runs / "high", "Model A", "high", wrong=0.1, tokens=900)
    _copy(
        _answer(folder, "baseline/float64", "one", tasks=("addition", "std")),
        runs / "low", "Model A", "low", wrong=0.3, tokens=300,
    )  # fmt: skip
    other = _answer(folder, "baseline/float32", "one")
    _copy(other, runs / "samples", "Model B", "none", wrong=0.4, tokens=50, samples=3)
    wording = {"prompt": load_prompt_set("paraphrase-1").ref(TASKS)}
    _copy(plain, runs / "wording", "Model A", "high", 0.25, 900, **wording)
    _copy(plain, runs / "form", "Model A", "high", 0.3, 900, transform="grouping")
    _copy(
        _answer(folder, "baseline/float32", "two"), runs / "two", "Model A", "none", 0.6, tokens=20
    )
    nb.measure_horizons(
        "baseline/float32",
        tasks=["long_addition", "long_comparison", "copy"],
        max_items=60,
        out=runs / "horizons",
    )
    _test_memory(runs / "memory")
    return runs


def _answer(folder: Path, model: str, dataset: str, **options: Any) -> Path:
    name = "-".join([model.split("/")[1], dataset, *map(str, options.values())])
    out = folder / "plain" / hashlib.sha256(name.encode()).hexdigest()[:8]
    return nb.run(model, dataset=folder / "data" / dataset, out=out, **options).path


def _copy(
    source: Path,
    target: Path,
    display: str,
    level: str,
    wrong: float,
    tokens: int,
    samples: int = 1,
    **changes: Any,
) -> None:
    """Copy a run with another name, some wrong, missing and failed answers, tokens and costs."""
    run = read_run(source)
    info = msgspec.structs.replace(
        run.info,
        model=display.lower().replace(" ", "-"),
        display=display,
        reasoning=level,
        dataset=msgspec.structs.replace(
            run.info.dataset, path=f"../../data/{run.info.dataset.name}"
        ),
        settings=run.info.settings | ({"samples": samples} if samples > 1 else {}),
        created="2025-01-01T00:00:00Z",
        **changes,
    )
    responses = [
        changed
        for response in run.responses.values()
        for sample in range(samples)
        if (
            changed := _changed(
                msgspec.structs.replace(response, sample=sample),
                f"{display}{level}{sorted(changes)}",
                wrong,
                tokens,
            )
        )
        is not None
    ]
    write_run(target, info, responses)


def _changed(response: Response, name: str, wrong: float, tokens: int) -> Response | None:
    share = _share(response, name)
    if share > 0.99:
        return None
    generated = round(tokens * (0.5 + _share(response, "tokens")))
    if share > 0.985:
        generated = 40 * tokens
    text = response.text if share > wrong else f"I think it is {round(1000 * share)}."
    if share < 0.05:
        text = '{"answer": "no'
    return msgspec.structs.replace(
        response,
        text=text,
        usage=Usage(input=30, visible=generated, generated=generated, source="reported"),
        cost=generated / 1e6,
        finish_reason="stop",
    )


def _share(response: Response, name: str) -> float:
    text = f"{name}|{response.item_id}|{response.sample}"
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32


def _test_memory(out: Path) -> None:
    seeds = count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            secrets,
            "token_hex",
            lambda size: hashlib.sha256(str(next(seeds)).encode()).hexdigest()[: 2 * size],
        )
        names = ("addition", "multiplication")
        nb.run_memory_test("baseline/bfloat16", tasks=names, limit=20, margin=5.0, out=out)


def add_task(patch: pytest.MonkeyPatch, name: str = "largest") -> None:
    """Register a task like MinMax, as another package would."""
    patch.setitem(tasks.TASKS, name, replace(tasks.TASKS["minmax"], name=name, display="Largest"))


def write_plugin_run(folder: Path, name: str = "largest") -> Path:
    """Write a run on questions of the task of `add_task` and on additions."""
    plain = nb.generate("plain", tasks=("minmax", "addition"), size=20, seed=7, out=folder / "data")
    items = {
        name: [msgspec.structs.replace(item, task=name) for item in plain.by_task["minmax"]],
        "addition": plain.by_task["addition"],
    }
    data = write_dataset(
        folder / "mixed", items, name="mixed", generator="test", seed=1, split="test", settings={}
    )
    info = RunInfo(
        model="some/model",
        display="Some model",
        reasoning="none",
        dataset=data.ref(folder / "run"),
        prompt=load_prompt_set().ref(("addition",)),
        tasks=(name, "addition"),
        limit=None,
        settings={},
        versions={},
        created="2025-01-01T00:00:00Z",
    )
    every = [item for of_task in items.values() for item in of_task]
    write_run(folder / "run", info, map(_correct, every))
    return folder / "run"


def _correct(item: Item) -> Response:
    return Response(
        item_id=item.id, text=f'{{"answer": {item.answer}}}', finish_reason="stop", usage=Usage()
    )
