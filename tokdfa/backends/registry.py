"""Names of backends -> "module:Class", imported at first use.

Adding a backend takes one file and one line here; another package adds its own with an entry point of the group
``tokdfa.backends`` (name = "module:Class"). The contract suite runs every name listed by `backend_names`.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tokdfa.constraint import check_constraint
from tokdfa.core.arguments import as_text
from tokdfa.core.packages import installed_version
from tokdfa.errors import TokdfaError, UnknownNameError, UnsupportedConstraint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokdfa.backends.base import Backend, CompiledConstraint, Option
    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

BUILT_IN: dict[str, str] = {
    "brute_force": "tokdfa.backends.brute_force:BruteForce",
    "encoded_texts": "tokdfa.backends.encoded_texts:EncodedTexts",
    "token_index": "tokdfa.backends.token_index:TokenIndex",
    "outlines_2023": "tokdfa.backends.outlines_2023:Outlines2023",
    "tokens_dfa": "tokdfa.backends.tokens_dfa.strategy:TokensDfa",
    "direct_merge": "tokdfa.backends.proper_merge.direct_merge:DirectMerge",
    "cartesian_merge": "tokdfa.backends.proper_merge.cartesian_merge:CartesianMerge",
    "earley_trie": "tokdfa.backends.earley_trie.strategy:EarleyTrie",
    "pushdown_trie": "tokdfa.backends.pushdown_trie.strategy:PushdownTrie",
    "cfg_fsm": "tokdfa.backends.cfg_fsm.strategy:CfgFsm",
    "llguidance": "tokdfa.backends.peers.llguidance_peer:LlguidancePeer",
    "outlines_core": "tokdfa.backends.peers.outlines_core_peer:OutlinesCorePeer",
    "glrmask": "tokdfa.backends.peers.glrmask_peer:GlrmaskPeer",
    "xgrammar": "tokdfa.backends.peers.xgrammar_peer:XgrammarPeer",
    "lm_format_enforcer": "tokdfa.backends.peers.lm_format_enforcer_peer:LmFormatEnforcerPeer",
    "grid": "tokdfa.backends.peers.grid_peer:GridPeer",
    "maskforge": "tokdfa.backends.peers.maskforge_peer:MaskforgePeer",
    "xgrammar_cfgzip": "tokdfa.backends.peers.cfgzip_peer:CfgzipPeer",
    "syncode": "tokdfa.backends.peers.syncode_peer:SyncodePeer",
}


@cache
def backend_targets() -> dict[str, str]:
    """Name -> "module:Class" of all backends, kept: `cache_clear` after a change of BUILT_IN."""
    import importlib.metadata

    targets = dict(BUILT_IN)
    for entry in importlib.metadata.entry_points(group="tokdfa.backends"):
        if entry.name in targets and targets[entry.name] != entry.value:
            raise TokdfaError(f"two backends are called {entry.name!r}: {targets[entry.name]} and {entry.value}")
        targets[entry.name] = entry.value
    return targets


def adopt(targets: Mapping[str, str]) -> None:
    """Know the backends that another process knows, those that were registered while it ran included."""
    BUILT_IN.update(targets)
    backend_targets.cache_clear()


def backend_names() -> list[str]:
    """The names of all backends, our own first, whether or not their packages are installed."""
    return list(backend_targets())


def backend_class(name: str) -> type[Backend]:
    """The class of a backend; UnknownNameError names the nearest. Imports its module, not the peer's package."""
    from tokdfa.backends.base import Backend

    # to look for those of other packages takes 20 ms
    targets = BUILT_IN if as_text(name, "backend") in BUILT_IN else backend_targets()
    if name not in targets:
        raise UnknownNameError("backend", name, targets)
    module, _, attribute = targets[name].partition(":")
    found = getattr(sys.modules.get(module) or importlib.import_module(module), attribute)
    if not (isinstance(found, type) and issubclass(found, Backend)):
        raise TokdfaError(f"backend {name!r}: {targets[name]} is not a subclass of Backend")
    return found


def create_backend(name: str, vocab: Vocabulary | Tokenizer, **options: Any) -> Backend:
    """A backend by name, bound to `vocab`, a Vocabulary or the Tokenizer it belongs to.

    Options are those of `tokdfa backends NAME`.
    """
    return backend_class(name)(vocab, **options)


#: The backend of each kind of constraint if none is named.
DEFAULT_BACKENDS = {
    "regex": "token_index",
    "choice": "token_index",
    "grammar": "pushdown_trie",
    "json_schema": "pushdown_trie",
}


def default_backend(constraint: Constraint) -> str:
    """The backend that is taken for a constraint if none is named."""
    return DEFAULT_BACKENDS.get(constraint.kind, "token_index")


def compile(
    constraint: Constraint, vocab: Vocabulary | Tokenizer, backend: str | None = None, **options: Any
) -> CompiledConstraint:
    """Compile `constraint` for `vocab` with a backend by name: ``compile(Regex("[0-9]+"), vocab, lazy=True)``.

    `vocab`: a Vocabulary, or the Tokenizer it belongs to; `backend`: None for that of the constraint's kind
    (`DEFAULT_BACKENDS`). Raises ArgumentError for other types and for what is no constraint, UnknownNameError for a
    backend or an option that does not exist, OptionError for an option's value, UnsupportedConstraint, which names the
    backends that take such a constraint, and what `Backend.compile` raises.
    """
    return backend_for(constraint, vocab, backend, options).compile(constraint)


def backend_for(
    constraint: Constraint, vocab: Vocabulary | Tokenizer, backend: str | None, options: Mapping[str, Any]
) -> Backend:
    """The backend that `compile` compiles with; raises what that raises before it begins."""
    kind = check_constraint(constraint).kind
    made = create_backend(default_backend(constraint) if backend is None else backend, vocab, **options)
    if kind not in made.kinds:
        able = ", ".join(name for name in BUILT_IN if kind in backend_class(name).kinds)
        raise UnsupportedConstraint(f"{made.supports(constraint).reason}; backends that take a {kind}: {able}")
    return made


@dataclass(frozen=True)
class BackendInfo:
    """What `backends()` says of one backend. `missing`: packages that are not installed."""

    name: str
    summary: str
    kinds: tuple[str, ...]
    options: tuple[Option, ...]
    packages: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def installed(self) -> bool:
        return not self.missing


def backends() -> dict[str, BackendInfo]:
    """name -> what the backend supports, its options, and whether its packages are installed."""
    return {name: backend_info(name) for name in backend_names()}


def backend_info(name: str) -> BackendInfo:
    """What one backend supports, its options, and whether its packages are installed."""
    found = backend_class(name)
    missing = tuple(package for package in found.packages if installed_version(package) is None)
    return BackendInfo(name, found.summary, found.kinds, found.options, found.packages, missing)
