"""Perplexity of checkpoints, and the command `bittoken perplexity`."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import torch

from bittoken import checkpoint
from bittoken.attention import PackedLayout
from bittoken.data.packing import Samples
from bittoken.network import Network
from bittoken.perplexity import text_perplexity
from bittoken.text.stream import Split, TextStream
from bittoken.training.distributed import DistributedContext
from bittoken.training.mixture import BatchSize, DataLoader, Mixture
from bittoken.training.recipe import Recipe, load_recipe
from bittoken.training.text_data import open_text_data
from bittoken.training.trainer import Trainer
from bittoken.training.validation import validate
from bittoken.vocabulary import NUM, Vocabulary
from numbench.cli import main
from numbench.errors import BadInput, NumbenchError
from tests.bittoken import small
from tests.bittoken.text.small import SMALL, codec, documents, parquet

CONTEXT = 24


def saved(folder: Path, encoding: str, text: bool = True) -> Path:
    """Save a checkpoint with random weights."""
    vocabulary = Vocabulary(encoding, SMALL.tokens if text else ())
    network = small.network(encoding, vocabulary=len(vocabulary), context=CONTEXT)
    SMALL.save(folder.with_suffix(".json"))
    tokenizer = folder.with_suffix(".json") if text else None
    checkpoint.save(folder, network, {}, text_tokenizer=tokenizer)
    return folder


def score_samples(
    network: Network, windows: Iterable[Samples], vocabulary: Vocabulary
) -> tuple[list[float], list[bool]]:
    """Return the log-probability of each predicted token, and whether it is text.

    Each sample is evaluated separately.
    """
    numbers = {vocabulary.ids[piece] for piece in (NUM, "-", ".", *"0123456789")}
    scores, is_text = [], []
    for samples in windows:
        start = 0
        for length in samples.lengths.tolist():
            tokens = samples.tokens[start : start + length]
            codes = torch.from_numpy(samples.codes[start : start + length])
            with torch.no_grad():
                hidden = network(
                    torch.from_numpy(tokens), codes, PackedLayout.from_lengths(np.array([length]))
                )
                log_probabilities = network.logits(hidden).double().log_softmax(-1)
            for position in range(1, length):
                scores.append(float(log_probabilities[position - 1, tokens[position]]))
                is_text.append(int(tokens[position]) not in numbers)
            start += length
    return scores, is_text


def windows_of(text: Path, encoding: str, split: Split) -> Iterable[Samples]:
    return TextStream(text, codec(encoding), CONTEXT, seed=0, split=split).single_pass(CONTEXT)


def perplexity_of(scores: list[float]) -> float:
    return math.exp(-sum(scores) / len(scores))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    parquet(tmp_path / "text" / "a.parquet", documents(600))
    return tmp_path / "text"


@pytest.mark.parametrize("encoding", ["bittoken", "fone", "digit"])
def test_perplexity_equals_that_of_separate_samples(
    tmp_path: Path, text: Path, encoding: str
) -> None:
    folder = saved(tmp_path / "model", encoding)
    result = text_perplexity(folder, text, "val")
    loaded = checkpoint.load(folder)
    windows = windows_of(text, encoding, "val")
    scores, is_text = score_samples(loaded.network, windows, loaded.vocabulary)
    assert result.all == pytest.approx(perplexity_of(scores), rel=1e-5)
    texts = [score for score, is_word in zip(scores, is_text, strict=True) if is_word]
    assert result.text == pytest.approx(perplexity_of(texts), rel=1e-5)
    assert (result.all_tokens, result.text_tokens) == (len(scores), len(texts))
    assert len(scores) > len(texts) > 100


def test_splits_have_different_documents(tmp_path: Path, text: Path) -> None:
    folder = saved(tmp_path / "model", "bittoken")
    val, train = (text_perplexity(folder, text, split) for split in ("val", "train"))
    lengths = [samples.lengths for samples in windows_of(text, "bittoken", "train")]
    assert train.all_tokens == int((np.concatenate(lengths) - 1).sum())
    assert train.all_tokens > 10 * val.all_tokens


def test_perplexity_does_not_depend_on_batches_and_slices(
    tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved(tmp_path / "model", "bittoken")
    whole = text_perplexity(folder, text, "val")
    monkeypatch.setattr("bittoken.perplexity._POSITIONS_PER_SLICE", 7)
    monkeypatch.setattr("bittoken.perplexity._TOKENS_PER_BATCH", 60)
    assert text_perplexity(folder, text, "val") == pytest.approx(whole, rel=1e-5)


def test_max_tokens_limits_the_tokens(tmp_path: Path, text: Path) -> None:
    folder = saved(tmp_path / "model", "bittoken")
    lengths = np.concatenate([w.lengths for w in windows_of(text, "bittoken", "val")])
    for limit in (CONTEXT, 100, 300, 10**9):
        fitting = lengths[np.cumsum(lengths) <= limit]
        result = text_perplexity(folder, text, "val", limit)
        assert result.all_tokens == int((fitting - 1).sum())


def test_max_tokens_below_a_window_is_bad_input(tmp_path: Path, text: Path) -> None:
    with pytest.raises(BadInput, match=rf"a window of text \({CONTEXT}\)"):
        text_perplexity(saved(tmp_path / "model", "bittoken"), text, "val", CONTEXT - 1)


def test_nan_weights_are_an_error(tmp_path: Path, text: Path) -> None:
    network = small.network(vocabulary=len(codec().vocabulary), context=CONTEXT)
    with torch.no_grad():
        network.lm_head.weight[3] = math.nan
    SMALL.save(tmp_path / "tokenizer.json")
    checkpoint.save(tmp_path / "model", network, {}, tmp_path / "tokenizer.json")
    with pytest.raises(NumbenchError, match="not finite"):
        text_perplexity(tmp_path / "model", text, "val")


def trained(tmp_path: Path, text: Path) -> tuple[Recipe, Trainer, dict[str, DataLoader]]:
    SMALL.save(tmp_path / "small.json")
    recipe = load_recipe(
        "cpu",
        [
            "data.tasks=['addition', 'text']",
            "data.curriculum=[]",
            f"data.text={text}",
            f"data.text_vocabulary={tmp_path / 'small.json'}",
            "model.layers=1",
            f"model.context={CONTEXT}",
            "training.validation_tokens=600",
            "training.precision=float32",
        ],
    )
    distributed = DistributedContext()
    side = open_text_data(recipe, tmp_path, distributed)
    assert side is not None
    vocabulary = Vocabulary("bittoken", side.bpe.tokens)
    feeds = {
        name: DataLoader(
            recipe, vocabulary, "val", 0, side.stream("val", vocabulary), use_full_range=True
        )
        for name in ("first", "again")
    }
    return recipe, Trainer(recipe, vocabulary, distributed), feeds


def test_validation_reports_the_perplexity_of_its_text(tmp_path: Path, text: Path) -> None:
    recipe, trainer, feeds = trained(tmp_path, text)
    mixture = Mixture(recipe, feeds["first"].scales)
    result = validate(trainer, mixture, feeds["first"], feeds["first"])["tasks"]
    batch = Mixture(recipe, feeds["again"].scales).batch(
        feeds["again"], BatchSize(600), np.array([0.5, 0.5]), use_curriculum=False
    )
    windows = batch.samples.take(np.flatnonzero(batch.task == 1))
    scores, is_text = score_samples(trainer.network, [windows], trainer.vocabulary)
    assert not all(is_text)
    assert len(scores) > 100
    assert result["text"]["perplexity"] == pytest.approx(perplexity_of(scores), rel=1e-4)
    assert "perplexity" not in result["addition"]


def numbench(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["numbench", "perplexity", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    printed = capsys.readouterr()
    return int(end.value.code or 0), printed.out, printed.err


def test_command_prints_both_perplexities_on_one_line(
    tmp_path: Path,
    text: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = saved(tmp_path / "model", "bittoken")
    result = text_perplexity(folder, text, "val")
    options = ("--model", f"checkpoint/{folder}", "--text", str(text))
    code, out, err = numbench(monkeypatch, capsys, *options)
    assert (code, err, out.count("\n")) == (0, "", 1)
    for part in (f"{result.all:,.4g}", f"{result.text:,.4g}", f"{result.all_tokens:,} tokens"):
        assert part in out
    code, out, _ = numbench(monkeypatch, capsys, *options, "--json", "--split", "val")
    assert json.loads(out) == {
        "model": f"checkpoint/{folder}",
        "text": str(text),
        "split": "val",
        "perplexity": result.all,
        "tokens": result.all_tokens,
        "text_perplexity": result.text,
        "text_tokens": result.text_tokens,
    }


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("numbers", "has no text vocabulary"),
        ("empty", "contains no text"),
        ("nowhere", "does not exist"),
        ("missing", "not a small model"),
        ("unnamed", "checkpoint/PATH"),
        ("foreign", "not a checkpoint trained by numbench"),
        ("torchless", "pip install 'numbench[local]'"),
    ],
)
def test_invalid_arguments_print_one_line(
    case: str,
    message: str,
    tmp_path: Path,
    text: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = saved(tmp_path / "model", "bittoken", text=case != "numbers")
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "config.json").write_text("{}")
    model = {
        "missing": f"checkpoint/{tmp_path / 'missing'}",
        "unnamed": str(folder),
        "foreign": f"checkpoint/{tmp_path / 'foreign'}",
    }.get(case, f"checkpoint/{folder}")
    text_folder = {"empty": tmp_path / "empty", "nowhere": tmp_path / "nowhere"}.get(case, text)
    if case == "torchless":
        monkeypatch.setattr(
            "bittoken.cli.find_spec", lambda name: None if name == "torch" else name
        )
    code, out, err = numbench(monkeypatch, capsys, "--model", model, "--text", str(text_folder))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
