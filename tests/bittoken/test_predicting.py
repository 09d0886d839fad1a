"""Perplexity of checkpoints, and the command that says it."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.bittoken import checkpoint
from bench.bittoken.attention import Layout
from bench.bittoken.data.packing import Samples
from bench.bittoken.network import Network
from bench.bittoken.predicting import text_perplexity
from bench.bittoken.text.stream import Split, TextStream
from bench.bittoken.training.crew import Crew
from bench.bittoken.training.measuring import validate
from bench.bittoken.training.mixture import Feed, Mixture
from bench.bittoken.training.recipe import Recipe, load_recipe
from bench.bittoken.training.text import open_text
from bench.bittoken.training.trainer import Trainer
from bench.bittoken.vocabulary import NUM, Vocabulary
from bench.cli import main
from bench.errors import BadInput, NumbenchError
from tests.bittoken import small
from tests.bittoken.text.small import SMALL, codec, documents, parquet

CONTEXT = 24


def saved(folder: Path, encoding: str, text: bool = True) -> Path:
    """A checkpoint with random weights."""
    vocabulary = Vocabulary(encoding, SMALL.tokens if text else ())
    network = small.network(encoding, vocabulary=len(vocabulary), context=CONTEXT)
    SMALL.save(folder.with_suffix(".json"))
    tokenizer = folder.with_suffix(".json") if text else None
    checkpoint.save(folder, network, {}, text_tokenizer=tokenizer)
    return folder


def by_hand(
    network: Network, windows: Iterable[Samples], vocabulary: Vocabulary
) -> tuple[list[float], list[bool]]:
    """Of each predicted token its log-probability, one sample at a time, and whether it is text."""
    numbers = {vocabulary.ids[piece] for piece in (NUM, "-", ".", *"0123456789")}
    scores, is_text = [], []
    for samples in windows:
        start = 0
        for length in samples.lengths.tolist():
            tokens = samples.tokens[start : start + length]
            codes = torch.from_numpy(samples.codes[start : start + length])
            with torch.no_grad():
                hidden = network(torch.from_numpy(tokens), codes, Layout.of(np.array([length])))
                spoken = network.logits(hidden).double().log_softmax(-1)
            for place in range(1, length):
                scores.append(float(spoken[place - 1, tokens[place]]))
                is_text.append(int(tokens[place]) not in numbers)
            start += length
    return scores, is_text


def windows_of(text: Path, encoding: str, split: Split) -> Iterable[Samples]:
    return TextStream(text, codec(encoding), CONTEXT, seed=0, split=split).once(CONTEXT)


def mean(scores: list[float]) -> float:
    return math.exp(-sum(scores) / len(scores))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    parquet(tmp_path / "text" / "a.parquet", documents(1200))
    return tmp_path / "text"


@pytest.mark.parametrize("encoding", ["bittoken", "fone", "digit"])
def test_perplexity_is_that_of_each_sample_alone(tmp_path: Path, text: Path, encoding: str) -> None:
    folder = saved(tmp_path / "model", encoding)
    found = text_perplexity(folder, text, "val")
    loaded = checkpoint.load(folder)
    windows = windows_of(text, encoding, "val")
    scores, is_text = by_hand(loaded.network, windows, loaded.vocabulary)
    assert found.all == pytest.approx(mean(scores), rel=1e-5)
    texts = [score for score, yes in zip(scores, is_text, strict=True) if yes]
    assert found.text == pytest.approx(mean(texts), rel=1e-5)
    assert (found.all_tokens, found.text_tokens) == (len(scores), len(texts))
    assert len(scores) > len(texts) > 100


def test_the_splits_are_read_apart(tmp_path: Path, text: Path) -> None:
    folder = saved(tmp_path / "model", "bittoken")
    val, train = (text_perplexity(folder, text, split) for split in ("val", "train"))
    lengths = [samples.lengths for samples in windows_of(text, "bittoken", "train")]
    assert train.all_tokens == int((np.concatenate(lengths) - 1).sum())
    assert train.all_tokens > 20 * val.all_tokens


def test_many_slices_give_what_one_gives(
    tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = saved(tmp_path / "model", "bittoken")
    whole = text_perplexity(folder, text, "val")
    monkeypatch.setattr("bench.bittoken.predicting._SLICE", 7)
    monkeypatch.setattr("bench.bittoken.predicting._AT_ONCE", 60)
    assert text_perplexity(folder, text, "val") == pytest.approx(whole, rel=1e-5)


def test_no_more_tokens_are_read_than_asked(tmp_path: Path, text: Path) -> None:
    folder = saved(tmp_path / "model", "bittoken")
    lengths = np.concatenate([w.lengths for w in windows_of(text, "bittoken", "val")])
    for most in (CONTEXT, 100, 300, 10**9):
        fitting = lengths[np.cumsum(lengths) <= most]
        found = text_perplexity(folder, text, "val", most)
        assert found.all_tokens == int((fitting - 1).sum())


def test_a_window_must_fit(tmp_path: Path, text: Path) -> None:
    with pytest.raises(BadInput, match=f"a window has {CONTEXT}"):
        text_perplexity(saved(tmp_path / "model", "bittoken"), text, "val", CONTEXT - 1)


def test_weights_that_are_no_numbers_are_a_failure(tmp_path: Path, text: Path) -> None:
    network = small.network(vocabulary=len(codec().vocabulary), context=CONTEXT)
    with torch.no_grad():
        network.lm_head.weight[3] = math.nan
    SMALL.save(tmp_path / "tokenizer.json")
    checkpoint.save(tmp_path / "model", network, {}, tmp_path / "tokenizer.json")
    with pytest.raises(NumbenchError, match="not finite"):
        text_perplexity(tmp_path / "model", text, "val")


def trained(tmp_path: Path, text: Path) -> tuple[Recipe, Trainer, dict[str, Feed]]:
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
    crew = Crew()
    side = open_text(recipe, tmp_path, crew)
    assert side is not None
    vocabulary = Vocabulary("bittoken", side.bpe.tokens)
    feeds = {
        name: Feed(recipe, vocabulary, "val", 0, side.stream("val", vocabulary), full=True)
        for name in ("first", "again")
    }
    return recipe, Trainer(recipe, vocabulary, crew), feeds


def test_validation_tells_the_perplexity_of_its_text(tmp_path: Path, text: Path) -> None:
    recipe, trainer, feeds = trained(tmp_path, text)
    mixture = Mixture(recipe, feeds["first"].scales)
    found = validate(trainer, mixture, feeds["first"], feeds["first"])["tasks"]
    batch = Mixture(recipe, feeds["again"].scales).batch(
        feeds["again"], 600, np.array([0.5, 0.5]), leveled=False
    )
    windows = batch.samples.take(np.flatnonzero(batch.task == 1))
    scores, is_text = by_hand(trainer.network, [windows], trainer.vocabulary)
    assert not all(is_text)
    assert len(scores) > 100
    assert found["text"]["perplexity"] == pytest.approx(mean(scores), rel=1e-4)
    assert "perplexity" not in found["addition"]


def numbench(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["numbench", "perplexity", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    printed = capsys.readouterr()
    return int(end.value.code or 0), printed.out, printed.err


def test_the_command_says_both_perplexities_on_one_line(
    tmp_path: Path,
    text: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = saved(tmp_path / "model", "bittoken")
    found = text_perplexity(folder, text, "val")
    asked = ("--model", f"checkpoint/{folder}", "--text", str(text))
    code, out, err = numbench(monkeypatch, capsys, *asked)
    assert (code, err, out.count("\n")) == (0, "", 1)
    for part in (f"{found.all:,.4g}", f"{found.text:,.4g}", f"{found.all_tokens:,} tokens"):
        assert part in out
    code, out, _ = numbench(monkeypatch, capsys, *asked, "--json", "--split", "val")
    assert json.loads(out) == {
        "model": f"checkpoint/{folder}",
        "text": str(text),
        "split": "val",
        "perplexity": found.all,
        "tokens": found.all_tokens,
        "text_perplexity": found.text,
        "text_tokens": found.text_tokens,
    }


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("numbers", "knows no text"),
        ("empty", "holds no text"),
        ("nowhere", "there is no folder"),
        ("missing", "no small model here"),
        ("unnamed", "checkpoint/PATH"),
        ("foreign", "no checkpoint of numbench's own"),
        ("torchless", "pip install 'numbench[local]'"),
    ],
)
def test_wrong_use_is_one_line(
    case: str,
    says: str,
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
    reading = {"empty": tmp_path / "empty", "nowhere": tmp_path / "nowhere"}.get(case, text)
    if case == "torchless":
        monkeypatch.setattr(
            "bench.cli.small_models.find_spec", lambda name: None if name == "torch" else name
        )
    code, out, err = numbench(monkeypatch, capsys, "--model", model, "--text", str(reading))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err
