"""Models in this process: what they share, and Hugging Face models from a local folder: `hf/PATH`.

Decoding is greedy. Concurrent questions are answered in one left-padded batch. The padding is
masked and shifts no position, so that an answer does not depend on the other questions of its
batch, except for rounding errors: at 16 bits a near tie between two tokens may go either way.

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
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from numbench.errors import BadInput, NumbenchError
from numbench.models.base import RequestSettings
from numbench.models.failures import failed_completion
from numbench.records import Completion, Failure

if TYPE_CHECKING:
    import torch
from bisect import bisect_left, bisect_right
from typing import Any

from numbench.models.base import Message
from numbench.models.facts import DEFAULT_LEVEL, ReasoningLevel
from numbench.models.providers import ModelProperties, ModelTarget, ProviderPlugin
from numbench.records import Usage
from numbench.thinking_text import find_thinking, separate_spans

_BATCH_WINDOW_SECONDS = 0.02
"""How long a batch waits for further calls: short compared with the time that a batch takes."""

_MAX_ERROR_LENGTH = 300


class BatchItem(Protocol):
    """One prompt of a batch. limit: maximum number of new tokens. timeout: seconds."""

    @property
    def limit(self) -> int: ...
    @property
    def timeout(self) -> float: ...


ItemT = TypeVar("ItemT", bound=BatchItem)
OutputT = TypeVar("OutputT")


class BatchTiming(NamedTuple):
    """How long a batch took, in seconds, and how many prompts it contained."""

    seconds: float
    size: int


class LocalModel(ABC, Generic[ItemT, OutputT]):
    """Base class of networks in this process: greedy decoding of concurrent requests in batches.

    The requests that wait when a batch is finished make up the next one, of at most
    `max_batch_size`. A batch that needs more memory than there is is split in halves. It ends when
    the longest time limit of its prompts is over, or at the next token after `close`.
    """

    def __init__(self, name: str, max_batch_size: int) -> None:
        self.name = name
        self._max_batch_size = self._batch_size = max_batch_size
        self._stop = threading.Event()
        self._queue: list[tuple[ItemT, asyncio.Future[Completion]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def _batches(self, item: ItemT) -> Completion:
        """Return the completion of a prompt, from a batch. Raises what a batch raises."""
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._queue.append((item, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._run_batches())
        return await future

    async def _run_batches(self) -> None:
        while self._queue:
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

    @abstractmethod
    def _generate(
        self, items: Sequence[ItemT], is_stopped: Callable[[], bool]
    ) -> Sequence[OutputT]:
        """Generate one output per item; end early, with what there is, once `is_stopped()`."""

    @abstractmethod
    def _completion(self, item: ItemT, output: OutputT, timing: BatchTiming) -> Completion:
        """Return the completion for the output of one item."""

    async def close(self) -> None:
        """Stop the running batch at its next token; the next one may be of full size again."""
        self._stop.set()
        for _, future in self._queue:
            future.cancel()
        if self._worker is not None and not self._worker.done():
            await asyncio.wait([self._worker])
        self._worker = None
        self._stop.clear()
        self._batch_size = self._max_batch_size

    def _answer_batch(self, items: Sequence[ItemT]) -> list[Completion]:
        """Return one completion per item. Raises NumbenchError for a failure of the machine."""
        import torch

        start = time.monotonic()
        deadline = start + max(item.timeout for item in items)
        try:
            outputs = self._generate(
                items, lambda: self._stop.is_set() or time.monotonic() > deadline
            )
        except torch.OutOfMemoryError:
            # The error refers to the batch's tensors: handle it after the except block.
            outputs = None
        except RuntimeError as error:
            raise NumbenchError(f"{self.name}: {one_line(error)}") from error
        if outputs is not None:
            timing = BatchTiming(round(time.monotonic() - start, 6), len(items))
            return [
                self._completion(item, output, timing)
                for item, output in zip(items, outputs, strict=True)
            ]
        torch.cuda.empty_cache()
        if len(items) == 1:
            return [item_failure("out of GPU memory")]
        self._batch_size = half = len(items) // 2
        return self._answer_batch(items[:half]) + self._answer_batch(items[half:])

    def _unfinished(self, item: ItemT, token_count: int) -> Completion:
        """Return the completion of an output that ended before its end token and its limit."""
        message = f"timed out after {item.timeout:g} s and {token_count} tokens"
        if self._stop.is_set():
            message = f"stopped after {token_count} tokens"
        return failed_completion(
            Failure(kind="transient" if self._stop.is_set() else "item", message=message)
        )


def unsupported_temperature(settings: RequestSettings) -> Completion | None:
    """Return the failure of a request with a temperature above 0, None for any other."""
    if not settings.temperature:
        return None
    message = "models in this process support temperature 0 only"
    return failed_completion(Failure(kind="run", message=message))


def context_failure(token_count: int, context: int) -> Completion:
    """Return the failure of a prompt that leaves no room for an answer."""
    return item_failure(f"the prompt's {token_count} tokens fill the context of {context}")


def item_failure(message: str) -> Completion:
    """Return a failure that concerns one item only and is permanent."""
    return failed_completion(Failure(kind="item", message=message))


def one_line(error: BaseException) -> str:
    """Return the message of an error as one short line."""
    return " ".join(str(error).split())[:_MAX_ERROR_LENGTH]


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

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")
_THINKING_SWITCH = "enable_thinking"


class _BatchItem(NamedTuple):
    """One prompt.

    limit: maximum number of new tokens. opened: the prompt ends in an opening reasoning tag.
    timeout: seconds.
    """

    tokens: list[int]
    limit: int
    opened: bool
    timeout: float


class HuggingFaceModel(LocalModel[_BatchItem, list[int]]):
    """A causal language model and its tokenizer, on the GPU if there is one."""

    def __init__(self, target: ModelTarget) -> None:
        """Raise BadInput if the folder contains no model, or the extra `local` is missing."""
        super().__init__(target.name, MAX_BATCH_SIZE)
        folder = Path(target.served_name).expanduser()
        _check_folder(self.name, folder)
        model_sha256 = hash_files(_model_files(folder))
        self._folder = folder.resolve()
        self._tokenizer, self._network, self._end_token_ids = _load(self.name, folder)
        self._system = self._tokenizer.chat_template is not None and self._supports_system_prompt()
        self.properties = ModelProperties(
            display=folder.name,
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
        if failure := unsupported_temperature(settings):
            return failure
        tokens, opened = self._encode(messages, settings.request)
        limit = min(settings.max_tokens or DEFAULT_MAX_TOKENS, self._context - len(tokens))
        if limit < 1:
            return context_failure(len(tokens), self._context)
        return await self._batches(_BatchItem(tokens, limit, opened, settings.timeout))

    @property
    def _context(self) -> int:
        """Maximum number of tokens of prompt and answer together."""
        config = self._network.config.get_text_config()
        context = getattr(config, "max_position_embeddings", None)
        return int(context) if context else 2**31

    def _levels(self) -> dict[str, ReasoningLevel]:
        """Return none and maximal if the chat template has a switch for reasoning."""
        if self._tokenizer.chat_template is not None:
            question = [Message("user", "1")]
            if self._render(question, {_THINKING_SWITCH: True}) != self._render(
                question, {_THINKING_SWITCH: False}
            ):
                return {
                    "none": ReasoningLevel(request={_THINKING_SWITCH: False}),
                    "maximal": ReasoningLevel(request={_THINKING_SWITCH: True}),
                }
        return {DEFAULT_LEVEL: ReasoningLevel()}

    def _encode(
        self, messages: Sequence[Message], request: dict[str, object]
    ) -> tuple[list[int], bool]:
        """Return the tokens of the prompt, and whether it ends in an opening reasoning tag."""
        if self._tokenizer.chat_template is None:
            prompt = _plain_prompt(messages)
            return list(self._tokenizer(prompt)["input_ids"]), False
        prompt = self._render(messages if self._system else _merge_system_prompt(messages), request)
        tokens = self._tokenizer(prompt, add_special_tokens=False)["input_ids"]
        return list(tokens), prompt.rstrip().endswith(OPENING_TAG)

    def _render(self, messages: Sequence[Message], request: dict[str, object]) -> str:
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
        self, items: Sequence[_BatchItem], is_stopped: Callable[[], bool]
    ) -> list[list[int]]:
        """Return the new tokens of each prompt up to its end token, without padding.

        Generation runs in rounds. A round is as long as every unfinished answer may still grow:
        near the end of the context long prompts leave less room than short ones, and no row may
        exceed its own limit.
        """
        texts = [list(item.tokens) for item in items]
        max_lengths = [len(item.tokens) + item.limit for item in items]
        rows = list(range(len(items)))
        while rows and not is_stopped():
            room = min(max_lengths[row] - len(texts[row]) for row in rows)
            extensions = self._extend([texts[row] for row in rows], room, is_stopped)
            for row, new_tokens in zip(rows, extensions, strict=True):
                texts[row] += new_tokens
            rows = [
                row
                for row in rows
                if len(texts[row]) < max_lengths[row] and texts[row][-1] not in self._end_token_ids
            ]
        return [text[len(item.tokens) :] for item, text in zip(items, texts, strict=True)]

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
        return [self._truncate_at_end_token(row) for row in output[:, width:].tolist()]

    def _truncate_at_end_token(self, tokens: list[int]) -> list[int]:
        end = next((n for n, token in enumerate(tokens) if token in self._end_token_ids), None)
        return tokens if end is None else tokens[: end + 1]

    def _completion(self, item: _BatchItem, output: list[int], timing: BatchTiming) -> Completion:
        ended = bool(output) and output[-1] in self._end_token_ids
        if not ended and len(output) < item.limit:
            return self._unfinished(item, len(output))
        answer, reasoning_text = split_reasoning(
            output, self._decode_with_special_tokens, item.opened
        )
        text = self._tokenizer.decode(
            answer, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return Completion(
            text=text if reasoning_text is None else text.strip(),
            reasoning_text=reasoning_text,
            finish_reason="stop" if ended else "length",
            usage=Usage(
                input=len(item.tokens),
                reasoning=len(output) - len(answer),
                visible=len(answer),
                generated=len(output),
                source="counted",
            ),
            latency=timing.seconds,
            served_model=self._folder.name,
            extra={"batch": timing.size, "device": str(self._network.device)},
        )

    def _decode_with_special_tokens(self, tokens: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(
            list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text


def _plain_prompt(messages: Sequence[Message]) -> str:
    system = "".join(f"{m.content}\n\n" for m in messages if m.role == "system")
    return system + "".join(f"{m.content}\n" for m in messages if m.role != "system")


def _merge_system_prompt(messages: Sequence[Message]) -> list[Message]:
    """Return `messages` with the system prompt at the beginning of the first question."""
    system = "".join(f"{m.content}\n\n" for m in messages if m.role == "system")
    first, *others = (m for m in messages if m.role != "system")
    return [first._replace(content=system + first.content), *others]


def _check_folder(name: str, folder: Path) -> None:
    """Raise BadInput if the folder lacks a file, or the extra `local` is not installed."""
    if not folder.is_dir():
        raise BadInput(f"{name}: folder {folder} does not exist")
    missing = []
    if not (folder / "config.json").is_file():
        missing.append("config.json")
    if not any(folder.glob("*.safetensors")):
        missing.append("weights (*.safetensors)")
    if not any((folder / file).is_file() for file in _TOKENIZER_FILES):
        missing.append("a tokenizer (tokenizer.json)")
    if missing:
        raise BadInput(f"{name}: no Hugging Face model in {folder}: missing {', '.join(missing)}")
    require_local_extra(name, ("torch", "transformers", "safetensors"))


def _load(name: str, folder: Path) -> tuple[Any, Any, frozenset[int]]:
    """Return tokenizer, network and end tokens. Raises BadInput if they cannot be loaded."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    safely = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **safely)
        network = AutoModelForCausalLM.from_pretrained(
            folder, torch_dtype="auto", use_safetensors=True, **safely
        )
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        raise BadInput(
            f"{name}: the model in {folder} cannot be loaded: {one_line(error)}"
        ) from error
    network.to(default_device()).eval()
    ends = _end_token_ids(network.generation_config.eos_token_id) | _end_token_ids(
        tokenizer.eos_token_id
    )
    pad = tokenizer.pad_token_id
    # The folder's own sampling, penalties and lengths would make the decoding other than greedy.
    network.generation_config = GenerationConfig(
        do_sample=False,
        eos_token_id=sorted(ends) or None,
        pad_token_id=pad if pad is not None else min(ends, default=0),
    )
    return tokenizer, network, ends


def _end_token_ids(token: int | list[int] | None) -> frozenset[int]:
    if token is None:
        return frozenset()
    return frozenset(token) if isinstance(token, list) else frozenset([token])


def _model_files(folder: Path) -> list[Path]:
    """Return the files that determine the model's output."""
    kinds = (".safetensors", ".json", ".jinja", ".model", ".txt")
    return [path for path in folder.iterdir() if path.suffix in kinds and path.is_file()]


OPENING_TAG = "<think>"


class ReasoningSplit(NamedTuple):
    """Generated tokens in two parts. answer: the tokens of the answer; the others are reasoning.

    reasoning_text: without its tags; None if there is no reasoning.
    """

    answer: list[int]
    reasoning_text: str | None


def split_reasoning(
    tokens: Sequence[int], decode: Callable[[Sequence[int]], str], opened: bool
) -> ReasoningSplit:
    """Split `tokens` where `find_thinking` splits their text; tags count as reasoning.

    `decode` must keep special tokens, because the tags are such in some tokenizers. `opened`: the
    prompt ends in an opening tag, so that only the closing one is generated.
    """
    text = decode(tokens)
    spans = find_thinking(text, opened)
    if spans is None:
        return ReasoningSplit(list(tokens), None)

    def decoded_length(count: int) -> int:
        return len(decode(tokens[:count]))

    counts = range(len(tokens) + 1)
    answer: list[int] = []
    for start, end in spans.answer:
        first = bisect_left(counts, start, key=decoded_length)
        answer += tokens[first : bisect_right(counts, end, key=decoded_length) - 1]
    return ReasoningSplit(answer, separate_spans(text, spans).thinking)


PROVIDER = ProviderPlugin(
    name="hf",
    open_model=HuggingFaceModel,
    examples=("PATH",),
    in_process=True,
    deterministic=True,
    sdk="transformers",
)
