"""Invented measurements of horizons: adaptive in nothing, but with every kind of result."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from numbench.horizon import DESIGN_VERSION
from numbench.horizon.estimate import SizeOutcome, TaskHorizon, estimate_horizon
from numbench.horizon.items import SEQUENCES_VERSION, AskedItems, ItemSequences
from numbench.horizon.sizes import task_sizes
from numbench.journal.run_folder import ROUNDS, write_run
from numbench.records import HorizonInfo, PromptRef, Response, Round, RunInfo, Usage
from numbench.reporting.horizon_runs import HorizonRun
from numbench.tasks import SCALED_TASKS, TASKS
from tests.horizon.outcomes import Curve
from tests.horizon.scripted_model import answer_text
from tests.support.case_tables import read_lines

H50: dict[str, float] = dict(read_lines(__file__, "h50"))
"""The horizons of a model that reasons little."""


def invented_run(
    model: str = "GPT 5", reasoning: str = "minimal", factor: float = 1.0
) -> HorizonRun:
    """Return a run with `factor` times the horizons of `H50`.

    Two stages for chain, whose curve therefore does not fit.
    """
    horizons = {task: invented_horizon(task, h50 * factor) for task, h50 in H50.items()}
    return HorizonRun(
        path=f"results/{model}_{reasoning}_horizon",
        model=model,
        level=reasoning,
        created="2025-01-01T00:00:00Z",
        signature=f"horizon|model:{model}|reasoning:{reasoning}",
        horizons={task: horizons[task] for task in TASKS if task in horizons},
    )


@cache
def invented_horizon(task: str, h50: float) -> TaskHorizon:
    """Return the horizon from twelve answers at each of some sizes around `h50`."""
    axis = SCALED_TASKS[task].sizes
    assert axis is not None
    sizes = sorted({round(h50 * 2.0 ** (step / 2)) for step in range(-6, 7)})
    sizes = [size for size in sizes if axis.minimum <= size <= axis.maximum]
    sizes = sizes or [axis.minimum if h50 < axis.minimum else axis.maximum]
    if h50 > axis.maximum:
        sizes.append(axis.maximum)
    rng = np.random.default_rng(len(task))
    guess = [SCALED_TASKS[task].chance_accuracy(size) for size in sizes]
    p = Curve(h50, 3.0, 0.01).probability(np.array(sizes, np.float64))
    if task == "chain":
        p = np.where(np.array(sizes) < 3 * h50, np.where(np.array(sizes) < h50 / 3, 1, 0.6), 0)
    p = np.array(guess) + (1 - np.array(guess)) * p
    outcomes = [
        SizeOutcome(
            size,
            float(rng.random() < probability),
            truncated=int(probability < 0.05 and task == "long_sorting"),
            tokens=10.0 * size,
        )
        for size, probability in zip(sizes, p.tolist(), strict=True)
        for _ in range(40 if task == "chain" else 12)
    ]
    outcomes = [o._replace(right=0.0) if o.truncated else o for o in outcomes]
    stop = "below" if h50 < axis.minimum else "above" if h50 > axis.maximum else "precision"
    return estimate_horizon(SCALED_TASKS[task], outcomes, stop=stop)


def write_measurement(
    folder: Path,
    horizons: Mapping[str, float],
    model: str = "gpt-5",
    display: str = "GPT 5",
    reasoning: str = "minimal",
    each: int = 8,
    max_items: int = 40,
    seed: int = 1,
    largest: int = 64,
    share: float = 1.0,
) -> Path:
    """Write a run folder with `each` answers at seven sizes around the horizon of each task.

    An answer takes five tokens per unit of size. share: of the answers that are correct at size 0.
    """
    items = ItemSequences(1)
    rng = np.random.default_rng(seed)
    rounds, responses = [], []
    for task, h50 in horizons.items():
        grid = task_sizes(SCALED_TASKS[task], largest)
        sizes = sorted({min(grid, key=lambda g: abs(g - h50 * 2.0**k)) for k in range(-3, 4)})
        addresses = [(task, size, index) for size in sizes for index in range(each)]
        # The smallest sizes have few different questions.
        asked = [item for address in addresses if (item := items.item(*address))]
        rounds.append(Round(task=task, items=tuple(item.id for item in asked)))
        for item in asked:
            size = item.difficulty.base10
            p = share * float(Curve(h50, 4.0, 0.0).probability(np.array([size], np.float64))[0])
            usage = Usage(input=9, visible=5 * size, generated=5 * size, source="reported")
            text = answer_text(item.prompt, bool(rng.random() < p))
            responses.append(
                Response(item_id=item.id, text=text, finish_reason="stop", usage=usage)
            )
    info = RunInfo(
        model=model,
        display=display,
        reasoning=reasoning,
        dataset=AskedItems(folder, items, {}).ref(folder),
        prompt=PromptRef(name="paper", sha256="ab" * 32),
        tasks=tuple(horizons),
        limit=None,
        settings={},
        versions={},
        created="2025-01-01T00:00:00Z",
        horizon=HorizonInfo(
            precision=0.15,
            max_items=max_items,
            question_seed=1,
            largest=dict.fromkeys(horizons, largest),
            generator=SEQUENCES_VERSION,
            design=DESIGN_VERSION,
        ),
    )
    folder.mkdir(parents=True)
    write_run(folder, info, responses)
    lines = b"".join(msgspec.json.encode(line) + b"\n" for line in rounds)
    (folder / ROUNDS).write_bytes(lines)
    return folder
