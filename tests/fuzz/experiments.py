"""``experiment``: experiment files, read, checked and resolved, and written again.

The head is empty. The files beside the experiment are those of ``experiments/inputs``.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import yaml
from hypothesis import strategies as st

from tests.fuzz.case import Case
from tests.fuzz.mutations import mutated_json, mutated_texts
from tokdfa.lab.config.resolve import load_config

FOLDER = Path(__file__).parents[2] / "experiments"

_PLAIN_WORDS = r"""
name question kind tokenizers constraints backends reference workloads measures repeats seed limits settings label
regex choice grammar json_schema grammar_file schema_file texts texts_file file only schema_folder options flags
seconds memory_mb walks steps grid lazy max_states token_index pushdown_trie llguidance bytes mistral-v1 hf:x.json
gguf:/dev/null inputs/regexes.yaml inputs/grammars/json.lark inputs/schemas inputs /dev/zero /dev/null . .. / ~
random_walk replay compile mask trie_walk skew maskbench scaling engine_ablation no_such_kind &a *a | > |- [ ] { } : #
' --- ... 0x1F 1e999 .nan -.inf 2024-99-99 2024-01-01 1:30:00 yes null true 1_000 0o17
"""
#: What is put in, renamed to, and made into texts.
WORDS = (
    *_PLAIN_WORDS.split(),
    *("&a [*a]", "<<: *a", "!!python/object:os.system x", "!!int x", "!!binary x", "? [a]", "? {a: b}", ": ", "- "),
    *("\n- ", "\n  ", "\t", "\"", "%YAML 9.9", "9" * 5000, "\ufeff", "\u0000"),
)  # fmt: skip


class ExperimentEntry:
    """See the module's docstring."""

    name = "experiment"
    file_name = ""

    def __init__(self) -> None:
        self.seeds: tuple[str, ...] = ()
        self.plain: tuple[str, ...] = ()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def prepare(self) -> None:
        self.seeds = tuple(path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.yaml")))
        self.plain = tuple(json.dumps(yaml.safe_load(text)) for text in self.seeds)
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz")
        (Path(self._folder.name) / "inputs").symlink_to(FOLDER / "inputs")
        self.run(Case("", (FOLDER / "smoke.yaml").read_text(encoding="utf-8")))

    def cases(self) -> st.SearchStrategy[Case]:
        changed = mutated_json(self.plain, WORDS).map(_to_yaml)
        return st.builds(Case, st.just(""), st.one_of(changed, changed, mutated_texts(self.seeds, WORDS)))

    def run(self, case: Case) -> str:
        assert self._folder is not None
        path = Path(self._folder.name) / "e.yaml"
        path.write_bytes(str(case.body).encode(errors="surrogatepass"))
        config = load_config(path)
        path.write_text(config.to_yaml(), encoding="utf-8")
        again = load_config(path)
        assert again.fingerprint == config.fingerprint, "what is written is not what was read"
        return "accepted"


def _to_yaml(value: object) -> str:
    try:
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    except yaml.YAMLError:
        return str(value)


ENTRY = ExperimentEntry()
