"""What asks for nothing: pointers, verdicts, announcements, courtesies and references."""

from __future__ import annotations

from rag.review.cues import any_of

_ANYTHING = (
    r"(?:weakness(?:es)?|questions?|concerns?|issues?|comments?|problems?|limitations?|"
    r"complaints?|objections?|typos?|suggestions?|remarks?|flaws?)"
)
# Nothing is asked.
EMPTY = any_of(
    r"\A\W*(?:n\s?/?\s?a|nil|none(?: so far| from my side| that I (?:can )?see| noted|"
    r" found)?|no|yes|nothing|not applicable|adequate|"
    r"addressed|discussed|ok(?:ay)?|fine|same(?: as)?(?: the)? (?:above|weakness(?:es)?)|"
    r"tbd|-|[a-z]|sufficient|good|"
    r"(?:yes|no)[,.;]? (?:they|the authors|it) (?:do|does|did|have|has|is|are)(?: so)?)\W*\Z",
    rf"\A\W*(?:(?:some|several|a few|few|minor|major|other|additional|further|my|main|the|"
    rf"following|more|specific|general|detailed|here are|two|three|"
    rf"small|list of|there are)\s+)+(?:{_ANYTHING}|notes|points|details|things)(?:\s*(?:/|"
    rf"and|or|&)\s*\w+)?\W*\Z",
    r"\A\W*(?:below,? |here,? )?I (?:will |have |would )?(?:list|enumerate|summari[sz]e|"
    r"detail|outline|group|organi[sz]e)[d]?\b",
    rf"\A\W*(?:overall,? |currently,? |for now,? |honestly,? |"
    rf"other than that,? )?(?:I (?:do not|don[’']t|did not|didn[’']t|have no|see no|"
    rf"could not|couldn[’']t|can[’']t|cannot|find no|found no)|"
    rf"there (?:is|are|were) no|there (?:is|are)(?: not|n[’']t)|no|"
    rf"none)\b(?! mention)(?:(?!discuss|address|mention|analy|provid|but |"
    rf"however)[^.?!]){{0,60}}\b{_ANYTHING}\b"
    r"(?:(?!discuss|address|mention|analy[sz]|provid|but\b|however)[^?]){0,60}\W*\Z",
    r"\b(?:no|not|n[’']t)\b(?:(?!discuss|address|mention|"
    r"describ)[^.?!]){0,50}\b(?:societal|social|ethical|ethics|negative (?:impact|"
    r"consequence)\w*)\b(?:(?!discuss|address|mention|describ)[^?]){0,60}\Z",
)
_PLACE = (
    r"(?:above|below|earlier|previously|elsewhere|(?:previous|other|last) (?:section|part|"
    r"field|box)s?|weakness(?:es)?|strengths?|questions?|concerns?|comments?|limitations?|"
    r"[\"“'‘]?weakness\w*[\"”'’]?)"
)
POINTER = any_of(
    rf"\b(?:see|refer(?:red)?|read|go|cf)\b(?: \w+){{0,6}}? (?:\W)?{_PLACE}\b",
    rf"\b(?:as|have|has|was|were|are|is|been|I)\b(?: \w+){{0,4}}? (?:mentioned|listed|"
    rf"given|stated|writ(?:e|ten)|wrote|raised|detailed?|outlined?|described?|noted|posed|"
    rf"asked|included?|provided?|expressed|merged|covered|"
    rf"combined)\b(?: \w+){{0,6}}? {_PLACE}\b",
    rf"\b(?:address|respond|answer|clarify|resolve|reply|consider|check|"
    rf"refer)\b(?: \w+){{0,4}}? (?:the |my |these |those |all |any |each |"
    rf"following )+(?:\w+ ){{0,4}}{_PLACE}\b",
    rf"\b(?:address|respond|answer)\b(?: \w+){{0,8}}? in (?:the )?\W?{_PLACE}",
    r"\b(?:listed|see|following|comments?|questions?|points?|detail|are|"
    r"as)\b(?: \w+){0,6}? (?:below|as follows|above)\W*\Z",
    rf"\A\W*(?:same as|per|cf\.?|above|mentioned|combined with|in addition to|along with|"
    rf"included in|listed in) (?:\w+ ){{0,5}}{_PLACE}\W*\Z",
    rf"\A\W*{_PLACE}\W*\Z",
    rf"\A\W*(?:the )?(?:main |major |key )?{_ANYTHING} (?:are|is|have been|has been|can be|"
    rf"were) (?:\w+ ){{0,4}}(?:in|above|below|found|under)\b(?: \w+){{0,5}}\W*\Z",
)
# The reviewer's verdict, offer or standing.
VERDICT = any_of(
    r"\b(?:I|willing|happy|reviewer)\b.{0,80}\b(?:rais|increas|improv|chang|adjust|"
    r"reconsider|lower|updat|revis|keep|maintain|upgrad|bump|decreas)\w*"
    r"(?: \w+){0,5}? (?:(?:score|rating|recommendation|grade)s?|my (?:\w+ )?(?:evaluation|"
    r"assessment|opinion|mind))\b",
    r"\b(?:score|rating)s? (?:is|will be|would be|can be|could be|accordingly|based|"
    r"reflects?)\b|\bmy (?:current |initial |final |overall )?(?:score|rating|"
    r"recommendation|vote|decision|verdict)\b",
    r"\b(?:vot(?:e|ing)|lean(?:s|ing)?|inclined|tend(?:ing)?|recommend(?:ing)?|opt(?:ing)?|"
    r"argu(?:e|ing)|in favou?r|borderline|willing)\b(?: \w+){0,5}? (?:accept\w*|reject\w*|"
    r"toward?s?)\b",
    r"\b(?:weak|borderline|strong|clear) (?:accept|reject)\b|\b(?:above|"
    r"below) (?:the )?(?:acceptance )?(?:bar|threshold)\b|\bready for publication\b",
    r"\b(?:look(?:ing)? forward to|happy|glad|open|willing|"
    r"flexible)\b(?: \w+){0,5}? (?:discuss\w*|rebuttal|respon[sd]\w*|hear\w*|answers?|"
    r"reconsider|rais\w*|chang\w*|increas\w*|adjust)\b",
    r"\b(?:require|need)s? (?:\w+ ){0,3}(?:revision|re-?review|re-?submission)\b|\bI am flexible\b",
    r"\bI (?:am|[’']m) (?:not|no|only)? ?(?:\w+ ){0,2}(?:familiar|expert|up[- ]to[- ]date|"
    r"knowledgeable)\b|\bmy (?:expertise|background|confidence)\b",
    r"\bI (?:have|did|could|can|do)(?: not|n[’']t)?(?: \w+){0,2} (?:check\w*|verif\w+|"
    r"confirm)\b(?: \w+){0,5} (?:proofs?|derivations?|theor\w+|math\w*|results|appendix|"
    r"supplement\w*|details|correctness|accuracy|code)\b",
    r"\b(?:thank|thanks|thankful)\b(?: \w+){0,6}? (?:rebuttal|respon[sd]\w*|authors?|"
    r"clarif\w+|repl(?:y|ies))\b|\b(?:after|post)[- ](?:\w+ )?rebuttal\b",
    r"\bif (?:the )?(?:authors?|they|you)\b(?: \w+){0,4}? (?:address|resolve|answer|"
    r"clarify)\b(?: \w+){0,3} (?:concerns?|questions?|issues?|comments?|points?|these|"
    r"those)\b",
)
# A pointer may stand beside what it is asked for: "Please report the runtime, see weakness 2."
MATTER_BESIDE_POINTER = any_of(
    r"\b(?:provide|explain|include|add|report|show|compare|describe|define|justify|"
    r"discuss)\b"
)
# Yet a verdict may name what it hangs on.
MATTER_IN_VERDICT = any_of(
    r"\b(?:if|unless|provided|once|after)\b.*\b(?:experiments?|compar\w+|results?|"
    r"baselines?|ablations?|datasets?|add|include|run|evaluat\w+|code)\b",
    r"n[’']t (?:\w+ )?understand\b",
)
# A heading line inside a paragraph: what follows is the asking.
LEAD = any_of(
    rf"\b{_ANYTHING}\b|\b(?:following|below|as follows|list|points|room for improvement|"
    rf"improve(?:d|ments?)?|clarif\w+|details?|aspects|few|several|some)\b"
)
# "There are several statements that are unclear": they follow.
COUNTS = any_of(
    r"\b(?:some|several|a few|few|following|many|number of|two|three|four|multiple|various|"
    r"list)\b"
)
# Left after these, a question has no matter of its own: "Could you please comment more on it?"
COURTESY_WORDS = frozenset(
    "a about again all also am an and any are as at author authors be bit but by can "
    "clarification clarify comment comments "
    "correct could detail details did discuss do does doing elaborate else explain "
    "explanation for from further get give "
    "had have he here how i idea if in insight insights into is it its kindly know let "
    "like little me misunderstood misunderstanding missing "
    "more my not of on one or our out please point provide reason reasons reviewer right "
    "shed light so some something somewhere "
    "such that the their them there these they thing things think this those thoughts to "
    "true understand understanding understood us was we "
    "were what when where which while why will with would wrong you your expand further "
    "happening happen case mean means intuition behind comment interpretation".split()
)
REFERENCE = any_of(
    r"\b(?:19|20)\d\d\b.*(?:\bet al\b|arxiv|proc(?:eedings|\.)|conference|journal|"
    r"transactions|neurips|nips|icml|iclr|cvpr|iccv|eccv|acl|emnlp|aaai|press|preprint|"
    r"vol\.|pp\.|workshop|advances)",
    r"(?:\bet al\b|arxiv|proc(?:eedings|\.)|conference|journal|transactions|neurips|nips|"
    r"icml|iclr|cvpr|iccv|eccv|acl|emnlp|aaai|press|preprint|advances).*\b(?:19|20)\d\d\b",
    r"\A\W*(?:\[\d+\]\s*)?https?://\S+\W*\Z",
    r",\s*(?:19|20)\d\d[a-z]?\W*\Z",
    r"\A\W*(?:\[?\w{1,4}\]\s*)?(?-i:(?:[A-Z][\w.’'-]*(?: [A-Z][\w.’'-]*){1,3}, )+(?:and |"
    r"& )?[A-Z][\w.’'-]*(?: [A-Z][\w.’'-]*){1,3}\. ?[A-Z\"“])",
    r"\A\[\w+\]\s+\S.{10,300}\(?(?:19|20)\d\d[a-z]?\)?\W*\Z",
)
# A list of references does not speak to anybody.
SPEAKS = any_of(
    r"\b(?:I|you|your|authors?|they|their|this|these|how|why|is|are|was|were|has|have|does|"
    r"do|did|not|but|however|paper|propos\w+|shows?|showed|discuss\w*|uses?|used|provides?|"
    r"reports?|should|would|can|may|might|could|that|which|it)\b"
)
