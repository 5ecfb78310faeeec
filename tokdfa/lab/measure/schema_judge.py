"""Whether a text is valid JSON under a schema, by the library `jsonschema`.

*Validity* is by the draft that the schema declares (2020-12 if none), formats asserted, as MaskBench's labels are. It
is asked twice: with numbers as the exact decimals that stand in the text, and with numbers as doubles, as most readers
see them. The second question is left out where the schema has a ``multipleOf``: the library divides doubles, so to it
0.3 is no multiple of 0.1. Of members of one name both see the last.
"""

from __future__ import annotations

import decimal
import json
from decimal import Decimal
from typing import Any

from tokdfa.core.packages import missing_dependency

#: Digits with which remainders are exact: more than the spellings of a number can differ by.
PRECISION = 4_000


class Judge:
    """Says whether a text is valid under a schema. Raises MissingDependency without jsonschema."""

    def __init__(self, schema_text: str) -> None:
        try:
            import jsonschema
        except ImportError:
            raise missing_dependency("jsonschema", "judging answers of a schema") from None
        default = jsonschema.Draft202012Validator
        plain = json.loads(schema_text)
        kind = jsonschema.validators.validator_for(plain, default=default)
        exact_kind = jsonschema.validators.extend(kind, type_checker=_with_decimals(kind))
        formats = default.FORMAT_CHECKER
        self._exact = exact_kind(json.loads(schema_text, parse_float=_decimal), format_checker=formats)
        self._doubles = None if '"multipleOf"' in schema_text else kind(plain, format_checker=formats)

    def fault(self, text: bytes) -> str:
        """What is wrong with a text; empty if it is valid."""
        try:
            decoded = text.decode("utf-8")
            exact = json.loads(decoded, parse_float=_decimal, parse_constant=_refuse)
            exact_text = decoded.encode("utf-8", "strict")
        except (ValueError, RecursionError) as error:
            return f"no JSON: {error}"
        assert exact_text == text
        with decimal.localcontext() as context:
            context.prec, context.Emax, context.Emin = PRECISION, decimal.MAX_EMAX, decimal.MIN_EMIN
            first = next(self._exact.iter_errors(exact), None)
        if first is None and self._doubles is not None:
            first = next(self._doubles.iter_errors(json.loads(decoded)), None)
        return "" if first is None else f"{first.json_path}: {first.message}"


def _with_decimals(kind: Any) -> Any:
    """The type checker of a validator, for numbers that are read as decimals."""
    checker = kind.TYPE_CHECKER

    def is_integer(_: Any, value: Any) -> bool:
        if not isinstance(value, Decimal):
            return bool(checker.is_type(value, "integer"))
        is_whole = value == value.to_integral_value()
        return is_whole and bool(checker.is_type(1.0, "integer"))  # in draft 4 a point makes it a number

    return checker.redefine("integer", is_integer)


def _decimal(text: str) -> Decimal:
    """The number; one near the largest, or 0, for exponents beyond what decimals have."""
    try:
        return Decimal(text)
    except decimal.InvalidOperation:
        mantissa, _, exponent = text.lower().partition("e")
        zero = Decimal(mantissa) == 0 or exponent.startswith("-")
        return Decimal(0) if zero else Decimal(f"1E+{decimal.MAX_EMAX}").copy_sign(Decimal(mantissa))


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")
