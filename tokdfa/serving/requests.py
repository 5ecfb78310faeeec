"""What serving engines put into their requests, a kind and a text, as constraints.

| kind | text |
|---|---|
| ``json`` | a JSON schema |
| ``json_object`` | nothing, as it is any JSON object |
| ``regex`` | a pattern |
| ``choice`` | a JSON array of texts, or a list of them |
| ``grammar``, ``ebnf`` | a grammar in Lark's notation, or in xgrammar's EBNF if it begins with a rule ``name ::=`` |
| ``structural_tag`` | tags in free text, see `tokdfa.serving.structural_tags` |

Schemas get the profile ``generation``, as those of `tokdfa.constrain` do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.constraint import Choice, Grammar, JsonSchema, Regex
from tokdfa.core.arguments import as_text
from tokdfa.core.nesting import read_json
from tokdfa.errors import ArgumentError, UnknownNameError
from tokdfa.grammar.ebnf import is_ebnf, read_ebnf
from tokdfa.serving.structural_tags import read_structural_tag

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint

KINDS = ("json", "json_object", "regex", "choice", "grammar", "ebnf", "structural_tag")


def read_request(kind: str, text: str | list[str], vocab: Any = None, **options: Any) -> Constraint:
    """The constraint of a request. `options`: of `JsonSchema`, for its schemas. `vocab`: a vocabulary, or anything that
    `load_tokenizer` takes; with it, markers in the texts of a structural tag are its special tokens.

    Raises UnknownNameError for a kind, ArgumentError for a text that is not what its kind wants, UnsupportedConstraint
    for what a structural tag asks that cannot be enforced, and what the constraint raises.
    """
    kind = as_text(kind, "kind").lower()
    if kind not in KINDS:
        remedy = "write 'json' for a schema" if kind == "json_schema" else ""
        raise UnknownNameError("kind of request", kind, KINDS, remedy)
    if kind == "choice" and isinstance(text, list):
        return Choice(text)
    text, options = as_text(text, f"the text of {kind}"), {"profile": "generation", **options}
    match kind:
        case "json":
            return JsonSchema(text, **options)
        case "json_object":
            if text.lstrip().startswith("{") and _read_json(text, kind) not in ({}, {"type": "object"}):
                raise ArgumentError("json_object is any JSON object and takes no schema; a schema is of kind 'json'")
            return JsonSchema({"type": "object"}, **options)
        case "regex":
            return Regex(text)
        case "choice":
            choices = _read_json(text, "choice")
            if not isinstance(choices, list):
                raise ArgumentError(f"choice takes a JSON array of texts, not {text[:40]!r}")
            return Choice(choices)
        case "structural_tag":
            return read_structural_tag(_read_json(text, "structural_tag"), options, vocab)
    return read_ebnf(text) if is_ebnf(text) else Grammar(text, json_options=options)


def _read_json(text: str, kind: str) -> Any:
    try:
        return read_json(text, kind)
    except ValueError as error:
        raise ArgumentError(f"{kind}: its text is not JSON: {error}") from None
