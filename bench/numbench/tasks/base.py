"""The declaration of a task, and its check. A complete task in one module:

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
            questions={"gcd": "What is the greatest common divisor of {a} and {b}?"},
        ),
    )

The package that contains it registers it in its pyproject.toml:

    [project.entry-points."numbench.tasks"]
    gcd = "my_package.gcd:GCD"
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter, ascii_lowercase
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

import msgspec

from numbench.records import Answer, Difficulty, ErrorKind, Item
from numbench.tasks.random_words import RandomWords

MIN_EXPONENT, MAX_EXPONENT = -14, 14
"""An operand or answer n other than 0 has 10^x ≤ |n| < 10^(x+1) with x in this range."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""The names of the intervals of an `interval` question, in order."""

T = TypeVar("T")

Form = Literal["plain", "fraction", "scientific"]
FORMS: tuple[Form, ...] = get_args(Form)
AnswerKind = Literal["number", "letter", "list", Form]
Metric = Literal["log_smape", "exact_match"]
Approximation = float | str | Sequence[float]
"""An answer in floating-point arithmetic: a number, a letter or a list of numbers."""


PlainNumber = Annotated[
    str, msgspec.Meta(pattern=r"^(?!-0$)-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?$")
]
"""A decimal number in plain notation, as text."""


class SampledQuestion(NamedTuple):
    """A question before it is put into words.

    operator: one of `Task.operators`. operands: decimal numbers in plain notation, in the order
    of the prompt. params: integers that describe the sampling, stored with the item; every
    question of a task needs the same keys.
    """

    operator: str
    operands: tuple[PlainNumber, ...]
    params: Mapping[str, int] = {}


class SamplingSettings(NamedTuple):
    """How large the numbers of a question are: one of these settings applies.

    max_digits: significant digits of an operand (paper: 15 or 17). max_bits: if set, operands are
    the integers 1 … 2^max_bits − 1, divided by 10^j with j uniform on {1 … max_shift} if that is
    not 0. question_size: the size of the questions of a scaled task, or the sizes of a
    dataset, such as `4, 16, 64`; a sampler gets one.
    """

    max_digits: int = 15
    max_bits: int | None = None
    max_shift: int = 0
    question_size: int | str | None = None


class SizeAxis(NamedTuple):
    """How the questions of a scaled task grow.

    unit: what their size counts, in the plural. words: the number of random words of an attempt.
    answer_characters: the length of the longest answer, as text. Both are functions of the size.
    size_of: the size of a question from its operands. in_dataset: the sizes of a dataset for which
    none are given.
    """

    unit: str
    words: Callable[[int], int]
    answer_characters: Callable[[int], int]
    size_of: Callable[[Sequence[str]], int]
    minimum: int = 1
    maximum: int = 4096
    in_dataset: str = ""


class OperandFormat(NamedTuple):
    """How the operands of a question are written where they are not numbers in plain notation.

    format returns the texts of the fields of the template, from operator and operands. parse is the
    inverse; it raises ValueError for texts that are not of this format. evaluate returns the
    answer in any arithmetic, from the operands, a function that parses a number, and one that
    applies an operator to two numbers; None if it is not used.
    """

    format: Callable[[str, Sequence[str]], Mapping[str, str]]
    parse: Callable[[str, Mapping[str, str]], tuple[str, ...]]
    evaluate: (
        Callable[[Sequence[str], Callable[[str], Any], Callable[[str, Any, Any], Any]], Any] | None
    ) = None


@dataclass(frozen=True)
class TaskPrompts:
    """The prompts of a task that is not part of the prompt sets in `prompts/`.

    system: the system prompt, which has to ask for the answer as `{"answer": ...}`.
    questions: one template per operator. Its fields are `{a}`, `{b}`, ... for a fixed number of
    operands, or `{list}` for any number of them. With `Task.operand_format`, its texts are in the
    fields `{expression}`, `{a}`, `{b}`, .... `{{` and `}}` are braces of the question.
    """

    system: str
    questions: Mapping[str, str]

    def __post_init__(self) -> None:
        if '"answer"' not in self.system:
            raise ValueError('the system prompt has to ask for a JSON object {"answer": ...}')
        for operator, template in self.questions.items():
            try:
                fields = set(template_fields(template))
            except ValueError as error:
                raise ValueError(f"question of {operator!r}: {error}") from None
            letters = fields - {"expression"}
            is_numbered = letters == set(ascii_lowercase[: len(letters)])
            if not fields or not (fields == {"list"} or is_numbered):
                raise ValueError(
                    f"question of {operator!r}: use the fields {{a}}, {{b}}, ..., {{list}} or "
                    "{expression}; {{ is a brace"
                )


def template_fields(template: str) -> list[str]:
    """Return the names of the fields of a wording. Raises ValueError for other single braces."""
    try:
        parsed = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"{error}; {{{{ is a brace") from error
    if any(specification or conversion for _, _, specification, conversion in parsed):
        raise ValueError("a field is not a plain {name}; {{ is a brace")
    return [name for _, name, _, _ in parsed if name is not None]


class Convention(NamedTuple):
    """Another convention by which a question can be understood, with its own exact answer.

    Such an answer is wrong; a report shows in addition the score if it were accepted.

    display: the name of its answer in tables, such as `sample deviation`. exact_answer: like
    `Task.exact_answer`; raises ValueError if the convention has no answer to the question.
    error_kind: the kind of error of an answer by this convention.
    """

    display: str
    exact_answer: Callable[[str, Sequence[str]], str]
    error_kind: ErrorKind = "other"


def printed_digits(_operator: str, operands: Sequence[str], _answer: Answer) -> Difficulty:
    """Return the number of printed digits of all operands, zeros included.

    In base 2, the nearest float64 is written with all its binary places: 0.75 is `0.11`, three
    digits.
    """
    base10 = base2 = 0
    for operand in operands:
        base10 += sum(digit.isdigit() for digit in operand)
        numerator, denominator = abs(float(operand)).as_integer_ratio()
        places = denominator.bit_length() - 1
        base2 += max((numerator >> places).bit_length(), 1) + places
    return Difficulty(base10, base2)


Sample = Callable[[RandomWords, SamplingSettings], SampledQuestion | None]


@dataclass(frozen=True, kw_only=True)
class Task:
    """One kind of question. A new task needs the first five fields.

    name: a short lower-case identifier, which is also the name of its file in a dataset.
    operators: the operators of its questions; a task with one kind of question has one.
    exact_answer: the exact answer from operator and operands as printed, rounded once to 15
        significant digits (`numbench.tasks.exact_arithmetic`). Raises ValueError if an operand is
        malformed or the answer is undefined.
    sample: makes one attempt at a question from random words. Returns None if the attempt breaks
        a rule of the task (range, degenerate list); the next attempt is then made. None for the
        tasks of the paper, which are sampled in arrays (`numbench.tasks.samplers`).
    prompts: the wording; required for tasks that the prompt sets do not contain.
    display: the name in tables and figures. Default: `name` with a capital letter.
    answer_kind: number, letter, list of numbers, or a number in the form that the question asks
        for: plain notation, a fraction in lowest terms, or scientific notation. The same value in
        another form is then incorrect, with an error kind of its own.
    metric: what the headline score averages. Answers to `log_smape` tasks are numbers that are
        0 or have a magnitude in [1e-14, 1e15); other questions are dropped.
    difficulty: δ as a pure function of operator, printed operands and answer. Default: the
        number of printed digits.
    words_per_attempt: the number of random words that `sample` may use.
    stream_name: the name of the random stream; tasks that share one ask about the same numbers.
    system_prompt: name of a file in `prompts/<set>/system/`, without `.txt`.
    chance_accuracy: the probability in [0, 1] that a guess is right, from the number of operands;
        of a scaled task from the size.
    conventions: other conventions of a task whose answers are numbers. `exact_answer` has the
        definition by which answers are scored.
    approximate: the answer in floating-point arithmetic for the arithmetic baselines, from
        operator, operands, and a function that rounds an intermediate result. None: no baseline,
        unless the task has an `operand_format` with `evaluate`, or is bundled.
    sizes: how the questions of a scaled task grow; None for all others.
    every_digit: whether an answer has to have all digits of the exact answer, however many.
    operand_format: how the operands are written if not as they are.
    """

    name: str
    operators: tuple[str, ...]
    exact_answer: Callable[[str, Sequence[str]], Answer]
    sample: Sample | None = None
    prompts: TaskPrompts | None = None
    display: str = ""
    answer_kind: AnswerKind = "number"
    metric: Metric = "log_smape"
    difficulty: Callable[[str, Sequence[str], Answer], Difficulty] = printed_digits
    words_per_attempt: int = 16
    stream_name: str | None = None
    system_prompt: str = ""
    chance_accuracy: Callable[[int], float] = lambda _operand_count: 0.0
    conventions: tuple[Convention, ...] = ()
    approximate: (
        Callable[[str, Sequence[float], Callable[[float], float]], Approximation] | None
    ) = None
    sizes: SizeAxis | None = None
    every_digit: bool = False
    operand_format: OperandFormat | None = None

    def __post_init__(self) -> None:
        is_number, is_exact = self.answer_kind == "number", self.metric == "exact_match"
        operators, prompts, words = self.operators, self.prompts, self.words_per_attempt
        rules = {
            "name: use lower-case letters, digits and '_'": isinstance(self.name, str)
            and re.fullmatch(r"[a-z][a-z0-9_]*", self.name),
            "operators: give a tuple of at least one text": isinstance(operators, tuple)
            and operators
            and all(isinstance(operator, str) for operator in operators),
            f"answer_kind: use {', '.join(_ANSWERS)}": self.answer_kind in _ANSWERS,
            "metric: use log_smape or exact_match": self.metric in get_args(Metric),
            "metric log_smape needs answers that are numbers": is_exact or is_number,
            "conventions need metric log_smape": not (self.conventions and is_exact),
            "words_per_attempt: use an integer of at least 1": isinstance(words, int) and words > 0,
            "prompts: give TaskPrompts": isinstance(prompts, TaskPrompts | None),
        }
        for problem, holds in rules.items():
            if not holds:
                raise ValueError(f"task {self.name!r}: {problem}")
        if prompts is not None and prompts.questions.keys() != set(operators):
            raise ValueError(
                f"task {self.name!r}: prompts.questions has {', '.join(prompts.questions)}; give "
                f"one question for each operator: {', '.join(operators)}"
            )
        if not self.display:
            object.__setattr__(self, "display", self.name.capitalize())


MAX_DISCARDED = 1000
"""The attempts in which a sampler has to make a question when it is checked."""

_QUESTIONS = 8


def _matching(pattern: str) -> Any:
    return Annotated[str, msgspec.Meta(pattern=pattern)]


_NUMBER = (PlainNumber, "a decimal number in plain notation, as text")
_ANSWERS: dict[AnswerKind, tuple[Any, str]] = {
    "number": _NUMBER,
    "letter": (_matching("^[A-Z]$"), "one letter from A to Z"),
    "list": (tuple[PlainNumber, ...], "a tuple of texts, decimal numbers in plain notation"),
    "plain": _NUMBER,
    "fraction": (_matching("^-?[1-9][0-9]*/[1-9][0-9]*$"), "a fraction such as -3/4, as text"),
    "scientific": (
        _matching(r"^-?[1-9](?:\.[0-9]*[1-9])?e(?:0|-?[1-9][0-9]*)$"),
        "a number in scientific notation such as 1.25e-7, as text",
    ),
}
"""Kind of answers → their type, and what they are."""


def check_task(task: Task) -> None:
    """Check a task by its first questions. Raises ValueError that says which field is wrong."""
    for name in ("prompts", "sample"):
        if getattr(task, name) is None:
            raise ValueError(f"Task.{name} is missing")
    sizes = task.sizes
    settings = SamplingSettings(question_size=sizes and sizes.minimum)
    count = task.words_per_attempt if sizes is None else sizes.words(sizes.minimum)
    generator, params, found = random.Random(0), set[frozenset[str]](), 0
    for _ in range(MAX_DISCARDED):
        words = [generator.getrandbits(64) for _ in range(count)]
        question = sample_question(task, RandomWords(words), settings)
        if question != sample_question(task, RandomWords(words), settings):
            raise ValueError(
                "Task.sample gives different questions for the same random words; take all "
                "randomness from `words`"
            )
        if question is not None:
            _check_question(task, question)
            params.add(frozenset(question.params))
            found += 1
        if len(params) > 1:
            raise ValueError("Task.sample has to return the same keys of params each time")
        if found == _QUESTIONS:
            return
    if not found:
        raise ValueError(f"Task.sample discarded {MAX_DISCARDED:,} attempts; discard fewer")


def sample_question(
    task: Task, words: RandomWords, settings: SamplingSettings
) -> SampledQuestion | None:
    """Return the question of an attempt. Raises ValueError if it cannot be asked."""
    assert task.sample is not None
    sampled = _call("Task.sample", task.sample, words, settings)
    if sampled is None:
        return None
    try:
        question = msgspec.convert(msgspec.to_builtins(sampled), SampledQuestion)
    except (msgspec.ValidationError, TypeError):
        raise ValueError(
            f"Task.sample returned {sampled!r:.80}; return None, or a SampledQuestion whose "
            f"operands are {_ANSWERS['list'][1]}, and whose params are integers"
        ) from None
    if question.operator not in task.operators:
        raise ValueError(
            f"Task.sample returned the operator {question.operator!r}, not in Task.operators"
        )
    return question


def answer_question(task: Task, question: SampledQuestion) -> Answer:
    """Return the exact answer. Raises ValueError if it is not one of the kind that is declared."""
    operator, operands, _ = question
    answer = _call("Task.exact_answer", task.exact_answer, operator, operands)
    try:
        valid: Answer = msgspec.convert(msgspec.to_builtins(answer), _ANSWERS[task.answer_kind][0])
    except (msgspec.ValidationError, TypeError):
        raise ValueError(
            f"Task.exact_answer returned {answer!r:.80} for the operands "
            f"{', '.join(operands):.80}; return {_ANSWERS[task.answer_kind][1]}"
        ) from None
    return valid


def check_item(task: Task, item: Item) -> None:
    """Raise ValueError if an item of a dataset is none that the task could have made."""
    if item.operator not in task.operators:
        raise ValueError(f"operator {item.operator!r}: {task.name} has {', '.join(task.operators)}")
    wanted = {"operands": _ANSWERS["list"], "answer": _ANSWERS[task.answer_kind]}
    for field, (kind, description) in wanted.items():
        value = getattr(item, field)
        try:
            msgspec.convert(msgspec.to_builtins(value), kind)
        except msgspec.ValidationError:
            raise ValueError(f"{field} {value!r:.80}: not {description}") from None
    if not item.operands:
        raise ValueError("no operands")


def _check_question(task: Task, question: SampledQuestion) -> None:
    assert task.prompts is not None
    operator, operands, _ = question
    answer = answer_question(task, question)
    difficulty = _call("Task.difficulty", task.difficulty, operator, operands, answer)
    if not isinstance(difficulty, Difficulty):
        raise ValueError(f"Task.difficulty returned {difficulty!r:.80}; return a Difficulty")
    chance = _call("Task.chance_accuracy", task.chance_accuracy, len(operands))
    if not 0 <= chance <= 1:
        raise ValueError(f"Task.chance_accuracy returned {chance}; return a probability, 0 to 1")
    fields = set(template_fields(task.prompts.questions[operator]))
    if not fields & {"list", "expression"} and len(fields) != len(operands):
        raise ValueError(
            f"Task.sample returned {len(operands)} operands, but the question of {operator!r} has "
            f"{len(fields)} fields"
        )
    if "expression" in fields and task.operand_format is None:
        raise ValueError("Task.operand_format is missing; a question has the field {expression}")


def _call(name: str, function: Callable[..., T], *arguments: object) -> T:
    """Return the result of a function of the task. Raises ValueError if it fails."""
    try:
        return function(*arguments)
    except Exception as error:
        # Whatever a plugin raises is reported with the field that raised it.
        raise ValueError(f"{name} failed ({type(error).__name__}: {error})") from error
