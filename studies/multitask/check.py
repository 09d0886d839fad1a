"""Check the stored scores of a run with fresh questions: python -m studies.multitask.check RUN...

Independent of the harness: operands are drawn here, answers are computed here, and the network is
asked directly. Needs the checkpoint, which `train` leaves beside the logs.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from bittoken.checkpoint import load_checkpoint
from bittoken.generation import generate
from bittoken.tokens import answer_text, encode_questions
from numbench.tasks.items import split_of
from numbench.tasks.prompts import Question
from studies.multitask.controls import install
from studies.multitask.runs import RESULTS

OPERATORS = {"+": "addition", "-": "addition", "*": "multiplication"}
SIZE = 500
MAX_STANDARD_ERRORS = 4.0


def fresh(size: int, seed: int) -> list[tuple[int, int]]:
    """Return pairs of integers of at most 8 bits that occur in no training question."""
    draw, pairs = random.Random(seed), list[tuple[int, int]]()
    while len(pairs) < size:
        a, b = draw.randint(1, 255), draw.randint(1, 255)
        if split_of((str(a), str(b))) == "test":
            pairs.append((a, b))
    return pairs


def exact_match(run: Path, operator: str, size: int = SIZE, seed: int = 99) -> float:
    """Return the share of fresh questions that the run's checkpoint answers exactly."""
    loaded, pairs = load_checkpoint(run / "checkpoint"), fresh(size, seed)
    questions = [Question(OPERATORS[operator], operator, (str(a), str(b))) for a, b in pairs]
    samples = encode_questions(questions, loaded.vocabulary)
    answers = generate(loaded.network, loaded.vocabulary, samples)
    texts = [answer_text(each.tokens, each.values, loaded.vocabulary) for each in answers]
    results = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
    correct = [
        re.fullmatch("-?[0-9]+", text) is not None and int(text) == results[operator](a, b)
        for text, (a, b) in zip(texts, pairs, strict=True)
    ]
    return sum(correct) / size


def main(names: Sequence[str], folder: Path = RESULTS) -> int:
    """Compare the stored scores of runs with fresh questions; return 1 if one differs."""
    install()
    has_difference = False
    for name in names:
        run = folder / "runs" / name
        tasks = json.loads((run / "scores.json").read_text(encoding="utf-8"))["tasks"]
        for operator, task in OPERATORS.items():
            part = tasks[task].get("operators", {}).get(operator, tasks[task])
            stored, found = part["correct"] / part["questions"], exact_match(run, operator)
            mean = (part["correct"] + found * SIZE + 1) / (part["questions"] + SIZE + 2)
            error = (mean * (1 - mean) * (1 / part["questions"] + 1 / SIZE)) ** 0.5
            distance = abs(found - stored) / error
            has_difference |= distance > MAX_STANDARD_ERRORS
            print(f"{name} {operator}: stored {stored:.1%}, fresh {found:.1%}, {distance:.1f} s.e.")
    return int(has_difference)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
