"""The prompts of experiments/inputs/choice_prompts.yaml and skew_regexes.yaml, checked as the experiments use them.

Their conventions (no choice begins another, prompts end on a token) are what makes the measured skew one of the
constraint, not of a badly cut prompt.
"""

import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from tests.packages import needs_smollm2
from tokdfa.constraint import Regex
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import load_tokenizer

INPUTS = Path(__file__).parents[1] / "experiments" / "inputs"
CHOICE_SOURCE = (INPUTS / "choice_prompts.yaml").read_text()
QUESTIONS = yaml.safe_load(CHOICE_SOURCE)
REGEX_SOURCE = (INPUTS / "skew_regexes.yaml").read_text()
LANGUAGES = {entry["label"]: entry for entry in yaml.safe_load(REGEX_SOURCE)}
TOKENIZERS = ["mistral-v1", "tekken", "llama3", pytest.param("smollm2", marks=needs_smollm2)]

#: label of a language -> texts that are in it, and texts that are nearly.
TEXTS = {
    "date_iso": ([" 1906-12-09", " 2000-01-31"], [" 1906-13-09", "1906-12-09"]),
    "date_us": ([" February 12, 1809", " May 1, 1999"], [" Feb 12, 1809", " May 01, 1999"]),
    "date_german": ([" 28. August 1749", " 1. März 1999"], [" 28. August", " 32. Mai 1749"]),
    "time_of_day": ([" 11:55 pm", " 9:05 am"], [" 13:00 pm", " 9:60 am"]),
    "price": ([" $7.25", " €0.99", " £120.00"], [" $7.2", " €00.99"]),
    "version": ([" 2.3.9\n", " 10.0.0-rc.1\n"], [" 2.3\n", " 02.3.9\n"]),
    "phone_us": ([" (212) 555-0199"], [" 212 555-0199", " (112) 555-0199"]),
    "isbn": ([" 978-1-402-89462-6"], [" 977-1-402-89462-6", " 978-1-402-89462"]),
    "coordinates": ([" 40.7128, -74.0060", " -8.0000, 179.9999"], [" 40.71, -74.0060", " 40.7128, 274.0060"]),
    "colour_hex": ([" #FFA500;", " #ffa500;"], [" #fFA500;", " #FFA50;"]),
    "ipv4": ([" (192.168.1.20)", " (0.0.0.255)"], [" (192.168.1.256)", " (192.168.1)"]),
    "email": (
        [" maria.garcia@example.com\n", " m_g-1@mail.uni.de\n"],
        [" maria@example\n", " maria@example.com"],
    ),
    "url": ([" https://www.example.com/bread/old-recipes\n", " http://bread.co.uk/\n"], [" ftp://bread.org\n"]),
    "slug": ([" ten-tips-for-better-sleep\n", " tips\n"], [" ten--tips\n", " Ten-Tips\n"]),
    "identifier_snake": ([" find_average(numbers):", " mean(a, b):"], [" find_average():", " _mean(a):"]),
    "function_call": ([" min(3, 8, 5)\n", " len('good bread')\n"], [" min()\n", ' len("bread")\n']),
    "json_person": ([' {"name": "Alice", "age": 34}', ' {"name": "Zoë", "age": 0}'], [' {"name": "", "age": 34}']),
    "json_tool_call": (
        [' {"name": "get_weather", "arguments": {"city": "Madrid", "days": 3}}'],
        [' {"name": "get_rain", "arguments": {"city": "Madrid"}}'],
    ),
    "json_tags": ([' ["travel", "summer holidays"]', ' ["spain"]'], [" []", ' ["Spain"]']),
    "yaml_book": (
        ["author: Charles Dickens\nyear: 1861\n", "author: Herbert G. Wells\nyear: 1895\n"],
        ["author: Charles Dickens\n", "author: charles\nyear: 1861\n"],
    ),
    "full_name": ([" Anna Thompson.", " Mary J. Smith-Jones."], [" Anna.", " anna Thompson."]),
    "sentence": ([" The snow was deep, and it hadn't stopped."], [" Snow was deep.", " The snow"]),
}


def test_no_choice_begins_another():
    for entry in QUESTIONS:
        # In sorted order, a text that begins another one begins the next one too.
        texts = sorted(choice.encode() for choice in entry["choices"])
        assert [(a, b) for a, b in pairwise(texts) if b.startswith(a)] == [], entry["label"]


def test_blanks_are_on_one_side_of_the_border():
    for entry in QUESTIONS:
        assert not entry["prompt"].endswith((" ", "\t")), entry["label"]
        firsts = {choice[0].isspace() for choice in entry["choices"]}
        assert len(firsts) == 1, entry["label"]
        assert not (entry["prompt"][-1].isspace() and True in firsts), entry["label"]
    for entry in LANGUAGES.values():
        assert not entry["prompt"].endswith((" ", "\t")), entry["label"]
        assert entry["prompt"].endswith("\n") != entry["regex"].startswith("\\ "), entry["label"]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokens_of_a_prompt_begin_those_of_the_whole(name):
    tokenizer = load_tokenizer(name)
    continued = [(entry["label"], entry["prompt"], entry["choices"]) for entry in QUESTIONS]
    continued += [(label, entry["prompt"], TEXTS[label][0]) for label, entry in LANGUAGES.items()]
    for label, prompt, texts in continued:
        tokens = list(tokenizer.encode(prompt))
        assert 1 <= len(tokens) <= 200, label
        for text in texts:
            assert list(tokenizer.encode(prompt + text))[: len(tokens)] == tokens, (label, text)


@pytest.mark.parametrize("label", LANGUAGES)
def test_language_has_the_texts_meant(label):
    accepted, refused = TEXTS[label]
    language = compile_dfa(Regex(LANGUAGES[label]["regex"]))
    pattern = re.compile(LANGUAGES[label]["regex"])
    for text in [*accepted, *refused]:
        assert language.accepts(text.encode()) is (text in accepted), text
        assert bool(pattern.fullmatch(text)) is (text in accepted), text
