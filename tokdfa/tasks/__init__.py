"""Tasks: prompts, a constraint for each, a reference, and a score; what `kind: worth` decodes in many ways.

Words. An *item* is one prompt with its constraint and its reference. A text is *valid* if it has the form that is asked
for, by a judge that knows nothing of masks (`json`, `re`, `sqlite3`, `ast`); its *score* is from 0 to 1, 1 for an
answer that is right. A text that is not valid scores 0.

The items of the tasks here are made by us, from word lists and a fixed seed, and are in the public domain (CC0 1.0).
They are easy to judge and small; they tell ways to decode apart, not models. Data that users bring are read from a
folder, which is checked and never filled (`tokdfa.tasks.gsm8k`, `bfcl`, `patterns`, `spider`, `molecules`).

`registry.load_task` finds a task by name. Another package adds its own by an entry point of the group ``tokdfa.tasks``,
a function that returns a `base.Task`.
"""
