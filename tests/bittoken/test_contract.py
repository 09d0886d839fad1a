"""What the encodings, the tokens and the bundled checkpoint compute, pinned bit for bit.

The files in `contract/` were written before the package was rebuilt.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray

from bittoken.checkpoint import load_checkpoint
from bittoken.encodings import ENCODINGS, STUDY_ENCODINGS
from bittoken.generation import generate
from bittoken.tokens import Vocabulary, answer_json, encode_items, encode_questions, pack
from numbench.tasks import PAPER_TASKS
from numbench.tasks.prompts import Question

CONTRACT = Path(__file__).parent / "contract"
PINNED = {
    **{name: ENCODINGS[name] for name in ("bittoken", "bittoken-no-reciprocal", "fone", "xval")},
    "base10": ENCODINGS["base10"],
    **STUDY_ENCODINGS,
}
TOLERANCES = {"xval": 1e-5, "fone/vectors": 1e-14}
"""Logarithms and sines differ in the last bit from processor to processor."""


def assert_equal(values: NDArray[Any], expected: NDArray[Any], part: str) -> None:
    """Compare bit for bit or, with a tolerance, relative to values above 1."""
    assert (values.dtype, values.shape) == (expected.dtype, expected.shape)
    if tolerance := TOLERANCES.get(part, TOLERANCES.get(part.partition("/")[0])):
        np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)
    else:
        assert values.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", PINNED)
def test_encodings_compute_what_they_computed(name: str) -> None:
    contract, encoding = np.load(CONTRACT / "encodings.npz"), PINNED[name]
    expected = {part: contract[f"{name}/{part}"] for part in ("codes", "vectors", "decoded")}
    values = contract["values"]
    values = values[~np.isnan(values)] if len(expected["codes"]) < len(values) else values
    codes = encoding.encode(values)
    assert codes.dtype == encoding.dtype
    assert_equal(codes, expected["codes"], name)
    vectors = encoding.vector(torch.from_numpy(codes)).numpy()
    assert_equal(vectors, expected["vectors"], f"{name}/vectors")
    assert_equal(encoding.decode(codes), expected["decoded"], name)
    shape = (len(values), encoding.outputs)
    outputs = torch.from_numpy(np.random.default_rng(2).standard_normal(shape).astype(np.float32))
    predicted = encoding.predict(outputs).numpy()
    assert predicted.tobytes() == contract[f"{name}/predicted"].tobytes()
    assert_equal(encoding.decode(predicted), contract[f"{name}/predicted_values"], name)
    if name in ENCODINGS:
        loss = encoding.loss(outputs, torch.from_numpy(codes))
        np.testing.assert_allclose(loss, contract[f"{name}/loss"], rtol=1e-5)


@pytest.mark.parametrize("name", ["bittoken", "fone", "xval", "base10", "digit", "subword"])
def test_samples_have_the_tokens_they_had(name: str) -> None:
    contract = json.loads((CONTRACT / "samples.json").read_text())
    vocabulary, row = Vocabulary(name), 0
    for task in PAPER_TASKS:
        items = [item for item in contract["items"] if item["task"] == task]
        columns = ("operands", "operator", "answer")
        table = pa.table({column: [item[column] for item in items] for column in columns})
        samples = pack(encode_items(task, table, vocabulary), vocabulary)
        questions = encode_questions(
            [Question(task, item["operator"], tuple(item["operands"])) for item in items],
            vocabulary,
        )
        for number in range(len(items)):
            length, prompt = samples.lengths[number], contract["prompt_lengths"][name][row]
            tokens = samples.tokens[number, :length]
            assert tokens.tolist() == contract["tokens"][name][row]
            assert (samples.tokens[number, length:] == vocabulary.pad_id).all()
            is_target = np.arange(samples.tokens.shape[1])
            is_target = (is_target >= prompt) & (is_target < length)
            assert (samples.is_target[number] == is_target).all()
            assert questions.tokens[number, :prompt].tolist() == tokens[:prompt].tolist()
            assert questions.lengths[number] == prompt
            is_number = samples.tokens[number] == vocabulary.number_id
            assert not samples.codes[number, ~is_number].any()
            if vocabulary.encoding is not None:
                values = vocabulary.encoding.decode(samples.codes[number, is_number])
                expected = np.array(list(map(float, contract["values"][name][row])))
                np.testing.assert_allclose(values, expected, rtol=TOLERANCES.get(name, 0))
            row += 1
    assert row == len(contract["items"]) == 54


def test_the_bundled_checkpoint_answers_as_it_did() -> None:
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in (CONTRACT / "bundled_answers.jsonl").read_text().splitlines()
    ]
    expected = np.load(CONTRACT / "bundled_outputs.npz")
    loaded = load_checkpoint("small")
    questions = encode_questions(
        [Question(row["task"], row["operator"], tuple(row["operands"])) for row in rows],
        loaded.vocabulary,
    )
    with torch.no_grad():
        hidden = loaded.network(
            torch.from_numpy(questions.tokens), torch.from_numpy(questions.codes)
        )
        hidden = hidden[torch.arange(len(rows)), torch.from_numpy(questions.lengths) - 1]
        logits, outputs = loaded.network.logits(hidden), loaded.network.number_outputs(hidden)
    np.testing.assert_allclose(logits, expected["logits"], rtol=0, atol=1e-4)
    np.testing.assert_allclose(outputs, expected["number_head"], rtol=0, atol=1e-4)
    answers = [
        answer_json(answer.tokens, answer.values, loaded.vocabulary)
        for answer in generate(loaded.network, loaded.vocabulary, questions)
    ]
    assert answers == [row["text"] for row in rows]
    assert len(set(answers)) > 150
