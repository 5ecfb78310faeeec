from collections.abc import Sequence

from tokdfa.vocabulary.vocabulary import Vocabulary

def spell_in_fewest_tokens(texts: Sequence[bytes], vocab: Vocabulary) -> list[tuple[int, ...] | None]:
    """For each text the spelling with the fewest tokens, or None if no token sequence spells it.

    Ties are broken as the module's docstring says. Only tokens that spell something are used.
    """
