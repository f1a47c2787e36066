"""Runs a GGUF model inside this process as an OpenAI-compatible endpoint on loopback.

The only xllamacpp import. xllamacpp is llama.cpp's own server: https://github.com/xorbitsai/xllamacpp
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from rag.errors import ModelError
from rag.llm.model_files import INSTALL

# llama.cpp keeps the states of earlier prompts in memory, 8 GiB of them unless told otherwise. A
# state of the bundled model is 28 KiB a token, 25 MB for a typical prompt: room for ten of them.
PROMPT_CACHE_MIB = 256
SILENT = 0
# Longest wait for a loaded server to begin its work; it takes milliseconds.
START_SECONDS = 30.0
# How often a waiting thread looks before it sleeps. Where another program takes a core, the default
# of 300,000 burns the time that the awaited thread needs: on 2 cores, one of them busy, it wrote
# 1.3 tokens/s with the default and 14 with 1,000; both free, 36 and 36 (fully passive: 21).
OPENMP_SPIN_COUNT = "1000"


class LocalServer:
    """llama.cpp's server, from construction to `close`; `base_url` ends with `/v1`.

    Only this machine reaches it, and only with `api_key`, a secret made for each server: without
    one any web page open in a browser here could use it.

    Each of `slots` answers one request at a time, with a window of `context_tokens`. `speculative`
    drafts tokens by looking the last ones up in the prompt; drafts are checked, so that answers
    stay the same. On 2 cores and an 890-token prompt it wrote 17 to 19 tokens/s instead of 14
    where the answer quoted sentences, and as many as without (30) where it did not; on one core
    it cost a tenth.

    Raises:
        ModelError: xllamacpp is not installed, or the file cannot be loaded.
    """

    def __init__(
        self, path: Path, context_tokens: int, slots: int = 1, *, speculative: bool = True
    ) -> None:
        xllamacpp = _import_xllamacpp()
        self.model_name = path.stem
        self.api_key = SecretStr(secrets.token_urlsafe(24))
        params = _parameters(xllamacpp, path, context_tokens * slots, slots)
        params.api_keys = [self.api_key.get_secret_value()]
        params.model_alias = {self.model_name}
        if speculative:
            _draft_from_prompt(xllamacpp, params)
        try:
            self._server: Any = xllamacpp.Server(params)
        except Exception as error:  # RuntimeError, or whatever C++ exception Cython translated
            raise ModelError(
                f"llama.cpp could not load {path}: it is damaged, of a kind this version of"
                f" xllamacpp does not know, or larger than the free memory. Check the file"
                " (RAG_LLM_MODEL_PATH), or lower RAG_LLM_CONTEXT_TOKENS."
            ) from error
        self.base_url = f"{self._server.listening_address}/v1"
        self._wait_until_running()

    def close(self) -> None:
        """Stop the server and free the model's memory; a second call does nothing."""
        # xllamacpp has no stop method: the server ends with its last reference.
        self._server = None

    def _wait_until_running(self) -> None:
        """llama.cpp loses a stop that comes before its loop runs, and `close` would never return.

        A list of adapters is answered by that loop, at once when it runs.
        """
        import httpx

        with suppress(httpx.HTTPError):
            httpx.get(
                f"{self._server.listening_address}/lora-adapters",
                headers={"Authorization": f"Bearer {self.api_key.get_secret_value()}"},
                timeout=START_SECONDS,
                trust_env=False,
            )


def _import_xllamacpp() -> Any:
    """Import it with OpenMP's threads told to yield early; OpenMP reads that when it is loaded."""
    ours = not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys()
    if ours:
        os.environ["GOMP_SPINCOUNT"] = OPENMP_SPIN_COUNT
    try:
        import xllamacpp
    except ImportError as error:
        raise ModelError(
            f"Running a model on this machine needs xllamacpp: {INSTALL} ;"
            " or name an endpoint: RAG_LLM_BASE_URL=http://..."
        ) from error
    finally:
        if ours:
            del os.environ["GOMP_SPINCOUNT"]
    return xllamacpp


def _parameters(xllamacpp: Any, path: Path, context_tokens: int, slots: int) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    params.endpoint_slots = False
    params.offline = True
    params.verbosity = SILENT
    # Shared among the slots: each gets its part.
    params.n_ctx = context_tokens
    params.n_parallel = slots
    params.kv_unified = False
    params.fit_params = False
    params.cache_prompt = True
    params.cache_ram_mib = PROMPT_CACHE_MIB
    # The first request warms up just as well.
    params.warmup = False
    params.sampling.temp = 0.0
    params.sampling.seed = 0
    threads = _thread_limit()
    if threads is not None:
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
    return params


def _thread_limit() -> int | None:
    """Processors this process may use, where that is fewer than there are.

    Otherwise None: llama.cpp takes one thread for each physical core, which is right for it.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    allowed = len(os.sched_getaffinity(0))
    return allowed if allowed < (os.cpu_count() or allowed) else None


def _draft_from_prompt(xllamacpp: Any, params: Any) -> None:
    kinds = xllamacpp.common_speculative_type
    params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
    # A match of 4 tokens drafts 12 more: 23 of 24 were right where (3, 6) had 22 of 36, and the
    # defaults of 12 and 48 never fired on answers of a few sentences.
    params.speculative.ngram_simple.size_n = 4
    params.speculative.ngram_simple.size_m = 12
