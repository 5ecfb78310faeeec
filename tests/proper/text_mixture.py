r"""Texts of many kinds from a seed: what tokenizers are judged on and small ones are trained with.

Nothing is downloaded and nothing is one author's prose: words of twenty languages are put together by chance, some of
them crossed (the beginning of one, the end of another), so that a long text has as many different words as a real one.
Kinds are chosen for what pre-tokenizers and merges treat differently: scripts with and without spaces between words,
code, JSON, runs of white space, contractions in all cases and with both apostrophes, digits of several scripts, marks
and joiners, and characters from anywhere in Unicode.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence

#: Common words by language; scripts written without spaces between words stand in `UNSPACED`.
WORDS: dict[str, str] = {
    "english": (
        "the of and to in is that for it with was this are from they will would there their what about which when can "
        "one two people water house morning language number little between thought never world should because another "
        "information running unhappiness international government something children different through before"
    ),
    "german": "der die und nicht ein Straße größer können über für Wörter Haus Sprache zwischen Überraschung ist auch",
    "french": "le la été où naïve cœur être aujourd'hui très façon déjà même peut-être garçon l'eau qu'il élève avec",
    "spanish": "el niño mañana ¿qué corazón también años está más español según información pequeño ¡hola! después",
    "portuguese": "não coração você também então informação às três pão avô maçã português órgão água ação português",
    "polish": "się żółw łódź że być gęś źródło świat człowiek przez miłość będzie również część książka wszystko",
    "czech": "příliš žluťoučký kůň úpěl ďábelské ódy který být člověk země svět město slovo jazyk během něco řeka",
    "turkish": "İstanbul ılık değil için güzel çok yapmaktadır geleceğim öğrenci şimdi dünya ışık küçük büyük sözcük",
    "vietnamese": "nghiên cứu thời gian người được không những trường đại học tiếng Việt một năm nước đường sống",
    "russian": "и не что это человек время жизнь первый вода слово язык между который ещё съешь булок можно большой",
    "greek": "και το είναι άνθρωπος λόγος χρόνος γλώσσα πόλη ψυχή όμως μεγάλος ημέρα κόσμος νερό ξεσκεπάζω για",
    "hebrew": "שלום עולם של את הוא לא ספר ילד מים בית שפה זמן יום אדם גדול עיר דבר אחר",
    "arabic": "مرحبا بالعالم في من هذا الكتاب اللغة العربية يوم ماء بيت كبير صغير إلى على كان الإنسان مدينة",
    "hindi": "नमस्ते दुनिया में है और यह किताब पानी घर भाषा समय मनुष्य बड़ा छोटा दिन शहर विश्वविद्यालय लड़की",
    "armenian": "բարեւ աշխարհ մարդ լեզու ջուր տուն օր գիրք մեծ փոքր քաղաք ժամանակ կյանք բառ",
    "georgian": "გამარჯობა მსოფლიო ადამიანი ენა წყალი სახლი დღე წიგნი დიდი პატარა ქალაქი დრო სიცოცხლე",
    "korean": "안녕하세요 세계 사람 언어 물 집 오늘 책 크다 작다 도시 시간 생활 단어 그리고 텍스트 한국어를",
}  # fmt: skip
UNSPACED: dict[str, str] = {
    "chinese": "你好 世界 人类 语言 水 房子 今天 书 大 小 城市 时间 生活 词 和 中文 文本 测试 我们 不是",
    "japanese": "こんにちは 世界 人間 言語 水 家 今日 本 大きい 小さい 都市 時間 テキスト 日本語 の を は です ました",
    "thai": "สวัสดี โลก มนุษย์ ภาษา น้ำ บ้าน วันนี้ หนังสือ ใหญ่ เล็ก เมือง เวลา ชีวิต คำ และ ไม่ ที่",
}  # fmt: skip

_CODE = "def return if else for while import from class None True self int str void const let function var new "
_CODE += "= == != += -> => := && || ++ -- ** // /* */ <= >= << >> :: ?. # ; , ( ) [ ] { } < > @ $ % ^ & | ~ ` \\"
_SPACES = [" ", "  ", "   ", "    ", "        ", "\t", "\t\t", "\n", "\n\n", "\r\n", "\r", "\u00a0", "\u2003", "\u3000"]
_SPACES += ["\x0b", "\x0c", "\x85", "\u2028", " \n", "\n ", "\t ", " \r\n\r\n ", " " * 17]
_CONTRACTIONS = ["s", "t", "re", "ve", "m", "ll", "d", "S", "T", "RE", "Ve", "M", "LL", "D", "\u017f", "x", "", "tt"]
_DIGITS = ["0123456789", "0123456789", "٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "０１２３４５", "²³¹½Ⅷ①"]
_SYMBOLS = "!?.,;:-_/\\'\"()[]{}<>@#$%^&*+=|~`…—«»„“”’‘¿¡€£§°±×÷→≠≤√∑🎉👍🏽👩\u200d👧🇫🇷☃\ufe0f\u0301\u0308"
_SYMBOLS += "\u0903\u200b\u00ad\ufeff"
_CLASSES = "aBéßÅǅʰאक中あ\U00010400\u0301\u09031٣²Ⅷ \t\n\r\u00a0'\u2019-/_.s\u212a"
#: Every code point that a text may have, but U+2581, which several tokenizers read as a space.
_SCALARS = [chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000 and point != 0x2581]

Draw = Callable[[random.Random], str]


def _joined(pieces: Sequence[str | Draw], most: int, after: Sequence[str] = ("",)) -> Draw:
    """One to `most` of the pieces, each with something of `after` behind it."""

    def draw(drawn: random.Random) -> str:
        parts = []
        for _ in range(drawn.randint(1, most)):
            piece = drawn.choice(pieces)
            parts += [piece if isinstance(piece, str) else piece(drawn), drawn.choice(after)]
        return "".join(parts)

    return draw


def _word(drawn: random.Random, language: str = "english") -> str:
    """A word as it is, in another case, or the beginning of one with the end of another."""
    words = WORDS[language].split()
    word, way = drawn.choice(words), drawn.random()
    if way < 0.45:
        other = drawn.choice(words)
        word = word[: drawn.randint(1, len(word))] + other[drawn.randint(0, len(other) - 1) :]
    return drawn.choice([str.capitalize, str.upper, str.title])(word) if way > 0.8 else word


def _prose(drawn: random.Random) -> str:
    language = drawn.choice(["english", "english", "english", *WORDS])
    marks = [" "] * 6 + [", ", ". ", "; ", "-", "? ", " \u2013 ", ".\n", '" ', " (", ""]
    return _joined([lambda drawn: _word(drawn, language)], 12, marks)(drawn)


def _contracted(drawn: random.Random) -> str:
    word = drawn.choice([_word(drawn), "I", "1", "é", ""])
    return drawn.choice([" ", "", " "]) + word + drawn.choice("''''\u2019\u2018`") + drawn.choice(_CONTRACTIONS)


def _digits(drawn: random.Random) -> str:
    return "".join(drawn.choices(drawn.choice(_DIGITS), k=drawn.randint(1, 9)))


def _name(drawn: random.Random) -> str:
    parts = [_word(drawn) for _ in range(drawn.randint(1, 3))]
    joined = drawn.choice(["_".join(parts), "".join(part.capitalize() for part in parts), "-".join(parts)])
    return joined + drawn.choice(["", "", "", str(drawn.randint(0, 300))])


def _json(drawn: random.Random) -> str:
    def value(depth: int) -> object:
        way = drawn.randint(0, 7 if depth else 5)
        if way < 2:
            return drawn.choice([drawn.randint(-999, 99_999), round(drawn.uniform(-9, 999), 3), None, True, False])
        if way < 6:
            return drawn.choice([_name, _digits, _prose])(drawn)
        if way == 6:
            return [value(depth - 1) for _ in range(drawn.randint(0, 4))]
        return {_name(drawn): value(depth - 1) for _ in range(drawn.randint(0, 3))}

    layout = drawn.choice([{}, {"indent": 2}, {"indent": 4}, {"separators": (",", ":")}])
    return json.dumps({_name(drawn): value(2)}, ensure_ascii=drawn.random() < 0.2, **layout)  # type: ignore[arg-type]


def _address(drawn: random.Random) -> str:
    host, path = (between.join(_name(drawn) for _ in range(drawn.randint(1, 3))) for between in "./")
    url = f"https://{host.lower()}/{path}?{_name(drawn)}={drawn.randint(0, 99)}#x"
    return drawn.choice([url, f"{path}@{host}", f'<a href="{path}">'])


#: Kind -> its generator; "mixed" texts are two or three of these, one after the other.
KINDS: dict[str, Draw] = {
    "prose": _prose,
    "unspaced scripts": _joined(" ".join(UNSPACED.values()).split(), 10, ["", "", "", "、", "。", " "]),
    "code": _joined([*[_name] * 20, *_CODE.split()], 24, [" ", " ", "", "\n", "\n    ", "\n\t", "\r\n"]),
    "JSON": _json,
    "white space": _joined(_SPACES, 8, ["", "", "a", "1", ".", "'s", "the", "é", "\u0301", "//"]),
    "contractions": _joined([_contracted], 6),
    "digits": _joined([_digits], 6, [" ", "", ".", ",", "-", ":", "  ", "   ", "e", "x", "%", "\n"]),
    "symbols": _joined([one * times for one in _SYMBOLS for times in (1, 1, 2, 5)], 15, ["", "", " ", "a", "\n"]),
    "addresses": _address,
    "character classes": _joined(_CLASSES, 25),
    "all of Unicode": _joined(_SCALARS, 8),
    "low Unicode": _joined(_SCALARS[:0x2581], 12),
}
MIXED = "mixed"


def draw_texts(seed: int, longest: int = 120) -> Iterator[tuple[str, str]]:
    """(kind, text) without end, the same for the same seed; no text is empty or has more than `longest` characters.

    The character U+2581 never occurs. About 30 us a text.
    """
    drawn = random.Random(seed)
    kinds = [*KINDS, MIXED, MIXED, MIXED]
    while True:
        kind = drawn.choice(kinds)
        parts = [kind] if kind != MIXED else drawn.choices(list(KINDS), k=drawn.randint(2, 3))
        text = "".join(KINDS[part](drawn) for part in parts)
        begin = drawn.randint(0, max(0, len(text) - longest))
        if text:
            yield kind, text[begin : begin + longest]
