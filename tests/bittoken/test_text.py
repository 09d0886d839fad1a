"""Text next to numbers: documents, vocabulary, tokens, windows and perplexity."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from bittoken.checkpoint import save_checkpoint
from bittoken.evaluation import text_perplexity
from bittoken.text import (
    TextData,
    make_tokenizer,
    split_of,
    text_pieces,
)
from bittoken.tokens import Vocabulary, read_text_tokens
from numbench.decimal_numbers import format_decimal, parse_decimal
from numbench.errors import BadInput, NumbenchError
from tests.bittoken import small

CONTEXT = 12
NUMBERS = {"<|num|>", "-", ".", *"0123456789"}


def documents(count: int) -> list[str]:
    """Return distinct documents of different lengths, with numbers."""
    return [f"Document the {i} costs {i}.5 in " + "the end " * (i % 7) for i in range(count)]


def parquet(path: Path, texts: list[str | None], column: str = "text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.table({"id": list(range(len(texts))), column: texts}), path, row_group_size=90
    )
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with texts and a text vocabulary that was trained on them."""
    folder = tmp_path_factory.mktemp("text")
    parquet(folder / "text" / "a.parquet", [*documents(600), None, ""])
    make_tokenizer(folder / "tokenizer.json", folder / "text", None, 300)
    return folder


def vocabulary(folder: Path, encoding: str = "bittoken") -> Vocabulary:
    return Vocabulary(encoding, read_text_tokens(folder / "tokenizer.json"))


def text_data(folder: Path, encoding: str = "bittoken", seed: int = 0) -> TextData:
    return TextData(
        folder / "text", folder / "tokenizer.json", vocabulary(folder, encoding), CONTEXT, seed
    )


def decoded(tokens: list[int], values: list[float], words: Vocabulary) -> str:
    """Return the text of tokens; numbers in their shortest form."""
    symbols = dict(zip(_gpt2_symbols(), range(256), strict=True))
    parts = []
    for token, value in zip(tokens, values, strict=True):
        if token == words.number_id:
            parts.append(format_decimal(parse_decimal(repr(value))).encode())
        elif token < len(words.base_tokens):
            parts.append(words.tokens[token].encode())
        else:
            parts.append(bytes(symbols[symbol] for symbol in words.tokens[token]))
    return b"".join(parts).decode()


def _gpt2_symbols() -> str:
    """Return GPT-2's symbol of each byte: itself if printable, or a character from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return "".join(chr(b if b in printable else 256 + others.index(b)) for b in range(256))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It costs 3.5, or -2 at 100% off.", [3.5, -2, 100]),
        ("3.10 and -0 are no canonical numbers, 0 and 0.25 are; 007 is three", [0, 0.25, 0, 0, 7]),
        ("12345678901234567 has 17 digits; 123456789012345 has 15", [17, 123456789012345, 15]),
        ("1000000000000000 is out of range, 0.00000000000001 is not", [1e-14]),
        ("naïve 数字 ３ 🎉\n\ttabs  and <|eos|> as text", []),
        ("v1.2.3-4", [1.2, -4]),
        ("", []),
    ],
)
@pytest.mark.parametrize("encoding", ["bittoken", "fone", "digit", "subword"])
def test_text_becomes_tokens_without_loss(
    folder: Path, encoding: str, text: str, numbers: list[float]
) -> None:
    words = vocabulary(folder, encoding)
    (encoded,) = text_data(folder, encoding).encode([text])
    tokens, values = encoded.tokens.tolist(), encoded.values.tolist()
    assert [words.tokens[t] for t in (tokens[0], tokens[-1])] == ["<|bos|>", "<|eos|>"]
    assert decoded(tokens[1:-1], values[1:-1], words) == text
    found = [value for t, value in zip(tokens, values, strict=True) if t == words.number_id]
    expected = [] if words.encoding is None else numbers
    assert found == (expected if encoding == "bittoken" else [abs(n) for n in expected])
    if encoding == "subword" and "123456789012345" in text:
        assert [words.tokens[t] for t in tokens].count("123") == 2


def test_a_vocabulary_of_gpt2s_kind_loses_its_special_tokens_and_digits(
    folder: Path, tmp_path: Path
) -> None:
    content = json.loads((folder / "tokenizer.json").read_text())
    model = content["model"]
    for token in ("<|endoftext|>", *"0123456789", "12", "Ġ1"):
        model["vocab"][token] = len(model["vocab"])
    merges = [f"{left} {right}" for left, right in model["merges"]]
    content["model"]["merges"] = ["1 2", *merges, "Ġ 1"]
    special = {"id": model["vocab"]["<|endoftext|>"], "content": "<|endoftext|>", "special": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True}
    content["added_tokens"] = [special | flags]
    (tmp_path / "gpt2.json").write_text(json.dumps(content))
    make_tokenizer(tmp_path / "made.json", folder / "text", str(tmp_path / "gpt2.json"), 0)
    own = read_text_tokens(folder / "tokenizer.json")
    assert read_text_tokens(tmp_path / "made.json") == [*own, "<|endoftext|>"]
    assert not any(set(token) & set("0123456789") for token in own)
    assert 256 - 10 < len(own) <= 300


@pytest.mark.parametrize("content", ["{}", '{"model": {"vocab": {"a": 0}, "merges": []}}', "x"])
def test_a_damaged_vocabulary_is_reported(folder: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(BadInput, match=r"bad\.json"):
        make_tokenizer(tmp_path / "made.json", folder / "text", str(tmp_path / "bad.json"), 0)


def test_plain_text_is_divided_into_documents_without_loss(tmp_path: Path) -> None:
    lines = [f"Line {i}: " + "é" * (i % 211) + "\n" for i in range(1200)]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "long.txt").write_text("".join(lines))
    (tmp_path / "b.txt").write_text("no newline at the end")
    pieces = text_pieces(tmp_path)
    assert len(pieces) == 2
    read = [document for piece in pieces for document in piece.documents()]
    assert "".join(read) == "".join(lines) + "no newline at the end"
    assert max(map(len, read)) < 2300
    assert np.mean([len(text) < 2000 for text in read]) < 0.1
    (tmp_path / "b.txt").write_bytes(b"\xff")
    with pytest.raises(BadInput, match=r"b\.txt"):
        pieces[-1].documents()


@pytest.mark.parametrize(
    ("name", "problem"),
    [("missing", "does not exist"), ("empty", "contains no text"), ("other", "no column 'text'")],
)
def test_a_folder_without_text_is_reported(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "empty").mkdir()
    parquet(tmp_path / "other" / "a.parquet", ["x"], column="body")
    with pytest.raises(BadInput, match=problem):
        text_pieces(tmp_path / name)


def test_windows_overlap_by_one_token_and_predict_each_token_once(folder: Path) -> None:
    data, words = text_data(folder), vocabulary(folder)
    read = {split: list(data.single_pass(split)) for split in ("train", "val")}  # type: ignore[arg-type]
    expected = dict.fromkeys(read, 0)
    for text, encoded in zip(documents(600), data.encode(documents(600)), strict=True):
        expected[split_of(text)] += len(encoded.tokens) - 1
    for split, batches in read.items():
        assert sum(int(samples.is_target.sum()) for samples in batches) == expected[split]
    assert expected["train"] > 10 * expected["val"] > 0
    starts = 0
    for samples in read["train"]:
        for row in np.flatnonzero(samples.lengths[:-1] == CONTEXT):
            is_continued = samples.tokens[row, -1] != words.eos_id
            assert samples.tokens[row + 1, 0] == (
                samples.tokens[row, -1] if is_continued else words.ids["<|bos|>"]
            )
            starts += is_continued
    assert starts > 50
    first = read["train"][0]
    is_number = first.tokens == words.number_id
    assert (first.values[is_number] == first.codes[is_number].view(np.float64)[:, 0]).all()
    assert not first.is_target[:, 0].any()


def test_drawn_windows_depend_on_seed_split_and_number_alone(folder: Path) -> None:
    first = text_data(folder).draw("train", 3, 5000)
    again = text_data(folder).draw("train", 3, 5000)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert 5000 <= first.lengths.sum() < 5000 + CONTEXT
    for other in (
        text_data(folder).draw("train", 4, 5000),
        text_data(folder, seed=1).draw("train", 3, 5000),
        text_data(folder).draw("val", 3, 5000),
    ):
        assert other.tokens[:9].tolist() != first.tokens[:9].tolist()


def saved(folder: Path, out: Path, encoding: str, text: bool = True) -> Path:
    """Save a checkpoint with random weights."""
    words = vocabulary(folder, encoding) if text else Vocabulary(encoding)
    network = small.network(encoding, vocabulary=len(words), context=CONTEXT)
    save_checkpoint(out, network, {}, folder / "tokenizer.json" if text else None)
    return out


@pytest.mark.parametrize("encoding", ["fone", "digit"])
def test_perplexity_is_that_of_separate_windows(
    folder: Path, tmp_path: Path, encoding: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    words = vocabulary(folder, encoding)
    network = small.network(encoding, vocabulary=len(words), context=CONTEXT)
    nats, is_text = [], []
    for samples in text_data(folder, encoding).single_pass("val"):
        for row, length in enumerate(samples.lengths.tolist()):
            alone = samples.take([row])
            with torch.no_grad():
                (states,) = small.hidden(network, alone)
                log_probabilities = network.logits(states).double().log_softmax(-1)
            following = alone.tokens[0, 1:length]
            nats += (-log_probabilities[np.arange(length - 1), following]).tolist()
            is_text += [words.tokens[token] not in NUMBERS for token in following]
    result = text_perplexity(saved(folder, tmp_path / "m", encoding), folder / "text")
    assert result.perplexity == pytest.approx(math.exp(np.mean(nats)), rel=1e-5)
    assert result.text_perplexity == pytest.approx(
        math.exp(np.mean(np.array(nats)[is_text])), rel=1e-5
    )
    assert (result.tokens, result.text_tokens) == (len(nats), sum(is_text))
    assert len(nats) > sum(is_text) > 50
    few = text_perplexity(tmp_path / "m", folder / "text", 30)
    assert few.perplexity == pytest.approx(math.exp(np.mean(nats[:30])), rel=1e-5)
    command = ("perplexity", str(tmp_path / "m"), str(folder / "text"))
    assert small.call(monkeypatch, *command, "--tokens", "30", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == {"model": command[1], "text": command[2], **few._asdict()}
    assert small.call(monkeypatch, *command) == 0
    assert (
        f"perplexity {result.perplexity:,.4g} over {result.tokens:,} tokens; "
        f"{result.text_perplexity:,.4g} over the {result.text_tokens:,} that"
    ) in capsys.readouterr().out


def test_perplexity_without_a_usable_model_is_an_error(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no text vocabulary"):
        text_perplexity(saved(folder, tmp_path / "m", "digit", text=False), folder / "text")
    parquet(tmp_path / "few" / "a.parquet", [t for t in documents(99) if split_of(t) == "train"])
    model = saved(folder, tmp_path / "text", "digit")
    with pytest.raises(BadInput, match="too little text: no val document"):
        text_perplexity(model, tmp_path / "few")
    data = TextData(tmp_path / "few", folder / "tokenizer.json", vocabulary(folder), CONTEXT)
    with pytest.raises(BadInput, match="too little text: no val document"):
        data.draw("val", 0, 10)
    words = vocabulary(folder)
    network = small.network(vocabulary=len(words), context=CONTEXT)
    with torch.no_grad():
        network.lm_head.weight[3] = math.nan
    save_checkpoint(tmp_path / "nan", network, {}, folder / "tokenizer.json")
    with pytest.raises(NumbenchError, match=re.escape("not finite")):
        text_perplexity(tmp_path / "nan", folder / "text")
