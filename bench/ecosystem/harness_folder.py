"""A dataset as a task folder for lm-evaluation-harness."""

from __future__ import annotations

import re
from pathlib import Path

from bench import jsonl
from bench.dataset.store import Dataset
from bench.ecosystem.copies import copy_dataset
from bench.ecosystem.harness import EXAMPLES, TEST
from bench.ecosystem.measures import MEASURES

MAX_TOKENS = 16384
"""Room for reasoning; a model with a shorter context needs `--gen_kwargs max_gen_toks=…`."""

_TASK = """\
task: {group}_{task}
task_alias: {task}
custom_dataset: !function {group}.documents
dataset_kwargs:
  task: {task}
test_split: {test}
fewshot_split: {examples}
fewshot_config:
  sampler: first_n
output_type: generate_until
description: "{{{{system}}}}\\n\\n"
doc_to_text: "{{{{prompt}}}}"
doc_to_target: answer
generation_kwargs:
  until: []
  do_sample: false
  temperature: 0.0
  max_gen_toks: {max_tokens}
process_results: !function {group}.process_results
metric_list:
{metrics}
metadata:
  version: 1
  numbench_dataset: {version}
"""
_METRIC = """\
  - metric: {name}
    aggregation: mean
    higher_is_better: true"""
_GROUP = """\
group: {group}
task:
{tasks}
aggregate_metric_list:
{metrics}
metadata:
  version: 1
  numbench_dataset: {version}
"""
_SHARE = """\
  - metric: {name}
    aggregation: mean
    weight_by_size: true"""
_CODE = '''\
"""What the tasks of this folder call: questions from `data/`, scores by numbench."""

from pathlib import Path

from bench.ecosystem import harness

DATA = Path(__file__).resolve().parent / "data"


def documents(task, **_):
    return harness.documents(DATA, task)


def process_results(doc, results):
    return harness.process_results(doc, results)
'''


def export_harness(source: Dataset, out: Path) -> str:
    """Write the folder with the dataset in it; the name of the group that runs all its tasks."""
    group = "numbench_" + re.sub(r"[^A-Za-z0-9]+", "_", source.name)
    version = f"{source.name}@{source.manifest.sha256[:6]}"
    copy_dataset(source, out / "data")
    jsonl.write_atomically(out / f"{group}.py", _CODE.encode())
    for task in source.tasks:
        text = _TASK.format(
            group=group,
            task=task,
            test=TEST,
            examples=EXAMPLES,
            max_tokens=MAX_TOKENS,
            metrics=_listed(_METRIC),
            version=version,
        )
        jsonl.write_atomically(out / f"{group}_{task}.yaml", text.encode())
    members = "\n".join(f"  - {group}_{task}" for task in source.tasks)
    text = _GROUP.format(group=group, tasks=members, metrics=_listed(_SHARE), version=version)
    jsonl.write_atomically(out / f"{group}.yaml", text.encode())
    return group


def _listed(template: str) -> str:
    return "\n".join(template.format(name=name) for name in MEASURES)
