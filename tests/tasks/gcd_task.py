"""A task as another package would declare it."""

from dataclasses import replace
from math import gcd

from numbench.tasks import RandomWords, SampledQuestion, SamplingSettings, Task, TaskPrompts


def sample(words: RandomWords, settings: SamplingSettings) -> SampledQuestion:
    largest = 10**settings.max_digits - 1
    numbers = (words.randint(1, largest) for _ in range(2))
    return SampledQuestion("gcd", tuple(map(str, numbers)))


GCD = Task(
    name="gcd",
    operators=("gcd",),
    sample=sample,
    exact_answer=lambda operator, operands: str(gcd(*map(int, operands))),
    prompts=TaskPrompts(
        system='Return exactly one JSON object: {"answer": <integer>}',
        questions={"gcd": 'What is the "greatest common divisor" of {a} and {b}?\n'},
    ),
)

DISCARDS = replace(GCD, name="discards", sample=lambda *_: None)
MEAN = replace(GCD, name="mean")
