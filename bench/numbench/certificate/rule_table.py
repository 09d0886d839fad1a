"""The table of a rule's power, for `numbench run --certificate`. It fits 80 columns."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from numbench.certificate.rule import KNOWN_SHARES, Rule


def rule_table(rule: Rule) -> RenderableType:
    """Return the chances of the verdicts by the share of right answers to fresh items."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Right on fresh items")
    names = [f"{known:.0%}" for known in KNOWN_SHARES]
    for name in names:
        table.add_column(f"{name} known", justify="right")
    table.add_column("None known", justify="right")
    for row in rule.power:
        chances = [*(row.memory[name] for name in names), row.equivalent]
        table.add_row(f"{row.right:.0%}", *(f"{chance:.0%}" for chance in chances))
    size = f"{rule.pairs:,} pairs of items in each of {rule.tasks} task{'s' * (rule.tasks > 1)}"
    note = (
        f"\nCertificate: {size}, margin {rule.margin:g} points.\n"
        "Chance of the verdict `memory` for a model that knows a part of the items, and\n"
        "of `equivalent` for one that knows none, at least. A model that knows none gets\n"
        "`memory` in at most 2.5 % of certificates.\n"
    )
    return Group(Text(note), table)
