"""A short label for a paper without a title: the name it gives its system, else its first words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rag.sentences import sentence_spans
from rag.text import clean

MAX_WORDS = 8
# Below it a name is more often a baseline's or the field's; set on 141 titled COLM 2025 abstracts.
_LEAST_SCORE = 3.0

_NAMING_VERB = (
    r"(?:introduc|propos|deriv|releas|creat|curat|formulat|devis|describ)(?:e|es|ed|ing)|"
    r"(?:present|develop|construct|design|contribut|establish|offer|build)(?:e|s|es|ed|ing)?|"
    r"built|unveil|address(?:es)?"
)
_NAMED = (
    r"called|dubbed|named|termed|coined|denoted(?: as| by)?|referred to as|"
    r"we (?:call|term|dub|name)(?: it| this)?"
)
_OURS = (
    r"the resulting|(?:our|the proposed|the new) (?:[\w-]+ ){0,2}"
    r"(?:method|approach|framework|model|algorithm|benchmark|dataset|system|technique|architecture|"
    r"pipeline|estimator|detector|agent|tool|library)s?,?"
)
_CUE = re.compile(rf"\b(?:(?P<verb>{_NAMING_VERB})|(?P<named>{_NAMED})|(?P<ours>{_OURS}))\s+", re.I)
_WE = r"\b(?:we|paper|work|article|study)\s+(?:\w+ly\s+|also\s+|then\s+|first\s+|further\s+)?"
_PROPOSAL = re.compile(rf"{_WE}(?:{_NAMING_VERB})\s+", re.I)
_CONTRIBUTION = re.compile(
    rf"{_WE}(?:study|studies|investigat(?:e|es)|explor(?:e|es)|analy[sz]es?|examin(?:e|es)|address(?:es)?|"
    r"revisit|consider|identif(?:y|ies)|prove|initiate|characteri[sz]e|evaluate|show|demonstrate|ask)\s+",
    re.I,
)
_NO_CONTENT = re.compile(
    r"\A(?:(?:that|whether|how|an?|the|new|novel|this|these|first)[\s,]+)+", re.I
)
_TOKEN = re.compile(r"[A-Za-z0-9][\w+*²³₂ᴾ]*(?:[-/][\w+*²³]+)*(?:\.\d+)?")
_SMALL_WORD = r"(?:of|for|and|with|in|the|to|by|via|on|from)"
_TITLE_PHRASE = re.compile(rf"[A-Z][\w-]*(?:\s+(?:{_SMALL_WORD}\s+)?[A-Z][\w-]*){{1,6}}")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")
_EMPHASISED = re.compile(
    r"\\(?:textbf|emph|textsc|textit|texttt|textsf)\s*\{([^{}]{2,80})\}"
    r"|\*\*([^*\n]{2,80})\*\*|(?<!\*)\*([^*\n]{2,80})\*(?!\*)"
)
_CLAUSE_END = re.compile(r"[;:]|\b(?:that|which|developed|proposed)\b")
# What follows is what the system is for or made from, not the system.
_TARGET = re.compile(r"\b(?:for|in|on|using|from|to|by|over|against)\b")
_ARTICLES = frozenset({"a", "an", "the", "our", "two", "new", "novel", "that", "this"})

# Names of fields, models and measures, not of the system a paper presents.
_COMMON = frozenset(
    "1d 2d 3d 3dgs 4d a/b adam ai ann api apis asr auc auroc automl bayesian bert bleu carlo "
    "chatgpt cifar cifar-10 cifar-100 cl claude clip cnn cnns coco cot covid covid-19 cpu "
    "cpus ct cv deepseek deepseek-r1 dl dna dnn dnns dp dpo eeg elbo eu euclidean f1 face fid "
    "fl fmri gan gans gaussian gemini github glue gnn gnns gpt gpt-2 gpt-3 gpt-4 gpt-4o gpt-5 "
    "gpu gpus grpo hmm hmms html hugging huggingface i2v icl iid imagenet java json k-means "
    "kd kl knn latex lidar lime lipschitz llama llama-2 llama-3 llm llms lm lms lora lrnn "
    "lrnns lvlm lvlms mae map markov mcmc mdp mdps miou mistral ml mllm mllms mlm mlp mlps "
    "mnist moe monte mri mse nas ner nerf nlp np ocr ode odes off-policy on-policy ood opd "
    "openai ot pac pca pde pdes pdf peft plm plms pomdp post-hoc ppo python q-learning qa "
    "qwen rag resnet rgb rgb-d rl rlhf rlvr rna rnn rnns rouge sae saes sat sde sdes sft sgd "
    "shap slm slms sota sql squad ssm ssms state-of-the-art svm t2i t2v t5 tpu transformer "
    "transformers tts ucb uk un url us usa vae vaes vc vit vits vlm vlms vqa xai".split()
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    name: str
    position: int
    score: float


def derive_label(text: str) -> str:
    """A label of at most `MAX_WORDS` words for the abstract `text` (raw or cleaned).

    "We introduce Panoptic Saliency Ranking (PSR), a task" -> "PSR: Panoptic Saliency Ranking".
    Without a name, the words after "we propose a", or the first ones, ending with "…".
    """
    cleaned = clean(text)
    emphasised = {clean(next(filter(None, m.groups()))) for m in _EMPHASISED.finditer(text)}
    candidates = list(_candidates(cleaned, emphasised))
    if candidates:
        best = max(candidates, key=lambda c: (c.score, -c.position))
        if " " in best.name:
            return best.name[0].upper() + best.name[1:]
        return _with_long_form(best.name, cleaned)
    return _opening_words(cleaned)


def _candidates(text: str, emphasised: set[str]) -> Iterator[_Candidate]:
    addresses = " ".join(m[0] for m in _ADDRESS.finditer(text)).lower()
    first_cue = _CUE.search(text)
    background = text[: first_cue.start()] if first_cue else ""
    plain = _ADDRESS.sub(lambda m: " " * len(m[0]), text)
    counts: dict[str, int] = {}
    for token in _TOKEN.finditer(plain):
        counts[token[0]] = counts.get(token[0], 0) + 1
    for span in sentence_spans(plain):
        for cue in _CUE.finditer(plain, span.start, span.end):
            for name, position, nearness in _named_after(plain, cue, span.end, emphasised):
                bonus = 0.5 * min(counts.get(name, 1), 6)
                bonus += 2.0 * (len(name) > 3 and name.lower() in addresses)
                bonus += 1.0 * (name in emphasised)
                # What is spoken of before anything is proposed is the field's, not the paper's.
                bonus -= 4.0 * (name.rstrip("s") in background and name not in emphasised)
                if nearness + bonus >= _LEAST_SCORE:
                    yield _Candidate(name, position, nearness + bonus)


def _named_after(
    text: str, cue: re.Match[str], end: int, emphasised: set[str]
) -> Iterator[tuple[str, int, float]]:
    """Names in the clause after a cue, with their position and how near they stand (0..6)."""
    window = text[cue.end() : min(end, cue.end() + 160)]
    reach = 12 if cue["verb"] else 3
    phrase = _TITLE_PHRASE.match(re.sub(r"\A(?:(?:an?|the|our)\s+)", "", window))
    for distance, token in enumerate(_TOKEN.finditer(window)):
        clause = window[: token.start()]
        if distance > reach or _CLAUSE_END.search(clause):
            break
        if _TARGET.search(clause) and not clause.endswith("("):
            continue
        direct = all(w.lower() in _ARTICLES for w in window[: token.start()].split())
        name = token[0].rstrip("-*")
        if is_name(name) or (direct and _is_capitalised_name(name, window[token.end() :])):
            yield name, cue.end() + token.start(), 6.0 - 0.35 * distance
    if phrase and not _acronym_follows(window):
        yield phrase[0], cue.end(), 3.5
    for text_marked in emphasised:
        at = window.find(text_marked)
        if 0 <= at <= 40 and 1 < len(text_marked.split()) <= 6:
            yield re.sub(r"\s*\([^)]*\)\Z", "", text_marked), cue.end() + at, 4.0


def is_name(token: str) -> bool:
    """Whether a token looks like a system's name: "LAPE", "TrimPT", "PE-SHAP", "PSR18K"."""
    if (
        not 2 <= len(token) <= 30
        or token.lower() in _COMMON
        or token.rstrip("s").lower() in _COMMON
    ):
        return False
    if re.fullmatch(r"\d+(?:\.\d+)?[A-Za-z]{0,2}|[A-Z]-?\d|\d+-.*", token):
        return False
    capitals = sum(c.isupper() for c in token)
    inner = any(c.isupper() for c in token[1:])
    if "-" in token and not any(c.isupper() for part in token.split("-") for c in part[1:]):
        # "Attention-Delta" is a compound, "Hyper-DFS" and "S-PTC" are names.
        return False
    return inner and (capitals >= 2 or token[0].islower())


def _is_capitalised_name(token: str, following: str) -> bool:
    """Directly after a cue, one capitalised word with a comma or such: "propose Proprio, a"."""
    return (
        len(token) > 3
        and token[0].isupper()
        and token.lower() not in _COMMON
        and re.match(r"\s*(?:,|\(|:|–|—|\.|to\b|as\b|which\b|for\b)", following) is not None
    )


def _acronym_follows(window: str) -> bool:
    return re.match(r"[^.;]{0,100}?\([A-Z][\w-]{1,14}\)", window) is not None


def _with_long_form(name: str, text: str) -> str:
    """`LAPE` -> `LAPE: Local Adaptive Probability Estimation` where the text spells it out so."""
    at = text.find(f"({name})")
    if at < 0:
        return name
    words = text[max(0, at - 150) : at].split()
    letters = [c.lower() for c in name if c.isalpha()]
    for n in range(2, min(len(words), MAX_WORDS - 1) + 1):
        long_form = words[-n:]
        starts_right = (
            long_form[0][0].lower() == letters[0] and long_form[0].lower() not in _ARTICLES
        )
        capitalised = sum(w[0].isupper() for w in long_form) * 2 >= n
        if starts_right and capitalised and _spells(letters, " ".join(long_form).lower()):
            return f"{name}: {' '.join(long_form)}"
    return name


def _spells(letters: list[str], phrase: str) -> bool:
    """Whether the letters occur in the phrase in this order."""
    at = 0
    for letter in letters:
        at = phrase.find(letter, at) + 1
        if at == 0:
            return False
    return True


def _opening_words(text: str) -> str:
    words: list[str] = []
    for contribution in [*_PROPOSAL.finditer(text), *_CONTRIBUTION.finditer(text)]:
        sentence = text[contribution.end() :].partition(". ")[0]
        words = _NO_CONTENT.sub("", sentence).split()
        if len(words) >= 5:
            break
    if len(words) < 5:
        words = text.split()
    shortened = words[:MAX_WORDS]
    for n, word in enumerate(shortened):
        if n >= 2 and word[-1] in ".;:?!":
            shortened = shortened[: n + 1]
            break
    label = " ".join(shortened).rstrip(".,;:")
    label = label[:1].upper() + label[1:]
    return label if len(shortened) == len(text.split()) else label + "…"
