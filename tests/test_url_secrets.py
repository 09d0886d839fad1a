"""Keys in the paths of URLs are written nowhere, and different servers stay apart."""

import random
import string

from numbench.core.secrets import mask_secret_segments, secret_segments
from tests.support.case_tables import each_row

HEX = "0123456789abcdef0123456789abcdef"


@each_row(__file__, "secret_segments")
def test_a_long_random_segment_is_masked(segment: str) -> None:
    masked = mask_secret_segments(f"https://host:8000/v1/{segment}/openai")
    assert masked.startswith("https://host:8000/v1/[key-") and masked.endswith("]/openai")
    assert segment not in masked
    assert mask_secret_segments(masked) == masked


@each_row(__file__, "public_urls")
def test_names_of_servers_and_models_are_unchanged(url: str) -> None:
    assert (mask_secret_segments(url), secret_segments(url)) == (url, [])


def test_different_keys_stay_apart_and_nearly_every_random_one_is_found() -> None:
    masked = {mask_secret_segments(f"https://host/{HEX}{n}") for n in range(100)}
    assert len(masked) == 100
    rng = random.Random(0)
    alphabets = (string.ascii_letters + string.digits, string.hexdigits.lower()[:16])
    for alphabet in alphabets:
        keys = ["".join(rng.choices(alphabet, k=32)) for _ in range(1000)]
        found = sum(bool(secret_segments(f"https://host/{key}/v1")) for key in keys)
        assert found >= 995
