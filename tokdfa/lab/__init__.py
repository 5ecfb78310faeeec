"""The lab: from a question in one YAML file to measured rows, and from rows to a page.

`config` reads an experiment and spells out its items; `run` measures them in processes of their own into a store that
can be resumed; `kinds` holds what can be asked, one file a kind: measured by the instruments of `measure`, told by
tables, charts and sentences in the words of `declare`; `report` makes pages of them.
"""
