"""A small dataset and runs on it, for reports with scores that can be computed by hand."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from numbench.core import jsonl
from numbench.dataset.store import PUBLISHED_LABELS, Dataset, PublishedLabel, write_dataset
from numbench.journal.run_folder import write_run
from numbench.records import Answer, Difficulty, Failure, Item, PromptRef, Response, RunInfo, Usage

ANSWERS: dict[str, tuple[Answer, ...]] = {
    "minmax": ("3", "4", "5", "6"),
    "interval": ("A", "B", "C", "D"),
    "sorting": (("1", "2"), ("3", "4"), ("5", "6"), ("7", "8")),
    "addition": ("10", "20", "30", "40"),
    "multiplication": ("11", "21", "31", "41"),
    "division": ("12", "22", "32", "42"),
    "exponentiation": ("13", "23", "33", "43"),
    "mean": ("14", "24", "34", "44"),
    "std": ("15", "25", "35", "45"),
}


def dataset(folder: Path, name: str = "tiny", tasks: Iterable[str] = tuple(ANSWERS)) -> Dataset:
    """Four items per task; their ids are `addition-0` and so on."""
    items = {task: [item(task, index) for index in range(4)] for task in tasks}
    return write_dataset(
        folder / name, items, name=name, generator="test", seed=1, split="test", settings={}
    )


def as_paper(data: Dataset) -> Dataset:
    """Add published labels to a dataset, which mark its questions as the paper's; return it."""
    labels = (PublishedLabel(id_, str(item.answer)) for id_, item in data.by_id.items())
    (data.path / PUBLISHED_LABELS).write_bytes(b"".join(map(jsonl.encode, labels)))
    return data


def item(task: str, index: int, answer: Answer | None = None) -> Item:
    return Item(
        id=f"{task}-{index}",
        task=task,
        prompt=f"What is {task} {index}?",
        answer=ANSWERS[task][index] if answer is None else answer,
        operands=("1", "2"),
        operator="+",
        difficulty=Difficulty(base10=index, base2=2 * index),
        params={},
    )


def right(task: str, index: int, tokens: int | None = 10) -> Response:
    """A correct answer in the requested format."""
    answer = ANSWERS[task][index]
    shown = f"[{', '.join(answer)}]" if isinstance(answer, tuple) else answer
    quoted = f'"{shown}"' if task == "interval" else shown
    return said(task, index, f'{{"answer": {quoted}}}', tokens)


def said(task: str, index: int, text: str, tokens: int | None = 10) -> Response:
    usage = Usage(input=5, visible=tokens, generated=tokens, source="reported")
    return Response(item_id=f"{task}-{index}", text=text, finish_reason="stop", usage=usage)


def failed(task: str, index: int) -> Response:
    return Response(item_id=f"{task}-{index}", error=Failure(kind="item", message="no"))


def all_right(tokens: int | None = 10) -> dict[str, Response]:
    """A correct response to every item, by item id."""
    return {f"{task}-{index}": right(task, index, tokens) for task in ANSWERS for index in range(4)}


def run(
    folder: Path,
    data: Dataset,
    responses: Mapping[str, Response],
    *,
    display: str = "GPT 5",
    reasoning: str = "minimal",
    tasks: tuple[str, ...] = tuple(ANSWERS),
    limit: int | None = None,
    few_shot: int = 0,
    model: str = "gpt-5",
    samples: int = 1,
    prompt: str = "ab",
) -> Path:
    """Write a run folder and return it. The keys of the responses do not matter."""
    folder.mkdir(parents=True)
    settings = {"few_shot": few_shot} if few_shot else {}
    info = RunInfo(
        model=model,
        display=display,
        reasoning=reasoning,
        dataset=data.ref(folder),
        prompt=PromptRef(name="paper", sha256=prompt * 32),
        tasks=tasks,
        limit=limit,
        settings=settings | ({"samples": samples} if samples > 1 else {}),
        versions={},
        created="2025-01-01T00:00:00Z",
    )
    write_run(folder, info, responses.values())
    return folder


def mixed_run(folder: Path, is_paper: bool = False) -> Path:
    """Write a run with correct, incorrect, missing, failed and unparseable answers.

    Add: 10 and 20 correct, 30 → 33, one missing. Mult: one failed. Div: one unparseable, and no
    token counts. MinMax: one incorrect.
    """
    responses = all_right(tokens=10)
    responses["addition-1"] = right("addition", 1, tokens=31)
    responses["addition-2"] = said("addition", 2, '{"answer": 33}')
    del responses["addition-3"]
    responses["multiplication-0"] = failed("multiplication", 0)
    for index in range(4):
        responses[f"division-{index}"] = right("division", index, tokens=None)
    responses["division-3"] = said("division", 3, "I cannot.", tokens=None)
    responses["minmax-1"] = said("minmax", 1, '{"answer": 9}')
    data = as_paper(dataset(folder)) if is_paper else dataset(folder)
    return run(folder / "runs" / "gpt-5", data, responses)
