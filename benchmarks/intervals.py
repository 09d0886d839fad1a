"""Simulate how often intervals and tests are right. Prints Markdown and draws a figure.

    python benchmarks/intervals.py [--samples 4000] [--figure docs/assets/coverage.svg]

The heavy tests check the same simulations.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.coverage_simulation import (
    SAMPLES,
    Coverage,
    coverage_near_the_ceiling,
    coverage_of_differences,
    coverage_of_part_of_the_items,
    coverage_of_stratified_scores,
    coverage_of_the_mean_of_tasks,
    coverage_of_tokens,
)
from benchmarks.verdict_simulation import (
    Power,
    false_non_inferiority,
    planned_precision,
    simulated_power_of_matches,
    simulated_power_of_means,
    simulated_power_of_scores,
    wrong_rank_sets,
    wrong_verdicts,
)


def print_coverage(title: str, rows: Sequence[Coverage]) -> None:
    print(f"\n## {title}\n")
    print("| | before | width | now | width |\n|---|---:|---:|---:|---:|")
    for row in rows:
        print(
            f"| {row.name} | {row.before:.1%} | {row.before_width:.2f} | {row.now:.1%} "
            f"| {row.now_width:.2f} |"
        )


def print_power(title: str, rows: Sequence[Power], heading: str) -> None:
    print(f"\n## {title}\n\n| | difference | {heading} |\n|---|---:|---:|")
    for row in rows:
        print(f"| {row.name} | {row.difference:.2f} | {row.power:.1%} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    samples = arguments.samples
    stratified = list(coverage_of_stratified_scores(samples))
    ceiling = list(coverage_near_the_ceiling(samples))
    powers = [
        *simulated_power_of_matches(samples // 2),
        *simulated_power_of_scores(),
        *simulated_power_of_means(),
    ]
    print("# Coverage and power, simulated")
    print(
        f"\n`python benchmarks/intervals.py --samples {samples}`. Nominal coverage: 95 %. Before:"
    )
    print("percentile bootstrap or Wilson's interval of independent items. Widths in points.")
    print_coverage("Scores on the design of v1", stratified)
    print_coverage("Part of the items of v1", list(coverage_of_part_of_the_items(samples)))
    print_coverage("Near the ceiling: expected errors in 500, losing half the score", ceiling)
    print_coverage("Losing a tenth", list(coverage_near_the_ceiling(samples, 0.1)))
    print_coverage("Losing all", list(coverage_near_the_ceiling(samples, 0.999)))
    print_coverage("Differences", list(coverage_of_differences(samples)))
    print_coverage("Mean of tasks", list(coverage_of_the_mean_of_tasks(samples)))
    print("\n## Mean tokens\n\n| | coverage |\n|---|---:|")
    for name, share in coverage_of_tokens():
        print(f"| {name} | {share:.1%} |")
    print_power("Verdicts at the minimum detectable difference (80 %)", powers, "verdicts")
    false = list(false_non_inferiority(samples // 2))
    print_power("A regression of the margin, wrongly excluded (5 %)", false, "excluded")
    print("\n## A verdict of better for equal models (2.5 %), and bounds that exclude 0 (5 %)\n")
    print("| | verdict | at_least > 0 |\n|---|---:|---:|")
    for name, verdicts, excluded in wrong_verdicts():
        print(f"| {name} | {verdicts:.1%} | {excluded:.1%} |")
    print(
        f"\nRank sets of six equal runs on four tasks, any of them wrong: {wrong_rank_sets():.1%}"
    )
    print(
        "\n## Planned and actual half-width\n\n| | planned | items | actual |\n|---|---:|---:|---:|"
    )
    for row in planned_precision():
        print(f"| {row.name} | {row.planned:.2f} | {row.items:,} | {row.half_width:.2f} |")
    if arguments.figure:
        draw_figure(arguments.figure, stratified, ceiling, powers)


def draw_figure(
    path: Path, stratified: Sequence[Coverage], ceiling: Sequence[Coverage], powers: Sequence[Power]
) -> None:
    """Draw coverage before and now, and the power at the minimum detectable difference."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "numbench", "font.size": 8})
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.2), width_ratios=(3, 2, 2))
    names = [row.name for row in stratified]
    rows = np.arange(len(names))
    left.plot([100 * row.before for row in stratified], rows, "o", mfc="none", c="#888888")
    left.plot([100 * row.now for row in stratified], rows, "o", c="#0072B2")
    left.set_yticks(rows, names)
    left.invert_yaxis()
    left.set(xlabel="coverage in percent", xlim=(90, 100.5), title="design of v1")
    left.axvline(95, c="black", lw=0.7)
    errors = [float(row.name) for row in ceiling]
    middle.semilogx(errors, [100 * row.before for row in ceiling], "o-", mfc="none", c="#888888")
    middle.semilogx(errors, [100 * row.now for row in ceiling], "o-", c="#0072B2")
    middle.set_xticks(errors, [row.name for row in ceiling])
    middle.minorticks_off()
    middle.set(xlabel="expected errors in 500", title="coverage near the ceiling", ylim=(20, 101))
    middle.axhline(95, c="black", lw=0.7)
    middle.legend(["before", "now"], loc="lower right", frameon=False)
    for label, part, colour in (
        ("exact match", "exact match", "#D55E00"),
        ("log-sMAPE", "unequal", "#0072B2"),
        ("differences of 7 points", "7 points", "#009E73"),
    ):
        shown = [row for row in powers if part in row.name]
        counts = [int(row.name.split(", ")[1].split()[0]) for row in shown]
        right.plot(counts, [100 * row.power for row in shown], "o-", c=colour, label=label)
    right.plot(
        [0], [100 * powers[0].power], "o", mfc="none", c="#888888", label="six items (before)"
    )
    right.set_xscale("symlog", linthresh=10)
    right.set(xlabel="items that differ, of 500", title="verdicts at the minimum", ylim=(50, 100))
    right.axhline(80, c="black", lw=0.7)
    right.legend(loc="upper right", frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
