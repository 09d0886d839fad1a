"""Converted checkpoints compute what the paper's own network computed from its questions."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from typer.testing import CliRunner

from bittoken.checkpoint import load_checkpoint
from bittoken.network import ModelConfig
from bittoken.tokens import EOS, NUM, answer_json, encode_questions
from numbench.errors import BadInput
from numbench.scoring.answer_parser import parse_answer
from numbench.tasks import PAPER_TASKS
from numbench.tasks.prompts import load_prompt_set
from studies.paper_checkpoint import _read_vocabulary, app, convert_checkpoint
from tests.bittoken import small, study_files

pytestmark = pytest.mark.slow

TOLERANCE = 1e-4
VARIANTS = (
    "base10-sum-linear-rms", "base10-zero_pad-linear-rms", "bittoken-concat-linear-rms",
    "bittoken-prod-linear-rms", "bittoken-sum-linear-layer", "bittoken-sum-linear-rms",
    "bittoken-sum-mlp-rms", "bittoken-sum-none-rms", "bittoken-weighted-linear-rms",
    "bittoken-weighted_sum-linear-rms", "bittoken-zero_pad-linear-rms", "digit-sum-none-rms",
    "fone-sum-none-rms", "subword-sum-none-rms", "xval-prod-linear-rms",
    "xval-prod-mlp-rms",
)  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
def test_outputs_equal_those_of_the_papers_code(
    variant: str, tmp_path: Path, reference_outputs: Path
) -> None:
    arguments: Any = study_files.write_variant(tmp_path / "study", reference_outputs, variant)
    convert_checkpoint(tmp_path / "study", tmp_path / "native", **arguments)
    network = load_checkpoint(tmp_path / "native").network
    expected = np.load(reference_outputs / f"{variant}.npz")
    length = len(expected["token_ids"])
    # Rows do not affect each other, and neither does padding.
    tokens = np.zeros((2, length + 5), np.int64)
    values = np.zeros(tokens.shape)
    tokens[:, :length], values[:, :length] = expected["token_ids"], expected["values"]
    codes = np.zeros((*tokens.shape, 0))
    if network.encoding is not None:
        codes = network.encoding.encode(values.ravel()).reshape(*tokens.shape, -1)
    with torch.no_grad():
        hidden = network(torch.from_numpy(tokens), torch.from_numpy(codes))[:, :length]
        logits = network.logits(hidden).numpy()
    assert expected["logits"].std() > 0.5
    for row in range(2):
        np.testing.assert_allclose(logits[row], expected["logits"], rtol=0, atol=TOLERANCE)
        assert (logits[row].argmax(-1) == expected["logits"].argmax(-1)).all()
    if "number_head" in expected:
        outputs = network.number_outputs(hidden[1]).detach().numpy()
        np.testing.assert_allclose(outputs, expected["number_head"], rtol=0, atol=TOLERANCE)


def rows(paper_results: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the task and the row of each question of the paper."""
    for task in PAPER_TASKS.values():
        name = {"minmax": "MinMax"}.get(task.name, task.name.capitalize())
        path = paper_results / f"{name}_decimal_uniform_test_500_shuffle.csv"
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                yield task.name, row


@pytest.mark.parametrize(
    "encoding", ["bittoken", "xval", "base10-study", "fone-study", "digit", "subword"]
)
def test_questions_and_answers_are_those_of_the_papers_code(
    encoding: str, reference_outputs: Path, paper_results: Path
) -> None:
    """It puts one token for each number, unless numbers are text, and splits by `tokenizers`."""
    path = study_files.reference_tokenizer(reference_outputs, encoding)
    vocabulary = _read_vocabulary(path, ModelConfig(encoding=encoding, vocabulary=1216))
    tokenizer = Tokenizer.from_file(str(path))
    pattern = re.compile(r"-?\d+(?:\.\d+)?")
    if vocabulary.encoding is not None and not vocabulary.encoding.signed:
        pattern = re.compile(r"\d+(?:\.\d+)?")

    def split(text: str) -> tuple[list[int], list[float]]:
        if vocabulary.encoding is None:
            return tokenizer.encode(text).ids, []
        # A minus between two numbers is an operator, so it is followed by a space.
        values = [float(number) for number in pattern.findall(text)]
        return tokenizer.encode(pattern.sub(NUM, text)).ids, values

    for task, row in list(rows(paper_results))[::9]:
        kind = PAPER_TASKS[task].answer_kind
        question = load_prompt_set().parse_question(row["text_prompt"])
        encoded = encode_questions([question], vocabulary)
        tokens, values = split(f"<|bos|>{row['prompt']}<|eoq|>")
        assert encoded.tokens[0].tolist() == tokens, row["prompt"]
        is_number = encoded.tokens[0] == vocabulary.number_id
        assert np.allclose(small.values(encoded, vocabulary)[0, is_number], values, rtol=1e-5)
        tokens, values = split(row["answer"] + EOS)
        parsed = parse_answer(answer_json(tokens, values, vocabulary), kind)
        truth = {"list": "[{}]", "letter": '"{}"'}.get(kind, "{}").format(row["answer"])
        expected = parse_answer(f'{{"answer": {truth}}}', kind)
        assert parsed is not None and expected is not None and parsed.rule == "json"
        if isinstance(expected.value, str) or vocabulary.encoding is None:
            assert parsed.value == expected.value
        else:  # A number token has 15 significant digits; some answers of Sorting have more.
            assert np.allclose(
                np.array(parsed.value, float), np.array(expected.value, float), rtol=1e-14, atol=0
            )


def test_the_command_converts_and_names_the_next_step(
    tmp_path: Path, reference_outputs: Path
) -> None:
    study, out = tmp_path / "study", tmp_path / "native"
    fields: Any = study_files.write_variant(study, reference_outputs, VARIANTS[10])
    options = [f"--{name}={fields[name]}" for name in ("encoding", "head", "tokenizer")]
    result = CliRunner().invoke(app, [str(study), "--out", str(out), *options])
    assert result.exit_code == 0, result.output
    assert f"next: numbench run --model checkpoint/{out}" in result.output
    config = load_checkpoint(out).network.config
    assert (config.combination, config.head) == ("zero-pad", "linear")
    result = CliRunner().invoke(app, [str(study), "--out", str(out), *options, "--head=mlp"])
    assert isinstance(result.exception, BadInput)
    assert "Missing key" in str(result.exception)
