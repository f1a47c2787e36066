"""The words by which reviewers ask, object, praise and go on."""

from __future__ import annotations

import re

_NOT = r"(?:not|n[’']t|never|cannot)"


def any_of(*patterns: str) -> re.Pattern[str]:
    """The patterns as one, in any case of letters."""
    return re.compile("|".join(patterns), re.IGNORECASE)


# A fault is named: enough by itself, wherever it stands.
PROBLEM = any_of(
    r"\b(?:lack(?:s|ing|ed)?|missing|misses|omit(?:s|ted)?|absen(?:t|ce)|neglect\w*|"
    r"overlook\w*|ignor(?:e[sd]?|ing|ance))\b",
    r"\b(?:un|in)(?:clear\w*|convinc\w*|justified|fair\w*|realistic\w*|substantiated|"
    r"supported|sufficient\w*"
    r"|adequate\w*|consisten\w*|correct\w*|accurate\w*|complete\w*|necessar\w*|surpris\w*|"
    r"explained|motivated|specified|defined)\b",
    r"\b(?:confus\w+|vague\w*|ambiguous\w*|questionable|doubt\w*|skeptic\w*|sceptic\w*|"
    r"suspicious|mislead\w*|overclaim\w*|"
    r"over-?stat\w+|incremental|marginal\w*|trivial\w*|restrictive|outdated|arbitrary|"
    r"hand-?wavy|ad[- ]hoc|cumbersome|pedantic|"
    r"sloppy|repetitive|redundant|unreadable|illegible|flaw\w*|unfortunately|arguabl[ey]|"
    r"problematic|counter-?intuitive|"
    r"apples (?:and|to|with|vs\.?) oranges|meaningless|crude|inferior|superficial)\b",
    r"\b(?:weak|limited|narrow|poor(?:ly)?|thin|insignificant|small-scale|"
    r"minimal)\b(?! supervis|-supervis|ly)",
    r"\b(?:typos?|misspell\w*|mis-?typed|mistakes?|wrong\w*|errors? in|grammatical\w*|errata)\b",
    r"\b(?:concern(?:s|ed|ing)?|drawback|downside|weakness|shortcoming|caveat)\b",
    r"\b(?:based|buil(?:t|ds?)|rel(?:y|ies)) (?:\w+ly )?(?:up)?on (?:prior|existing|"
    r"previous|known|earlier)\b",
    r"\bthere (?:is|are) (?:very )?(?:few|little)\b|\bfail(?:s|ed)? to\b|\b(?:no|"
    r"without) (?:legends?|labels? (?:on|in)|axis|captions?|units?|numbers?|reason)\b|"
    r"\A\W*(?:minor|nit|nitpick|typo)s?\W*[:.]",
    r"\b(?:hard|difficult|challenging|tough) (?:for \w+(?: \w+)? )?to (?:follow|read|"
    r"understand|see|tell|judge|parse|interpret|"
    r"assess|evaluate|grasp|verify|know|compare|keep|get|figure|reproduce)\b",
    rf"\b\w*{_NOT} (?:\w+ ){{0,3}}(?:clear\w*|evident|apparent|convinc\w*|sufficient\w*|"
    rf"enough|discuss\w*|compar\w*|provid\w*|mention\w*|"
    r"explain\w*|address\w*|show\w*|evaluat\w*|consider\w*|analy[sz]\w*|stud(?:y|ied)|"
    r"investigat\w*|report\w*|justif\w*|specif\w*|"
    r"defin\w*|describ\w*|includ\w*|cit(?:e[ds]?|ing)|test\w*|valid\w*|motivat\w*|"
    r"demonstrat\w*|present\w*|support\w*|well|very|"
    r"new|novel|surprising|obvious|significant\w*|true|correct|necessar\w*|fair|"
    r"reproduc\w*|appear|match|match\w*|hold|"
    r"properly|adequate\w*|particular\w*|elaborat\w*|used|available|uploaded|released|"
    r"listed|understand\w*|follow|find|see)\b",
    r"\b(?:no|little|without(?: any| a)?|nor) (?:\w+ ){0,2}(?:comparisons?|discussions?|"
    r"analys[ie]s|experiments?|explanations?|"
    r"evidence|ablations?|evaluations?|details?|justifications?|mention|results?|theor\w+|"
    r"guarantees?|proofs?|baselines?|intuition|"
    r"references?|definitions?|motivations?|descriptions?|code|novelty|statistical|"
    r"error bars|conclusions?|improvements?)\b",
    r"\bno (?:\w+ ){1,3}(?:is|are|was|were) (?:given|shown|provided|reported|made|included|"
    r"discussed|released|offered|stated|drawn)\b",
    r"\b(?:only|merely|just|solely) (?:\w+ ){0,2}(?:evaluat\w*|test\w*|consider\w*|"
    r"experiment\w*|compar\w*|on (?:one|two|a|small|"
    r"toy|synthetic|simple)|(?:one|two|three) \w*(?:datasets?|tasks?|models?|baselines?|"
    r"problems?|types?)|a (?:few|single|small)|"
    r"results?|show|report|conducted|applicable|work[s]?)\b",
    r"\b(?:not|don[’']t|do not) (?:that |fully |quite |entirely |so )*(?:convinced|sure|"
    r"certain|agree|understand|know)\b",
    r"\btoo (?:many|much|small|simple|strong|weak|long|short|dense|brief|high|low|large|"
    r"few|limited|vague|complicated|complex)\b",
    r"\b(?:over|under)-?(?:fit|simplif|explor|explain|estimat|sold)\w*\b",
    r"\bhas been (?:\w+ ){0,2}(?:proposed|studied|explored|done|used|shown) (?:before|"
    r"already|previously|in)\b",
)
# Something is wished for.
REQUEST = any_of(
    r"\b(?:should|ought to|must)\b",
    r"\b(?:would|could|might|may|will|it[’']d) (?:\w+ ){0,3}(?:be|benefit|improve|help|"
    r"strengthen)(?: \w+){0,3} (?:better|good|nice|great|"
    r"helpful|useful|interesting|beneficial|appreciated|worth\w*|improved|stronger|clearer|"
    r"more|from|improve|strengthen|informative|"
    r"valuable|important|necessary|insightful|ideal|convincing|easier|discussed|clarified|"
    r"revised|desirable|preferable|nicer|fair)\b",
    r"\b(?:can|could|may|might|will|would) (?:also )?(?:benefit|be (?:further |greatly |"
    r"significantly |also )?(?:improved|revised|clarified|"
    r"strengthened|expanded|extended|discussed|shortened|moved))\b",
    r"\b(?:suggest|recommend|propose that|encourage|urge|advise)\b|\bsuggestions?:",
    r"\bplease\b|\bkindly\b|\b(?:may|might) (?:want|wish|like) to\b|\bconsider (?:adding|"
    r"using|including|citing|moving|a |\w+ing\b)",
    r"\bneeds?(?:ed)? (?:to|more|some|an?|further|additional|clarif\w+|be)\b|"
    r"\b(?:requires?|deserves?|worth) (?:more|further|additional|a |\w+ing\b)",
    r"\bI(?:[’']d| would| was hoping| expect)(?: really| also)? (?:like|love|appreciate|be|"
    r"hope|want|prefer|to see|suggest)\b",
    r"\bI(?:[’']d| would| might) (?:\w+ly |also |rather )?(?:move|remove|add|change|"
    r"rephrase|replace|shorten|expand|include|use|put|drop|rename|cite|mention|avoid|"
    r"argue that the)\b",
    r"\b(?:more|additional|further|better|in-depth|deeper) (?:\w+ ){0,2}(?:details?|"
    r"discussions?|explanations?|experiments?|analys[ie]s|"
    r"baselines?|datasets?|results?|clarifications?|evidence|comparisons?|insights?|"
    r"motivations?|intuitions?|studies|ablations?|justification)\b",
    r"\A\W*(?:clarify|explain|add|discuss|provide|elaborate|compare|define|describe|"
    r"include|cite|mention|report|fix|correct|use|"
    r"remove|move|show|change|replace|specify|justify|state|consider|check|rephrase|avoid|"
    r"missing|could|can) ",
    r"-+>|→|=>|\bs/|\binstead of\b.*\?",
)
# Uncertainty that asks without a question mark.
WONDER = any_of(
    r"\b(?:wonder(?:s|ed|ing)?|curious|unsure|interested (?:in|to) (?:know|see|hear|"
    r"understand)|eager to|puzzl\w+|I am lost)\b",
    r"\b(?:not|n[’']t) (?:\w+ )?(?:clear|sure|certain|know|understand|see (?:how|why|what|"
    r"where|any|the)|follow|get|obvious)\b",
    r"\b(?:want|like|love|need|good|nice|interesting|helpful|great) to (?:know|understand|"
    r"see|hear|ask|learn)\b|\bmy (?:\w+ )?questions? (?:is|are|:)",
)
# Unmistakably meant for the authors, even in a summary.
INVITES = any_of(
    r"\bI\b.{0,25}\b(?:encourage|suggest|urge|advise|wonder|recommend (?:that|to|"
    r"the authors|adding))\b|\bplease\b",
    r"\b(?:like|encourage|urge|ask|invite|suggest) (?:that )?the authors? (?:to|should)\b",
)
# A sentence that begins so asks for something, and for something else than the one before it
# unless it resumes that.
OPENS_REQUEST = any_of(
    r"\A\W*(?:please|kindly|(?:can|could|would) (?:you|the authors)|"
    r"(?:the authors|you) (?:should|could|may|might)|"
    r"(?P<wonders>I (?:also )?(?:wonder|am (?:also )?(?:wondering|curious)))|"
    r"I (?:also )?(?:suggest|recommend|encourage)|"
    r"I(?:[’']d| would) (?:\w+ )?(?:like|love|appreciate|suggest|recommend)|"
    r"it (?:would|might|could|may) (?:\w+ )?be (?:\w+ )?(?:nice|good|great|helpful|interesting|"
    r"useful|better|valuable|beneficial|important|worth\w*))\b"
)
RESUMES = any_of(r"\b(?:this|these|those|such|here|there|above|instead|same)\b")
# Of a reviewer who wonders, the paper or its method: "I wonder whether it scales".
STANDS_IN = any_of(r"\b(?:it|its|they|them|so)\b")
# What says "no" or "but", yet may be no fault: enough where everything is a concern anyway.
NEGATIVE = any_of(
    r"\b(?:not|no|nor|none|never|without|cannot|only|but|however|although|though|despite|"
    r"while|yet|too|less|lower|worse|"
    r"few|small|low|costly|expensive|slow|complicated|complex|heavy|heavily|hard|difficult|"
    r"strong assumption|assum\w+|limitations?|"
    r"problems?|issues?|depend\w*|rel(?:y|ies)|requir\w*|already|similar|same|degrad\w*|"
    r"reduc\w*|other|missing|concern\w*)\b|n[’']t\b"
)
PRAISE = any_of(
    r"\b(?:well|clearly|nicely|carefully|beautifully)[- ](?:written|structured|"
    r"organi[sz]ed|motivated|presented|executed|explained|done|designed)\b",
    r"\b(?:interesting|novel|elegant|solid|impressive|strong|convincing|thorough|"
    r"comprehensive|sound|intriguing|promising|"
    r"important|valuable|significant|original|clear|nice|great|good|excellent|extensive|"
    r"simple|effective|timely|useful|"
    r"rigorous|appreciate|enjoy(?:ed)?|easy to (?:follow|read|understand)|like (?:the|how|"
    r"that)|outperform\w*|state-of-the-art|"
    r"commend\w*|congratulat\w*|thank(?:s| you)?|advantage|merit|innovative|reasonable|"
    r"pleasure|remarkabl\w+|makes sense)\b",
)
# Said of more than the paper: "one important aspect is ...".
FAINT_PRAISE = any_of(
    r"\b(?:important|significant|clear|simple|effective|useful|valuable|original|strong|"
    r"state-of-the-art|great|good|nice|"
    r"reasonable|advantage|sound|extensive|outperform\w*|interesting|promising|comprehensive)\b"
)
TURN = any_of(
    r"\A\W*(?:but|however|although|though|despite|yet|while|nevertheless|nonetheless|"
    r"unfortunately|that (?:being )?said|still|on the other hand|"
    r"even though|having said|(?:my|one|the) (?:\w+ )?(?:concern|reservation|question|"
    r"worry|issue|weakness|criticism|doubt)s?)\b"
)
CONTRAST = any_of(
    r"\b(?:but|however|although|though|despite|yet|while|nevertheless|nonetheless|except|"
    r"unfortunately|rather than)\b"
)
# A further matter begins.
ADDITIVE = any_of(
    r"\A\W*(?:and |but |then )?(?:also|additionally|moreover|furthermore|further,|"
    r"in addition|besides|second(?:ly)?|third(?:ly)?|fourth(?:ly)?|fifth(?:ly)?|"
    r"finally|lastly|last,|last but|another|on top of|on another note|similarly|likewise|"
    r"relatedly|related to (?:this|that)|next,|separately|more importantly|"
    r"most importantly|on a (?:related|separate|different|similar|side|minor)|"
    r"a (?:minor|second|third|further|final|related|last|side|separate)|minor|the other|"
    r"other|some other|one more|one other|one last|regarding|as for|"
    r"with (?:regards?|respect) to|concerning|what about|aside from|in terms of|p\.?s\.?\b)\b",
    r"\A\W*(?:[\w’'-]+ ){1,4}also\b",
)
# It belongs to the question before it, or to the statement.
CONTINUES = any_of(
    r"\A\W*(?:or|e\.?g|for (?:example|instance)|i\.?e|in other words|that is|namely|"
    r"such as|meaning|concretely|(?:more|to be) (?:precisely?|specific(?:ally)?|"
    r"concretely?)|specifically|put differently|why\W*\Z|how so|why so|why not\W*\Z|"
    r"why is (?:that|this)|how come)\b"
)
BACKWARD = any_of(
    r"\A\W*(?:e\.?g|for (?:example|instance)|i\.?e|in other words|that is|namely|because|"
    r"since|this|that|these|those|it|its|such|they|their|here|clearly|"
    r"intuitively|as far as|in my (?:understanding|opinion|view|experience)|"
    r"my (?:understanding|guess|intuition|impression)|otherwise|not clear|unclear|"
    r"no need|presumably|maybe|perhaps|particularly|especially|specifically|in particular|"
    r"indeed|hence|thus|therefore|so|as a result|to be (?:clear|precise|specific)|"
    r"I (?:ask|think|guess|believe|assume|suspect|don[’']t|do not|would (?:expect|guess|"
    r"assume)|am (?:asking|not sure)|understand|see|mean|realize|suppose)|"
    r"a (?:brief|short) |otherwise|if so|if not|even|without)\b"
)
ASKS = any_of(
    r",\s*(?:can|could|would|will|do|does|did|is|are|have|has) (?:you|the authors?|it|this|"
    r"there)\b",
    r"\A\W*(?:\w+[,:] )?(?:so |but |and |then |also,? |second(?:ly)?, |first(?:ly)?, |"
    r"finally, |in (?:fig\w*|table|section|eq\w*|line|algorithm|theorem)\.? ?\d*, )?"
    r"(?:what|why|how|which|where|when|who)(?:[’']s| (?:\w+ly |exactly )?(?:is|are|does|do|"
    r"did|can|could|should|would|will|was|were|not|about|if|has|have|many|much|to|"
    r"sensitive|well|come|kind|the))\b(?!.{0,400}\b(?:is|are|was|were) (?:\w+ )?(?:clear|"
    r"unclear|missing|not)\b)",
    r"\A\W*(?:is|are|does|do|did|can|could|would|will|was|were|has|have|isn[’']t|aren[’']t|"
    r"doesn[’']t|don[’']t|shouldn[’']t|wouldn[’']t) (?:there|it|this|that|the|these|you|"
    r"authors?|they|we|one|your|any)\b",
)
