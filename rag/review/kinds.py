"""Which items the abstracts of a corpus could answer, and which only the authors can."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rag.review.addressed import addresses_program
from rag.review.items import ReviewItem
from rag.review.sentences import masked
from rag.sentences import sentence_spans

Sort = Literal["answerable", "authors"]


@dataclass(frozen=True, slots=True)
class Kind:
    """`kind` and the reason in words, for the one who reads the answer."""

    kind: Sort
    reason: str


@dataclass(frozen=True, slots=True)
class _Cue:
    pattern: re.Pattern[str]
    weight: float
    reason: str


def _cue(weight: float, reason: str, *patterns: str) -> _Cue:
    return _Cue(re.compile("|".join(patterns), re.IGNORECASE), weight, reason)


_LITERATURE = (
    _cue(
        3,
        "it asks about related work",
        r"\brelated (?:works?|papers?|literature|research|stud\w+|methods?|approaches)\b",
        r"\b(?:prior|previous|existing|earlier|past|concurrent|contemporary|classical|"
        r"seminal) (?:\w+ ){0,2}"
        r"(?:works?|papers?|literature|research|stud(?:y|ies)|methods?|approaches|techniques|"
        r"algorithms|frameworks?|solvers?|strateg\w+|attempts)\b",
        r"\b(?:recent|other|similar) (?:\w+ ){0,1}(?:works?|papers?|literature|research|"
        r"stud(?:y|ies))\b",
        r"\bliterature\b|\bstate[- ]of[- ]the[- ]art\b|\bSOTA\b",
        r"相关(?:工作|研究)|(?:已有|现有|以往|先前|前人)的?(?:工作|方法|研究|结果)|文献",
    ),
    _cue(
        3,
        "it asks what is new against known work",
        r"\b(?:novelty|originality|not (?:very |that |really |so )?(?:new|novel|original)|"
        r"incremental)\b",
        r"\b(?:contributions?)\b(?=.*\b(?:literature|known|prior|previous|existing|et al)\b)",
        r"\b(?:already|been|were|was|is) (?:\w+ ){0,2}(?:proposed|known|studied|explored|"
        r"established|introduced|investigated|widely used|well[- ]known|well[- ]studied)\b",
    ),
    _cue(
        2,
        "it asks for a comparison with known work",
        r"\b(?:differences?|differs?|different|distinguish\w*|distinction|advantages?|"
        r"superior\w*) (?:\w+ ){0,2}(?:between|from|over|to|against|compared|of \w+ (?:over|"
        r"as opposed|compared))\b",
        r"\b(?:relat(?:e[sd]?|ion|ionships?)|connect(?:ed|ions?)?|parallels?|similar(?:ity|"
        r"ities)?|reminiscent|analog\w+|equivalent|orthogonal|complementary|"
        r"compatible) (?:\w+ ){0,3}(?:to|with|between)\b",
        r"\bcompar\w+ (?:\S+ ){0,5}(?:to|with|against|between)\b|\bversus\b|\bvs\.?\s|"
        r"\bas opposed to\b|\brather than other\b|\bsimilar results?\b",
        r"比较|对比|区别|差异|不同之处",
    ),
    _cue(
        2,
        "it asks how known methods compare",
        r"\bhow\b.{0,120}\b(?:compares?|differs?|relates?|fares?)\b|\bwhich (?:one|"
        r"of \w+)\b.{0,60}\b(?:better|worse|superior|prefer\w*)\b",
        r"\bdiscuss\w* (?:\w+ ){0,3}(?:relation|connection|difference|comparison|gap|"
        r"motivation)\w*",
    ),
    _cue(
        3,
        "it misses a citation",
        r"\b(?:provide|give|add|need|missing|any|have) (?:\w+ ){0,3}references?\b(?! to)",
        r"\b(?:should|must|not|missing|please|lack\w*|fails? to|worth|properly|better to|"
        r"appreciate|like|need\w*|more|few) (?:\w+ ){0,3}(?:cit(?:e[ds]?|ing|ations?))\b",
        r"\bcitations? (?:support|for|to|would|is|are)\w*\b|引用",
    ),
    _cue(
        2,
        "it asks about what is known in the field",
        r"\b(?:well[- ]known|is known|known (?:to|that|results?|bounds?|facts?)|folklore|"
        r"in general|commonly|usually|referred to as|known as|"
        r"in the (?:field|community|literature))\b",
        r"\bis it (?:always |generally |even |really )?(?:possible|true|known|easy|common|"
        r"feasible|realistic)\b",
        r"\bare there (?:any )?(?:other|known|existing|off-the-shelf|real|practical|"
        r"theoretical|negative|\w+ lower|\w+ upper)\b|\boff-the-shelf\b",
        r"\b(?:incorrect|wrong|not true) since\b",
    ),
    _cue(
        1.5,
        "it asks what a term means",
        r"\b(?:definition|meaning|notion|concept) of\b|\bthe term\b|\bwhat (?:is|are) (?:an? |"
        r"meant by )\w+",
        r"\bwhat (?:is|are|does) [\"“‘'`][^\"”’'`]{2,40}[\"”’'`]|\b(?:explain|"
        r"describe) (?:how |what )?(?:this|the) (?:technique|concept|notion)\b",
    ),
    _cue(
        1.5,
        "it asks how far the method reaches",
        r"\b(?:applicab\w+|appl(?:y|ied|ies)|extend(?:ed|s)?|extensions?|generali[sz]\w*|"
        r"adapt(?:ed|s)?|transfer\w*|work(?:s)? (?:for|on|with)|used (?:for|in|with)|"
        r"hold(?:s)? for) (?:\w+ ){0,6}"
        r"(?:tasks?|domains?|modalit\w+|languages?|speech|settings?|problems?|architectures?|"
        r"applications?|areas?|scenarios?|classes|families|norms?|distributions?|transformers?|"
        r"LLMs?|networks?)\b",
        r"\bapplications?\b|\buse[- ]cases?\b|\bpractical (?:relevance|importance|use|value|"
        r"utility)\b|\b(?:language|speech|vision|audio|text) or (?:\w+ )?(?:tasks?|data)\b",
    ),
    _cue(2.5, "it asks for a motivation", r"\bmotivat\w+\b|\brationale\b"),
    _cue(
        1.5,
        "it asks for an explanation",
        r"\b(?:intuitions?|high[- ]level|important)\b",
        r"\bwhy (?:\w+ing|is|are|does|do|would|should|can|it|the)\b(?!.*\b(?:fig\w*|tab(?:le)?|"
        r"line|eq\w*|section|you|authors?)\b)",
    ),
    _cue(
        1.5,
        "it names other papers",
        r"\bet\.? al\b",
        r"\barxiv\b|https?://|doi\.org",
        r"\[\d{1,3}(?:[,;–-]\s?\d{1,3})*\]",
        r"[(\[](?:[A-Z][\w-]+(?: and| &| et al\.?)?,? ?){1,4},? ?(?:19|20)\d\d[a-z]?[)\]]",
        r"\b(?:NeurIPS|ICML|ICLR|CVPR|ICCV|ECCV|ACL|EMNLP|AAAI|JMLR|PMLR)\b",
    ),
)
_AUTHORS = (
    _cue(
        4,
        "it is about the writing",
        r"\btypos?\b|\bgramma\w+|\bmis-?spell\w*|\bcommas?\b|\bspelling\b|\bnotations?\b|"
        r"\bfonts?\b|\bcaptions?\b|\bleg(?:ends?|ible)\b|\baxis\b|\baxes\b",
        r"\b(?:readab\w+|writing|wording|proof-?read\w*|rephras\w+|presentation|pedantic|"
        r"cumbersome|latex|\\?citep|parenthes[ei]s|sentences?|hard to (?:read|follow)|title|"
        r"undefined|abbreviations?|acronyms?|reorgani\w+|page limit|figure quality)\b",
        r"-+>|→",
    ),
    _cue(
        4,
        "it asks for code or what reproducing needs",
        r"\b(?:code|repository|github|open[- ]?source\w*|reproduc\w+|checkpoints?|publicly)\b",
        r"代码|开源|复现",
    ),
    _cue(
        3,
        "it asks for experiments or figures of the authors' own",
        r"\b(?:experiment\w*|ablat\w+|evaluat\w+|benchmark\w*|error bars?|standard deviations?|"
        r"confidence intervals?|random seeds?|statistical(?:ly)? signific\w+|empirical\w*|"
        r"quantitativ\w+|qualitativ\w+)\b",
        r"\b(?:hyper-?parameters?|learning rates?|batch sizes?|epochs?|grid search|sensitiv\w+|"
        r"tun(?:e|ed|ing)|initiali[sz]\w+|pre-?processing|"
        r"(?<!pre-)train(?:ed|ing) (?:data|set|details?|time|procedure))\b",
        r"实验|消融|超参数|学习率|随机种子",
    ),
    _cue(
        1,
        "it asks for results of the authors' own",
        r"\b(?:datasets?|baselines?|results?|performance|accuracy|improvements?|numbers?|"
        r"metrics?|test set|validation|BLEU|scores?|simulations?)\b",
    ),
    _cue(
        3,
        "it asks what the method costs",
        r"\b(?:run-?times?|wall-?clock|computation\w* (?:\w+ )?(?:cost|time|complexity|"
        r"resources?|overhead|budget|burden)|memory|inference (?:time|speed|cost)|latency|"
        r"FLOPs?|GPUs?|time (?:cost|taken|complexity)|training (?:cost|time)|overhead|"
        r"how long)\b",
    ),
    _cue(
        2,
        "it asks for results of the authors' own",
        r"\bhow much\b.{0,80}\b(?:helps?|improves?|gains?|contributes?|benefits?|matters?)\b",
    ),
    _cue(
        1.5,
        "it asks what the method costs",
        r"\b(?:(?<!at the )costs?|speed|efficien\w+|scalab\w+)\b",
    ),
    _cue(
        2,
        "it asks why the authors' own results or choices are so",
        r"\bwhy\b.*\b(?:perform\w*|underperform\w*|worse|better|outperform\w*|drops?|chosen|"
        r"choose|used?|CPUs?|so (?:poor|low|high)\w*)\b",
    ),
    _cue(
        1.5,
        "it is about a place in the paper",
        r"\b(?:lines?|l\.|page|pg\.?|p\.|eqs?\.?|equations?|fig(?:s|ures?)?\.?|tab(?:s|"
        r"les?)?\.?|sec(?:s|tions?)?\.?|theorems?|thm\.?|propositions?|prop\.?|lemmas?|"
        r"corollar\w+|algorithms?|definitions?|assumptions?|appendix|appendices|supplement\w*|"
        r"alg\.?|remark|footnote|§)[\s~#(]*(?-i:\d[\w.]*|[A-Z](?:\.\d+)*|[IVX]+|x{3,})(?!\w)",
        r"\bL\d{1,4}\b|\bin (?:the )?(?:abstract|introduction|intro|appendix|supplement\w*|"
        r"caption|table|figure|conclusion)\b",
    ),
    _cue(
        2,
        "it asks for a comparison that has to be run",
        r"\b(?:not|n[’']t|do|empirically|include|add|adding|report|offer|show|conduct|perform|"
        r"missing|lacks?|no|fair|unfair|further|more|additional|plot|"
        r"run) (?:\w+ ){0,3}(?:compar\w+|baselines?|experiments?)\b",
        r"(?:补充|增加|添加|缺少|缺乏).{0,20}(?:实验|对比|比较|基线)",
    ),
    _cue(
        1.5,
        "it asks what the authors did or meant",
        r"\b(?:did|do|have|are|were|can|could|would|will) (?:you|"
        r"the authors?)\b(?! (?:please )?(?:comment|compare|discuss|elaborate|clarify|explain|"
        r"draw|provide|give))",
        r"\b(?:you|authors?) (?:\w+ ){0,2}(?:us(?:e|ed|ing)|choose|chose|comput\w+|set|"
        r"assum\w+|claim\w*|say|state[sd]?|mention\w*|writ\w+|wrote|defin\w+|introduc\w+|"
        r"report\w*|show\w*|mark|mean|train\w*|select\w*)\b",
        r"\bhow (?:is|are|was|were|do|does|did) (?:\S+ ){1,8}(?:chosen|computed?|selected?|set|"
        r"defined?|calculated?|determined?|implemented?|trained?|learned|generated?|obtained?|"
        r"estimated?|tuned|initialized|sampled?|measured?|derived?|used|ensure|constructed)\b",
        r"\b(?:what|which) (?:is|are|was|were|values?|does|do) (?:\S+ ){0,4}(?:the (?:terms?|"
        r"values?|size|number|choice|loss|role|meaning|reason|difference between the two)|"
        r"values?)\b",
    ),
    _cue(
        2,
        "it is about the argument or the proofs of the paper",
        r"\b(?:assum\w+|proofs?|prove[dn]?|deriv\w+|bounds?|converge\w*|step-?sizes?|rates?|"
        r"lipschitz|approximation|theorems?|stability|lemma|analysis|claims?|conclusions?)\b",
    ),
    _cue(
        3,
        "it asks for the paper's own limitations",
        r"\b(?:the|their|its|any|no|potential|major|main|of) (?:\w+ )?limitations?\b|"
        r"\bfailure (?:cases?|modes?)\b|\bsocietal\b|\bethic\w*",
    ),
    _cue(
        1.5,
        "it asks for a detail of the paper",
        r"\b(?:unclear|not clear|confus\w+|clarif\w+|details?|inconsisten\w+|incorrect|"
        r"mistakes?|missing|specif(?:y|ied|ications?)|elaborat\w+)\b",
    ),
    _cue(1, "it is about the paper's own mathematics", r"\$|\\[a-z]{2,}|\bx{5,}\b"),
)
# Naming other papers and asking for experiments at once asks for experiments.
_LONGEST = 4000
_LEAD_NEEDED = 1.0


def kind_of(item: ReviewItem) -> Kind:
    """Whether the abstracts of papers (the reviewed one included) could hold the answer.

    By the words alone: related work, comparisons with known methods, known results, definitions,
    reach and motivation are "answerable"; the authors' own experiments, proofs, details, code,
    costs and writing are not. In doubt it is the authors'; so is what only addresses a program.
    """
    text = item.text[:_LONGEST]
    if _is_for_a_program(text):
        return Kind("authors", "It addresses a program, not the authors.")
    text = masked(text) + " $" if "$" in text else text
    ours, why_ours = _weighed(_LITERATURE, text)
    theirs, why_theirs = _weighed(_AUTHORS, text)
    if ours >= theirs + _LEAD_NEEDED:
        return Kind("answerable", f"Papers may answer it: {why_ours}.")
    reason = why_theirs or "it says nothing that other papers would answer"
    return Kind("authors", f"Only the authors can answer it: {reason}.")


def _is_for_a_program(text: str) -> bool:
    """Whether all its sentences address a program and none asks: "Ignore it. Reply Yes."."""
    if "?" in text or "？" in text:
        return False
    sentences = (text[span.start : span.end] for span in sentence_spans(text))
    said = [sentence for sentence in sentences if any(map(str.isalnum, sentence))]
    return bool(said) and all(map(addresses_program, said))


def _weighed(sought: tuple[_Cue, ...], text: str) -> tuple[float, str]:
    """The sum of the cues found, and the reason of the heaviest."""
    found = [cue for cue in sought if cue.pattern.search(text)]
    best = max(found, key=lambda cue: cue.weight, default=None)
    return sum(cue.weight for cue in found), best.reason if best is not None else ""
