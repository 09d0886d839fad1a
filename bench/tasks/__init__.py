"""What is asked: the nine tasks, in the paper's order.

A new task is one module that declares a `Task`, and one line here.
"""

from bench.tasks.base import Task
from bench.tasks.comparison import INTERVAL, MINMAX, SORTING
from bench.tasks.multi_step import EXPONENTIATION, MEAN, STD
from bench.tasks.single_step import ADDITION, DIVISION, MULTIPLICATION

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        MINMAX,
        INTERVAL,
        SORTING,
        ADDITION,
        MULTIPLICATION,
        DIVISION,
        EXPONENTIATION,
        MEAN,
        STD,
    )
}

__all__ = ["TASKS", "Task"]
