from __future__ import annotations

import base64
import datetime
import json
import random
import re
import unicodedata
import warnings
from typing import TYPE_CHECKING

import idna
import pytest
from jsonschema import Draft202012Validator

from tests.json_schema.spellings import random_text, respell
from tests.strategies import short_texts
from tokdfa.errors import UnknownNameError, UnsupportedConstraint
from tokdfa.json_schema.sets.formats import FORMATS, find_format, outside_of
from tokdfa.json_schema.sets.patterns import parse_pattern
from tokdfa.json_schema.sets.string_set import StringSet, string_automaton
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.lower import lower

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKER = Draft202012Validator.FORMAT_CHECKER
#: Formats that are equal to what the checker accepts.
EXACT = ("date", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer")
#: What mutations put in.
LETTERS = [*'0123456789abfzTZ:.-+/@[]%#{}~,;*?!"\\ \n_', "é", "²", "٣", "ſ", "\x85", "\u212a", "。", "😀"]


def is_valid(name: str, text: str) -> bool:
    with warnings.catch_warnings():  # `re` warns of sets in sets
        warnings.simplefilter("ignore", FutureWarning)
        return CHECKER.conforms(text, name)


def decoded_dfa(name: str) -> LazyDfa:
    store = ExpressionStore()
    return LazyDfa(store, lower(parse_pattern(find_format(name).pattern), store, search=True))


def mutate(text: str, rng: random.Random) -> str:
    letters = list(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        place = rng.randrange(len(letters) + 1)
        letters[place : place + rng.randrange(2)] = rng.choice(([], [rng.choice(LETTERS + letters)]))
    return "".join(letters)


def candidates(name: str, count: int, seed: int) -> set[str]:
    """Random texts of a format, and others that are near them."""
    rng, found = random.Random(seed), set()
    dfa = decoded_dfa(name)
    for _ in range(count):
        text = random_text(dfa, rng, longest=120)
        if text is not None:
            found |= {text.decode(), mutate(text.decode(), rng), mutate(text.decode(), rng)}
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_is_accepted_that_the_checker_refuses(name: str) -> None:
    strings = StringSet(formats=(name,))
    ours = theirs = 0
    for text in candidates(name, 30 if name.startswith("iri") else 100, seed=1):
        holds, valid = strings.holds(text), is_valid(name, text)
        assert valid or not holds, text
        if name in EXACT:
            assert holds == valid, text
        ours, theirs = ours + holds, theirs + (not valid)
    assert ours > 20
    assert theirs > 5 or "email" in name


@pytest.mark.parametrize("name", [name for name in FORMATS if FORMATS[name].outside is not None])
def test_the_negation_refuses_all_that_the_checker_accepts(name: str) -> None:
    negated = StringSet(not_formats=(name,))
    refused = 0
    for text in candidates(name, 20 if name.startswith("iri") else 80, seed=2) | set(OTHERS.get(name, [])):
        holds = negated.holds(text)
        assert not (holds and is_valid(name, text)), text
        refused += not holds
    assert refused > 15
    assert negated.holds("{ \n")


#: Texts that the checker accepts and the standard does not have.
OTHERS = {
    "time": ["01:02:03Z\n"],
    "date-time": ["2024-02-29t01:02:03z\n"],
    "duration": ["P1Y2D", "PT0.5S", "-P1D", "P1,5Y", "P1e3D"],
    "email": ["@", "a@b@c", "ä@ö"],
    "idn-email": ["@", "a@b@c"],
    "hostname": ["a.", "a.b\n", "٣", "ſ", "\u212a.b"],
    "uri": ["http://[::01.02.3.4]/", "a:\n"],
    "uri-reference": ["//[::01.02.3.4]", "\n"],
    "uuid": ["2eb8aa08-aa98-11ea-b4aa-73b441d1638\n", "2eb8aa_8-aa98-11ea-b4aa-73b441d16380"],
    "uri-template": ["<a b>", "{a=1}", "{,a}", "{a[]}", "%"],
    "relative-json-pointer": ["٣", "٣/a"],
}


@pytest.mark.parametrize(
    ("name", "valid", "invalid"),
    [
        ("date", ["2024-02-29", "0001-01-01", "9999-12-31"], ["2023-02-29", "0000-01-01", "2024-4-01", "1900-02-29"]),
        ("time", ["08:30:06Z", "23:59:59.123z", "00:00:00+23:59"], ["24:00:00Z", "08:30:06", "08:30:60Z", "8:30:06Z"]),
        ("date-time", ["1963-06-19t08:30:06.283185z", "1985-04-12T23:20:50.52-08:00"],
         ["1990-02-31T15:59:59.123-08:00", "1963-06-19 08:30:06Z", "2013-350T01:01:01", "1998-12-31T23:59:60Z"]),
        ("duration", ["P4DT12H30M5S", "P4Y", "PT0S", "P2W", "P1M", "PT36H", "P1DT12H"],
         ["PT1D", "4DT12H", "P", "P1YT", "PT", "P1", "P1Y2W", "P2D1Y", "P2S", "P1Y2D", "P٣Y"]),
        ("email", ["joe.bloggs@example.com", "te~st@example.com", '"joe bloggs"@example.com', "j@[127.0.0.1]",
                   "j@[IPv6:::1]", "a@b", '"\\""@b'],
         ["2962", ".test@example.com", "te..st@example.com", "j@inv=alid.com", "j@[127.0.0.300]", "a@b c", "a@", "@b"]),
        ("idn-email", ["실례@실례.테스트", "a@b.example", "ä@münchen.de"], ["2962", "ä@", "ä..b@c"]),
        ("hostname", ["www.example.com", "xn--4gbwdl.xn--wgbh1c", "1.2", "a" * 63, "a-b--c", "A.b"],
         ["-a", "a-", "a_b", "a" * 64, "", ".", "a..b", "a.", "ä", ".".join(["a" * 61] * 5)]),
        ("idn-hostname", ["실례.테스트", "例え.jp", "münchen.de", "straße", "שלום", "www.example.com", "a。b", "l·l",
                          "α͵β", "א׳ב", "ァ・ァ", "・ぁ", "ب٠ب", "۰0", "क्\u200dष", "بي\u200cبي", "a1.שלום"],
         ["-ä", "ä-", "a_b", "a--ä", "xn--X", "\u302e실", "a..ä", "ab--c", "한" * 40, "שa", "1a.שלום", "a·l", "α͵a",
          "׳ב", "・a", "ب٠۰", "क\u200dष", "ب\u200cא", "שלום.1"]),
        ("ipv4", ["0.0.0.0", "192.168.0.255"], ["1.2.3", "1.2.3.256", "01.2.3.4", "1.2.3.4.5", "1.2.3.4\n", "२.0.0.1"]),
        ("ipv6", ["::", "::1", "1::", "1:2:3:4:5:6:7:8", "::ffff:192.168.0.1", "1:2::192.168.0.1", "1:2:3:4:5:6:7::"],
         ["12345::", ":2:3:4:5:6:7:8", "1::2::3", "1:2:3:4:5:6:7", "fe80::a%eth1", "::1/64", "1:2:3:4:5:6:7:8::",
          "1:2:3:4:1.2.3", "::1.2.3.04"]),
        ("uri", ["http://foo.bar/?baz=qux#quux", "urn:isbn:0451450523", "mailto:a@b", "ldap://[2001:db8::7]/c=GB?one",
                 "tel:+1-816-555-1212", "http://x:y@h:80", "a:", "http://[v1.x]/", "file:///etc"],
         ["//foo.bar", "/abc", "\\\\WINDOWS\\f", "abc", "http:// shouldfail.com", "bar,baz:", "1a:b", "a:%4",
          "http://[::1", "a:#b#c", "a:[", "a:\u00e9"]),
        ("uri-reference", ["", "abc", "/a/b", "//h/p?q#f", "#x", "?y", "http://a"], ["\\\\W", "[b", "1:a", "#\\", "é"]),
        ("iri", ["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "http://a/é"], ["/abc", "http:// x", "a:\ue000", "http://[::1]"]),
        ("iri-reference", ["âππ", "//ƒøø.ßår/", "#ƒrägmênt"], ["\\\\WINDOWS\\filëßåré", "#ƒräg\\mênt"]),
        ("uuid", ["2EB8AA08-AA98-11EA-B4AA-73B441D16380", "00000000-0000-0000-0000-000000000000"],
         ["2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08aa9811eab4aa73b441d16380",
          "2eb8aa08-aa98-11ea-b4ga-73b441d16380"]),
        ("uri-template", ["http://x/{term:1}/{+a,b*}{?q}", "", "{#x.y}", "%20", "é"],
         ["http://x/{term:1", "{}", "{a b}", "a b", "{=x}", "{a:0}", "%2"]),
        ("json-pointer", ["", "/", "/foo/bar~0/baz~1/%a", "/é\n"], ["a", "/~", "/~2", "/a~", "#"]),
        ("relative-json-pointer", ["1", "0/foo", "2/0/~1", "0#", "120"], ["/a", "01", "-1/x", "+1", "0##", "1a", ""]),
        ("regex", ["^[a-z0-9-]+$", "([abc])+\\s+$", "(?:a|b(?=c)){2,10}?", "\\d{3}-\\u00e9[^\\w.]*", "", "x{1,2}|"],
         ["^(abc]", "a**", "*a", "[z-a]", "a{2,1}", "(", "\\", "(?<a", "\\Z", "[a"]),
    ],
)  # fmt: skip
def test_examples(name: str, valid: list[str], invalid: list[str]) -> None:
    strings, rng = StringSet(formats=(name,)), random.Random(name)
    dfa = string_automaton(strings)
    for text in valid:
        assert strings.holds(text), text
        assert is_valid(name, text), text
        assert dfa.accepts(respell(text, rng))
    for text in invalid:
        assert not strings.holds(text), text
        assert not dfa.accepts(respell(text, rng))


def test_dates_are_the_days_of_the_calendar() -> None:
    strings, digits = StringSet(formats=("date",)), "2024-{:02}-{:02}"
    day = datetime.date(1, 1, 1)
    real = {(day + datetime.timedelta(k)).isoformat() for k in random.Random(5).sample(range(3_652_059), 400)}
    assert all(map(strings.holds, real))
    for year in (*range(1, 10_000, 97), 1600, 1900, 2000, 2024, 2100, 400, 4):
        is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        assert strings.holds(f"{year:04}-02-29") == is_leap, year
    for month in range(14):
        for number in range(33):
            text = digits.format(month, number)
            try:
                datetime.date.fromisoformat(text)
            except ValueError:
                assert not strings.holds(text), text
            else:
                assert strings.holds(text), text


def test_international_names_keep_the_rules_of_labels() -> None:
    """Random names, by the package idna; in those with a label from right to left, each label has a direction."""
    dfa, rng, both = decoded_dfa("idn-hostname"), random.Random(3), 0
    for _ in range(400):
        text = random_text(dfa, rng, longest=rng.choice((20, 60, 200)))
        if text is not None:
            assert len(idna.encode(text.decode())) <= 253
            labels = re.split("[.\u3002\uff0e\uff61]", text.decode())
            if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text.decode()):
                assert all(idna.check_bidi(label, check_ltr=True) for label in labels)
                both += len(labels) > 1
    assert both > 20


def test_letters_of_international_labels_are_valid_everywhere() -> None:
    """Each letter is valid, keeps NFC beside every other, and no label of the greatest length is too long."""
    sets = re.findall(r"(\[[^\[\]]*\\u[^\[\]]*\])\{0,(8|13)\}", FORMATS["idn-hostname"].pattern)
    assert len(set(sets)) >= 4
    for text, count in set(sets):
        members = [chr(point) for point in range(0x80, 0x10000) if re.fullmatch(text, chr(point))]
        lead, longest, rng = "\u05d0" if "\\u05d0" in text else "a", int(count), random.Random(text)
        for member in members:
            assert idna.alabel(lead + member)
        for _ in range(1_000):
            few = rng.choices(members, k=rng.choice((1, 2, 3, longest)))
            label = lead + "".join(rng.choice(few) for _ in range(longest))
            assert len(idna.alabel(label)) <= 60
        for first, last in ((members[0], members[-1]), (members[-1], members[0])):
            for cut in range(longest + 1):
                assert len(idna.alabel(lead + first * cut + last * (longest - cut))) <= 60


def test_the_checkers_names_are_asserted_whatever_the_draft() -> None:
    assert set(FORMATS) == set(CHECKER.checkers)


def _is_base64(text: str) -> bool:
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode() == text
    except ValueError:
        return False


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return False
    return True


@pytest.mark.parametrize(
    ("name", "is_valid", "letters"),
    [("base64", _is_base64, "AQZgw+/=% "), ("application/json", _is_json, '[]{}:,"\\u0a1.-e \n')],
)
def test_contents_are_those_of_the_standard_library(name: str, is_valid: Callable[[str], bool], letters: str) -> None:
    """All texts of up to three letters, and longer ones that are in it or near it."""
    strings, rng = StringSet(formats=(name,)), random.Random(name)
    found = set(short_texts(3, letters))
    for _ in range(100):
        text = random_text(decoded_dfa(name), rng, longest=80)
        found |= set() if text is None else {text.decode(), mutate(text.decode(), rng)}
    assert {text for text in found if strings.holds(text)} == {text for text in found if is_valid(text)}
    assert sum(map(is_valid, found)) > 50


def test_negated_contents() -> None:
    negated = StringSet(not_formats=("base64",))
    assert [text for text in ("", "QQ==", "QR==", "Q Q\n==", "QQ", "%") if negated.holds(text)] == ["%"]
    with pytest.raises(UnsupportedConstraint, match="application/json"):
        outside_of("application/json")


def test_no_text_is_in_a_format_and_in_its_negation() -> None:
    for name, form in FORMATS.items():
        if form.outside is not None and not form.large:
            assert StringSet(formats=(name,), not_formats=(name,)).is_empty(), name
        assert (form.outside == form.pattern) == (name in EXACT)


def test_unknown_names_and_negations() -> None:
    with pytest.raises(UnknownNameError, match="date-time"):
        StringSet(formats=("datetime",)).holds("x")
    for name in ("regex", "idn-hostname"):
        with pytest.raises(UnsupportedConstraint, match=name):
            outside_of(name)
        with pytest.raises(UnsupportedConstraint, match=name):
            StringSet(not_formats=(name,)).is_empty()
