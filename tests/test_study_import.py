"""Import of the study's raw files: content, names, and errors."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

import numbench as nb
from numbench.csv_files import read_csv
from numbench.dataset.audit import audit
from numbench.dataset.store import (
    RELEASED_DATASETS,
    Dataset,
    PublishedLabel,
    open_dataset,
    read_published_labels,
)
from numbench.errors import BadInput
from numbench.journal import read_run
from numbench.jsonl import read_lines
from numbench.records import Response, Usage
from numbench.scoring import score_run, summarize
from numbench.study_import import import_study

BENCHMARK = "{}_decimal_uniform_test_500_shuffle.csv"
RESPONSES = "{}_decimal_uniform_test_500_shuffle_{}_re_{}.csv"
QUESTIONS = [
    {"text_prompt": "What is 1.5 + 2.25?", "answer": "3.75"},
    {"text_prompt": "What is 2 - 0.5?", "answer": "1.4999"},
    {"text_prompt": "What is 7 + 1?", "answer": "8"},
]
RIGHT = ['{"answer": 3.75}', '{"answer": 1.5}', '{"answer": 8}']


def _write(folder: Path, name: str, rows: Sequence[dict[str, str]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "w", newline="", encoding="utf-8") as file:
        columns = list(dict.fromkeys(column for row in rows for column in row))
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return folder / name


def _benchmark(folder: Path, questions: Sequence[dict[str, str]] = QUESTIONS) -> None:
    _write(folder, BENCHMARK.format("Addition"), questions)


def _responses(
    folder: Path,
    texts: Sequence[str] = RIGHT,
    vendor: str = "openai__gpt-5",
    effort: str = "high",
    extra: Sequence[dict[str, str]] = ({}, {}, {}),
) -> None:
    rows = [
        {**question, "raw_response": text, "tokens": "7", **more}
        for question, text, more in zip(QUESTIONS, texts, extra, strict=False)
    ]
    _write(folder, RESPONSES.format("Addition", vendor, effort), rows)


def _imported(tmp_path: Path, messages: list[str] | None = None) -> list[Path]:
    notes: list[str] = [] if messages is None else messages
    return import_study(tmp_path / "csv", tmp_path / "out", notes.append)


def _imported_responses(
    tmp_path: Path, texts: Sequence[str] = RIGHT, extra: Sequence[dict[str, str]] = ({}, {}, {})
) -> tuple[Path, list[Response]]:
    """Import one file, and return its run folder and responses."""
    _benchmark(tmp_path / "csv")
    _responses(tmp_path / "csv", texts, extra=extra)
    (folder,) = _imported(tmp_path)
    return folder, list(read_run(folder).responses.values())


def test_a_file_becomes_a_dataset_and_a_run(tmp_path: Path) -> None:
    _benchmark(tmp_path / "csv")
    _responses(tmp_path / "csv")
    (folder,) = _imported(tmp_path)
    assert folder == tmp_path / "out" / "gpt-5_maximal"
    run = read_run(folder)
    assert (run.info.model, run.info.display, run.info.reasoning) == ("gpt-5", "GPT 5", "maximal")
    assert (run.info.tasks, run.info.source, run.info.limit) == (("addition",), "imported", None)
    items = Dataset(tmp_path / "out" / "dataset").by_task["addition"]
    assert [item.prompt for item in items] == [row["text_prompt"] for row in QUESTIONS]
    assert [item.answer for item in items] == ["3.75", "1.5", "8"]
    assert [run.responses[item.id].text for item in items] == RIGHT
    assert {response.extra["study_tokens"] for response in run.responses.values()} == {7}


def test_wrong_labels_count_only_under_the_paper_protocol(tmp_path: Path) -> None:
    folder, _ = _imported_responses(tmp_path / "a")
    assert summarize(score_run(folder))["addition"].exact_match == 100
    paper = summarize(score_run(folder, "paper"))["addition"]
    assert (paper.exact_match, paper.tokens) == (pytest.approx(200 / 3), 7)
    # A file with other labels is scored by its own.
    _benchmark(tmp_path / "b" / "csv")
    _responses(tmp_path / "b" / "csv", extra=[{}, {"answer": "1.5"}, {}])
    messages: list[str] = []
    (folder,) = _imported(tmp_path / "b", messages)
    assert summarize(score_run(folder, "paper"))["addition"].exact_match == 100
    assert "1 labels differ" in messages[0]


def test_importing_again_writes_the_same_bytes(tmp_path: Path) -> None:
    _benchmark(tmp_path / "csv")
    _responses(tmp_path / "csv")

    def contents() -> dict[str, bytes]:
        files = sorted(path for path in (tmp_path / "out").rglob("*.json*") if path.is_file())
        return {str(path): path.read_bytes() for path in files}

    _imported(tmp_path)
    first = contents()
    assert len(first) == 5
    _imported(tmp_path)
    assert contents() == first


MODELS = {
    ("openai__gpt-oss-120b", "high"): ("gpt-oss-120b_maximal", "GPT OSS 120B"),
    ("google__gemini-2.5-pro", "minimal"): ("gemini-2.5-pro_minimal", "Gemini 2.5 Pro"),
    ("google__gemini-2.5-flash", "none"): ("gemini-2.5-flash_none", "Gemini 2.5 Flash"),
    ("qwen__qwen3-235b-a22b-2507", "none"): ("qwen3-235b-2507_none", "Qwen3 235B 2507"),
    ("qwen__qwen3-235b-a22b-thinking-2507", "none"): ("qwen3-235b-2507_maximal", "Qwen3 235B 2507"),
    ("deepseek__deepseek-chat-v3.1", "high"): ("deepseek-v3.1_maximal", "DeepSeek v3.1"),
    ("deepseek__deepseek-v3.1", "none"): ("deepseek-v3.1_none", "DeepSeek v3.1"),
    ("moonshotai__kimi-k2-0905", "none"): ("kimi-k2-0905_none", "Kimi K2 0905"),
    ("meta-llama__llama-4-maverick", "none"): ("llama-4-maverick_none", "Llama 4 Maverick"),
    ("acme__solver", "low"): ("acme__solver_low", "acme__solver"),
}


def test_vendor_names_become_catalogue_names(tmp_path: Path) -> None:
    for vendor, effort in MODELS:
        _responses(tmp_path / "csv", vendor=vendor, effort=effort)
    messages: list[str] = []
    infos = {path.name: read_run(path).info for path in _imported(tmp_path, messages)}
    assert len(infos) == len(MODELS)
    for (vendor, effort), (folder, display) in MODELS.items():
        assert infos[folder].display == display
        served = vendor.replace("__", "/")
        assert infos[folder].settings == {"served_model": served, "effort": effort}
    # Only a model that is not known is mentioned.
    assert len(messages) == 1 and "acme__solver" in messages[0]


def test_two_files_never_share_a_run(tmp_path: Path) -> None:
    _responses(tmp_path / "csv", vendor="deepseek__deepseek-chat-v3.1", effort="none")
    _responses(tmp_path / "csv", ["1", "2", "3"], vendor="deepseek__deepseek-v3.1", effort="none")
    messages: list[str] = []
    names = [path.name for path in _imported(tmp_path, messages)]
    assert names == ["deepseek-v3.1_none", "deepseek__deepseek-v3.1_none"]
    assert "deepseek__deepseek-v3.1" in messages[0]


def test_a_question_asked_twice_keeps_both_rows(tmp_path: Path) -> None:
    twice = [QUESTIONS[0], QUESTIONS[1], QUESTIONS[0]]
    _benchmark(tmp_path / "csv", twice)
    rows = [{**question, "raw_response": str(n)} for n, question in enumerate(twice)]
    _write(tmp_path / "csv", RESPONSES.format("Addition", "openai__gpt-5", "none"), rows)
    (folder,) = _imported(tmp_path)
    items = Dataset(tmp_path / "out" / "dataset").by_task["addition"]
    assert items[2].id == f"{items[0].id}-2"
    responses = read_run(folder).responses
    assert [responses[item.id].text for item in items] == ["0", "1", "2"]


def test_benchmark_or_response_files_alone_are_enough(tmp_path: Path) -> None:
    _benchmark(tmp_path / "a" / "csv")
    assert _imported(tmp_path / "a") == []
    _responses(tmp_path / "b" / "csv")
    _imported(tmp_path / "b")
    data = [Dataset(tmp_path / side / "out" / "dataset").manifest.sha256 for side in "ab"]
    assert data[0] == data[1]


def test_a_shorter_response_file_leaves_items_missing(tmp_path: Path) -> None:
    _benchmark(tmp_path / "csv")
    _responses(tmp_path / "csv", RIGHT[:2])
    (folder,) = _imported(tmp_path)
    assert summarize(score_run(folder))["addition"].statuses == {"ok": 2, "missing": 1}


def test_malformed_responses_are_stored_verbatim(tmp_path: Path) -> None:
    texts = ['{"answer": 0.' + "0" * 300_000, "Token limit reached", 'a\x00b\r\n"c", ü']
    more = [{"reasoning": "why\nnot"}, {"tokens": "-1"}, {"tokens": "nan"}]
    _, responses = _imported_responses(tmp_path, texts, more)
    assert [response.text for response in responses] == texts
    assert [response.finish_reason for response in responses] == [None, "length", None]
    assert [response.reasoning_text for response in responses] == ["why\nnot", None, None]
    extra: list[object] = [{"study_tokens": 7}, {"study_tokens": -1}, {}]
    assert [response.extra for response in responses] == extra


@pytest.mark.parametrize(
    ("text", "tokens", "status"),
    [
        ("Let me compute 1.5 + 2", 4096, "truncated"),
        ("Let me compute 1.5 + 2", 8000, "truncated"),
        ("Let me compute 1.5 + 2", 65522, "truncated"),
        ("Let me compute 1.5 + 2", 65535, "truncated"),
        ("Let me compute 1.5 + 2", 4097, "unparseable"),
        ("Let me compute 1.5 + 2", 4080, "unparseable"),
        ("Let me compute 1.5 + 2 {} ", 4096, "unparseable"),
        ("", 4096, "truncated"),
        ("", 30, "empty"),
    ],
)
def test_an_incomplete_response_with_the_tokens_of_an_output_limit_is_truncated(
    tmp_path: Path, text: str, tokens: int, status: str
) -> None:
    folder, _ = _imported_responses(tmp_path, [text], [{"usage.completion_tokens": str(tokens)}])
    assert summarize(score_run(folder))["addition"].statuses[status] == 1


def test_a_reply_without_usage_is_a_failed_request_unless_it_has_part_of_an_answer(
    tmp_path: Path,
) -> None:
    cases = dict.fromkeys(["", " ", "{", '{"', '{"ans', '{"answer":', '{"answer": ['], True)
    cases |= dict.fromkeys(['{"answer": 3.', "3", '{"answer": ""}', "no"], False)
    for number, (text, has_failed) in enumerate(cases.items()):
        folder, responses = _imported_responses(
            tmp_path / str(number), [text, *RIGHT[1:]], [{"tokens": "-1"}, {}, {}]
        )
        assert (responses[0].error is not None) is has_failed, text
        exact, paper = (summarize(score_run(folder, p))["addition"] for p in ("exact", "paper"))
        assert exact.counted == (2 if has_failed else 3)
        assert paper.counted == 3


GEMINI = "usage.usage_metadata."
LIMIT = Usage(input=165, reasoning=65535, visible=0, generated=65535, source="reported")


def test_usage_has_the_same_meaning_for_every_provider(tmp_path: Path) -> None:
    details = "usage.completion_tokens_details.reasoning_tokens"
    at_limit = {f"{GEMINI}prompt_token_count": "165", f"{GEMINI}thoughts_token_count": "65535"}
    cases = [
        ({"usage.completion_tokens": "102.0", "usage.prompt_tokens": "144", details: "76"},
         Usage(input=144, reasoning=76, visible=26, generated=102, source="reported")),
        ({f"{GEMINI}prompt_token_count": "141", f"{GEMINI}candidates_token_count": "17",
          f"{GEMINI}thoughts_token_count": "224", f"{GEMINI}total_token_count": "382",
          "usage.completion_tokens": "17"},
         Usage(input=141, reasoning=224, visible=17, generated=241, source="reported")),
        ({f"{GEMINI}prompt_token_count": "139", f"{GEMINI}candidates_token_count": "20",
          f"{GEMINI}total_token_count": "159"},
         Usage(input=139, reasoning=0, visible=20, generated=20, source="reported")),
        # What is not known, or contradicts itself, stays unknown.
        ({}, Usage()),
        ({"usage.completion_tokens": "5"}, Usage(generated=5, source="reported")),
        ({"usage.completion_tokens": "5", details: "9"}, Usage(generated=5, source="reported")),
    ]  # fmt: skip
    for number, (cells, usage) in enumerate(cases):
        _, (response,) = _imported_responses(tmp_path / str(number), RIGHT[:1], [cells])
        assert response.usage == usage, cells
    # Reasoning up to the output limit is truncated and not empty.
    for total in ({f"{GEMINI}total_token_count": "65700"}, {}):
        folder, responses = _imported_responses(
            tmp_path / f"limit-{len(total)}", ["", "Token limit reached"], [at_limit | total] * 2
        )
        assert [(one.finish_reason, one.usage) for one in responses] == [("length", LIMIT)] * 2
        summary = summarize(score_run(folder))["addition"]
        assert summary.statuses["truncated"] == 2 and summary.tokens == 65535


def test_the_cost_is_the_price_of_the_inference_and_not_the_router_fee(tmp_path: Path) -> None:
    upstream = "usage.cost_details.upstream_inference_cost"
    rows = [
        {"usage.cost": "0.5", "usage.is_byok": "False"},
        {"usage.cost": "0.025", "usage.is_byok": "True", upstream: "0.5"},
        {},
    ]
    _, responses = _imported_responses(tmp_path, extra=rows)
    assert [response.cost for response in responses] == [0.5, 0.5, None]


def _refused(tmp_path: Path) -> str:
    with pytest.raises(BadInput) as error:
        _imported(tmp_path)
    return str(error.value)


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    assert "no such folder" in _refused(tmp_path)
    _write(tmp_path / "csv", "other.csv", QUESTIONS)
    assert "none of the study's files here" in _refused(tmp_path)
    _responses(tmp_path / "csv")
    _benchmark(tmp_path / "csv", [QUESTIONS[0], QUESTIONS[2], QUESTIONS[1]])
    assert "line 3 (row 2): the question is 'What is 2 - 0.5?'" in _refused(tmp_path)
    _benchmark(tmp_path / "csv", QUESTIONS[:2])
    assert "line 4: more rows than the benchmark's 2" in _refused(tmp_path)
    _benchmark(tmp_path / "csv", [QUESTIONS[0], {"text_prompt": "What is 2 * 3?", "answer": "6"}])
    assert "line 3, field text_prompt: a question of the task multiplication" in _refused(tmp_path)
    _benchmark(tmp_path / "csv", [{"text_prompt": "How are you?", "answer": "6"}])
    assert "line 2, field text_prompt" in _refused(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: column text_prompt, answer, raw_response is missing"),
        (b"text_prompt,answer\na,b\n", "line 1: column raw_response is missing"),
        (b"text_prompt,answer,raw_response\nWhat is 1.5 + 2.25?,3.75\n", "line 2: 2 fields"),
        (b"text_prompt,answer,raw_response\n\xff\xfe,b,c\n", "not UTF-8 text"),
        (b"text_prompt,answer,raw_response,tokens\nWhat is 1.5 + 2.25?,3.75,c,many\n",
         "line 2, column tokens: 'many' is not a number"),
    ],
)  # fmt: skip
def test_a_broken_file_is_reported_with_its_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    _benchmark(tmp_path / "csv")
    name = RESPONSES.format("Addition", "openai__gpt-5", "high")
    (tmp_path / "csv" / name).write_bytes(content)
    error = _refused(tmp_path)
    assert name in error
    assert message in error


# The only configurations without a file for every task.
MISSING_TASKS = {
    "deepseek-v3.1_maximal": {
        "addition", "multiplication", "division", "exponentiation", "mean", "std",
    },
    "gpt-5_maximal": {"exponentiation"},
    "qwen3-235b-2507_maximal": {"multiplication", "division", "exponentiation", "std"},
}  # fmt: skip


def test_the_real_files_are_the_released_dataset(paper_results: Path, tmp_path: Path) -> None:
    folders = import_study(paper_results, tmp_path, lambda _: None)
    dataset = open_dataset("paper")
    assert not (tmp_path / "dataset").exists()
    assert len(folders) == 13
    for folder in folders:
        run = read_run(folder)
        assert run.info.dataset.sha256 == RELEASED_DATASETS["paper"]
        assert set(dataset.tasks) - set(run.info.tasks) == MISSING_TASKS.get(folder.name, set())
        assert len(run.responses) == 500 * len(run.info.tasks)
    labels = read_published_labels(dataset.path)
    names = {"Addition": "addition", "Sorting": "sorting", "Std": "std"}
    for name, task in names.items():
        (path,) = paper_results.glob(f"{name}*500_shuffle.csv")
        rows = [(cells["text_prompt"], cells["answer"]) for _, cells in read_csv(path)]
        assert rows == [(item.prompt, labels[item.id]) for item in dataset.by_task[task]]


def _released_questions(task: str) -> list[dict[str, str]]:
    """Return the rows of a benchmark file with the questions of the released dataset."""
    dataset = open_dataset("paper")
    labels = read_published_labels(dataset.path)
    return [
        {"text_prompt": item.prompt, "answer": labels[item.id]} for item in dataset.by_task[task]
    ]


def test_the_released_dataset_has_exact_answers_and_marks_the_wrong_labels() -> None:
    dataset = open_dataset("paper")
    result = audit("paper")
    assert result.checked == dict.fromkeys(nb.PAPER_TASKS, 500) and not result.wrong
    labels = list(read_lines(dataset.path / "published_labels.jsonl", PublishedLabel))
    assert [label.item_id for label in labels] == list(dataset.by_id)
    wrong = Counter(dataset.task_of(label.item_id) for label in labels if not label.correct)
    assert wrong == {
        "addition": 2,
        "multiplication": 5,
        "division": 1,
        "exponentiation": 30,
        "mean": 130,
        "std": 213,
    }


def test_imported_runs_share_their_items_with_runs_on_the_released_dataset(tmp_path: Path) -> None:
    rows = _released_questions("std")
    _write(tmp_path / "csv", BENCHMARK.format("Std"), rows)
    answers = [{**row, "raw_response": f'{{"answer": {row["answer"]}}}'} for row in rows]
    _write(tmp_path / "csv", RESPONSES.format("Std", "openai__gpt-5", "high"), answers)
    (imported,) = _imported(tmp_path)
    assert not (tmp_path / "out" / "dataset").exists()
    measured = nb.run(
        "baseline/float64", dataset="paper", tasks=["std"], out=tmp_path / "float64"
    ).path
    one, other = nb.score(imported), nb.score(measured)
    assert one.info.dataset.sha256 == other.info.dataset.sha256 == RELEASED_DATASETS["paper"]
    assert [row.item for row in one.rows["std"]] == [row.item for row in other.rows["std"]]
    # The responses are the published labels: all correct as published, 287 of 500 in truth.
    assert summarize(one)["std"].exact_match == pytest.approx(100 * 287 / 500)
    assert summarize(nb.score(imported, protocol="paper"))["std"].exact_match == 100


@pytest.mark.parametrize("change", ["fewer", "other", "order"])
def test_other_questions_are_a_dataset_of_their_own(tmp_path: Path, change: str) -> None:
    rows = _released_questions("addition")
    if change == "fewer":
        rows = rows[:-1]
    elif change == "other":
        rows[7] = QUESTIONS[0]
    else:
        rows.reverse()
    _write(tmp_path / "csv", BENCHMARK.format("Addition"), rows)
    answers = [{**row, "raw_response": row["answer"]} for row in rows]
    _write(tmp_path / "csv", RESPONSES.format("Addition", "openai__gpt-5", "high"), answers)
    (folder,) = _imported(tmp_path)
    dataset = Dataset(tmp_path / "out" / "dataset")
    assert read_run(folder).info.dataset.sha256 == dataset.manifest.sha256
    assert dataset.manifest.sha256 not in RELEASED_DATASETS.values()
    assert [item.prompt for item in dataset.by_task["addition"]] == [
        row["text_prompt"] for row in rows
    ]
