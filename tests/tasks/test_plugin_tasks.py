"""Tasks of other packages: one declaration and one entry point are enough."""

import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import gcd
from pathlib import Path

import pytest

from numbench.dataset.audit import audit
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings, parse_tasks
from numbench.dataset.store import Dataset
from numbench.errors import BadInput
from numbench.records import Difficulty, Response
from numbench.runner.few_shot import examples
from numbench.scoring import score_exact, score_lenient
from numbench.tasks import (
    CONTEXT_TASKS,
    FORM_TASKS,
    PAPER_TASKS,
    SCALED_TASKS,
    TASKS,
    RandomWords,
    SampledQuestion,
    SamplingSettings,
    Task,
    TaskPrompts,
    check_task,
)
from numbench.tasks.base import LETTERS
from numbench.tasks.prompts import load_prompt_set
from numbench.tasks.shards import Shard, generate_items, shard_of
from tests.support.case_tables import each_row
from tests.support.command_line import NUMBENCH, finish
from tests.tasks.gcd_task import GCD

SETTINGS = DatasetSettings(name="plugin", tasks=("gcd",), size=30)


@pytest.fixture(autouse=True)
def small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Datasets are drawn from 60 questions, not from 10,000."""
    monkeypatch.setattr("numbench.dataset.shard_files.POOL_SIZE", 60)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """A function that adds a task to the registry."""

    def add(task: Task) -> None:
        monkeypatch.setitem(TASKS, task.name, task)
        load_prompt_set.cache_clear()

    yield add
    load_prompt_set.cache_clear()


def test_a_plugin_task_needs_nothing_but_its_declaration(install, tmp_path: Path) -> None:
    """Defaults, exact answers, escapes, params, both formats, more rows than a pool, examples."""
    assert (GCD.display, GCD.answer_kind, GCD.metric) == ("Gcd", "number", "log_smape")
    assert GCD.chance_accuracy(2) == 0
    assert GCD.difficulty("gcd", ("12", "345"), "3") == Difficulty(5, 13)
    install(replace(GCD, sample=_with_params))
    assert parse_tasks(["all"]) == DatasetSettings().tasks == tuple(PAPER_TASKS)
    assert parse_tasks(["gcd", "mean"]) == ("mean", "gcd")
    dataset = generate(SETTINGS, tmp_path / "data")
    for item in dataset.by_task["gcd"]:
        a, b = item.operands
        assert item.answer == str(gcd(int(a), int(b)))
        assert item.prompt == f'What is the "greatest common divisor" of {a} and {b}?\n'
        assert 0 <= item.params["k"] <= 9
    parquet = generate(SETTINGS._replace(format="parquet"), tmp_path / "parquet")
    assert parquet.by_task == dataset.by_task
    large = generate(SETTINGS._replace(size=61), tmp_path / "large")
    assert large.by_task["gcd"][:20] == list(islice(generate_items(Shard("gcd")), 20))
    assert audit(dataset.path).checked == {"gcd": 30} and not audit(dataset.path).wrong
    shown = examples(dataset, ("gcd",), 3)["gcd"]
    assert len({item.id for item in shown} - dataset.by_id.keys()) == 3
    part = islice(generate_items(Shard("gcd", index=1, count=3)), 9)
    assert {shard_of(item.operands, 3) for item in part} == {1}


def _with_params(words: RandomWords, _settings: SamplingSettings) -> SampledQuestion:
    operands = str(words.randint(1, 10**9)), str(words.randint(2, 10**9))
    return SampledQuestion("gcd", operands, {"k": words.randint(0, 9)})


OCTANT = Task(
    name="octant",
    operators=("octant",),
    sample=lambda words, _: SampledQuestion("octant", (str(words.randint(0, 8 * 10**6 - 1)),)),
    exact_answer=lambda _, operands: LETTERS[int(operands[0]) // 10**6],
    answer_kind="letter",
    metric="exact_match",
    prompts=TaskPrompts(
        'Return exactly one JSON object: {"answer": <letter>}',
        {"octant": "How many millions has {a}? A: 0, B: 1, C: 2, D: 3, E: 4, F: 5, G: 6, H: 7"},
    ),
)


def test_options_beyond_f_are_read_and_scored(install, tmp_path: Path) -> None:
    install(OCTANT)
    items = generate(SETTINGS._replace(tasks=("octant",)), tmp_path / "octant").by_task
    item = next(item for item in items["octant"] if item.answer == "H")

    def scores(text: str) -> tuple[bool, bool, str | None]:
        response = Response(item_id=item.id, text=text)
        exact, lenient = score_exact(item, response), score_lenient(item, response)
        return exact.exact_match, lenient.exact_match, exact.error_kind

    for text in (
        '{"answer": "H"}', '{"answer": "h"}', '{"answer": "H", "unit": ""}', '{"answer": "H"\n',
        'The answer is H: {"answer": "H"}', '{"answer": "H"} because it is H', "(H)", "Answer: H",
    ):  # fmt: skip
        assert scores(text) == (True, True, None), text
    for text in ("\\boxed{H}", "The answer is **H**.", "It belongs to H."):
        assert scores(text) == (False, True, "notation"), text
    assert scores('{"answer": "G"}') == (False, False, "choice")
    assert scores("G or H") == (False, False, "format")


def test_a_dataset_of_a_missing_plugin_names_the_task(
    install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(GCD)
    dataset = generate(SETTINGS, tmp_path / "data")
    monkeypatch.delitem(TASKS, "gcd")
    with pytest.raises(BadInput, match="task 'gcd' is not installed; install the package"):
        Dataset(dataset.path).by_task  # noqa: B018


def _with_random(_words: RandomWords, _settings: SamplingSettings) -> SampledQuestion:
    return SampledQuestion("gcd", (str(random.randrange(10**9)), "6"))


def _uneven(words: RandomWords, _settings: SamplingSettings) -> SampledQuestion:
    number = words.randint(1, 10**12)
    return SampledQuestion("gcd", (str(number), "6"), {f"key_{number % 2}": 1})


def _sampled(*question: object) -> dict[str, object]:
    """Return the slip of a sampler that returns this question."""
    return {"sample": lambda *_: SampledQuestion(*question)}  # type: ignore[arg-type]


def _answered(answer: object, **fields: object) -> dict[str, object]:
    """Return the slip of a task with this answer."""
    return {"exact_answer": lambda *_: answer} | fields


LETTER = {"answer_kind": "letter", "metric": "exact_match"}
PLAIN = "decimal numbers in plain notation"
SLIPS = [
    ({"name": "Greatest divisor"}, "use lower-case letters"),
    ({"operators": "gcd"}, "operators: give a tuple"),
    ({"operators": ("gcd", "lcm")}, "prompts.questions has gcd; give one question for each"),
    ({"prompts": {"gcd": "{a} and {b}?"}}, "prompts: give TaskPrompts"),
    ({"prompts": None}, "Task.prompts is missing"),
    ({"sample": None}, "Task.sample is missing"),
    ({"answer_kind": "list"}, "log_smape needs answers that are numbers"),
    ({"answer_kind": "text"}, "answer_kind: use number, letter, list, plain, fraction, scientific"),
    ({"metric": "accuracy"}, "metric: use log_smape or exact_match"),
    ({"words_per_attempt": 1}, "increase Task.words_per_attempt"),
    ({"sample": lambda *_: None}, "Task.sample discarded 1,000 attempts; discard fewer"),
    ({"sample": lambda *_: 1 / 0}, "Task.sample failed .ZeroDivisionError: division by zero"),
    ({"sample": lambda *_: "gcd"}, "return None, or a SampledQuestion"),
    ({"sample": _with_random}, "different questions for the same random words"),
    ({"sample": _uneven}, "has to return the same keys of params"),
    (_sampled("lcm", ("1", "2")), "returned the operator 'lcm', not in Task.operators"),
    (_sampled("gcd", (1, 2)), PLAIN),
    (_sampled("gcd", ("one", "2")), PLAIN),
    (_sampled("gcd", ("1e5", "2")), PLAIN),
    (_sampled("gcd", ("-0", "2")), PLAIN),
    (_sampled("gcd", ("1", "2", "3")), "returned 3 operands, but the question of 'gcd' has 2"),
    (_sampled("gcd", ("1", "2"), {"k": 0.5}), "params are integers"),
    (_answered(3), "Task.exact_answer returned 3 for the operands"),
    (_answered("1.50"), "return a decimal number in plain notation, as text"),
    (_answered("a", **LETTER), "return one letter from A to Z"),
    (_answered("AB", **LETTER), "return one letter from A to Z"),
    (_answered([1], answer_kind="list", metric="exact_match"), "return a tuple of texts"),
    ({"exact_answer": lambda *_: str(1 / 0)}, "Task.exact_answer failed .ZeroDivisionError"),
    ({"difficulty": lambda *_: 7}, "Task.difficulty returned 7; return a Difficulty"),
    ({"chance_accuracy": lambda _: 25}, "returned 25; return a probability, 0 to 1"),
]


@pytest.mark.parametrize(("change", "message"), SLIPS)
def test_a_slip_of_an_author_is_found_when_the_task_is_registered(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises((BadInput, ValueError), match=message):
        check_task(replace(GCD, **change))  # type: ignore[arg-type]


@each_row(__file__, "malformed_prompts")
def test_malformed_prompts_of_a_task_are_rejected(
    system: str | None, template: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        TaskPrompts(system or GCD.prompts.system, {"gcd": template})


@each_row(__file__, "parsed_prompts")
def test_prompts_with_any_number_of_operands_are_parsed_back(
    install, template: str, operands: tuple[str, ...]
) -> None:
    install(replace(GCD, prompts=TaskPrompts(GCD.prompts.system, {"gcd": template})))
    prompt = load_prompt_set().format_question("gcd", "gcd", operands)
    assert load_prompt_set().parse_question(prompt) == ("gcd", "gcd", operands)


def test_a_question_of_another_task_is_rejected(install) -> None:
    install(replace(GCD, prompts=TaskPrompts(GCD.prompts.system, {"gcd": "What is {a} + {b}?"})))
    with pytest.raises(BadInput, match="'gcd' has the same question as task 'addition'"):
        load_prompt_set()


def _one_of_three(words: RandomWords, _settings: SamplingSettings) -> SampledQuestion:
    """Sample one of three questions, all of the training split."""
    return SampledQuestion("gcd", (str(words.randint(1, 3)), "6"))


def _late_slip(_operator: str, operands: Sequence[str]) -> str:
    number = gcd(*map(int, operands))
    return str(number) if number < 5 else f"{number}.0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exact_answer": _late_slip}, "task 'gcd': Task.exact_answer returned '.*.0'"),
        ({"sample": _uneven}, "has to return the same keys"),
        ({"sample": lambda *_: None}, "gcd has only about 0 different test questions"),
        ({"sample": _one_of_three}, "gcd has only about 0 different test questions"),
    ],
)
def test_a_slip_that_shows_late_ends_the_generation(
    install, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    install(replace(GCD, **change))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=message):
        generate(SETTINGS, tmp_path / "data")
    assert not (tmp_path / "data").exists()


SCRIPT = """
import json
from pathlib import Path
from numbench.dataset import shard_files
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.tasks import TASKS
shard_files.POOL_SIZE = 60
if __name__ == "__main__":
    settings = DatasetSettings(name="g", tasks=("gcd", "mean"), size=5)
    dataset = generate(settings, Path("g"), workers=2)
    print(json.dumps([list(TASKS), list(dataset.tasks), len(dataset.by_id)]))
"""


def _install_package(folder: Path, entry_point: str) -> dict[str, str]:
    """Create the metadata of a package with one entry point; return the environment for it."""
    info = folder / "gcd_package-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gcd-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[numbench.tasks]\ngcd = {entry_point}\n")
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}


def test_an_installed_package_adds_its_task_in_every_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = _install_package(tmp_path / "site", "tests.tasks.gcd_task:GCD")
    done = finish(sys.executable, script, env=environment, cwd=tmp_path)
    assert json.loads(done.stdout) == [
        [*PAPER_TASKS, *SCALED_TASKS, *FORM_TASKS, *CONTEXT_TASKS, "gcd"],
        ["mean", "gcd"],
        10,
    ]


@each_row(__file__, "broken_plugins")
def test_a_broken_plugin_is_one_line_of_the_command(
    tmp_path: Path, entry_point: str, message: str
) -> None:
    environment = _install_package(tmp_path / "site", entry_point)
    done = finish(*NUMBENCH, "generate", code=2, env=environment, cwd=tmp_path)
    assert message in done.stderr and len(done.stderr.splitlines()) == 1
