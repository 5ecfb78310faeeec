"""GSM8K (Cobbe et al. 2021, arXiv 2110.14168) from a folder of yours: word problems whose answer is a number.

``load_task("gsm8k", folder)`` reads ``test.jsonl`` of the published repository: one JSON object a line, with the texts
``question`` and ``answer``, the latter ending in ``#### NUMBER``. Nothing is downloaded; the data's licence is MIT.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from tokdfa.constraint import Regex
from tokdfa.errors import OptionError
from tokdfa.tasks.base import Item, Task, few_shot

_NUMBER = re.compile(r"-?[0-9]{1,9}")


def gsm8k(folder: str) -> Task:
    """The task of a folder. Raises OptionError, which names the file and the line, for another format."""
    path = Path(folder) / "test.jsonl"
    if not path.is_file():
        raise OptionError(f"gsm8k: there is no file {path}; give the folder with test.jsonl of the published data")
    items = []
    shown = [("A bag has 4 apples. How many apples are in 3 bags, and 2 more?", "14")]
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            found = json.loads(line)
            question, (_, answer) = found["question"], found["answer"].rsplit("####", 1)
            answer = answer.strip().replace(",", "")
            if not isinstance(question, str) or not _NUMBER.fullmatch(answer):
                raise ValueError("the answer is no whole number")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            wanted = '{"question": TEXT, "answer": "... #### NUMBER"}'
            raise OptionError(f"gsm8k: {path}, line {number}: not {wanted}: {error}") from None
        prompt = few_shot("Answer with a number.", shown, question)
        items.append(Item(f"{number:04d}", prompt, Regex(_NUMBER.pattern), answer))
    return Task(
        "gsm8k",
        "word problems of GSM8K",
        "MIT",
        tuple(items),
        lambda item, text: _NUMBER.fullmatch(text) is not None,
        lambda item, text: float(int(text) == int(item.reference)),
        max_tokens=12,
    )
