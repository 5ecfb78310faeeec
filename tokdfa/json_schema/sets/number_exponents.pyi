# Nothing of it is for Python: number_exponents.pxd says what `number_states` calls.
