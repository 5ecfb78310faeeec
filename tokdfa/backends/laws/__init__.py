"""The laws of the mask interface, as functions that run on every backend, ours and the peers'.

`contract` runs them and reports; `laws` are the laws; `cases` what they run on; `trial` one backend on one case.
"""
