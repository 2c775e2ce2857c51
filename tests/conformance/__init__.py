"""The conformance suite: what every host of the protocol must answer, byte for byte.

Everything here goes through `Store.execute(object, method, payload) -> (code, payload)` and was
written from the specification, with a codec (`wire`, `requests`, `replies`) and a model (`model`)
of its own, so that a mistake in the implementation can't hide in the tools that look for it.
"""
