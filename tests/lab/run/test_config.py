"""Loading experiments: what is filled in, and what is refused, with its place."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tokdfa.backends.base import BUDGET_OPTIONS
from tokdfa.errors import ConfigError
from tokdfa.lab import kinds
from tokdfa.lab.config.expand import expand
from tokdfa.lab.config.resolve import load_config

#: The options that every backend has.
BUDGETS = {option.name: option.default for option in BUDGET_OPTIONS}

BASE = """
name: demo
tokenizers: [bytes]
constraints:
  - {label: ab, regex: 'a|b'}
backends:
  - fake
"""


def load(tmp_path, text, name="e.yaml"):
    path = tmp_path / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return load_config(path)


def loads_again(tmp_path, config):
    again = load(tmp_path, config.to_yaml(), "resolved.yaml")
    assert again.model_dump() == config.model_dump()
    assert again.fingerprint == config.fingerprint
    assert [item.item_id for item in expand(again)] == [item.item_id for item in expand(config)]


def labels(config):
    return [entry.label for entry in config.backends]


FULL = """
name: full
question: "ist es schnell? äöü"
tokenizers: [bytes]
constraints:
  - {label: 'no', regex: '\\d+', search: true, ascii_classes: true, flags: im}
  - {choice: ["yes", "no"]}
  - {label: g, grammar: 'start: "a"', start: start}
  - {label: j, json_schema: {type: object, properties: {a: {const: null}}}}
  - {file: more.yaml, only: [two, one], texts_file: of_label.yaml}
  - {function_calls: 2, whitespace: compact}
known:
  - {regex: 'k+', texts: [k]}
backends:
  - fake
  - {name: fake, label: odd, options: {tag: [1, 2], how: [honest, wide], where: mask}}
  - {name: fake_peer, options: {tag: 3}}
reference: odd tag=1 how=wide
workloads:
  - {kind: random_walk, walks: 2, steps: 3}
  - {kind: strings, texts: ["a", "ä"]}
  - {kind: strings, label: from file, file: texts.yaml}
  - {kind: random_walk}
measures: [mask, compile]
repeats: 2
seed: 9
limits: {seconds: 5, memory_mb: 100.5}
"""


def load_full(tmp_path, text=FULL):
    (tmp_path / "more.yaml").write_text("- {label: one, regex: '1'}\n- {label: two, regex: '2'}\n- {regex: '3'}\n")
    (tmp_path / "texts.yaml").write_text("- one\n- 'two'\n")
    (tmp_path / "of_label.yaml").write_text("two: ['2']\nthree: ['3']\n")
    return load(tmp_path, text)


def test_grids_files_and_labels_are_spelled_out(tmp_path):
    config = load_full(tmp_path)
    assert labels(config) == [
        *("fake", "odd tag=1 how=honest", "odd tag=1 how=wide", "odd tag=2 how=honest", "odd tag=2 how=wide"),
        "fake_peer tag=3",
    ]
    assert config.backends[2].options == {"how": "wide", "where": "mask", "tag": 1, **BUDGETS}
    assert [entry.label for entry in config.constraints[:-2]] == ["no", "yes | no", "g", "j", "two", "one"]
    assert [entry.texts for entry in config.constraints[4:6]] == [["2"], []]
    assert [(entry.whitespace, len(entry.texts)) for entry in config.constraints[-2:]] == [("compact", 3)] * 2
    assert [(entry.regex, entry.texts) for entry in config.known] == [("k+", ["k"])]
    assert [entry.build().kind for entry in config.constraints][:4] == ["regex", "choice", "grammar", "json_schema"]
    assert config.constraints[0].build().ascii_classes
    assert config.constraints[4].regex == "2"
    assert [workload.label for workload in config.workloads] == [
        *("random_walk 2x3", "strings 2", "from file", "random_walk 5x40"),
    ]
    assert config.workloads[2].texts == ["one", "two"]
    assert config.measures == ["compile", "mask"]  # in their own order


def test_the_resolved_experiment_loads_to_an_equal_one(tmp_path):
    config = load_full(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    loads_again(tmp_path / "elsewhere", config)


def test_a_config_is_one_experiment_whatever_its_wording(tmp_path):
    first = load(tmp_path, BASE)
    spelled = """
    # the same, in other words
    backends: [{name: fake, options: {how: honest}, label: fake}]
    reference: fake
    seed: 0
    question: another wording of the question
    constraints: [{regex: "a|b", label: ab, search: no}]
    tokenizers: ["bytes"]
    name: demo
    """
    second = load(tmp_path, spelled)
    assert second.fingerprint == first.fingerprint
    assert second.folder_name == f"demo-{first.fingerprint}"
    assert len(first.fingerprint) == 10


@pytest.mark.parametrize(
    "change",
    [
        ("name: demo", "name: demo2"),
        ("a|b", "a|c"),
        ("label: ab", "label: abc"),
        ("- fake", "- fake_peer"),
        ("- fake", "- {name: fake, label: fake, options: {tag: 1}}"),
        ("name: demo", "name: demo\nseed: 1"),
        ("name: demo", "name: demo\nrepeats: 6"),
        ("name: demo", "name: demo\nlimits: {seconds: 61}"),
        ("name: demo", "name: demo\nmeasures: [mask]"),
        ("name: demo", "name: demo\nworkloads: [{kind: random_walk, walks: 3}]"),
    ],
)
def test_whatever_can_change_a_number_changes_the_folder_and_the_items(tmp_path, change):
    first, second = load(tmp_path, BASE), load(tmp_path, BASE.replace(*change))
    assert first.folder_name != second.folder_name
    assert not {item.item_id for item in expand(first)} & {item.item_id for item in expand(second)}


ERRORS = [
    # (what to replace, by what, key path, message)
    ("name: demo", "nam: demo", "nam", "no key 'nam'; did you mean 'name'?"),
    ("name: demo", "name: yes", "name", "input should be a valid string, not True; YAML reads yes"),
    ("name: demo", "name: demo\nkind: backend", "kind", "did you mean 'backends'?"),
    ("name: demo", "name: demo\nsettings: {a: 1}", "settings", "there is no setting 'a'"),
    ("name: demo", "name: demo\nreference: fak", "reference", "no backend label 'fak'; did you mean 'fake'?"),
    ("[bytes]", "[hf:/nowhere/tokenizer.json]", "tokenizers[0]", "there is no such file"),
    ("regex: 'a|b'", "regex: a, choice: [b]", "constraints[0]", "this one has regex and choice"),
    ("regex: 'a|b'", "choice: [a], flags: i", "constraints[0].flags", "flags does not go with choice"),
    ("regex: 'a|b'", "choice: [yes, no]", "constraints[0].choice[0]", "not True; YAML reads yes"),
    ("regex: 'a|b'", "regex: 'a(b'", "constraints[0].regex", "position 1"),
    ("{label: ab, regex: 'a|b'}", "{file: x.yaml}", "constraints[0].file", "there is no file"),
    ("{label: ab, regex: 'a|b'}", "{regex: 'a{n}', n: [2, 0]}", "constraints[0].n[1]", "a size is expected, not 0"),
    (
        "{label: ab, regex: 'a|b'}",
        "{choice: [a], n: [2]}",
        "constraints[0].n",
        "n is for a regex, a grammar or a JSON schema",
    ),
    (
        *("{label: ab, regex: 'a|b'}", "{regex: a, tokenizers: [bytes, 'byte?first=300']}"),
        *("constraints[0].tokenizers[1]", "did you mean 'bytes'"),
    ),
    ("{label: ab, regex: 'a|b'}", "{label: ab, regex: a}\n  - {label: ab, regex: b}", "constraints[1]", "given twice"),
    ("- fake", "", "backends", "needs backends"),
    ("- fake", "- fake\n  - fake_peer\n  - {name: fake, options: {hwo: wide}}", "backends[2].options.hwo", "'how'"),
    ("- fake", "- {name: fake, options: {tag: [1, x]}}", "backends[0].options.tag", "takes a whole number, not 'x'"),
    ("- fake", "- fake\n  - {name: fake, label: twin}", "backends[1]", "same backend with the same options"),
    ("- fake", f"- {{name: fake, options: {{tag: {list(range(1001))}}}}}", "backends[0].options", "more than 1000"),
    ("- fake", "- fake\nworkloads: [{kind: strings, file: x, texts: [a]}]", "workloads[0]", "either texts or a file"),
    ("constraints:", "constraint:", "constraint", "no key 'constraint'; did you mean 'constraints'"),
    ("backends:", "backend:", "backend", "no key 'backend'; did you mean 'backends'"),
    ("- fake", "- fake\nworkloads: [{kind: foo}]", "workloads[0]", "no kind 'foo'; known: random_walk, strings, texts"),
    ("- fake", "- fake\nworkloads: [{walks: 2}]", "workloads[0]", "key 'kind' is missing"),
    ("regex: 'a|b'", "grammar: missing.lark", "constraints[0].grammar", "name of a file: write grammar_file"),
    ("regex: 'a|b'", "json_schema: in/a.json", "constraints[0].json_schema", "name of a file: write schema_file"),
    ("- fake", "- fake\nworkloads: [{kind: texts}]", "workloads[0]", "constraint 'ab' has no texts"),
    ("regex: 'a|b'", "grammar: 'start: \"a\"', grammar_file: x", "constraints[0].grammar_file", "either grammar or"),
]


@pytest.mark.parametrize(("old", "new", "where", "said"), ERRORS)
def test_mistakes_are_named_with_their_place(tmp_path, old, new, where, said):
    assert old in BASE
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, BASE.replace(old, new))
    error = caught.value
    assert said in str(error)
    assert error.where == where
    assert error.path.startswith(str(tmp_path / "e.yaml"))
    if where and where.split("[")[0].split(".")[0] in BASE.replace(old, new):
        assert error.path != str(tmp_path / "e.yaml")  # it names the line


ONE = "- {label: one, regex: '1'}\n"


@pytest.mark.parametrize(
    ("content", "entry", "said"),
    [
        (f"{ONE}- label: two\n  regex: '(('\n", "{file: more.yaml}", r"more\.yaml:3: \[1\]\.regex: "),
        (ONE + ONE, "{file: more.yaml}", r"more\.yaml:2: \[1\]: constraint label 'one' is given twice"),
        (ONE, "{file: more.yaml, only: [ona]}", r"constraints\[0\]\.only\[0\]"),
        (
            "accepted: [a, 1]",
            "{label: a, regex: a, texts_file: more.yaml}",
            r"yaml:1: accepted\[1\]: a text is exp.* 1",
        ),
        ("[]", "{label: a, regex: a, texts_file: more.yaml}", r"more\.yaml has no texts"),
        ('{"schema": 3, "tests": []}', "{schema_file: more.yaml}", r"more\.yaml"),
    ],
)
def test_a_mistake_in_another_file_is_named_with_its_place(tmp_path, content, entry, said):
    (tmp_path / "more.yaml").write_text(content)
    with pytest.raises(ConfigError, match=said):
        load(tmp_path, BASE.replace("{label: ab, regex: 'a|b'}", entry))


def test_a_grammar_may_be_a_file_and_have_texts(tmp_path):
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "word.lark").write_text('start: "ü"\n', encoding="utf-8")
    (tmp_path / "inputs" / "word.yaml").write_text("accepted: [ü]\nrefused: [u]\n", encoding="utf-8")
    entry = "{grammar_file: inputs/word.lark, texts_file: inputs/word.yaml}"
    text = BASE.replace("{label: ab, regex: 'a|b'}", f"{entry}\n  - {{label: ab, regex: 'a|b', texts: [a, b]}}")
    config = load(tmp_path, text + "workloads: [{kind: random_walk}, {kind: texts}]\n")
    word, ab = config.constraints
    assert (word.label, word.grammar, word.texts) == ("word", 'start: "ü"\n', ["ü"])
    assert word.build().text == word.grammar
    assert word.key() == word.model_copy(update={"texts": ["v"], "label": "v"}).key()
    assert (ab.label, ab.texts) == ("ab", ["a", "b"])
    shown = {(item.constraint.label, item.workload.label): item.workload for item in expand(config)}
    assert shown["word", "texts"].texts == ["ü"]
    assert shown["ab", "texts"].texts == ["a", "b"]
    assert shown["ab", "random_walk 5x40"].kind == "random_walk"
    loads_again(tmp_path, config)


CASE = '{"schema": {"enum": [1e1, "a"]}, "tests": [{"valid": true, "data": 1e1}, {"valid": false, "data": {"b": 2}}]}'


def test_a_schema_may_be_a_file_with_its_valid_instances(tmp_path):
    (tmp_path / "case.json").write_text(CASE)
    (tmp_path / "plain.json").write_text('{"type": "null"}')
    (tmp_path / "texts.yaml").write_text("['\"a\"']")
    entries = """
  - {schema_file: case.json, whitespace: compact, duplicates: refused, max_nesting: 3}
  - {schema_file: case.json, label: other, texts_file: texts.yaml}
  - {schema_file: plain.json}"""
    config = load(tmp_path, BASE.replace("\n  - {label: ab, regex: 'a|b'}", entries))
    case, other, plain = config.constraints
    assert (case.label, case.json_schema, case.texts) == ("case", '{"enum":[1e1,"a"]}', ["1e1"])
    assert (other.label, other.json_schema, other.texts) == ("other", case.json_schema, ['"a"'])
    assert (plain.label, plain.json_schema, plain.texts) == ("plain", '{"type": "null"}', [])
    built = case.build()
    assert (built.whitespace, built.max_nesting, built.order, built.escapes) == ("compact", 3, "schema", "all")
    assert (built.duplicates, other.build().duplicates) == ("refused", "declared")
    assert len({one.key() for one in config.constraints}) == 3
    loads_again(tmp_path, config)


@pytest.mark.parametrize(("only", "labels"), [("", ["a", "b", "c"]), (", only: [c, a]", ["c", "a"])])
def test_a_folder_of_schemas_is_an_entry_for_each(tmp_path, only, labels):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.json").write_text(CASE)
    config = load(tmp_path, BASE.replace("{label: ab, regex: 'a|b'}", f"{{schema_folder: .{only}, escapes: needed}}"))
    assert [entry.label for entry in config.constraints] == labels
    assert {entry.escapes for entry in config.constraints} == {"needed"}
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, BASE.replace("{label: ab, regex: 'a|b'}", "{schema_folder: ., only: [a, d]}"))
    assert caught.value.where == "constraints[0].only[1]"


SPECIAL = """
name: special
kind: dice
tokenizers: [bytes]
constraints:
  - {label: ab, regex: 'a|b', search: true}
settings: {sides: 6, grid: [1, 2]}
"""


@pytest.fixture
def dice(monkeypatch):
    monkeypatch.setitem(kinds.ADDED, "dice", "tests.lab.run.fake_kind:KIND")


def test_a_special_kind_gets_its_settings_with_tokenizer_and_constraint(tmp_path, dice):
    (tmp_path / "grid.yaml").write_text("[1, 2]")
    config = load(tmp_path, SPECIAL.replace("[1, 2]", "{file: grid.yaml}"))
    (item,) = expand(config)
    assert item.settings == {
        **{"sides": 6, "grid": [1, 2], "tokenizer": "bytes"},
        **{"label": "ab", "regex": "a|b", "search": True},
    }
    assert item.backend is item.workload is None
    loads_again(tmp_path, config)


@pytest.mark.parametrize(
    ("old", "new", "where", "said"),
    [
        ("sides: 6", "sides: 0", "settings", "a die has at least one side"),
        ("kind: dice", "kind: dice\nbackends: [fake]", "backends", "kind dice has no backends"),
        ("{sides: 6, grid: [1, 2]}", "[1]", "settings", "valid dictionary"),
        ("[1, 2]", "{file: nowhere.yaml}", "settings.grid.file", "there is no file"),
    ],
)
def test_a_special_kind_checks_its_settings(tmp_path, dice, old, new, where, said):
    with pytest.raises(ConfigError, match=said) as caught:
        load(tmp_path, SPECIAL.replace(old, new))
    assert caught.value.where == where


def test_an_experiment_on_backends_may_measure_special_kinds_beside_them(tmp_path, dice):
    (tmp_path / "grid.yaml").write_text("[3, 4]")
    alone = load(tmp_path, BASE)
    config = load(tmp_path, BASE + "settings: {dice: {sides: 6, grid: {file: grid.yaml}}}")
    assert config.settings == {"dice": {"sides": 6, "grid": [3, 4]}}
    *backends, special = expand(config)
    assert backends == expand(alone)  # nothing changes for them
    assert (special.kind, special.label, special.settings) == ("dice", "dice", {"sides": 6, "grid": [3, 4]})
    assert special.tokenizer is special.constraint is special.backend is special.workload is None
    assert config.fingerprint != alone.fingerprint
    loads_again(tmp_path, config)
    (other,) = expand(load(tmp_path, BASE + "settings: {dice: {sides: 5}}"))[1:]
    assert other.item_id != special.item_id
    assert other.seed == special.seed


def test_parts_of_an_ablation_name_backends(tmp_path):
    two = f"{BASE}  - token_index\n"
    ablation = f'{two}parts: [{{part: "speed", with: token_index, without: fake}}]'
    config = load(tmp_path, ablation)
    assert [(part.having, part.without) for part in config.parts] == [("token_index", "fake")]
    loads_again(tmp_path, config)
    assert config.folder_name == load(tmp_path, two).folder_name  # they are how it is told, not what is measured
    with pytest.raises(ConfigError, match=r"parts\[0\].*token_indes.*did you mean"):
        load(tmp_path, ablation.replace("with: token_index", "with: token_indes"))


def test_grids_may_overlap(tmp_path):
    grids = ("{lazy: [false, true]}", "{lazy: [true, false], minimal: [true]}")
    text = BASE.replace("  - fake\n", "".join(f"  - {{name: token_index, options: {grid}}}\n" for grid in grids))
    assert [entry.label for entry in load(tmp_path, text).backends] == [
        "token_index lazy=false",
        "token_index lazy=true",
    ]


def test_interpreters_of_backends_are_a_key_of_the_experiment(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one.json").write_text('{"schema": {}, "tests": []}')
    engines = "[{backend: token_index}, {backend: syncode}]"
    text = f"""
        name: apart
        kind: maskbench
        tokenizers: [bytes]
        settings: {{data: {tmp_path / "data"}, engines: {engines}}}
        """
    path = tmp_path / "e.yaml"
    path.write_text(textwrap.dedent(text))
    plain, config = load_config(path), load_config(path, {"pythons.syncode": "env/bin/python"})
    assert config.pythons == {"syncode": str(Path("env/bin/python").absolute())}
    assert config.fingerprint == plain.fingerprint
    assert "pythons" not in plain.to_yaml()
    assert "pythons.syncode=" in config.command
    loads_again(tmp_path, config)
    first, second = expand(config)
    assert first.item_id == expand(plain)[0].item_id
    assert second.item_id != expand(plain)[1].item_id
    assert second.settings["pythons"] == config.pythons
    for given, said in (
        ({"pythons.syncod": "x"}, r"pythons.syncod: .*backend 'syncod'.*syncode"),
        ({"pythons": "x"}, "pythons: keys and values are expected"),
    ):
        with pytest.raises(ConfigError, match=said):
            load_config(path, given)


def test_who_starts_no_process_for_each_engine_has_no_interpreters(tmp_path):
    text = """
        name: apart
        kind: laws
        settings: {engines: [{backend: token_index}]}
        pythons: {token_index: /usr/bin/python3}
        """
    with pytest.raises(ConfigError, match=r"e.yaml:5: pythons: .*kind laws starts no process for each engine"):
        load(tmp_path, text)
    moved = text.replace("}]}", "}], pythons: {}}").replace("        pythons: {token", "        # {token")
    with pytest.raises(ConfigError, match="pythons is a key of the experiment"):
        load(tmp_path, moved)
