"""Suite files: products of options, by the names that they have everywhere."""

from pathlib import Path
from typing import Any

import pytest

from numbench.errors import BadInput
from numbench.runner.spec import RunSpec
from numbench.runner.suite import plan_suite, run_suite, suite_file
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.runs import QUICK, small_dataset
from tests.support.servers import serve

FILE = Path("suite.toml")


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return small_dataset(tmp_path / "data", 3)


def specs(text: str, dataset: Path, **options: Any) -> list[RunSpec]:
    """Return the runs of a suite file with this text."""
    FILE.write_text(text)
    return suite_file(FILE, {}, {"dataset": dataset, "limit": 2, **options})


def test_a_matrix_is_a_product(dataset: Path) -> None:
    found = specs(
        '[[matrix]]\nmodel = ["gpt-6-luna", "grok-4.7"]\nreasoning = ["low", "high"]\n'
        f'dataset = ["{dataset}", "short"]\nfew_shot = [0, 3]\nsamples = [1, 2]\nlimit = 1\n'
        '[[matrix]]\nmodel = "kimi-k2-0905"\n'
        '[[matrix]]\nmodel = "deepseek-v4.1-flash"\nreasoning = "all"\ntemperature = 0.5\n'
        'name = "warm"\n',
        dataset,
    )
    assert len(found) == 32 + 1 + 4
    assert len({spec.out for spec in found}) == len(found)
    first = found[0]
    assert (first.model, first.reasoning) == ("gpt-6-luna", "low")
    assert (first.few_shot, first.samples) == (0, 1)
    assert (first.limit, found[32].limit) == (1, 2)
    assert str(found[0].out) == "results/gpt-6-luna_low_small_1-samples"
    assert str(found[32].out) == "results/kimi-k2-0905_none_small"
    assert [spec.reasoning for spec in found[33:]] == ["none", "low", "high", "max"]
    assert str(found[-1].out) == "results/deepseek-v4.1-flash_max_small_warm"
    assert found[-1].temperature == 0.5


def test_every_option_of_a_run_can_be_in_a_suite(dataset: Path) -> None:
    (spec,) = specs('[[matrix]]\nmodel = "openai/any"\n', dataset)
    assert (spec.reasoning, str(spec.out)) == (None, "results/openai-any_default_small")
    first, second = specs(
        '[[matrix]]\nmodel = "gemini-2.5-pro"\nreasoning = "512"\ntasks = ["addition"]\n'
        'seed = 3\ntimeout = "5m"\nretry = ["empty"]\nrpm = 9\nheaders = {X-A = "b"}\n'
        'transform = ["none", "swap"]\n[matrix.params]\ntop_k = 5\n',
        dataset,
        samples=2,
        temperature=0.5,
    )
    assert str(first.out) == "results/gemini-2.5-pro_512-tokens_small"
    assert str(second.out) == "results/gemini-2.5-pro_512-tokens_small_swap"
    assert (first.tasks, first.seed, first.timeout, first.rpm) == (("addition",), 3, 300.0, 9)
    assert (first.params, first.headers, first.retry) == ({"top_k": 5}, {"X-A": "b"}, {"empty"})
    assert (first.samples, first.temperature) == (2, 0.5)


@each_row(__file__, "wrong_suites")
def test_a_mistake_names_the_file_and_the_matrix(dataset: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        specs(text, dataset)
    assert str(caught.value).startswith("suite.toml")


def test_a_missing_file_is_reported() -> None:
    with pytest.raises(BadInput, match="give --suite paper or a TOML file"):
        suite_file(Path("gone.toml"), {}, {})


def test_a_suite_of_a_file_runs_and_resumes(dataset: Path, tmp_path: Path) -> None:
    text = (
        '[[matrix]]\nmodel = "gpt-6-luna"\nreasoning = ["low", "max"]\n'
        '[[matrix]]\nmodel = "gemini-2.5-pro"\nreasoning = "512-tokens"\n'
    )
    with serve(servers.plain) as server:
        options = {"limit": 1, "out": tmp_path / "r", "base_url": server.url}
        reports = run_suite(plan_suite(specs(text, dataset, **options)), policy=QUICK)
        assert [report.answered for report in reports] == [2, 2, 2]
        assert run_suite(plan_suite(specs(text, dataset, **options)), policy=QUICK) == ()
        budgets = [
            each.body["generationConfig"]["thinkingConfig"]
            for each in server.received
            if "generationConfig" in each.body
        ]
        options["out"] = tmp_path / "other"
        with pytest.raises(ZeroDivisionError):
            plans = plan_suite(specs(text, dataset, **options))
            run_suite(plans, on_done=lambda report: report.answered / 0, policy=QUICK)
    assert len(server.received) == 10
    assert budgets == 2 * [{"includeThoughts": True, "thinkingBudget": 512}]
