"""The conformance suite: what every host of the protocol must answer, byte for byte.

Everything here goes through `Store.execute(object, method, payload) -> (code, payload)`. It has a
model (`model`, `head_model`) of its own, and a codec (`wire`, `messages`, `requests`, `replies`)
that knows what docs/formats/wire.md says and nothing else, so that a mistake in the implementation
can't hide in the tools that look for it.
"""
