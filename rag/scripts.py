"""Scripts in which words are told apart in other ways; each value is the inside of a `[...]`."""

from __future__ import annotations

_KANA_AND_HAN = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

# Numbers and names of another script may stand right between their letters: Han, kana, Hangul.
CJK = rf"{_KANA_AND_HAN}\uac00-\ud7af"

# No blanks between words: Thai, Lao, Myanmar, Khmer, kana, Han. A character is about half a word.
UNSPACED = rf"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff{_KANA_AND_HAN}"
