"""The document: a schema's text, its draft, and where its references lead.

Words. A *node* is a schema inside the document (an object or a boolean), with the JSON pointer of its place. Nodes are
made when they are first met; equal places are one node. If asked for, equal schemas are one node, too: what is written
out many times is then read once, and excludes its own negation. ``$ref`` to a pointer of the document itself is
followed here; everything else (``$id``, anchors, the metaschemas of the drafts, which are bundled) is left to the
library `referencing`. Nothing is ever fetched: a reference to a document that neither is there nor in the registry that
came with the schema is refused by name.

A *resource* is a schema with an id of its own (the root, too), with what is inside of it. What ``$dynamicRef`` and
``$recursiveRef`` lead to depends on the resources that the way to them leads through. So a node has a *scope*: these
resources, outermost first. Only those are in it that have a dynamic anchor which none before them has, so it is mostly
empty; a place that is reached in two scopes is two nodes. ``"$recursiveAnchor": true`` counts as an anchor without a
name.

Numbers are read exactly: integers of any size as int, all others as Decimal.
"""

from __future__ import annotations

import json
import marshal
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tokdfa.core.budget import spend
from tokdfa.errors import SchemaError, SchemaUnsupported, TokdfaError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The drafts, oldest first.
DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020 = range(5)
#: ``$schema`` without a last ``#`` -> draft.
DRAFTS = {
    "http://json-schema.org/draft-04/schema": DRAFT_4,
    "http://json-schema.org/draft-06/schema": DRAFT_6,
    "http://json-schema.org/draft-07/schema": DRAFT_7,
    "https://json-schema.org/draft/2019-09/schema": DRAFT_2019,
    "https://json-schema.org/draft/2020-12/schema": DRAFT_2020,
}
#: The same without the scheme, which people mix up.
_DRAFTS_BY_NAME = {uri.partition("://")[2]: draft for uri, draft in DRAFTS.items()}
_DRAFT_3 = "json-schema.org/draft-03/schema"


def _refuse_constant(name: str) -> None:
    raise SchemaError(f"{name} is no JSON value", "", "schema")


#: URIs of resources, outermost first.
Scope = tuple[str, ...]
#: A part of a JSON pointer; or a keyword and a key there (None: the keyword alone), of which it is made when needed.
Key = str | tuple[str, str | int | None]

#: Work and memory (`tokdfa.core.budget`) of reading a character, and of the same where the library looks for ids.
NS_PER_CHARACTER, BYTES_PER_CHARACTER, NS_PER_CHARACTER_WITH_IDS = 40, 8, 800
#: The same of a node, and the work of a part of a reference, and of a reference that the library follows.
NS_PER_NODE, BYTES_PER_NODE, NS_PER_PART, NS_PER_REFERENCE = 1_500, 200, 500, 100_000
#: Keywords that lead to other schemas.
REFERENCES = ("$ref", "$recursiveRef", "$dynamicRef")
#: Schemas are compared as long as they are not longer together than so many times the text.
SHARED_DEPTH = 16
#: Nodes whose work is counted in one call.
NODES_AT_ONCE = 16

#: The keys of the schema that bounds how deep values nest, and of that of any object; they are not in the text.
NESTED, OBJECTS = "/(max_nesting)", "/(objects)"

_INDEX = re.compile("0|[1-9][0-9]{0,8}")
#: Letters that are escaped; where a schema says what it is written in.
_ESCAPED, _DECLARED = re.compile(r"\\u00[2-7]"), re.compile(r'"\$schema"\s*:\s*"[^"]*json-schema\.org')
#: A part of the URIs of all metaschemas.
METASCHEMAS = "json-schema.org"
_BLANKS = " \t\n\r"
_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant)


class Node:
    """A schema inside the document. `number`: its place in `Document.nodes`; `resolver`: None where plain pointers do.

    `draft`: what the nearest schema around it declares by ``$schema``. `scope`: URIs (see the module). `parent`, `key`:
    where it stands, in the node `parent` under the keys `key`; None for the root, and for targets of references, whose
    pointer is `key` itself, with its URI and ``#`` before it where that is not the root's.
    """

    __slots__ = ("_key", "draft", "number", "parent", "resolver", "schema", "scope")

    def __init__(
        self, schema: Any, number: int, parent: Node | None, key: Key, resolver: Any, draft: int, scope: Scope
    ) -> None:
        self.schema, self.number, self.parent, self._key, self.resolver = schema, number, parent, key, resolver
        self.draft, self.scope = draft, scope

    @property
    def key(self) -> str:
        """See above."""
        return written_key(self._key)

    @property
    def pointer(self) -> str:
        """The JSON pointer of the node, without ``#`` before it; in another resource with its URI and ``#``."""
        node: Node | None = self
        parts: list[str] = []
        while node is not None:
            parts.append(node.key)
            node = node.parent
        return "".join(reversed(parts))


def escape_key(key: str | int) -> str:
    """A key as a part of a JSON pointer."""
    return "/" + str(key).replace("~", "~0").replace("/", "~1")


def written_key(key: Key) -> str:
    """Keys as a part of a JSON pointer."""
    if isinstance(key, str):
        return key
    keyword, name = key
    return escape_key(keyword) if name is None else escape_key(keyword) + escape_key(name)


@dataclass(frozen=True)
class Dropped:
    """A keyword that is not enforced, where it stands, and why."""

    pointer: str
    keyword: str
    reason: str


class Document:
    """A schema's text, which is JSON, read, and those of other documents: a mapping of URIs to schemas, or nothing.

    `asserts`: what is asserted of what the drafts leave open (`tokdfa.constraint.JsonSchema`). `shares`: equal schemas
    are one node, whose pointer is that of the first. Raises SchemaError if it is no schema, SchemaUnsupported for
    drafts before 4.
    """

    #: Whether schemas at several places are one node.
    has_shared = False

    def __init__(self, text: str, registry: str = "", asserts: str = "formats", shares: bool = False) -> None:
        self.asserts = asserts
        #: What any keyword is looked for in.
        self.text = text + registry
        self._may_have_any = self._has_hidden_keywords()
        spend(NS_PER_CHARACTER * len(self.text), BYTES_PER_CHARACTER * len(self.text))
        # it is known to be JSON, so nothing comes behind; `decode` would look
        root, _ = _DECODER.raw_decode(text.lstrip(_BLANKS))
        self._documents: dict[str, Any] = _DECODER.decode(registry) if registry else {}
        self.draft = declared_draft(root, DRAFT_2020, "")
        self.nodes: list[Node] = []
        self._by_identity: dict[tuple[int, Scope], Node] = {}
        #: Draft around it and contents of a schema -> its node; the bytes of contents that may be looked at.
        self._by_contents: dict[tuple[int, bytes], Node] = {}
        self._contents_left = SHARED_DEPTH * len(self.text) if shares else 0
        #: Schemas that are equal to that of their node: what is known by its identity must live as long as we do.
        self._equals: list[Any] = []
        #: Number of a plain type (`plain_types.PLAIN_NODES`) -> the first schema of it: parent, itself, key.
        self.plain_places: dict[int, tuple[Node, Any, Key]] = {}
        self._registry: Any = None
        self._root_schema = root
        id_keyword = id_keyword_of(self.draft)
        self.has_ids = bool(self._documents) or f'"{id_keyword}"' in text
        #: Without a reference ids do not matter, and the library, which takes 60 ms to import, is not needed.
        self._refers = any(map(self.may_have, REFERENCES))
        if isinstance(root, dict) and not isinstance(root.get(id_keyword, ""), str):
            # the library would not say it so
            raise SchemaError(f"an id is a text, not {shorten(root[id_keyword])}", "", id_keyword)
        #: Resource -> the names of its dynamic anchors.
        self._anchors: dict[str, frozenset[str]] = {}
        #: Identity of a resource's contents -> its URI.
        self._uris: dict[int, str] = {}
        self._drafts: dict[str, int] = {}
        #: URIs of other documents that the library cannot take apart -> what to say of it.
        self._unread: dict[str | None, SchemaError] = {}
        has_anchors = '"$dynamicAnchor"' in self.text or '"$recursiveAnchor"' in self.text
        scope = self._enter((), self._root_resolver()) if has_anchors else ()
        self.root = self._add(root, None, "", None, self.draft, scope)

    def _add(self, schema: Any, parent: Node | None, key: Key, resolver: Any, draft: int, scope: Scope) -> Node:
        is_object = isinstance(schema, dict)
        if not is_object and not isinstance(schema, bool):
            place = (parent.pointer if parent else "") + written_key(key)
            raise SchemaError(f"a schema is an object or a boolean, not {shorten(schema)}", place, "schema")
        nodes = self.nodes
        if not len(nodes) % NODES_AT_ONCE:
            spend(NODES_AT_ONCE * NS_PER_NODE, NODES_AT_ONCE * BYTES_PER_NODE)
        node = Node(schema, len(nodes), parent, key, resolver, draft, scope)
        nodes.append(node)
        if is_object:
            self._by_identity[id(schema), scope] = node
            if "$schema" in schema and schema is not self._root_schema:
                node.draft = declared_draft(schema, draft, node.pointer)
            if self.has_ids and parent is not None and has_id(schema, node.draft) and self._matters(schema, node.draft):
                node.resolver = self._subresolver(node, resolver)
                node.scope = self._enter(scope, node.resolver)
        return node

    def forget_contents(self) -> None:
        """Free what equal schemas are found by; those met later are nodes of their own."""
        self._by_contents.clear()
        self._contents_left = 0

    def _matters(self, schema: dict[str, Any], draft: int) -> bool:
        """Whether the id of a schema inside may lead somewhere, or is that of the document, which is an error."""
        own = str(schema[id_keyword_of(draft)]).rstrip("#")
        return self._refers or own in ("", str(self._root_schema.get(id_keyword_of(self.draft), "")).rstrip("#"))

    def may_have(self, keyword: str) -> bool:
        """Whether the keyword may stand somewhere that references lead to, in a metaschema as well."""
        return f'"{keyword}"' in self.text or self._may_have_any

    def _has_hidden_keywords(self) -> bool:
        """Whether there may be keywords that the text does not spell plainly."""
        text = self.text
        if "\\u00" in text and _ESCAPED.search(text) is not None:
            return True
        # only a metaschema is not in the text, and no reference leads there that no URI of one is written for
        return text.count(METASCHEMAS) > len(_DECLARED.findall(text))

    def node(self, number: int) -> Node:
        """The node of a number; of one before those of the document, the first schema of that plain type."""
        if number >= 0:
            return self.nodes[number]
        parent, schema, key = self.plain_places[number]
        return Node(schema, number, parent, key, parent.resolver, parent.draft, parent.scope)

    def child(self, parent: Node, schema: Any, key: Key) -> Node:
        """The node of a schema inside another one, at the keys `key`."""
        known = self._by_identity.get((id(schema), parent.scope)) if isinstance(schema, dict) else None
        if known is None and self._contents_left > 0 and not parent.scope and parent.resolver is None:
            return self._shared(parent, schema, key)  # what it refers to does not depend on where it stands
        return known or self._add(schema, parent, key, parent.resolver, parent.draft, parent.scope)

    def _shared(self, parent: Node, schema: Any, key: Key) -> Node:
        """The node of all schemas that are equal to a new one, the order of their members included."""
        try:
            contents = marshal.dumps(schema, 0)
        except ValueError:  # it has a Decimal
            return self._add(schema, parent, key, None, parent.draft, ())
        self._contents_left -= len(contents)
        known = self._by_contents.get((parent.draft, contents))
        if known is None:
            known = self._by_contents[parent.draft, contents] = self._add(schema, parent, key, None, parent.draft, ())
        else:
            self.has_shared = True
            self._by_identity[id(schema), ()] = known
            self._equals.append(schema)
        return known

    def target(self, node: Node, keyword: str, reference: str) -> Node:
        """The node that a reference in `node` leads to. Raises SchemaError or SchemaUnsupported."""
        if not isinstance(reference, str):
            raise SchemaError(f"a reference is a string, not {shorten(reference)}", node.pointer, keyword)
        if reference == "#" and node.resolver is None:
            return self.root
        if reference.startswith("#/") and node.resolver is None:
            found = self._follow(reference, node, keyword)
            if found is None:
                return self._resolve(node, keyword, reference)
            schema, draft = found
            known = self._by_identity.get((id(schema), node.scope)) if isinstance(schema, dict) else None
            return known or self._add(schema, None, unquote(reference[1:]), None, draft, node.scope)
        return self._resolve(node, keyword, reference)

    def _follow(self, reference: str, node: Node, keyword: str) -> tuple[Any, int] | None:
        """What a JSON pointer of the document leads to, and the draft there; None if it leads into a resource."""
        here, draft = self._root_schema, self.draft
        parts = unquote(reference[2:]).split("/")
        spend(NS_PER_PART * len(parts) + len(reference))
        for part in parts:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(here, dict) and name in here:
                here = here[name]
                if self.has_ids and isinstance(here, dict) and has_id(here, draft):
                    return None  # what is inside has a base of its own
                if isinstance(here, dict) and "$schema" in here:
                    draft = declared_draft(here, draft, node.pointer)
            elif isinstance(here, list) and _INDEX.fullmatch(name) and int(name) < len(here):
                here = here[int(name)]
            else:
                raise SchemaError(f"{reference!r} leads nowhere: there is no {name!r}", node.pointer, keyword)
        return here, draft

    def _resolve(self, node: Node, keyword: str, reference: str) -> Node:
        """Any other reference, by the library."""
        from referencing.exceptions import Unresolvable, Unretrievable

        spend(NS_PER_REFERENCE + NS_PER_PART * (len(reference) + len(node.scope)))
        try:
            resolver = node.resolver or self._registry_resolver()
            found = resolver.lookup("#" if keyword == "$recursiveRef" else reference)
            found = self._dynamic(node, keyword, reference, found)
        except (Unresolvable, Unretrievable, ValueError) as error:
            raise self._lost(node, keyword, reference) from error
        except (AttributeError, TypeError) as error:  # the library takes what a pointer passes for a schema
            raise SchemaUnsupported(f"{reference!r} cannot be followed", node.pointer, keyword) from error
        schema, scope = found.contents, self._enter(node.scope, found.resolver)
        known = self._by_identity.get((id(schema), scope)) if isinstance(schema, dict) else None
        if known is None:
            key = self._place(found.resolver, reference.rpartition("#")[2] if "#" in reference else "")
            draft = declared_draft(found.resolver.lookup("#").contents, self._draft(found.resolver), key)
            known = self._add(schema, None, key, self._without_past(found.resolver), draft, scope)
        return known

    def _lost(self, node: Node, keyword: str, reference: str) -> TokdfaError:
        """The error for a reference that leads nowhere."""
        from referencing.exceptions import Unresolvable

        document, _, fragment = reference.partition("#")
        try:
            there = self._uri((node.resolver or self._registry_resolver()).lookup(document).resolver)
            if there in self._unread:
                return self._unread[there]
        except Unresolvable:
            known = f"; the registry has {shorten(sorted(self._documents))}" if self._documents else ""
            advice = f"leads to another document; give that as one of registry, or put it into $defs{known}"
            return SchemaUnsupported(f"{reference!r} {advice}", node.pointer, keyword)
        except ValueError:
            return SchemaUnsupported(f"{reference!r} is no URI", node.pointer, keyword)
        return SchemaError(f"{reference!r} leads nowhere: there is no #{fragment}", node.pointer, keyword)

    def _place(self, resolver: Any, fragment: str) -> str:
        """What stands at the beginning of the pointers of a resource."""
        uri = self._uri(resolver) or ""
        is_root = resolver.lookup("#").contents is self._root_schema
        return unquote(fragment) if is_root and fragment[:1] in ("", "/") else f"{uri}#{unquote(fragment)}"

    def _draft(self, resolver: Any) -> int:
        """The draft of the resource that a resolver is in, if it declares none itself."""
        uri = self._uri(resolver)
        if uri is None or not self._documents:
            return self.draft
        found = self._drafts.get(uri)
        if found is None:
            resource = self._registry[uri]
            equal = (
                k for k, each in enumerate(_specifications()) if each.create_resource(resource.contents) == resource
            )
            found = self._drafts[uri] = next(equal, self.draft)
        return found

    def _dynamic(self, node: Node, keyword: str, reference: str, found: Any) -> Any:
        """What a reference leads to in the scope of `node`; `found` is where it leads by itself."""
        schema, name = found.contents, reference.rpartition("#")[2] if keyword == "$dynamicRef" else ""
        if not isinstance(schema, dict):
            return found
        if keyword == "$dynamicRef":
            is_dynamic = name != "" and schema.get("$dynamicAnchor") == name
        else:
            is_dynamic = keyword == "$recursiveRef" and schema.get("$recursiveAnchor") is True
        first = next((uri for uri in node.scope if name in self._anchors[uri]), None) if is_dynamic else None
        return found if first is None else self._registry.resolver(first).lookup(f"#{name}")

    def _enter(self, scope: Scope, resolver: Any) -> Scope:
        """The scope inside of a resource, given the one outside of it."""
        uri = self._uri(resolver)
        if uri is None:
            return scope
        names = self._anchors.get(uri)
        if names is None:
            names = self._anchors[uri] = frozenset(_dynamic_anchors(resolver.lookup("#").contents))
        return scope if names <= {name for outer in scope for name in self._anchors[outer]} else (*scope, uri)

    def _uri(self, resolver: Any) -> str | None:
        """The URI of the resource that a resolver is in; None if the library has not found it by itself."""
        from referencing.exceptions import Unresolvable

        try:
            return self._uris.get(id(resolver.lookup("#").contents))
        except Unresolvable:
            return None

    def _without_past(self, resolver: Any) -> Any:
        """The resolver of the same resource; the library's follows dynamic anchors in what led to it."""
        uri = self._uri(resolver)
        return resolver if uri is None else self._registry.resolver(uri)

    def _root_resolver(self) -> Any:
        """The library's resolver of the document's root. Raises SchemaError."""
        try:
            return self._registry_resolver()
        except (AttributeError, TypeError, ValueError) as error:  # the library takes all to be of the right types
            place, keyword = _find_misnamed(self._root_schema) or ("", "$id")
            raise SchemaError(f"ids, anchors and references cannot be read ({error})", place, keyword) from error

    def _registry_resolver(self) -> Any:
        """`_root_resolver`, which raises whatever the library raises."""
        if self._registry is None:
            from jsonschema_specifications import REGISTRY

            spend(NS_PER_CHARACTER_WITH_IDS * len(self.text))
            specification = _specifications()[self.draft]
            resource = specification.create_resource(self._root_schema)
            others = self._registered(specification, REGISTRY)
            registry = others.with_resource(resource.id() or "", resource).crawl()
            # where a document has an id of its own, that is its base
            ordered = sorted(registry, key=lambda uri: uri not in self._documents)
            self._uris = {id(registry.contents(uri)): uri for uri in ordered}
            if id(self._root_schema) not in self._uris:
                keyword = id_keyword_of(self.draft)
                raise SchemaError("a schema inside has the id of the whole document", "", keyword)
            self._registry = registry
        return self._registry.resolver(self._uris[id(self._root_schema)])

    def _registered(self, specification: Any, registry: Any) -> Any:
        """The library's registry with the other documents. Raises SchemaError, which names the document at fault.

        One that is wrong elsewhere than in its names, such as one of another draft, is found without what has a name in
        it: it matters only if a reference leads there.
        """
        from referencing import Resource, Specification

        for uri, schema in self._documents.items():
            resource = Resource.from_contents(schema, default_specification=specification)
            try:
                registry = registry.with_resource(uri, resource).crawl()
            except (AttributeError, TypeError, ValueError) as error:
                misnamed = _find_misnamed(schema)
                if misnamed is not None:
                    message = f"ids, anchors and references cannot be read ({error})"
                    raise SchemaError(message, f"{uri}#{misnamed[0]}", misnamed[1]) from error
                self._unread[uri] = SchemaError(f"ids and anchors cannot be read ({error})", f"{uri}#", "$id")
                registry = registry.with_resource(uri, Specification.OPAQUE.create_resource(schema))
        return registry

    def _subresolver(self, node: Node, resolver: Any) -> Any:
        """The resolver inside a schema that has an id of its own."""
        spend(NS_PER_REFERENCE)
        outer = resolver or self._root_resolver()
        return outer.in_subresource(_specifications()[node.draft].create_resource(node.schema))


def _specifications() -> tuple[Any, ...]:
    """What the library knows of each draft."""
    from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

    return DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012


def id_keyword_of(draft: int) -> str:
    """The keyword of a resource's URI."""
    return "id" if draft == DRAFT_4 else "$id"


def has_id(schema: dict[str, Any], draft: int) -> bool:
    """Whether a schema has a URI of its own."""
    return isinstance(schema.get(id_keyword_of(draft)), str)


def declared_draft(schema: Any, default: int, pointer: str) -> int:
    """The draft that a schema declares; `default` if it declares none that is known. Raises SchemaUnsupported."""
    declared = schema.get("$schema") if isinstance(schema, dict) else None
    if not isinstance(declared, str):
        return default
    name = declared.removeprefix("http://").removeprefix("https://").rstrip("#")
    if name == _DRAFT_3:
        raise SchemaUnsupported("draft 3 is not read; drafts 4, 6, 7, 2019-09 and 2020-12 are", pointer, "$schema")
    return _DRAFTS_BY_NAME.get(name, default)


def _find_misnamed(schema: Any) -> tuple[str, str] | None:
    """(pointer, keyword) of an id or anchor in a schema that is no text; None if there is none."""
    agenda = [("", schema)]
    while agenda:
        place, here = agenda.pop()
        if isinstance(here, dict):
            for keyword in ("$id", "$anchor", "$dynamicAnchor"):
                if not isinstance(here.get(keyword, ""), str):
                    return place, keyword
        below = here.items() if isinstance(here, dict) else enumerate(here) if isinstance(here, list) else ()
        agenda += [(place + escape_key(key), value) for key, value in below]
    return None


def _dynamic_anchors(schema: Any, is_outermost: bool = True) -> Iterator[str]:
    """The names of the dynamic anchors of a resource, without those of resources inside of it."""
    if isinstance(schema, dict):
        if not is_outermost and isinstance(schema.get("$id"), str):
            return
        if isinstance(schema.get("$dynamicAnchor"), str):
            yield schema["$dynamicAnchor"]
        if is_outermost and schema.get("$recursiveAnchor") is True:
            yield ""
        for value in schema.values():
            yield from _dynamic_anchors(value, False)
    elif isinstance(schema, list):
        for value in schema:
            yield from _dynamic_anchors(value, False)


def shorten(value: Any) -> str:
    """A value as JSON, its end cut off where it is long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:39] + "…"
