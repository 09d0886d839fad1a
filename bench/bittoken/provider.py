"""One of the small models, run in this process: `checkpoint/NAME` or `checkpoint/PATH`.

These models know no prompts: they read the question in the last user message only. Their answers
are put into the JSON form that the system prompts ask for. Concurrent questions are answered in
one batch; an answer does not depend on the other questions of its batch, except for rounding errors
of the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bittoken.bundled import bundled_checkpoint_names, checkpoint_folder, is_bundled
from numbench.errors import BadInput
from numbench.models import ModelProperties, ModelTarget, ProviderPlugin, ReasoningLevel
from numbench.models.base import Message, RequestSettings, last_user_message
from numbench.models.local_inference import (
    BatchTiming,
    LocalModel,
    context_failure,
    default_device,
    hash_files,
    item_failure,
    require_local_extra,
    unsupported_temperature,
)
from numbench.records import Completion, Usage
from numbench.tasks.prompts import Question, load_prompt_set

if TYPE_CHECKING:
    from bittoken.generation import GeneratedAnswer

MAX_BATCH_SIZE = 256
"""Maximum number of questions in a batch; it is halved if a batch runs out of memory."""


class _BatchItem(NamedTuple):
    """One question. limit: maximum number of tokens of its answer. timeout: seconds."""

    question: Question
    limit: int
    timeout: float
    token_count: int


class CheckpointModel(LocalModel[_BatchItem, "GeneratedAnswer"]):
    """A trained network, on the GPU if there is one."""

    def __init__(self, target: ModelTarget) -> None:
        """Raise BadInput if there is no such checkpoint, or the extra `local` is missing."""
        super().__init__(target.name, MAX_BATCH_SIZE)
        folder = checkpoint_folder(target.served_name)
        if not folder.is_dir():
            bundled = ", ".join(f"checkpoint/{name}" for name in bundled_checkpoint_names())
            raise BadInput(f"{self.name}: folder {folder} does not exist (bundled: {bundled})")
        require_local_extra(self.name, ("torch", "safetensors"))
        from bittoken.checkpoint import load_checkpoint
        from bittoken.generation import default_max_tokens

        try:
            self._loaded = load_checkpoint(folder)
        except BadInput as error:
            raise BadInput(f"{self.name}: {error}") from None
        self._loaded.network.to(default_device())
        recipe = self._loaded.training.get("recipe")
        name = recipe.get("name") if isinstance(recipe, dict) else None
        self._display = str(name or folder.resolve().name)
        if is_bundled(folder):
            self._display = f"numbench {folder.name}"
        self._default_max_tokens = default_max_tokens(self._loaded.vocabulary)
        self.properties = ModelProperties(
            display=self._display,
            settings=RequestSettings(temperature=0.0, max_tokens=self._default_max_tokens),
            identity={"model_sha256": hash_files(self._loaded.files), "precision": "float32"},
        )

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Return the greedy answer to the last question, with counted tokens.

        The completion has a failure of kind `item` if the text is not a question of the benchmark,
        fills the model's context, or takes longer than `settings.timeout` or more memory than
        there is.
        """
        from bittoken.tokens import encode_questions

        if failure := unsupported_temperature(settings):
            return failure
        try:
            question = load_prompt_set().parse_question(last_user_message(messages))
            encoded = encode_questions([question], self._loaded.vocabulary)
        except (ValueError, BadInput) as error:
            return item_failure(str(error))
        context, count = self._loaded.network.config.context, int(encoded.lengths[0])
        limit = min(settings.max_tokens or self._default_max_tokens, context - count)
        if limit < 1:
            return context_failure(count, context)
        return await self._batches(_BatchItem(question, limit, settings.timeout, count))

    def _generate(
        self, items: Sequence[_BatchItem], is_stopped: Callable[[], bool]
    ) -> Sequence[GeneratedAnswer]:
        from bittoken.generation import generate
        from bittoken.tokens import encode_questions

        questions = [item.question for item in items]
        return generate(
            self._loaded.network,
            self._loaded.vocabulary,
            encode_questions(questions, self._loaded.vocabulary),
            [item.limit for item in items],
            is_stopped,
        )

    def _completion(
        self, item: _BatchItem, output: GeneratedAnswer, timing: BatchTiming
    ) -> Completion:
        from bittoken.tokens import answer_json

        vocabulary, count = self._loaded.vocabulary, len(output.tokens)
        ended = output.tokens[-1:] == [vocabulary.eos_id]
        if not ended and count < item.limit:
            return self._unfinished(item, count)
        return Completion(
            text=answer_json(output.tokens, output.values, vocabulary),
            finish_reason="stop" if ended else "length",
            usage=Usage(
                input=item.token_count,
                reasoning=0,
                visible=count,
                generated=count,
                source="counted",
            ),
            latency=timing.seconds,
            served_model=self._display,
            extra={"batch": timing.size, "device": str(self._loaded.network.device)},
        )


PROVIDER = ProviderPlugin(
    name="checkpoint",
    open_model=CheckpointModel,
    examples=(*bundled_checkpoint_names(), "PATH"),
    in_process=True,
    deterministic=True,
    levels={"none": ReasoningLevel()},
    takes_prompts=False,
    concurrency=MAX_BATCH_SIZE,
)
