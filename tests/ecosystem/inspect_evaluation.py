"""Evaluations in Inspect with a mock model. Needs `pip install 'numbench[inspect]'`."""

from pathlib import Path

import inspect_ai
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelOutput, ModelUsage, get_model


def evaluate_task(folder: Path, output: object, **arguments: object) -> EvalLog:
    """Evaluate `numbench/v1` with a mock model that answers a question with `output(question)`."""

    def respond(messages: list, *_: object) -> ModelOutput:
        response = output(messages[-1].text)
        if isinstance(response, str):
            response = ModelOutput.from_content("mock", response)
        # Without token counts, Inspect's mock would download a tokenizer.
        response.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return response

    (log,) = inspect_ai.eval(
        "numbench/v1",
        model=get_model("mockllm/model", custom_outputs=respond),
        task_args=arguments,
        log_dir=str(folder),
        display="none",
    )
    assert log.status == "success", log.error
    return log


def metric_values(log: EvalLog) -> dict[str, dict[str, float]]:
    """Return scorer → metric → value."""
    return {
        score.name: {name: metric.value for name, metric in score.metrics.items()}
        for score in log.results.scores
    }
