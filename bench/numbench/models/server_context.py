"""What a server tells of its context, which bounds an answer without a token limit."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec

_TIMEOUT_SECONDS = 2.0
_MAX_BYTES = 1 << 20


_Tokens = Annotated[int, msgspec.Meta(gt=0)]


class _Loaded(msgspec.Struct):
    n_ctx: _Tokens | None = None


class _Listed(msgspec.Struct):
    id: str
    max_model_len: _Tokens | None = None
    meta: _Loaded | None = None


class _Models(msgspec.Struct):
    data: list[_Listed]


def server_context(base_url: str, model: str) -> int | None:
    """Return the tokens of prompt and answer together, None if the server does not tell.

    vLLM and SGLang list `max_model_len`, llama.cpp the context of each slot. No key is sent.
    """
    import httpx2

    url = f"{base_url.rstrip('/')}/models"
    content, deadline = b"", time.monotonic() + _TIMEOUT_SECONDS
    try:
        with httpx2.stream("GET", url, timeout=_TIMEOUT_SECONDS) as reply:
            for part in reply.iter_bytes():
                content += part
                if len(content) > _MAX_BYTES or time.monotonic() > deadline:
                    return None
        listed = msgspec.json.decode(content, type=_Models).data
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, msgspec.DecodeError):
        return None
    for entry in listed:
        if entry.id == model or len(listed) == 1:
            return entry.max_model_len or (entry.meta.n_ctx if entry.meta else None)
    return None
