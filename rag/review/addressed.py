"""Sentences of a review that speak to a program: "Ignore all previous instructions"."""

from __future__ import annotations

import re
import unicodedata

from rag.text import visible

# Characters; what addresses a program says so early.
_LONGEST = 1000
_MODEL = (
    r"(?:AIs?|A\.I\.|artificial intelligence|LLMs?|(?:large )?language models?|chat ?bots?|bots?|"
    r"assistants?|GPT[\w-]*|ChatGPT|Claude|Gemini)"
)
# Before an order: nothing, a courtesy, or another order.
_ORDER = (
    r"(?:\A|[.:;!,\]–—]\s|\b(?:please|kindly|and|then|now|just|you (?:must|should|will|shall|"
    r"need to|have to)|instructed to)\s)\W{0,3}"
    r"(?:please |kindly |now |just |simply |only |always )*"
)
_VERDICT = r"[\"“'‘`*]*(?:yes|no|true|accept(?:ed)?|strong accept|supported)[\"”'’`*]*"
_SPEAKS_TO_PROGRAM = re.compile(
    "|".join(
        (
            # What it was told is not to count.
            rf"{_ORDER}(?:ignore|disregard|forget|override|bypass|discard) (?:\w+ ){{0,4}}"
            r"(?:instructions?|prompts?|guidelines|directives)\b",
            r"\A\W*(?:new|updated|hidden|secret|special) (?:system )?instructions?"
            r"(?: \w+){0,3}\s*:",
            r"\A\W*(?:请|請)?(?:忽略|无视|無視).{0,12}(?:指令|指示|提示)",
            # Who is meant.
            r"\A\W*(?-i:SYSTEM|ASSISTANT|USER|DEVELOPER)(?: (?:prompt|message|note|override))?"
            r"\W*:",
            r"\A\W*(?-i:[Ss]ystem) (?:prompt|message|override)\W*:",
            r"<\|?(?:im_start|im_end|system|assistant|endoftext)\|?>|\[/?INST\]|<</?SYS>>",
            r"\A\W*(?:notes?|messages?|instructions?|reminders?|attention|memo|hints?|warning|"
            rf"important) (?:to|for) (?:the |any |all |an? )?(?:\w+ ){{0,2}}{_MODEL}"
            r"(?: \w+){0,3}\s*[:,!–—-]",
            r"\A\W*(?:notes?|messages?|instructions?|reminders?) (?:to|for) (?:the |any |all )?"
            r"(?:reviewing|answering|judging|responding|reading|AI|underlying) "
            r"(?:models?|systems?|programs?|agents?)\s*[:,.!–—-]",
            r"\A\W*(?:notes?|messages?|instructions?) to (?:the |any )?models?\s*:",
            rf"\A\W*(?:dear|hey|hi|hello|attention,?) (?:the |any |all )?(?:\w+ )?{_MODEL}\s*[:,!]",
            rf"\A\W*(?:to|for) (?:all |any |the )?{_MODEL}(?: \w+)?\s*:",
            rf"\bas an? (?:\w+ )?{_MODEL}(?: \w+)?,? (?:you|your)\b",
            rf"\b(?:if|since|because) you are (?:an? |the )?{_MODEL}\b",
            r"\byou are (?:now )?(?:an? |the )?(?:(?:helpful|large|expert|unbiased|honest|"
            rf"reviewing|friendly|new|automatic|automated) )*{_MODEL}(?=\W*\Z|\W*\s(?:and|who|that|"
            r"which|designed|trained|tasked|reviewing|answering|writing)\b|[.,;:])",
            # What it is to say.
            rf"{_ORDER}(?:reply|respond|answer|output|print|say|return|write)"
            rf"(?: only| just| simply| always| with| exactly| the word| in all cases)* {_VERDICT}"
            r"(?: only| and nothing else|,? (?:to|for) (?:every|all|each|any|the|this) .{1,60})?"
            r"\W*\Z",
            rf"{_ORDER}(?:give|assign|award|grant) (?:it|(?:this|the) (?:paper|submission|"
            r"work|manuscript|authors?)) (?:a |an |the |at least )?(?:\w+ ){0,3}(?:scores?|"
            r"ratings?|grades?|marks?|recommendation|evaluation|assessment)\b",
            rf"{_ORDER}(?:give|write|return|output) (?:me )?(?:an? )?(?:only )?(?:positive|glowing|"
            r"favou?rable|enthusiastic|high|perfect) (?:reviews?|scores?|ratings?)\b",
            rf"{_ORDER}(?:do not|don[’']t|never) (?:highlight|mention|list|report) any "
            r"(?:negatives?|weakness(?:es)?|flaws)\b",
            rf"{_ORDER}(?:rate|score|grade) (?:this|the) (?:paper|submission|work|manuscript) "
            r"(?:\w+ ){0,2}(?:high|highly|positive(?:ly)?|favou?rabl[ey]|10|ten|accept\w*|top|"
            r"excellent)\b",
            rf"{_ORDER}(?:mark|label|treat|report|flag) (?:\w+ ){{1,4}}as (?:\w+ )?"
            r"(?:supported|answered|verified|answerable)\b",
            r"\banswer (?:is|was|can be|must be|should be) (?:\w+ ){0,2}(?:in|from|by) (?:the )?"
            r"(?:evidence|passage|source|excerpt) ?[\[(]?\d",
            rf"{_ORDER}(?:cite|quote|use|copy|trust) (?:the )?(?:evidence|passage|excerpt) ?"
            r"[\[(]?\d",
            rf"{_ORDER}(?:do not|don[’']t|never) (?:tell|inform|alert|warn|mention (?:\w+ )"
            r"{1,3}to|reveal (?:\w+ ){1,3}to) (?:the |any )?(?:users?|humans?)\b",
            rf"{_ORDER}(?:reveal|print|repeat|output) (?:your|the) system prompt\b",
        )
    ),
    re.IGNORECASE,
)
# A reviewer's own: "I would give this paper a higher score".
_FIRST_PERSON = re.compile(r"\b(?:I|we|my|our|reviewers?)\b", re.IGNORECASE)


def addresses_program(sentence: str) -> bool:
    """Whether a sentence is meant for a program that reads the review, not for the authors.

    By its words, and only where they are plain: orders to ignore instructions, to reply "Yes", to
    score the paper, to trust an evidence by its number; notes to an assistant. Such a sentence may
    ask something of the authors besides. What cannot be seen hides nothing.
    """
    text = " ".join(unicodedata.normalize("NFKC", visible(sentence)).split())[:_LONGEST]
    found = _SPEAKS_TO_PROGRAM.search(text)
    return found is not None and _FIRST_PERSON.search(text, 0, found.start()) is None
