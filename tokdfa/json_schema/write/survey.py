"""Everything about a schema that its author may want to know: what is wrong, refused, suspicious, ignored.

A compile stops at the first thing it cannot do. A survey goes on: all values that the draft forbids are listed
(`metaschema`); then the schema is compiled with `lenient`, which drops what cannot be enforced and says what it was;
the suspects are those that a compile warns of; and what is left of keywords that demand nothing is *ignored*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from tokdfa.errors import EmptyLanguageError, SchemaError, SchemaUnsupported, TokdfaError
from tokdfa.json_schema.read.document import DRAFT_7, Document
from tokdfa.json_schema.read.keyword_names import DEMANDING
from tokdfa.json_schema.read.metaschema import CHECKS, check_document, find_errors, find_keywords, is_mixed
from tokdfa.json_schema.read.suspects import DRAFT_NAMES, find_suspects
from tokdfa.json_schema.write.lower import lower_and_remember

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.constraint import JsonSchema

Verdict = Literal["wrong", "impossible", "refused", "suspicious", "ignored"]


class Finding(NamedTuple):
    """One thing about a schema: what becomes of the keyword, the JSON pointer of its schema, and why."""

    verdict: Verdict
    pointer: str
    keyword: str
    reason: str


def survey_schema(constraint: JsonSchema) -> list[Finding]:
    """All findings, the gravest first; none for a schema of which everything is enforced.

    O(a compile for each keyword that is refused). Raises what reading the document raises, such as a reference that
    leads nowhere, as SchemaError.
    """
    document = Document(constraint.text, constraint.registry, constraint.asserts)
    root, draft, mixed = document.root.schema, document.draft, is_mixed(document)
    wrong = [Finding("wrong", each.pointer, each.keyword, each.reason) for each in find_errors(root, draft, mixed)]
    if wrong:
        return wrong
    suspects = [Finding("suspicious", *each) for each in find_suspects(document, check_document(document))]
    known = {(each.pointer, each.keyword) for each in suspects}
    ignored = [each for each in _ignored(document) if (each.pointer, each.keyword) not in known]
    return [*_refused(constraint), *suspects, *ignored]


def _refused(constraint: JsonSchema) -> list[Finding]:
    """What cannot be enforced, or why there is no value."""
    try:
        _, dropped, _ = lower_and_remember(_lenient(constraint))
    except EmptyLanguageError as error:
        return [Finding("impossible", "", "", str(error))]
    except (SchemaError, SchemaUnsupported) as error:
        verdict: Verdict = "wrong" if isinstance(error, SchemaError) else "refused"
        return [Finding(verdict, error.pointer, error.keyword, error.reason)]
    except TokdfaError as error:
        return [Finding("refused", "", "", str(error))]
    return [Finding("refused", each.pointer, each.keyword, each.reason) for each in dropped]


def _lenient(constraint: JsonSchema) -> JsonSchema:
    """The same constraint, without what cannot be enforced."""
    made = constraint.of_schema(constraint.text)
    object.__setattr__(made, "lenient", True)
    return made


def _ignored(document: Document) -> Iterator[Finding]:
    """Keywords that the schema's draft does not have, and those beside a `$ref` of drafts 4 to 7."""
    beside: dict[str, list[tuple[str, int]]] = {}
    references = set()
    for pointer, keyword, _, draft in find_keywords(document.root.schema, document.draft, is_mixed(document)):
        if keyword not in CHECKS[draft]:
            yield Finding("ignored", pointer, keyword, f"{DRAFT_NAMES[draft]} does not have it")
        elif keyword == "$ref" and draft <= DRAFT_7:
            references.add(pointer)
        elif keyword == "type" or (keyword in DEMANDING and keyword != "$schema"):
            beside.setdefault(pointer, []).append((keyword, draft))
    for pointer in sorted(references & beside.keys()):
        for keyword, draft in beside[pointer]:
            yield Finding("ignored", pointer, keyword, f"{DRAFT_NAMES[draft]} ignores what stands beside a $ref")
