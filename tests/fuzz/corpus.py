"""Inputs for ``fuzz_methods`` to begin with: the requests of the conformance suite.

`python -m tests.fuzz.corpus FOLDER` writes each into a file, for every object that the fuzzer has,
and a sound request of each method into the dictionary ``FOLDER.dict``. Without a folder it prints
these requests as C++ strings, which fuzz_methods.cc includes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from ..conformance import golden, hostile

STATES = 20
"""As many as fuzz_methods.cc makes, and one more: no object."""

_WHOLE_OBJECT, _OWN_BYTES = 1, 1  # odd: the object is not damaged; the request's bytes follow
_REQUEST_BYTES_MAX = 255


def inputs(methods: list[str]) -> Iterator[tuple[str, bytes]]:
    """Return a name for each input, and its bytes.

    Args:
        methods: the class's, in its own order.
    """
    for number, (method, request) in enumerate(_requests()):
        call = bytes([methods.index(method), _OWN_BYTES, len(request)]) + request
        for state in range(STATES):
            yield f"{method}-{number}-{state}", bytes([state, _WHOLE_OBJECT]) + call


def _requests() -> Iterator[tuple[str, bytes]]:
    yield from hostile.SOUND.items()
    golden_requests = ((each.method, each.request) for each in golden.exchanges())
    for method, request in (*golden_requests, *hostile.lies()):
        if len(request) <= _REQUEST_BYTES_MAX:
            yield method, request


def main() -> None:
    """Write all inputs and the dictionary, or print the sound requests."""
    if not sys.argv[1:]:
        for data in hostile.SOUND.values():
            sys.stdout.write('"' + "".join(f"\\{byte:03o}" for byte in data) + '"s,' + "\n")
        return
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in inputs([*hostile.SOUND]):
        (folder / name).write_bytes(data)
    escaped = {method: data.hex(" ").replace(" ", "\\x") for method, data in hostile.SOUND.items()}
    lines = [f'{method}="\\x{data}"\n' for method, data in escaped.items() if data]
    folder.with_suffix(".dict").write_text("".join(lines))


if __name__ == "__main__":
    main()
