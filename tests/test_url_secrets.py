"""Keys in the paths of URLs are written nowhere, and different servers stay apart."""

from __future__ import annotations

import random
import string

import pytest

from numbench.core.secrets import mask_secret_segments, secret_segments

HEX = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "segment",
    [
        HEX,
        "sk-proj-Ab3dEf6hIj9kLm2nOp5q",
        "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "token%3Aab12cd34ef56ab78cd90",
        "key=aB3dE6gH9jK2mN5p",
    ],
)
def test_a_long_random_segment_is_masked(segment: str) -> None:
    masked = mask_secret_segments(f"https://host:8000/v1/{segment}/openai")
    assert masked.startswith("https://host:8000/v1/[key-") and masked.endswith("]/openai")
    assert segment not in masked
    assert mask_secret_segments(masked) == masked


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/v1",
        "https://openrouter.ai/api/v1",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "https://x.openai.azure.com/openai/deployments/gpt-4o-mini-2024-07-18",
        "https://host/DeepSeek-R1-Distill-Qwen-32B/InternationalCompletions/v1",
        "https://host/accounts/fireworks/models/llama-v3p1-405b-instruct-fp8",
        f"https://{HEX}.example.com",
        "",
    ],
)
def test_names_of_servers_and_models_are_unchanged(url: str) -> None:
    assert (mask_secret_segments(url), secret_segments(url)) == (url, [])


def test_different_keys_stay_apart() -> None:
    masked = {mask_secret_segments(f"https://host/{HEX}{n}") for n in range(100)}
    assert len(masked) == 100


def test_nearly_every_random_key_is_found() -> None:
    rng = random.Random(0)
    alphabets = (string.ascii_letters + string.digits, string.hexdigits.lower()[:16])
    for alphabet in alphabets:
        keys = ["".join(rng.choices(alphabet, k=32)) for _ in range(1000)]
        found = sum(bool(secret_segments(f"https://host/{key}/v1")) for key in keys)
        assert found >= 995
