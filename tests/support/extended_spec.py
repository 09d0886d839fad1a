"""A specification of a run with one more option, as a contributor would add it."""

# Annotations are read as they are, so they are not postponed.
from dataclasses import dataclass
from typing import Annotated

from numbench.runner.options import Option
from numbench.runner.spec import RunSpec


@dataclass(frozen=True)
class ExtendedSpec(RunSpec):
    """A specification with one more option."""

    top_p: Annotated[float | None, Option("Sampling", "P", at_least=0, is_setting=True)] = None
    """Nucleus sampling."""
