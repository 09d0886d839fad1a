"""A Hugging Face causal language model, run in this process from a local folder: `hf/PATH`.

Decoding is greedy. Questions that wait together are answered in one left-padded batch. Padding is
masked and shifts no position, so an answer does not depend on what shares its batch, except by
the rounding of the arithmetic: at 16 bits a near tie between two tokens may fall either way.

A tokenizer with a chat template phrases the conversation by it; where the template knows no
system prompt, the system prompt stands before the first question, a blank line between. Without a
template the prompt is the system prompt, a blank line, then each turn on a line of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from bench.errors import BadInput, NumbenchError
from bench.models.base import Message, Settings
from bench.models.batching import Batcher
from bench.models.catalogue import DEFAULT, Level
from bench.models.failures import failed
from bench.models.fingerprint import fingerprint
from bench.models.thinking import OPENING, split
from bench.records import Completion, Failure, Usage

MAX_TOKENS = 4096
"""New tokens at most, where the settings name no other limit; fewer where the context is full."""

MOST = 64
"""Questions in one batch at most; half as many each time the memory does not suffice."""

_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")
_THINKING = "enable_thinking"


class _Ask(NamedTuple):
    """One prompt. `limit` bounds the new tokens; `opened`: the prompt opens a thinking tag."""

    tokens: list[int]
    limit: int
    opened: bool
    timeout: float


class HuggingFaceModel:
    """A causal language model and its tokenizer, on the GPU where there is one."""

    def __init__(self, name: str, folder: Path) -> None:
        """BadInput where `folder` holds no model, or the `local` extra is not installed."""
        _check(name, folder)
        self.name = name
        self.fingerprint = fingerprint(_files(folder))
        self._folder = folder.resolve()
        self._tokenizer, self._network, self._ends = _load(name, folder)
        self._stop = threading.Event()
        self._batches: Batcher[_Ask, Completion] = Batcher(self._answer_all, MOST)
        self._system = self._tokenizer.chat_template is not None and self._takes_system()

    @property
    def precision(self) -> str:
        """The type of the weights, such as `bfloat16`."""
        return str(self._network.dtype).removeprefix("torch.")

    @property
    def levels(self) -> dict[str, Level]:
        """What the chat template can switch: thinking off and on, or nothing."""
        if self._tokenizer.chat_template is not None:
            question = [Message("user", "1")]
            if self._render(question, {_THINKING: True}) != self._render(
                question, {_THINKING: False}
            ):
                return {
                    "none": Level(request={_THINKING: False}),
                    "maximal": Level(request={_THINKING: True}),
                }
        return {DEFAULT: Level()}

    async def answer(self, messages: Sequence[Message], settings: Settings) -> Completion:
        """The greedy continuation of `messages`, split into thinking and answer, tokens counted.

        A failure of kind `item` where the prompt leaves no room in the model's context, or where
        the answer takes longer than `settings.timeout` or more memory than there is.
        """
        if settings.temperature:
            return failed(Failure(kind="run", message="hf models answer at temperature 0 only"))
        tokens, opened = self._encode(messages, settings.request)
        limit = min(settings.max_tokens or MAX_TOKENS, self._context - len(tokens))
        if limit < 1:
            said = f"the prompt's {len(tokens)} tokens fill the context of {self._context}"
            return failed(Failure(kind="item", message=said))
        return await self._batches(_Ask(tokens, limit, opened, settings.timeout))

    async def close(self) -> None:
        """Stop the batch under way at its next token."""
        self._stop.set()
        await self._batches.finish()
        self._stop.clear()

    @property
    def _context(self) -> int:
        """Tokens that prompt and answer may have together."""
        found = getattr(self._network.config.get_text_config(), "max_position_embeddings", None)
        return int(found) if found else 2**31

    def _encode(
        self, messages: Sequence[Message], request: dict[str, object]
    ) -> tuple[list[int], bool]:
        """The prompt's tokens, and whether it ends in an opening thinking tag."""
        if self._tokenizer.chat_template is None:
            prompt = _plain(messages)
            return list(self._tokenizer(prompt)["input_ids"]), False
        prompt = self._render(messages if self._system else _merged(messages), request)
        tokens = self._tokenizer(prompt, add_special_tokens=False)["input_ids"]
        return list(tokens), prompt.rstrip().endswith(OPENING)

    def _render(self, messages: Sequence[Message], request: dict[str, object]) -> str:
        turns = [message._asdict() for message in messages]
        rendered: str = self._tokenizer.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True, **request
        )
        return rendered

    def _takes_system(self) -> bool:
        """Whether the template passes a system prompt on; some refuse it, some drop it."""
        from jinja2.exceptions import TemplateError

        probe = "system prompt 271828"
        try:
            return probe in self._render([Message("system", probe), Message("user", "1")], {})
        except TemplateError:
            return False

    def _answer_all(self, asks: Sequence[_Ask]) -> list[Completion]:
        """One completion for each prompt, in halves where the memory does not suffice.

        NumbenchError where the machine fails in another way.
        """
        import torch

        try:
            start = time.monotonic()
            generated = self._generate(asks)
        except torch.OutOfMemoryError:
            generated = None
        except RuntimeError as error:
            said = " ".join(str(error).split())[:300]
            raise NumbenchError(f"{self.name}: {said}") from error
        if generated is not None:
            seconds = round(time.monotonic() - start, 6)
            return [
                self._completion(ask, new, seconds, len(asks))
                for ask, new in zip(asks, generated, strict=True)
            ]
        torch.cuda.empty_cache()
        if len(asks) == 1:
            return [failed(Failure(kind="item", message="the GPU's memory does not suffice"))]
        self._batches.most = half = len(asks) // 2
        return self._answer_all(asks[:half]) + self._answer_all(asks[half:])

    def _generate(self, asks: Sequence[_Ask]) -> list[list[int]]:
        """The new tokens after each prompt, the one that ends it included, padding left out.

        In rounds, each as long as every open answer may still grow: where the context binds, long
        prompts leave less room than short ones, and no row may go beyond its own.
        """
        until = time.monotonic() + max(ask.timeout for ask in asks)
        texts = [list(ask.tokens) for ask in asks]
        full = [len(ask.tokens) + ask.limit for ask in asks]
        rows = list(range(len(asks)))
        while rows and not self._over(until):
            room = min(full[row] - len(texts[row]) for row in rows)
            for row, new in zip(
                rows, self._grow([texts[row] for row in rows], room, until), strict=True
            ):
                texts[row] += new
            rows = [
                row
                for row in rows
                if len(texts[row]) < full[row] and texts[row][-1] not in self._ends
            ]
        return [text[len(ask.tokens) :] for ask, text in zip(asks, texts, strict=True)]

    def _grow(self, texts: Sequence[list[int]], room: int, until: float) -> list[list[int]]:
        """At most `room` new tokens after each of `texts`, in one left-padded batch."""
        import torch
        from transformers import StoppingCriteriaList

        width = max(len(text) for text in texts)
        pad = self._network.generation_config.pad_token_id
        device = self._network.device

        def stopped(ids: Any, scores: Any, **_: Any) -> Any:
            return torch.full((len(ids),), self._over(until), dtype=torch.bool, device=ids.device)

        output = self._network.generate(
            input_ids=torch.tensor(
                [[pad] * (width - len(text)) + text for text in texts], device=device
            ),
            attention_mask=torch.tensor(
                [[0] * (width - len(text)) + [1] * len(text) for text in texts], device=device
            ),
            max_new_tokens=room,
            stopping_criteria=StoppingCriteriaList([stopped]),
        )
        return [self._until_end(row) for row in output[:, width:].tolist()]

    def _over(self, until: float) -> bool:
        return self._stop.is_set() or time.monotonic() > until

    def _until_end(self, new: list[int]) -> list[int]:
        end = next((n for n, token in enumerate(new) if token in self._ends), len(new))
        return new[: end + 1]

    def _completion(self, ask: _Ask, new: list[int], seconds: float, batch: int) -> Completion:
        """What the tokens `new` say, generated in `seconds` in a batch of `batch`."""
        ended = bool(new) and new[-1] in self._ends
        if not ended and len(new) < ask.limit:
            said = f"stopped after {ask.timeout:g} seconds and {len(new)} tokens without an end"
            return failed(
                Failure(kind="transient" if self._stop.is_set() else "item", message=said)
            )
        thinking, reasoning_text = split(new, self._raw, ask.opened)
        text = self._tokenizer.decode(
            new[thinking:], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return Completion(
            text=text if reasoning_text is None else text.strip(),
            reasoning_text=reasoning_text,
            finish_reason="stop" if ended else "length",
            usage=Usage(
                input=len(ask.tokens),
                reasoning=thinking,
                visible=len(new) - thinking,
                generated=len(new),
                source="counted",
            ),
            latency=seconds,
            served_model=self._folder.name,
            extra={"batch": batch, "device": str(self._network.device)},
        )

    def _raw(self, tokens: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(
            list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text


def _plain(messages: Sequence[Message]) -> str:
    system = "".join(f"{m.content}\n\n" for m in messages if m.role == "system")
    return system + "".join(f"{m.content}\n" for m in messages if m.role != "system")


def _merged(messages: Sequence[Message]) -> list[Message]:
    """`messages` with the system prompt at the head of the first question."""
    system = "".join(f"{m.content}\n\n" for m in messages if m.role == "system")
    first, *others = (m for m in messages if m.role != "system")
    return [first._replace(content=system + first.content), *others]


def _check(name: str, folder: Path) -> None:
    """BadInput that says what `folder` lacks, or that the extra is not installed."""
    if not folder.is_dir():
        raise BadInput(f"{name}: there is no folder {folder}")
    missing = []
    if not (folder / "config.json").is_file():
        missing.append("config.json")
    if not any(folder.glob("*.safetensors")):
        missing.append("weights (*.safetensors)")
    if not any((folder / file).is_file() for file in _TOKENIZERS):
        missing.append("a tokenizer (tokenizer.json)")
    if missing:
        raise BadInput(f"{name}: no Hugging Face model in {folder}: missing {', '.join(missing)}")
    if any(find_spec(package) is None for package in ("torch", "transformers", "safetensors")):
        raise BadInput(f"{name} needs an extra: pip install 'numbench[local]'")


def _load(name: str, folder: Path) -> tuple[Any, Any, frozenset[int]]:
    """Tokenizer, network and the tokens that end an answer. BadInput where they do not load."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    safely = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **safely)
        network = AutoModelForCausalLM.from_pretrained(
            folder, torch_dtype="auto", use_safetensors=True, **safely
        )
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        said = " ".join(str(error).split())[:300]
        raise BadInput(f"{name}: the model in {folder} does not load: {said}") from error
    network.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    ends = _ends(network.generation_config.eos_token_id) | _ends(tokenizer.eos_token_id)
    pad = tokenizer.pad_token_id
    # A folder's own sampling, penalties and lengths would make the decoding another than greedy.
    network.generation_config = GenerationConfig(
        do_sample=False,
        eos_token_id=sorted(ends) or None,
        pad_token_id=pad if pad is not None else min(ends, default=0),
    )
    return tokenizer, network, ends


def _ends(token: int | list[int] | None) -> frozenset[int]:
    if token is None:
        return frozenset()
    return frozenset(token) if isinstance(token, list) else frozenset([token])


def _files(folder: Path) -> list[Path]:
    """The files that decide what the model says."""
    kinds = (".safetensors", ".json", ".jinja", ".model", ".txt")
    return [path for path in folder.iterdir() if path.suffix in kinds and path.is_file()]
