"""Runs with other prompts and transformed items: what is sent, stored, resumed and scored."""

import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from numbench.dataset.store import open_dataset, write_dataset
from numbench.errors import BadInput
from numbench.journal.merge import merge_runs
from numbench.journal.run_folder import read_info
from numbench.runner.execution import run
from numbench.runner.few_shot import _answer_json
from numbench.runner.plan_table import plan_table
from numbench.runner.planning import plan
from numbench.runner.spec import RunSpec
from numbench.runner.suite import expand, plan_suite, run_suite, suite_file
from numbench.scoring import is_correct, score_run
from numbench.scoring.scored_run import signature
from numbench.tasks.prompts import load_prompt_set
from numbench.transforms import open_variant
from tests.support import servers
from tests.support.command_line import CommandLine
from tests.support.runs import QUICK
from tests.support.servers import Server, serve

pytestmark = pytest.mark.slow

MINE = 'system = "none"\n[addition]\n"+" = "Add {a} and {b}!"\n"-" = "{a} less {b}?"\n'


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    items = open_dataset("v1").by_task
    return write_dataset(
        tmp_path / "data",
        {task: items[task][:3] for task in ("addition", "division", "mean")},
        name="small",
        generator="test",
        seed=1,
        split="test",
        settings={},
    ).path


def mine(folder: Path, text: str = MINE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "questions.toml").write_text(text)
    return folder


def spec(server: Server, dataset: Path, **fields: object) -> RunSpec:
    return RunSpec("openai/x", dataset=dataset, base_url=server.url, **fields)  # type: ignore[arg-type]


def messages(server: Server) -> list[list[tuple[str, str]]]:
    bodies = [received.body["messages"] for received in server.received]
    return [[(m["role"], m["content"]) for m in body] for body in bodies]


@pytest.mark.parametrize("prompts", ["paper", "minimal", "german"])
def test_the_prompts_of_the_set_are_sent(dataset: Path, prompts: str) -> None:
    tasks = ("addition", "mean")
    with serve(servers.plain) as server:
        report = run(spec(server, dataset, prompts=prompts, tasks=tasks, few_shot=1))
    loaded, variant = load_prompt_set(prompts), open_variant(prompts, None)
    asked = [variant.ask(i) for task in tasks for i in open_dataset(dataset).by_task[task]]
    sent = messages(server)
    assert {m[-1] for m in sent} == {("user", item.prompt) for item in asked}
    systems = {text for m in sent for role, text in m if role == "system"}
    assert systems == {system for task in tasks if (system := loaded.system_prompt(task))}
    # The example is in the same words.
    examples = {m[-3] for m in sent}
    assert all(loaded.parse_question(text).task in tasks for _, text in examples)
    info = read_info(report.path)
    assert (info.prompt.name, info.transform) == (prompts, None)
    suffix = "" if prompts == "paper" else f"_prompts-{prompts}"
    assert report.path.name == f"openai-x_default_small{suffix}_1-shot"
    assert (report.path / "prompts").is_dir() == (prompts != "paper")


@pytest.mark.parametrize("transform", ["grouping", "scientific", "swap", "negate"])
def test_transformed_items_are_asked_and_scored_with_their_own_answers(
    dataset: Path, transform: str
) -> None:
    variant = open_variant("paper", transform)
    items = [variant.ask(item) for item in open_dataset(dataset).by_task["addition"]]
    answers = {item.prompt: _answer_json(item) for item in items}
    usage = {"prompt_tokens": 5, "completion_tokens": 5}
    with serve(lambda received: servers.chat(answers[received.prompt], usage=usage)) as server:
        asked = spec(server, dataset, transform=transform, tasks=("addition",), stream=False)
        report = run(asked, is_correct)
        again = run(asked, is_correct)
    assert (report.answered, again.answered, again.skipped) == (3, 0, 3)
    scored = score_run(report.path)
    assert [row.item for row in scored.rows["addition"]] == items
    assert all(row.score.exact_match for row in scored.rows["addition"])
    assert f"|transform:{transform}|" in signature(scored, "addition")
    with pytest.raises(BadInput, match=f"not after the transformation {transform}"):
        score_run(report.path, "paper")


def test_a_run_is_not_resumed_with_other_prompts_or_another_transformation(dataset: Path) -> None:
    out = Path("out")
    with serve(servers.plain) as server:
        run(spec(server, dataset, out=out, prompts="german", tasks=("addition",)))
        with pytest.raises(BadInput, match="with prompts 'german@"):
            run(spec(server, dataset, out=out, prompts="steps", tasks=("mean",)))
        with pytest.raises(BadInput, match="with transform None, but this one has 'swap'"):
            run(spec(server, dataset, out=out, prompts="german", transform="swap"))


def test_a_folder_is_copied_so_that_the_run_can_be_scored_without_it(dataset: Path) -> None:
    with serve(servers.plain) as server:
        folder = mine(Path("sets/mine"))
        report = run(spec(server, dataset, prompts="./sets/mine", tasks=("addition",)))
        assert {text for m in messages(server) for _, text in m} == {
            open_variant(folder, None).ask(item).prompt
            for item in open_dataset(dataset).by_task["addition"]
        }
        # A change of the folder is another prompt set.
        mine(folder, MINE.replace("!", "."))
        with pytest.raises(BadInput, match="with prompts 'mine@"):
            run(spec(server, dataset, prompts=folder, tasks=("addition",)))
    shutil.rmtree("sets")
    before = score_run(report.path)
    assert before.rows["addition"][0].item.prompt.startswith(("Add ", "-", *"0123456789"))
    mine(report.path / "prompts", MINE.replace("less", "minus"))
    with pytest.raises(BadInput, match="changed since the run; restore them"):
        score_run(report.path)
    shutil.rmtree(report.path / "prompts")
    with pytest.raises(BadInput, match=r"the prompts \(mine@\w{6}\) are missing"):
        score_run(report.path)


def test_shards_with_own_prompts_are_merged_with_them(dataset: Path) -> None:
    folder = mine(Path("sets/mine"))
    paths = []
    with serve(servers.plain) as server:
        for shard in ("1/2", "2/2"):
            options = {"prompts": folder, "shard": shard, "tasks": ("addition",)}
            paths.append(run(spec(server, dataset, transform="plus", **options)).path)
        options["shard"] = "2/2"
        other = run(spec(server, dataset, out=Path("other"), **options)).path
    merged = merge_runs(paths, Path("merged"))
    scored = score_run(merged.path)
    assert (len(scored.rows["addition"]), scored.info.transform) == (3, "plus")
    with pytest.raises(BadInput, match="transform is 'plus' in the first and None in the second"):
        merge_runs([paths[0], other], Path("refused"))


def test_lists_make_one_run_per_combination(dataset: Path) -> None:
    with serve(servers.plain) as server:
        common = spec(server, dataset, tasks=("addition", "division"), out=Path("all"))
        options: dict[str, Any] = {"model": "openai/x", "dataset": dataset, "out": Path("all")}
        options |= {"base_url": server.url, "tasks": ("addition",)}
        lists = {"prompts": ["paper", "steps"], "transform": ["none", "swap"]}
        specs = list(expand(lists, options))
        members = plan_suite(specs)
        assert [member.spec.out for member in members] == [
            Path("all") / f"openai-x_default_small{suffix}"
            for suffix in ("", "_swap", "_prompts-steps", "_prompts-steps_swap")
        ]
        # Nothing is known of what one's own server costs, so nothing is said of it.
        console = Console(width=80, record=True, file=io.StringIO())
        console.print(plan_table(members))
        assert not re.search(r"\$|unknown cost", console.export_text(clear=False))
        assert "Total: 12 requests." in console.export_text()
        reports = run_suite(members, policy=QUICK)
        assert [report.answered for report in reports] == [3] * 4
        assert run_suite(plan_suite(specs), policy=QUICK) == ()
        with pytest.raises(BadInput, match="two runs share the folder"):
            plan_suite([*specs, specs[0]])
        with pytest.raises(BadInput, match="--transform swap does not apply to division"):
            plan(replace(common, transform="swap"))


def test_suite_files_have_prompts_and_transforms(dataset: Path) -> None:
    Path("suite.toml").write_text(
        '[[matrix]]\nmodel = "baseline/float64"\ntransform = ["none", "negate"]\n'
        '[[matrix]]\nmodel = "openai/x"\nprompts = ["paper", "paraphrases"]\n'
    )
    members = plan_suite(suite_file(Path("suite.toml"), {}, {"dataset": dataset}))
    assert len(members) == 2 + 6
    assert [member.prepared.info.variant_label for member in members[:3]] == ["", "negate", ""]
    assert members[-1].prepared.info.variant_label == "prompts paraphrase-5"
    assert str(members[-1].spec.out) == "results/openai-x_default_small_prompts-paraphrase-5"


def test_models_that_take_no_prompts(dataset: Path) -> None:
    baseline = RunSpec("baseline/float64", dataset=dataset)
    with pytest.raises(BadInput, match="takes nothing but questions: omit --prompts"):
        plan(replace(baseline, prompts="steps"))
    with pytest.raises(BadInput, match="thousands separators: omit --transform grouping"):
        plan(replace(baseline, transform="grouping"))
    report = run(replace(baseline, transform="scientific"), is_correct)
    assert report.errors == 0


@pytest.fixture
def numbench(dataset: Path, tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, None)


def test_the_command_makes_a_run_per_value_of_its_lists(numbench: CommandLine) -> None:
    text = numbench(
        "run", "--model", "baseline/float64", "--dataset", "./data", "--transform",
        "none,swap,plus",
    )  # fmt: skip
    assert text.count("answered now") == 3
    assert "next: numbench report results" in text
    folders = sorted(path.name for path in (numbench.folder / "results").iterdir())
    name = "baseline-float64_none_small"
    assert folders == [name, f"{name}_plus", f"{name}_swap"]
    record = json.loads((numbench.folder / "results" / folders[1] / "run.json").read_text())
    assert record["transform"] == "plus"
    plans = numbench(
        "run", "--model", "gemini-2.5-pro", "--reasoning", "512,2048", "--prompts",
        "paper,steps", "--dry-run", "--dataset", "./data",
    )  # fmt: skip
    rows = [line.split() for line in plans.splitlines() if line.startswith("gemini")]
    assert [row[1:3] for row in rows] == [
        ["512-tokens", "-"],
        ["512-tokens", "steps"],
        ["2048-tokens", "-"],
        ["2048-tokens", "steps"],
    ]
    assert max(map(len, plans.splitlines())) <= 80
    suite = numbench(
        "run", "--suite", "paper", "--prompts", "paraphrase-1", "--transform",
        "none,trailing-zeros", "--dry-run", "--dataset", "./data",
    )  # fmt: skip
    assert suite.count("paraphrase-1") == 26
    (numbench.folder / "suite.toml").write_text(
        '[[matrix]]\nmodel = "gemini-2.5-pro"\nreasoning = "512"\nseed = [1, 2]\n'
    )
    swept = numbench("run", "--suite", "suite.toml", "--dry-run", "--dataset", "./data")
    assert re.findall(r"([12])-seed", swept) == ["1", "2"]
    assert max(map(len, suite.splitlines())) <= 80
