"""A task: the remainder of the division of two positive integers."""

from collections.abc import Callable, Sequence

from numbench.tasks import RandomWords, SampledQuestion, SamplingSettings, Task, TaskPrompts


def sample(words: RandomWords, settings: SamplingSettings) -> SampledQuestion:
    """Draw a divisor, and a dividend with at least as many digits."""
    digits_b = words.randint(1, settings.max_digits)
    digits_a = words.randint(digits_b, settings.max_digits)
    a = words.randint(10 ** (digits_a - 1), 10**digits_a - 1)
    b = words.randint(10 ** (digits_b - 1), 10**digits_b - 1)
    return SampledQuestion("mod", (str(a), str(b)), {"digits_a": digits_a, "digits_b": digits_b})


def exact_answer(_operator: str, operands: Sequence[str]) -> str:
    """Return a mod b. Raises ValueError if b is zero."""
    a, b = map(int, operands)
    if b == 0:
        raise ValueError("modulo by zero")
    return str(a % b)


def approximate(_operator: str, values: Sequence[float], round_: Callable[[float], float]) -> float:
    """Return a mod b in floating-point arithmetic."""
    return round_(values[0] % values[1])


MODULO = Task(
    name="modulo",
    display="Mod",
    operators=("mod",),
    sample=sample,
    exact_answer=exact_answer,
    approximate=approximate,
    prompts=TaskPrompts(
        system='Answer with one JSON object: {"answer": <numeric_answer>}. Do not explain.',
        questions={"mod": "What is {a} mod {b}?"},
    ),
)
