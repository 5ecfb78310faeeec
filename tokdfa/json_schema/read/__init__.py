"""Reading: the text of a schema, as what it says, before anything is asked of it.

- `document`: the schemas of a document by number, its draft, and what ``$ref`` leads to;
- `keyword_names`: which keywords there are, in which drafts;
- `metaschema`: what is wrong; `suspects`: what is allowed and hardly meant, misspelled keywords above all.
"""
