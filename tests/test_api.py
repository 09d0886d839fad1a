"""The public API: what the documentation promises works with plain arguments."""

import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import numbench as nb
from numbench.demo import demo
from numbench.scoring import summarize
from tests.report import runs as synthetic
from tests.support.case_tables import each_row
from tests.support.command_line import imported_by

MODELS = ("baseline/float32", "baseline/bfloat16")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> nb.Dataset:
    out = tmp_path_factory.mktemp("data") / "small"
    return nb.generate("small", size=6, tasks=["addition", "sorting"], seed=3, out=out)


@pytest.fixture(scope="module")
def runs(dataset: nb.Dataset, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    return [
        nb.run(model, dataset=dataset.path, out=folder / model.rpartition("/")[2]).path
        for model in MODELS
    ]


def test_every_public_name_can_be_imported() -> None:
    for name in nb.__all__:
        assert getattr(nb, name) is not None
    assert set(nb.__all__) == set(dir(nb))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        nb.nothing  # noqa: B018
    modules = {module.name for module in pkgutil.iter_modules(nb.__path__)}
    assert not modules & set(nb.__all__)


def test_importing_the_package_loads_no_library() -> None:
    heavy = ("numpy", "pandas", "pyarrow", "matplotlib", "msgspec", "openai", "rich")
    assert not imported_by("import numbench", *heavy, "numbench.api")


def test_a_generated_dataset_is_the_one_that_loads(dataset: nb.Dataset) -> None:
    by_task = nb.load_dataset(dataset.path).by_task
    assert {task: len(items) for task, items in by_task.items()} == {"sorting": 6, "addition": 6}
    assert isinstance(by_task["addition"][0], nb.Item)


def test_scores_load_as_one_row_per_response(runs: list[Path]) -> None:
    scores = nb.load_scores(runs)
    assert len(scores) == 24
    assert isinstance(scores, pd.DataFrame)
    by_task = scores.groupby(["model", "task"])["log_smape"].mean()
    exact = [
        sum(row.score.log_smape or 0.0 for row in nb.score(path).rows["addition"]) / 6
        for path in runs
    ]
    names = ["float32 arithmetic", "bfloat16 arithmetic"]
    assert [by_task[name, "addition"] for name in names] == pytest.approx(exact)
    # Baselines count no tokens: unknown is missing, not 0.
    assert scores["generated_tokens"].isna().all()
    assert len(nb.load_scores([])) == 0


def test_loaded_tokens_are_those_of_the_tables(tmp_path: Path) -> None:
    data = synthetic.dataset(tmp_path, tasks=("addition",))
    responses = {
        f"addition-{index}": synthetic.right("addition", index, tokens)
        for index, tokens in enumerate((10, 20, 500, None))
    }
    folder = synthetic.run(
        tmp_path / "run", data, responses, tasks=("addition",), model="gemini-2.5-flash",
        reasoning="none",
    )  # fmt: skip
    # The paper left out more than 200 tokens of this configuration.
    for protocol, tokens in (("exact", [10, 20, 500]), ("paper", [10, 20])):
        scores = nb.load_scores(folder, protocol=protocol)  # type: ignore[arg-type]
        assert scores["generated_tokens"].dropna().tolist() == tokens
        summary = summarize(nb.score(folder, protocol=protocol))["addition"]  # type: ignore[arg-type]
        assert summary.tokens == pytest.approx(sum(tokens) / len(tokens))


@each_row(__file__, "wrong_arguments")
def test_a_wrong_argument_about_a_run_is_refused_in_one_line(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    name: str, arguments: dict[str, Any], message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("run").symlink_to(runs[0])
    with pytest.raises(nb.BadInput, match=message) as refused:
        getattr(nb, name)("run", **arguments)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nb.compare(3, "b"), "old 3: give text or a path"),  # type: ignore[arg-type]
        (lambda: nb.compare("a", "b", margin="x"), "margin 'x'"),  # type: ignore[arg-type]
        (lambda: nb.generate(split="dev"), "give test or val or train"),  # type: ignore[arg-type]
        (lambda: nb.report([]), "name at least one run folder"),
        (lambda: nb.plan("baseline/float64", limit=1, out="."), "holds other files"),
        (lambda: nb.run_memory_test("baseline/float64", out="."), "holds other files"),
        (lambda: demo(Path()), "holds other files"),
        (lambda: nb.compare("mine.tx", "mine.txt"), "mine.tx does not exist; did you mean mine"),
        (lambda: nb.plan("openai/x", base_url=""), "--base-url is empty"),
    ],
)
def test_wrong_use_is_refused_before_anything_is_written(
    call: Callable[[], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.txt").touch()
    with pytest.raises(nb.BadInput, match=message):
        call()
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.usefixtures("without_figures")
def test_every_function_takes_plain_arguments(
    dataset: nb.Dataset, runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nb.compare(runs[0], runs[0]).tasks[0].change == 0
    assert isinstance(nb.compare(*runs).failures, tuple)
    url, out = "http://127.0.0.1:1/v1", tmp_path / "planned"
    planned = nb.plan("openai/any", base_url=url, dataset=dataset.path, out=out)
    assert planned.requests == 12 and not out.exists()
    nb.show(runs[1], tasks=["addition"], wrong=True, limit=1)
    assert "What is" in capsys.readouterr().out
    audited = nb.audit(dataset.path)
    assert sum(audited.checked.values()) == 12 and not audited.wrong
    messages: list[str] = []
    result = nb.report(runs, out=tmp_path, references=False, on_progress=messages.append)
    assert (result.out / "report.html").is_file() and messages
    with pytest.raises(nb.BadInput, match="addition"):
        nb.generate("other", tasks=["Add"])
    halves = [
        nb.run(MODELS[0], dataset=dataset.path, shard=f"{n}/2", out=tmp_path / f"half{n}").path
        for n in (1, 2)
    ]
    merged = nb.merge(halves, out=tmp_path / "merged")
    assert (merged.requests, merged.missing) == (12, 0)
    frame = nb.compare(merged.path, runs[1]).to_frame()
    assert frame["task"].tolist() == ["all", "sorting", "addition"]
    assert frame["items"].tolist()[1:] == [6, 6]
    assert frame["decides"].tolist() == [True, False, False]
    (checked,) = nb.verify(merged.path, complete=True)
    assert checked.is_valid and checked.path == merged.path
    (baseline,) = nb.export(runs[0], to="baseline", out=tmp_path / "baseline.json").files
    assert nb.compare(baseline, runs[0]).tasks[0].change == 0
    site = nb.write_leaderboard(runs, out=tmp_path / "site", published=False)
    assert site.runs == 2 and (site.out / "index.html").is_file()
    for call in (
        lambda: nb.verify(runs, complete=True, repair=True),
        lambda: nb.export(runs, to="baseline", out=tmp_path / "both.json"),
        lambda: nb.import_logs(tmp_path / "half1", out=tmp_path / "imported"),
    ):
        with pytest.raises(nb.BadInput):
            call()
