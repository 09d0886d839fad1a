"""Plain decimals as exact numbers, thousands at a time: the inverse of `bench.batch.text.plain`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.batch.fixed import Numbers


def numbers_of(texts: pa.StringArray) -> Numbers:
    """The values of plain decimals of at most 18 significant digits. ValueError for any other."""
    plain = pc.match_substring_regex(texts, r"^-?\d+(\.\d+)?$")
    if not pc.all(plain, min_count=0).as_py():
        wrong = texts.filter(pc.invert(plain))[0].as_py()
        raise ValueError(f"{wrong!r} is not a plain decimal")
    negative = np.asarray(pc.starts_with(texts, "-"))
    point = np.asarray(pc.find_substring(texts, ".")).astype(np.int64)
    length = np.asarray(pc.binary_length(texts)).astype(np.int64)
    behind = np.where(point >= 0, length - point - 1, 0)
    digits = pc.utf8_ltrim(pc.replace_substring(pc.utf8_ltrim(texts, "-"), ".", ""), "0")
    digits = pc.if_else(pc.equal(digits, ""), "0", digits)
    if len(digits) and pc.max(pc.binary_length(digits)).as_py() > 18:
        raise ValueError("a number has more than 18 digits")
    significand = np.asarray(pc.cast(digits, pa.int64()))
    return Numbers(np.where(negative, -significand, significand), -behind)
