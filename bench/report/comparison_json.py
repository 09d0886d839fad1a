"""The comparisons of runs as `report.json` holds them."""

from __future__ import annotations

from collections.abc import Sequence

from bench.report.comparison_tables import smallest_differences, smallest_note
from bench.report.comparisons import OVERALL, Comparisons, Contrast
from bench.report.measured import Measured
from bench.stats.bootstrap import RESAMPLES
from bench.stats.draws import SEED
from bench.stats.mcnemar import fewest_discordant
from bench.stats.normal import ALPHA, LEVEL, POWER
from bench.stats.swaps import FLIPS


def comparisons_json(runs: Sequence[Measured], found: Comparisons) -> dict[str, object]:
    """Scores in percent, differences in points; runs are named by their folder."""
    paths = [run.run.path.as_posix() for run in runs]
    smallest = smallest_differences(found.contrasts)
    return {
        "how": {
            "level": LEVEL,
            "alpha": ALPHA,
            "power": POWER,
            "resamples": RESAMPLES,
            "flips": FLIPS,
            "seed": SEED,
        },
        "pairs_not_compared": found.not_compared,
        "smallest_difference": {
            "note": smallest_note(runs, found),
            "fewest_right_answers": fewest_discordant(),
            "tasks": {task: values._asdict() for task, values in smallest.items()},
        },
        "runs": [
            {
                "path": path,
                "overall": overall._asdict() if overall else None,
                "rank": ranks.get(OVERALL),
                "ranks": {task: rank for task, rank in ranks.items() if task != OVERALL},
            }
            for path, overall, ranks in zip(paths, found.overall, found.ranks, strict=True)
        ],
        "pairs": [_pair(contrast, paths) for contrast in found.contrasts],
    }


def _pair(contrast: Contrast, paths: Sequence[str]) -> dict[str, object]:
    test = contrast.found
    first, second = contrast.means or (None, None)
    first_only, second_only = contrast.only or (None, None)
    return {
        "a": paths[contrast.first],
        "b": paths[contrast.second],
        "task": contrast.task,
        "table": contrast.table,
        "items": test.n if test else 0,
        "a_score": first,
        "b_score": second,
        "only_a_right": first_only,
        "only_b_right": second_only,
        "difference": test.difference if test else None,
        "low": test.low if test else None,
        "high": test.high if test else None,
        "p": test.p if test else None,
        "p_over_tasks": contrast.p_tasks,
        "p_over_pairs": contrast.p_pairs,
        "smallest": test.smallest if test else None,
        "verdict": contrast.verdict,
    }
