"""The exported folder for lm-evaluation-harness. Needs `pip install 'numbench[lm-eval]'`."""

import json
from pathlib import Path

import pytest

from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.dataset.store import Dataset, open_dataset
from numbench.ecosystem.lm_eval_harness import export_lm_eval
from numbench.errors import BadInput
from numbench.models.base import Message
from numbench.runner.few_shot import examples, messages_before
from numbench.scoring import summarize
from numbench.tasks import PAPER_TASKS
from numbench.tasks.prompts import load_prompt_set
from tests.ecosystem import canned

lm_eval = pytest.importorskip("lm_eval", reason="pip install 'numbench[lm-eval]'")

from lm_eval.api.instance import Instance  # noqa: E402
from lm_eval.api.model import LM  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402

pytestmark = pytest.mark.slow


class Canned(LM):
    """A chat model with canned answers by question; records messages and options of requests."""

    def __init__(self, texts: dict[str, str]) -> None:
        super().__init__()
        self.texts = texts
        self.conversations: list[list[dict[str, str]]] = []
        self.options: list[dict[str, object]] = []

    tokenizer_name = "none"

    def chat_template(self, chat_template: bool | str = False) -> str:
        return ""

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        return json.dumps(chat_history)

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        for request in requests:
            self.conversations.append(json.loads(request.args[0]))
            self.options.append(request.args[1])
        return [self.texts[messages[-1]["content"]] for messages in self.conversations]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A small dataset of all nine tasks."""
    settings = DatasetSettings(name="small", tasks=tuple(PAPER_TASKS), size=canned.LIMIT)
    return generate(settings, tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def folder(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exported folder of the small dataset."""
    path = tmp_path_factory.mktemp("folder")
    assert export_lm_eval(dataset, path) == "numbench_small"
    return path


def evaluate_tasks(folder: Path, model: LM, tasks: list[str], **options: object) -> dict:
    results = lm_eval.simple_evaluate(
        model=model,
        tasks=tasks,
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        limit=canned.LIMIT,
        apply_chat_template=True,
        bootstrap_iters=0,
        **options,
    )
    assert results is not None
    return results


def test_scores_equal_those_of_a_numbench_run(
    dataset: Dataset, folder: Path, tmp_path: Path
) -> None:
    model = Canned(canned.texts(dataset))
    results = evaluate_tasks(folder, model, ["numbench_small"])["results"]
    summaries = summarize(canned.scored_run(tmp_path / "run", dataset))
    for task, summary in summaries.items():
        values = results[f"numbench_small_{task}"]
        assert 100 * values["log_smape,none"] == pytest.approx(summary.score, abs=1e-9)
        assert 100 * values["exact_match,none"] == pytest.approx(summary.exact_match, abs=1e-9)
        assert 100 * values["compliance,none"] == pytest.approx(summary.compliance, abs=1e-9)
    mean = sum(summary.score for summary in summaries.values()) / len(summaries)
    assert 100 * results["numbench_small"]["log_smape,none"] == pytest.approx(mean, abs=1e-9)


def test_messages_equal_those_of_a_numbench_run(dataset: Dataset, folder: Path) -> None:
    model = Canned(canned.texts(dataset))
    options = {"num_fewshot": 2, "fewshot_as_multiturn": True}
    evaluate_tasks(folder, model, ["numbench_small_std"], **options)
    worked = examples(dataset, ["std"], 2)["std"]
    question = dataset.by_task["std"][0].prompt
    expected = [*messages_before(load_prompt_set(), "std", worked), Message("user", question)]
    messages = [(m["role"], m["content"].rstrip("\n")) for m in model.conversations[0]]
    assert messages == [tuple(message) for message in expected]


def test_generation_is_greedy_and_does_not_stop_at_a_blank_line(
    dataset: Dataset, folder: Path
) -> None:
    model = Canned(canned.texts(dataset))
    evaluate_tasks(folder, model, ["numbench_small_std"])
    assert model.options[0] == {
        "until": [],
        "do_sample": False,
        "temperature": 0.0,
        "max_gen_toks": 16384,
    }


def test_folder_contains_only_one_dataset(folder: Path) -> None:
    with pytest.raises(BadInput, match="another dataset"):
        export_lm_eval(open_dataset("v1"), folder)
