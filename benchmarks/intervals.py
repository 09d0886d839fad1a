"""Simulate how often intervals and tests are right, and print the results as Markdown.

    python benchmarks/intervals.py [--samples 4000]

The heavy tests check the same simulations.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.coverage_simulation import (
    SAMPLES,
    Coverage,
    coverage_near_the_ceiling,
    coverage_of_differences,
    coverage_of_part_of_the_items,
    coverage_of_scores,
    coverage_of_the_mean_of_tasks,
    coverage_of_tokens,
)
from benchmarks.verdict_simulation import (
    Power,
    excluded_margins,
    false_non_inferiority,
    simulated_power,
    verdicts_on_equal_models,
    wrong_rank_sets,
    wrong_verdicts,
)


def print_coverage(title: str, rows: Iterable[Coverage]) -> None:
    print(f"\n## {title}\n\n| | coverage | width |\n|---|---:|---:|")
    for row in rows:
        print(f"| {row.name} | {row.share:.1%} | {row.width:.2f} |")


def print_power(title: str, rows: Iterable[Power], heading: str) -> None:
    print(f"\n## {title}\n\n| | points | {heading} |\n|---|---:|---:|")
    for row in rows:
        print(f"| {row.name} | {row.points:.2f} | {row.share:.1%} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    samples = parser.parse_args().samples
    print("# Coverage and power, simulated")
    print(f"\n`python benchmarks/intervals.py --samples {samples}`. Nominal coverage: 95%.")
    print("Widths in points; those of tokens in percent of the unit of the distribution.")
    for stratified, name in ((True, "v1"), (False, "paper")):
        print_coverage(f"Scores, design of {name}", coverage_of_scores(stratified, samples))
        print_coverage(
            f"Differences, design of {name}", coverage_of_differences(stratified, samples)
        )
    print_coverage("Part of the items of v1", coverage_of_part_of_the_items(samples))
    for loss, what in ((0.5, "half"), (0.1, "a tenth"), (0.999, "all")):
        title = f"Near the ceiling: expected errors in 500, which lose {what} of the score"
        print_coverage(title, coverage_near_the_ceiling(samples, loss))
    print_coverage("Mean of tasks", coverage_of_the_mean_of_tasks(samples))
    print_coverage("Mean tokens", coverage_of_tokens(samples))
    print_power("Verdicts on two equal models", verdicts_on_equal_models(samples // 4), "verdicts")
    print_power(
        "Verdicts at the minimum detectable difference (80%)",
        simulated_power(samples // 4),
        "verdicts",
    )
    print_power(
        "A regression of the margin, wrongly excluded (5%)",
        false_non_inferiority(samples // 2),
        "excluded",
    )
    print_power("Two equal models pass a margin", excluded_margins(samples // 10), "pass")
    print("\n## A verdict of better for equal models with rare large losses (2.5%)\n")
    print("| | verdicts | one-sided bound excludes 0 |\n|---|---:|---:|")
    for name, verdicts, excluded in wrong_verdicts(samples // 4):
        print(f"| {name} | {verdicts:.1%} | {excluded:.1%} |")
    wrong = wrong_rank_sets(samples // 10)
    print(f"\nRank sets of six equal runs on four tasks, any of them wrong: {wrong:.1%}")


if __name__ == "__main__":
    main()
