"""Which language a question is in, so that it can be answered in it.

By script where that tells, else by the small words that only one language has: names and technical
terms, of which questions about papers are full, look English in every language.

>>> language_of("Quel mIoU atteint TopoPT sur ScanNet ?")
'French'
>>> language_of("What mIoU does TopoPT reach on ScanNet?") is None
True
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from rag.scripts import UNSPACED

_SCRIPTS = (
    ("Japanese", re.compile("[\u3040-\u30ff]")),  # before Chinese: it writes Han too
    ("Korean", re.compile("[\u1100-\u11ff\uac00-\ud7af]")),
    ("Chinese", re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")),
    ("Ukrainian", re.compile("[\u0404\u0406\u0407\u0454\u0456\u0457\u0490\u0491]")),
    ("Russian", re.compile("[\u0400-\u04ff]")),
    ("Persian", re.compile("[\u067e\u0686\u0698\u06a9\u06af\u06cc]")),
    ("Arabic", re.compile("[\u0600-\u06ff]")),
    ("Hebrew", re.compile("[\u0590-\u05ff]")),
    ("Hindi", re.compile("[\u0900-\u097f]")),
    ("Thai", re.compile("[\u0e00-\u0e7f]")),
)

# Common small words, without accents; one that several languages share counts for each of them.
# What English also has is left out, unless it is rare in English questions ("die", "was").
_WORDS = {
    "English": """a an and are as at by can do does did for from has have how is it its of on or
        that the their they these this those to was were what when where which who why with
        about than between there""",
    "French": """au aux avec ce ces cette comment combien dans des du elle elles entre est et il
        ils la le les leur lesquels lesquelles ne nous ou par pas plus pour pourquoi quand que quel
        quelle quelles quels qui quoi sans sont sur un une""",
    "German": """als auf aus bei das dem den der des die ein eine einen einer es fur gibt hat haben
        ist kann mit nicht oder sich sind uber und unter vom von vor warum was welche welchem
        welchen welcher welches wenn wer werden wie wieviel wird wo zu zum zur zwischen""",
    "Spanish": """al como con cual cuales cuando cuanto cuantos cuanta cuantas de del donde el en
        entre es esta este estos la las lo los mas para por porque que quien se sin sobre son su
        un una y""",
    "Italian": """al alla che chi come con cosa da dei del della delle di dove e gli il la le lo
        nei nel nella non per perche piu qual quale quali quando quanto quanti quante si sono su sul
        sulla tra un una""",
    "Portuguese": """ao aos com como da das de dos e em entre mais na nas nao nos o os para
        pela pelo por porque qual quais quando quanto quantos que sao sem sobre um uma""",
    "Dutch": """aan bij de dat deze dit door een en er hebben heeft het hoe hoeveel maar met
        naar niet om onder op te tussen uit van voor waarom wat welk welke wie worden wordt
        zijn zo""",
}
_STOP_WORDS = {language: frozenset(words.split()) for language, words in _WORDS.items()}

_WORD = re.compile(r"[^\W\d_]+")
_NOT_LATIN = re.compile("[\u0400-\u1cff\u2c00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]")
_NOT_LATIN_WORD = re.compile(
    f"[{UNSPACED}]|[\u0400-\u0dff\u0f00-\u1cff\u2c00-\u2fff\ua000-\ud7ff]+"
)
_OTHER_SCRIPT = "another language"


def language_of(text: str) -> str | None:
    """The English name of the language; None for English, and where nothing tells.

    A script that has no name here gives "another language".
    """
    words = [_plain(word) for word in _WORD.findall(text) if not _NOT_LATIN.search(word)]
    other = len(_NOT_LATIN_WORD.findall(text))
    if other and 3 * other >= len(words):
        return next((name for name, sign in _SCRIPTS if sign.search(text)), _OTHER_SCRIPT)
    return _by_small_words(words)


def _by_small_words(words: list[str]) -> str | None:
    """The language with the most small words, two at the least; English wins a tie."""
    found = Counter(
        {language: sum(word in own for word in words) for language, own in _STOP_WORDS.items()}
    )
    language, most = found.most_common(1)[0]
    # One is enough for what has no other words: "und auf nuScenes?" has two, "et nuScenes ?" one.
    enough = most >= 2 or (most == 1 and len(words) <= 3)
    if language == "English" or not enough or found["English"] >= most:
        return None
    return language


def _plain(word: str) -> str:
    """Lower case, without accents."""
    bare = unicodedata.normalize("NFD", word.lower())
    return "".join(c for c in bare if not unicodedata.combining(c))
