"""Transformations of items: the same question with other notation, order, signs or magnitudes.

A transformation maps an item to one with the same id, and its answer to the answer of the new item.
Runs on both are compared pair by pair.
"""

from numbench.transforms.registry import (
    NO_TRANSFORM,
    TRANSFORMS,
    Transform,
    find_transform,
)
from numbench.transforms.variant import Variant, open_variant, store_prompts, variant_of_run

__all__ = [
    "NO_TRANSFORM",
    "TRANSFORMS",
    "Transform",
    "Variant",
    "find_transform",
    "open_variant",
    "store_prompts",
    "variant_of_run",
]
