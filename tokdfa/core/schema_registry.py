"""Documents that a JSON schema refers to, as one text, by which constraints are compared and saved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tokdfa.core.nesting import read_json, write_json
from tokdfa.errors import ArgumentError, OptionError, a_type

if TYPE_CHECKING:
    from referencing import Registry, Resource

#: What schemas of a draft declare as their ``$schema``, oldest first.
_DIALECTS = (
    "http://json-schema.org/draft-03/schema#",
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)


def registry_text(registry: Mapping[str, Any] | Registry[Any] | str) -> str:
    """The JSON text of the documents of a registry by their URIs, sorted; empty if there are none.

    A text is the JSON of a mapping, and is kept as it is, so that its numbers are.
    Raises ArgumentError for what is no mapping, OptionError for what is no URI or no schema. O(bytes of the documents).
    """
    if registry == "":  # as a rule
        return ""
    given = registry if isinstance(registry, str) else None
    if given is not None:
        try:
            registry = read_json(given, "the registry")
        except ValueError as error:
            raise OptionError(f"the registry is not JSON: {error}") from None
    if not isinstance(registry, Mapping):
        raise ArgumentError(
            f"registry is a mapping of URIs to schemas or a referencing.Registry, not {a_type(registry)}"
        )
    documents = dict(registry) if not hasattr(registry, "crawl") else _registered(registry)  # type: ignore[arg-type]
    for uri, schema in documents.items():
        if not isinstance(uri, str) or not uri.rstrip("#"):
            raise OptionError(f"registry: {uri!r} is no URI; give a mapping of URIs to schemas")
        if not isinstance(schema, dict | bool):
            raise OptionError(f"registry: at {uri} a schema is a dict or a bool, not {a_type(schema)}")
    if given is not None:
        return given if documents else ""
    written = []
    for uri in sorted(documents):
        try:
            written.append(f"{json.dumps(uri)}:{write_json(documents[uri], f'the document {uri}')}")
        except (ValueError, TypeError) as error:
            raise OptionError(f"registry: the document {uri} is not JSON: {error}") from None
    return "{" + ",".join(written) + "}" if written else ""


def _registered(registry: Registry[Any]) -> dict[str, Any]:
    """The documents of the library's registry, each with the draft that it has there, but for the metaschemas, which
    are always known.
    """
    import referencing.jsonschema
    from jsonschema_specifications import REGISTRY

    found = {}
    for uri in registry:
        resource: Resource[Any] = registry[uri]
        schema = resource.contents
        if uri in REGISTRY and REGISTRY[uri] == resource:
            continue
        if isinstance(schema, Mapping) and "$schema" not in schema:
            for dialect in _DIALECTS:  # a resource does not tell its draft, but is equal to one of that draft
                specification = referencing.jsonschema.specification_with(dialect)
                if specification.create_resource(schema) == resource:
                    schema = {"$schema": dialect, **schema}
        found[uri] = schema
    return found
