"""Names in the results of ``kind: cfg_fsm``, apart so that reports need not load the engines."""

#: Parts of an experiment: masks of texts, terminals in a row, and what grows with terminals or with the longest token.
MASKS, CONCATENATION, TERMINALS, TOKEN_BYTES = "masks", "concatenation", "terminals", "token bytes"
#: Ways to make a mask; `tokdfa.lab.measure.cfg_fsm_masks.WAYS` has their options.
TREE, NOTHING, PRODUCT, WALK, KEPT = "tree", "nothing", "product", "walk", "kept"
