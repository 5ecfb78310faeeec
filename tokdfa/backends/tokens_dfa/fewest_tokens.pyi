from collections.abc import Sequence

from tokdfa.vocabulary.vocabulary import Vocabulary

def spell_in_fewest_tokens(texts: Sequence[bytes], vocab: Vocabulary) -> list[tuple[int, ...] | None]: ...
