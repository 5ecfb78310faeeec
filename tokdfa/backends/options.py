"""Options of backends, as data, and whether a backend can take a constraint."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from tokdfa.core import budget
from tokdfa.errors import OptionError

#: What messages call the kinds of options.
_KINDS = {bool: "True or False", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Option:
    """One option of a backend: its type, default, range, and what it does (shown by `tokdfa backends NAME`).

    `kind` is bool, int, float or str; `choices` lists the admissible strings; `minimum` and `maximum` bound numbers;
    `optional` admits None.
    """

    name: str
    kind: type
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    optional: bool = False
    maximum: float | None = None

    def parse(self, text: str) -> Any:
        """The value that `text` writes, checked: true/false for bool, none for None where that is admissible."""
        lowered = text.lower()
        if self.optional and lowered in ("none", "null"):
            return None
        if self.kind is bool:
            if lowered not in ("true", "false", "yes", "no", "on", "off"):
                raise OptionError(f"option {self.name!r} is true or false, not {text!r}")
            return lowered in ("true", "yes", "on")
        try:
            return self.check(self.kind(text))
        except ValueError:
            raise OptionError(f"option {self.name!r} takes {_KINDS[self.kind]}, not {text!r}") from None

    def check(self, value: Any) -> Any:
        """`value` if it is admissible; otherwise OptionError."""
        if value is None and self.optional:
            return None
        if self.kind is float and type(value) is int:
            value = float(value)
        if self.kind is int and isinstance(value, np.integer):
            value = int(value)
        is_other = not isinstance(value, self.kind) or isinstance(value, bool) != (self.kind is bool)
        if is_other or (self.kind is float and isnan(value)):
            raise OptionError(f"option {self.name!r} takes {_KINDS[self.kind]}, not {value!r}")
        if self.choices and value not in self.choices:
            raise OptionError(f"option {self.name!r} must be one of {', '.join(self.choices)}, not {value!r}")
        if self.minimum is not None and value < self.minimum:
            raise OptionError(f"option {self.name!r} must be at least {self.minimum}, not {value!r}")
        if self.maximum is not None and value > self.maximum:
            raise OptionError(f"option {self.name!r} must be at most {self.maximum}, not {value!r}")
        return value


@dataclass(frozen=True)
class Support:
    """Whether a backend can take a constraint, and if not, why. Its truth value is the answer."""

    supported: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.supported


#: Options of every backend whose work is ours: what a compile, and one mask or advance, may take
#: (`tokdfa.core.budget`).
BUDGET_OPTIONS = (
    Option("compile_seconds", float, budget.COMPILE.seconds, "seconds of work that a compile may take", minimum=0),
    Option("compile_mb", float, budget.COMPILE.megabytes, "memory that a compile may keep", minimum=0),
    Option("step_seconds", float, budget.STEP.seconds, "seconds of work that a mask or advance may take", minimum=0),
    Option("step_mb", float, budget.STEP.megabytes, "memory that a mask or advance may keep", minimum=0),
)

YES = Support(True)
NO_TOKENIZER = Support(False, "proper tokenization needs a tokenizer; load one by name (tokdfa.load_tokenizer)")
