"""Hugging Face models from a local folder: `hf/PATH`.

Decoding is greedy. Concurrent questions are answered in one left-padded batch. The padding is
masked and shifts no position, so that an answer does not depend on the other questions of its
batch, except for rounding errors: at 16 bits a near tie between two tokens may go either way. On a
CPU, the network computes at 32 bits, which leaves few such ties.

If the tokenizer has a chat template, the template formats the conversation; if the template
supports no system prompt, that is put before the first question, followed by a blank line.
Without a template the prompt is the system prompt, a blank line, then one line per message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from numbench.errors import BadInput
from numbench.models.base import Message, ModelTarget, RequestSettings
from numbench.models.facts import ReasoningLevel
from numbench.models.failures import sanitize_line
from numbench.models.local_inference import (
    BatchItem,
    LocalAnswer,
    LocalModel,
    default_device,
    hash_files,
    require_local_extra,
)
from numbench.models.providers import ModelProperties, ProviderPlugin
from numbench.records import Completion
from numbench.thinking_text import split_tokens

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
        config = self._network.config.get_text_config()
        # Maximum number of tokens of prompt and answer together.
        self._context = int(getattr(config, "max_position_embeddings", None) or 2**31)
        self.device = str(self._network.device)
        precision = str(self._network.dtype).removeprefix("torch.")
        self.end_token_ids = frozenset(self._network.generation_config.eos_token_id or ())
        self._system = self._tokenizer.chat_template is not None and self._supports_system_prompt()
        self.properties = ModelProperties(
            display=folder.absolute().name,
            levels=self._levels(),
            settings=RequestSettings(temperature=0.0, max_tokens=DEFAULT_MAX_TOKENS),
            identity={"model_sha256": model_sha256, "precision": precision},
        )

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Return the greedy continuation, split into reasoning and answer, with counted tokens.

        The completion has a failure of kind `item` if the prompt fills the model's context, or
        the answer takes longer than `settings.timeout` or more memory than there is.
        """
        tokens, is_open = self._encode(messages, settings.request)
        return await self._complete((tokens, is_open), len(tokens), self._context, settings)

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
        options = {"tokenize": False, "add_generation_prompt": True, **request}
        return str(self._tokenizer.apply_chat_template(turns, **options))

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
        rows = [[pad] * (width - len(text)) + text for text in texts]
        masks = [[0] * (width - len(text)) + [1] * len(text) for text in texts]
        device = self._network.device

        def stopped(ids: Any, scores: Any, **_: Any) -> Any:
            return torch.full((len(ids),), is_stopped(), dtype=torch.bool, device=ids.device)

        output = self._network.generate(
            input_ids=torch.tensor(rows, device=device),
            attention_mask=torch.tensor(masks, device=device),
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
        options = {"skip_special_tokens": is_answer, "clean_up_tokenization_spaces": False}
        return str(self._tokenizer.decode(list(tokens), **options))


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
        reason = sanitize_line(str(error), ())
        raise BadInput(f"{name}: {folder} cannot be loaded: {reason}") from error
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
