"""Models in this process: what they share, and Hugging Face models from a local folder: `hf/PATH`.

Decoding is greedy. Concurrent questions are answered in one left-padded batch. The padding is
masked and shifts no position, so that an answer does not depend on the other questions of its
batch, except for rounding errors: at 16 bits a near tie between two tokens may go either way. On a
CPU, the network computes at 32 bits, which leaves few such ties.

If the tokenizer has a chat template, the template formats the conversation; if the template
supports no system prompt, that is put before the first question, followed by a blank line.
Without a template the prompt is the system prompt, a blank line, then one line per message.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from numbench.errors import BadInput, NumbenchError
from numbench.models.base import Message, ModelTarget, RequestSettings
from numbench.models.facts import ReasoningLevel
from numbench.models.failures import failed_completion
from numbench.models.providers import ModelProperties, ProviderPlugin
from numbench.records import Completion, Failure, Usage
from numbench.thinking_text import split_tokens

if TYPE_CHECKING:
    import torch

_BATCH_WINDOW_SECONDS = 0.02
"""How long a batch waits for the next call: short compared with the time that a batch takes."""


class BatchItem(NamedTuple):
    """One prompt of a batch.

    prompt: what `_generate` reads. token_count: of the prompt. limit: maximum number of new tokens.
    timeout: seconds.
    """

    prompt: Any
    token_count: int
    limit: int
    timeout: float


class LocalAnswer(NamedTuple):
    """The text of new tokens, and the number of those that are not reasoning."""

    text: str
    visible_tokens: int
    reasoning_text: str | None = None


class LocalModel(ABC):
    """Base class of networks in this process: greedy decoding of concurrent requests in batches.

    The requests that wait when a batch is finished make up the next one, of at most
    `max_batch_size`. A batch that needs more memory than there is is split in halves. It ends when
    the longest time limit of its prompts is over, or at the next token after `close`.
    """

    properties: ModelProperties
    device: str
    end_token_ids: frozenset[int]

    def __init__(self, name: str, max_batch_size: int) -> None:
        self.name = name
        self._max_batch_size = self._batch_size = max_batch_size
        self._stop = threading.Event()
        self._queue: list[tuple[BatchItem, asyncio.Future[Completion]]] = []
        self._worker: asyncio.Task[None] | None = None

    @abstractmethod
    def _generate(
        self, items: Sequence[BatchItem], is_stopped: Callable[[], bool]
    ) -> Sequence[tuple[list[int], Any]]:
        """Return the new tokens of each item, and what else `_read` needs.

        Ends early, with what there is, once `is_stopped()`.
        """

    @abstractmethod
    def _read(self, item: BatchItem, tokens: list[int], details: Any) -> LocalAnswer:
        """Return the answer in the new tokens of an item."""

    async def _complete(
        self, prompt: Any, token_count: int, context: int, settings: RequestSettings
    ) -> Completion:
        """Return the completion of a prompt, from a batch. Raises what a batch raises.

        context: maximum number of tokens of prompt and answer together.
        """
        if settings.temperature:
            message = "models in this process support temperature 0 only"
            return failed_completion(Failure(kind="run", message=message))
        longest = settings.max_tokens or self.properties.settings.max_tokens or context
        limit = min(longest, context - token_count)
        if limit < 1:
            return item_failure(f"the prompt's {token_count} tokens fill the context of {context}")
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._queue.append((BatchItem(prompt, token_count, limit, settings.timeout), future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._run_batches())
        return await future

    async def _run_batches(self) -> None:
        while self._queue:
            # The answers of the last batch are stored one after the other.
            count = 0
            while count < len(self._queue) < self._batch_size:
                count = len(self._queue)
                await asyncio.sleep(_BATCH_WINDOW_SECONDS)
            waiting = [call for call in self._queue if not call[1].done()]
            batch, self._queue = waiting[: self._batch_size], waiting[self._batch_size :]
            if not batch:
                continue
            working = asyncio.to_thread(self._answer_batch, [item for item, _ in batch])
            (outcome,) = await asyncio.gather(working, return_exceptions=True)
            for number, (_, future) in enumerate(batch):
                if future.done():
                    continue
                if isinstance(outcome, BaseException):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome[number])

    async def close(self) -> None:
        """Stop the batches of the waiting requests; the next one may be of full size again."""
        self._stop.set()
        if self._worker is not None and not self._worker.done():
            await asyncio.wait([self._worker])
        self._worker = None
        self._stop.clear()
        self._batch_size = self._max_batch_size

    def _answer_batch(self, items: Sequence[BatchItem]) -> list[Completion]:
        """Return one completion per item. Raises NumbenchError for a failure of the machine."""
        import torch

        start = time.monotonic()
        deadline = start + max(item.timeout for item in items)
        try:
            outputs = self._generate(
                items, lambda: self._stop.is_set() or time.monotonic() > deadline
            )
        except torch.OutOfMemoryError:
            # It refers to the batch's tensors, which only the end of this block frees.
            pass
        except RuntimeError as error:
            raise NumbenchError(f"{self.name}: {one_line(error)}") from error
        else:
            seconds, extra = time.monotonic() - start, {"batch": len(items), "device": self.device}
            return [
                msgspec.structs.replace(
                    self._completion(item, *output), latency=round(seconds, 6), extra=extra
                )
                for item, output in zip(items, outputs, strict=True)
            ]
        torch.cuda.empty_cache()
        if len(items) == 1:
            return [item_failure("out of GPU memory")]
        self._batch_size = half = len(items) // 2
        return self._answer_batch(items[:half]) + self._answer_batch(items[half:])

    def _completion(self, item: BatchItem, tokens: list[int], details: Any) -> Completion:
        count, ended = len(tokens), bool(tokens) and tokens[-1] in self.end_token_ids
        if not ended and count < item.limit:
            if self._stop.is_set():
                message = f"stopped after {count} tokens"
                return failed_completion(Failure(kind="transient", message=message))
            return item_failure(f"timed out after {item.timeout:g} s and {count} tokens")
        answer = self._read(item, tokens, details)
        return Completion(
            text=answer.text,
            reasoning_text=answer.reasoning_text,
            finish_reason="stop" if ended else "length",
            usage=Usage(
                input=item.token_count,
                reasoning=count - answer.visible_tokens,
                visible=answer.visible_tokens,
                generated=count,
                source="counted",
            ),
            served_model=self.properties.display,
        )


def item_failure(message: str) -> Completion:
    """Return a failure that concerns one item only and is permanent."""
    return failed_completion(Failure(kind="item", message=message))


def one_line(error: BaseException) -> str:
    """Return the message of an error as one short line."""
    return " ".join(str(error).split())[:300]


def require_local_extra(name: str, packages: Iterable[str]) -> None:
    """Raise BadInput if one of the packages that the model `name` needs is not installed."""
    if any(find_spec(package) is None for package in packages):
        raise BadInput(f"{name} needs an extra: pip install 'numbench[local]'")


def default_device() -> torch.device:
    """Return the GPU if there is one, else the CPU."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def hash_files(files: Iterable[Path]) -> str:
    """Return the SHA-256 of the names and contents of files, independent of their order."""
    ordered = sorted(files)
    with ThreadPoolExecutor(8) as pool:
        lines = pool.map(lambda path: f"{path.name} {_sha256(path)}\n", ordered)
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


DEFAULT_MAX_TOKENS = 4096
"""The default limit of new tokens; it is lower if the context is full earlier."""

MAX_BATCH_SIZE = 64
"""Maximum number of questions in a batch; it is halved if a batch runs out of memory."""

_NEEDED_FILES = {
    "config.json": ("config.json",),
    "weights (*.safetensors)": ("*.safetensors",),
    "a tokenizer (tokenizer.json)": ("tokenizer.*", "vocab.json", "vocab.txt"),
}
"""The files of a model, with patterns, each for one of several forms."""

_MODEL_FILES = (".safetensors", ".json", ".jinja", ".model", ".txt")
"""Suffixes of the files that determine the model's output."""

_THINKING_SWITCH = "enable_thinking"
_OPENING_TAG = "<think>"


class HuggingFaceModel(LocalModel):
    """A causal language model and its tokenizer, on the GPU if there is one."""

    def __init__(self, target: ModelTarget) -> None:
        """Raise BadInput if the folder contains no model, or the extra `local` is missing."""
        super().__init__(target.name, MAX_BATCH_SIZE)
        folder = Path(target.served_name).expanduser()
        _check_folder(self.name, folder)
        model_sha256 = hash_files(p for p in folder.iterdir() if p.suffix in _MODEL_FILES)
        self._tokenizer, self._network = _load(self.name, folder)
        self.device = str(self._network.device)
        self.end_token_ids = frozenset(self._network.generation_config.eos_token_id or ())
        self._system = self._tokenizer.chat_template is not None and self._supports_system_prompt()
        self.properties = ModelProperties(
            display=folder.absolute().name,
            levels=self._levels(),
            settings=RequestSettings(temperature=0.0, max_tokens=DEFAULT_MAX_TOKENS),
            identity={
                "model_sha256": model_sha256,
                "precision": str(self._network.dtype).removeprefix("torch."),
            },
        )

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Return the greedy continuation, split into reasoning and answer, with counted tokens.

        The completion has a failure of kind `item` if the prompt fills the model's context, or
        the answer takes longer than `settings.timeout` or more memory than there is.
        """
        tokens, is_open = self._encode(messages, settings.request)
        return await self._complete((tokens, is_open), len(tokens), self._context, settings)

    @property
    def _context(self) -> int:
        """Maximum number of tokens of prompt and answer together."""
        config = self._network.config.get_text_config()
        context = getattr(config, "max_position_embeddings", None)
        return int(context) if context else 2**31

    def _levels(self) -> dict[str, ReasoningLevel]:
        """Return none and maximal if the chat template has a switch for reasoning."""
        if self._tokenizer.chat_template is None:
            return {}
        levels = {
            "none": ReasoningLevel(request={_THINKING_SWITCH: False}),
            "maximal": ReasoningLevel(request={_THINKING_SWITCH: True}),
        }
        prompts = {self._render([Message("user", "1")], each.request) for each in levels.values()}
        return levels if len(prompts) > 1 else {}

    def _encode(
        self, messages: Sequence[Message], request: Mapping[str, object]
    ) -> tuple[list[int], bool]:
        """Return the tokens of the prompt, and whether it ends in an opening reasoning tag."""
        merged = _merge_system_prompt(messages)
        if self._tokenizer.chat_template is None:
            prompt = "".join(f"{message.content}\n" for message in merged)
            return list(self._tokenizer(prompt)["input_ids"]), False
        prompt = self._render(messages if self._system else merged, request)
        tokens = self._tokenizer(prompt, add_special_tokens=False)["input_ids"]
        return list(tokens), prompt.rstrip().endswith(_OPENING_TAG)

    def _render(self, messages: Sequence[Message], request: Mapping[str, object]) -> str:
        turns = [message._asdict() for message in messages]
        rendered: str = self._tokenizer.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True, **request
        )
        return rendered

    def _supports_system_prompt(self) -> bool:
        """Return whether the template outputs a system prompt; some raise, some drop it."""
        from jinja2.exceptions import TemplateError

        probe = "system prompt 271828"
        try:
            return probe in self._render([Message("system", probe), Message("user", "1")], {})
        except TemplateError:
            return False

    def _generate(
        self, items: Sequence[BatchItem], is_stopped: Callable[[], bool]
    ) -> list[tuple[list[int], None]]:
        """Return the new tokens of each prompt up to its end token, without padding.

        Generation runs in rounds. A round is as long as every unfinished answer may still grow:
        near the end of the context long prompts leave less room than short ones, and no row may
        exceed its own limit.
        """
        texts = [list(item.prompt[0]) for item in items]
        max_lengths = [item.token_count + item.limit for item in items]
        rows = list(range(len(items)))
        while rows and not is_stopped():
            room = min(max_lengths[row] - len(texts[row]) for row in rows)
            extensions = self._extend([texts[row] for row in rows], room, is_stopped)
            for row, new_tokens in zip(rows, extensions, strict=True):
                texts[row] += new_tokens
            rows = [
                row
                for row in rows
                if len(texts[row]) < max_lengths[row] and texts[row][-1] not in self.end_token_ids
            ]
        return [(text[item.token_count :], None) for item, text in zip(items, texts, strict=True)]

    def _extend(
        self, texts: Sequence[list[int]], room: int, is_stopped: Callable[[], bool]
    ) -> list[list[int]]:
        """Return at most `room` new tokens for each text, from one left-padded batch."""
        import torch
        from transformers import StoppingCriteriaList

        width = max(len(text) for text in texts)
        pad = self._network.generation_config.pad_token_id
        device = self._network.device

        def stopped(ids: Any, scores: Any, **_: Any) -> Any:
            return torch.full((len(ids),), is_stopped(), dtype=torch.bool, device=ids.device)

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
        return [self._until_end(tokens) for tokens in output[:, width:].tolist()]

    def _until_end(self, tokens: list[int]) -> list[int]:
        ends = (n for n, token in enumerate(tokens, 1) if token in self.end_token_ids)
        return tokens[: next(ends, len(tokens))]

    def _read(self, item: BatchItem, tokens: list[int], details: None) -> LocalAnswer:
        answer, reasoning_text = split_tokens(tokens, self._decode, item.prompt[1])
        text = self._decode(answer, is_answer=True)
        text = text if reasoning_text is None else text.strip()
        return LocalAnswer(text, len(answer), reasoning_text)

    def _decode(self, tokens: Sequence[int], is_answer: bool = False) -> str:
        """Return the text of tokens; that of an answer is without special tokens."""
        text: str = self._tokenizer.decode(
            list(tokens), skip_special_tokens=is_answer, clean_up_tokenization_spaces=False
        )
        return text


def _merge_system_prompt(messages: Sequence[Message]) -> list[Message]:
    """Return `messages` with the system prompt at the beginning of the first question."""
    system = "".join(f"{m.content}\n\n" for m in messages if m.role == "system")
    first, *others = (m for m in messages if m.role != "system")
    return [first._replace(content=system + first.content), *others]


def _check_folder(name: str, folder: Path) -> None:
    """Raise BadInput if the folder lacks a file, or the extra `local` is not installed."""
    if not folder.is_dir():
        raise BadInput(f"{name}: folder {folder} does not exist")
    missing = [
        kind
        for kind, patterns in _NEEDED_FILES.items()
        if not any(path for pattern in patterns for path in folder.glob(pattern))
    ]
    if missing:
        raise BadInput(f"{name}: no Hugging Face model in {folder}: missing {', '.join(missing)}")
    require_local_extra(name, ("torch", "transformers", "safetensors"))


def _load(name: str, folder: Path) -> tuple[Any, Any]:
    """Return tokenizer and network. Raises BadInput if they cannot be loaded."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    safely = {"local_files_only": True, "trust_remote_code": False}
    device = default_device()
    precision = "float32" if device.type == "cpu" else "auto"
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **safely)
        network = AutoModelForCausalLM.from_pretrained(
            folder, torch_dtype=precision, use_safetensors=True, **safely
        )
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        raise BadInput(f"{name}: {folder} cannot be loaded: {one_line(error)}") from error
    network.to(device).eval()
    tokens = network.generation_config.eos_token_id
    ends = {*(tokens if isinstance(tokens, list) else [tokens]), tokenizer.eos_token_id} - {None}
    pad = tokenizer.pad_token_id
    # The folder's own sampling, penalties and lengths would make the decoding other than greedy.
    network.generation_config = GenerationConfig(
        do_sample=False,
        eos_token_id=sorted(ends) or None,
        pad_token_id=pad if pad is not None else min(ends, default=0),
    )
    return tokenizer, network


PROVIDER = ProviderPlugin(
    name="hf",
    open_model=HuggingFaceModel,
    examples=("PATH",),
    in_process=True,
    deterministic=True,
    sdk="transformers",
)
