"""Of many answers a random sample is compared: the same questions for every run, and it says so."""

import pytest

import numbench as nb
from numbench.forensics import answers
from numbench.forensics.findings import find
from numbench.scoring import ScoredRun, score_run


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
