"""One of the small models, run in this process: `checkpoint/NAME` or `checkpoint/PATH`.

These models know no prompts: they read the question in the last user message only. Their answers
are put into the JSON form that the system prompts ask for. Concurrent questions are answered in
one batch; an answer does not depend on the other questions of its batch, except for rounding errors
of the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from numbench.errors import BadInput, bad_input_at
from numbench.models import ModelProperties, ModelTarget, ProviderPlugin, ReasoningLevel
from numbench.models.base import Message, RequestSettings, last_user_message
from numbench.models.local_inference import (
    BatchItem,
    LocalAnswer,
    LocalModel,
    default_device,
    hash_files,
    item_failure,
    require_local_extra,
)
from numbench.records import Completion
from numbench.tasks.prompts import load_prompt_set

if TYPE_CHECKING:
    from bittoken.generation import GeneratedAnswer

MAX_BATCH_SIZE = 256
"""Maximum number of questions in a batch; it is halved if a batch runs out of memory."""


class CheckpointModel(LocalModel):
    """A trained network, on the GPU if there is one."""

    def __init__(self, target: ModelTarget) -> None:
        """Raise BadInput if there is no such checkpoint, or the extra `local` is missing."""
        super().__init__(target.name, MAX_BATCH_SIZE)
        require_local_extra(self.name, ("torch", "safetensors"))
        from bittoken.checkpoint import bundled_checkpoint_names, checkpoint_folder, load_checkpoint
        from bittoken.generation import default_max_tokens

        folder = checkpoint_folder(target.served_name)
        if not folder.is_dir():
            bundled = ", ".join(f"checkpoint/{name}" for name in bundled_checkpoint_names())
            raise BadInput(f"{self.name}: folder {folder} does not exist (bundled: {bundled})")
        with bad_input_at(self.name, BadInput):
            self._loaded = load_checkpoint(folder)
        self._loaded.network.to(default_device())
        self.device = str(self._loaded.network.device)
        self.end_token_ids = frozenset([self._loaded.vocabulary.eos_id])
        recipe = self._loaded.training.get("recipe")
        name = recipe.get("name") if isinstance(recipe, dict) else None
        display = str(name or folder.resolve().name)
        if target.served_name in bundled_checkpoint_names():
            display = f"numbench {folder.name}"
        max_tokens = default_max_tokens(self._loaded.vocabulary)
        self.properties = ModelProperties(
            display=display,
            settings=RequestSettings(temperature=0.0, max_tokens=max_tokens),
            identity={"model_sha256": hash_files(self._loaded.files), "precision": "float32"},
        )

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Return the greedy answer to the last question, with counted tokens.

        The completion has a failure of kind `item` if the text is not a question of the benchmark,
        fills the model's context, or takes longer than `settings.timeout` or more memory than
        there is.
        """
        from bittoken.tokens import encode_question

        try:
            question = load_prompt_set().parse_question(last_user_message(messages))
            sample = encode_question(question, self._loaded.vocabulary)
        except (ValueError, BadInput) as error:
            return item_failure(str(error))
        context, count = self._loaded.network.config.context, len(sample.tokens)
        return await self._complete(sample, count, context, settings)

    def _generate(
        self, items: Sequence[BatchItem], is_stopped: Callable[[], bool]
    ) -> Sequence[GeneratedAnswer]:
        from bittoken.generation import generate
        from bittoken.tokens import pack

        network, vocabulary = self._loaded.network, self._loaded.vocabulary
        questions = pack([item.prompt for item in items], vocabulary)
        return generate(network, vocabulary, questions, [item.limit for item in items], is_stopped)

    def _read(self, item: BatchItem, tokens: list[int], details: list[float]) -> LocalAnswer:
        from bittoken.tokens import answer_json

        return LocalAnswer(answer_json(tokens, details, self._loaded.vocabulary), len(tokens))


PROVIDER = ProviderPlugin(
    name="checkpoint",
    open_model=CheckpointModel,
    examples=("small", "PATH"),
    in_process=True,
    deterministic=True,
    levels={"none": ReasoningLevel()},
    takes_prompts=False,
    concurrency=MAX_BATCH_SIZE,
)
