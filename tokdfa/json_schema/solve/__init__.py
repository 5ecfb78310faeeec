"""Solving: what a value must be, one level deep, once all keywords at its place are taken together.

- `clauses`: clauses, shapes, states, and how they intersect; `plain_types`: those of ``type`` alone;
- `oracle`: what may be asked, of one object: `Oracle` has the state of the schema at some place, `emptiness` adds
  whether a state has a value at all, and `shape_builder` its shape, with the in-place applicators (allOf, anyOf, oneOf,
  not, if);
- `keywords`: the shape of the keywords of one type; `values`: of enum and const; `complement`: of all other values;
  `unevaluated`: what unevaluatedProperties reduces to; `disjoint`: which branches of oneOf may overlap;
- `listed`: what is seen of states of listed scalars; `choices`: alternatives that are settled while an object is read;
- `object_plan`, `object_states`, `array_states`, `ends`: what a clause of an object or array comes to;
- `distinct`: where a name may come twice, if none may (``duplicates="refused"``); `unique_items`: where a matcher has
  to remember items that must differ; `impossible`: which part of a schema without values is to blame.
"""
