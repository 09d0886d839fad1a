"""The number of matches expected by chance, against direct counts and SciPy."""

from decimal import Decimal
from random import Random

import pytest
from scipy import stats

import numbench as nb
from numbench.forensics import answers
from numbench.forensics.agreement import GivenAnswer, readings, round_to
from numbench.forensics.chance import ChanceModel, count_matches
from numbench.forensics.findings import find
from numbench.scoring import ScoredRun, score_run


def given(value: str, truth: str) -> GivenAnswer:
    number = Decimal(value)
    return GivenAnswer(number, len(number.normalize().as_tuple().digits), Decimal(truth))


def matches(
    answers: list[GivenAnswer], limit: int, first: GivenAnswer, *values: str
) -> tuple[int, ...]:
    """Return matches as they are, by errors and by units, of how many others, and of all."""
    trials = ChanceModel(answers, limit).trials(first, set(map(Decimal, values)))
    return (*(matching for matching, _ in trials), trials[0][1], trials[2][1])


def test_other_answers_and_their_errors_are_counted() -> None:
    # Errors: +1, +1, −1 and +7 units of the fourth digit.
    answers = [
        given("1.235", "1.234"),
        given("5.679", "5.678"),
        given("1.233", "1.234"),
        given("7.778", "7.771"),
    ]
    first = answers[0]
    assert matches(answers, 4, first, "1.235") == (0, 1, 1, 3, 3)
    assert matches(answers, 4, first, "1.233") == (1, 1, 1, 3, 3)
    assert matches(answers, 4, first, "1.241") == (0, 1, 1, 3, 3)
    assert matches(answers, 4, first, "5.679") == (1, 0, 0, 3, 3)


def test_only_answers_of_as_many_digits_take_part_where_there_are_enough() -> None:
    long = [given(f"1.{index:03}9", "2") for index in range(100, 130)]
    short = [given("1.23", "2")] * 30
    assert matches([*long, *short], 15, short[0], "1.23")[3] == 29
    few = matches([*long, *short[:5]], 15, short[0], "1.23")
    assert few[3] == 34


def test_matches_agree_with_a_direct_count() -> None:
    random = Random(3)
    answers = [
        given(str(random.randint(1001, 1099) / 1000), str(random.randint(1001, 1099) / 1000))
        for _ in range(200)
    ]
    answers = [answer for answer in answers if answer.digits == 4]
    for answer in answers[:40]:
        targets = readings((Decimal(random.randint(1001, 1099)) / 1000,), 4)
        others = list(answers)
        others.remove(answer)
        moved = [round_to(answer.truth + other.value - other.truth, 4) for other in others]
        by_answer = sum(other.value in targets for other in others)
        by_error = sum(value in targets for value in moved)
        # All answers have the same digits and magnitude: their last digits have the same unit.
        direct = (by_answer, by_error, by_error, len(others), len(others))
        assert matches(answers, 4, answer, *map(str, targets)) == direct


def test_the_p_value_is_a_poisson_tail_of_the_largest_expectation() -> None:
    for matches in (0, 1, 3, 12):
        few, many = [(1, 90)] * 20, [(2, 30)] * 20
        count = count_matches("std", "sign", matches, few, many)
        expected = 20 * 2 / 30 + 20 / 601
        assert (count.decidable, count.expected) == (20, pytest.approx(expected))
        assert count.p_value == pytest.approx(stats.poisson.sf(matches - 1, expected))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ScoredRun:
    folder = tmp_path_factory.mktemp("sample")
    tasks = ("addition", "multiplication")
    nb.generate("many", tasks=tasks, size=120, seed=4, out=folder / "data")
    path = nb.run("baseline/bfloat16", dataset=str(folder / "data"), out=folder / "run").path
    return score_run(path)


def test_a_sample_finds_the_same_computation(
    run: ScoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = find(run, {})
    monkeypatch.setattr(answers, "MAX_ANSWERS", 40)
    part = find(run, {})
    assert every.drawn_from == 0 < part.drawn_from
    assert part.wrong + part.shortened <= 80 < part.drawn_from
    for task in ("addition", "multiplication"):
        strongest = [
            max((c for c in known.counts if c.task == task), key=lambda c: c.matches).alternative
            for known in (every, part)
        ]
        assert strongest == ["bfloat16", "bfloat16"]
    assert f"wrong answers of {part.drawn_from}, at most " in part.sentence
    assert " of " not in every.sentence.split("wrong answers")[1].split("equal")[0]


def test_the_sample_depends_on_the_questions_only(
    run: ScoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MAX_ANSWERS", 30)
    turned = run._replace(rows={task: rows[::-1] for task, rows in run.rows.items()})
    chosen = [
        {row.item.id for rows in answers.sample_answers(one).rows.values() for row in rows}
        for one in (run, turned)
    ]
    assert chosen[0] == chosen[1] and len(chosen[0]) == 60
    wrong = answers.sample_answers(run, is_wrong=True).rows["addition"]
    assert not any(row.score.exact_match for row in wrong)
