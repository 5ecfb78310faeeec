from tokdfa.json_schema.sets.number_set import NumberSet

class NumberStates:
    """A number set in normal form, and how its states read a byte. `shift` -1 means no exponents.

    Raises LimitExceeded for cases of remainders that do not fit 32 bits.
    """

    def __init__(self, normal: NumberSet, shift: int) -> None: ...
