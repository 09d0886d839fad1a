"""What came of a training, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from bench.bittoken.training.log import Line, best, read
from bench.bittoken.training.recipe import TEXT
from bench.bittoken.training.run import CHECKPOINT
from bench.bittoken.training.wording import display_name, percent
from bench.tasks import TASKS


class Summary(NamedTuple):
    """The validation that chose the checkpoint (None where there was none yet), and the folder."""

    folder: Path
    about: Line
    best: Line | None

    @property
    def command(self) -> str:
        """How the checkpoint is evaluated."""
        names = [task for task in self.best["tasks"] if task != TEXT] if self.best else []
        some = "" if not names or len(names) == len(TASKS) else f" --tasks {','.join(names)}"
        return f"numbench run --model checkpoint/{self.folder / CHECKPOINT} --dataset v1{some}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Scores by task, where the checkpoint is, and what to do with it."""
        if self.best is None:
            yield Text("nothing is measured yet: no validation came")
        else:
            yield self._table(self.best)
            mean = percent(self.best["harmonic_mean"])
            yield Text(f"validation at step {self.best['step']:,}, harmonic mean {mean}")
        yield from (Text(text) for text in self._paths())

    def _table(self, best: Line) -> Table:
        table = Table(box=None, pad_edge=False)
        for name in ("Task", "Score", "Exact", "Chance"):
            table.add_column(name, justify="left" if name == "Task" else "right")
        for task, found in best["tasks"].items():
            chance = self.about.get("chance", {}).get(task)
            shown = (found["score"], found["exact"], chance or None)
            table.add_row(display_name(task), *(percent(share) for share in shown))
        return table

    def _paths(self) -> Iterator[str]:
        yield f"best checkpoint: {self.folder / CHECKPOINT}"
        yield f"evaluate it: {self.command}"


def summary(folder: Path) -> Summary:
    """Of the training in `folder`. BadInput where there is none."""
    lines = read(folder)
    return Summary(folder, lines[0] if lines else {}, best(lines))
