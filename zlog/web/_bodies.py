"""The bodies of requests and replies, and the entries of streams that hold them."""

from __future__ import annotations

import re

import msgspec

from zlog.web._settings import RAW_LIST, media_type
from zlog.web._stream import Chunk, Stream


def messages(body: bytes) -> list[bytes]:
    """Split JSON into messages, which are the elements of an array, or else the value itself."""
    try:
        body.decode()
        text = body.strip(b" \t\r\n")
        if text.startswith(b"["):
            return [bytes(raw) for raw in msgspec.json.decode(text, type=RAW_LIST)]
        msgspec.json.decode(text, type=msgspec.Raw)
        return [text]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the body is not valid JSON: {error}") from None


def split(stream: Stream, body: bytes) -> list[bytes]:
    """Return the entries for a body."""
    if body and stream.settings.is_json:
        return messages(body)
    most = stream.log.entry_bytes_max
    if media_type(stream.settings.type).startswith("text/"):  # keep characters of UTF-8 whole
        sizes = max(1, most - 3), most, most
        return re.findall(rb"(?s).{%d,%d}(?![\x80-\xbf])|.{1,%d}" % sizes, body)
    return [body[i : i + most] for i in range(0, len(body), most)]


def joined(stream: Stream, chunk: Chunk) -> bytes:
    """Return the body for the data of a chunk."""
    if not stream.settings.is_json:
        return b"".join(chunk.data)
    if not _are_messages(chunk.data):  # other programs can append to the log
        chunk.data = [each for each in chunk.data if _are_messages([each])]
    return b"[%s]" % b",".join(chunk.data)


def _are_messages(data: list[bytes]) -> bool:
    text = b"[%s]" % b",".join(data)
    try:
        text.decode()
        return len(msgspec.json.decode(text, type=list[msgspec.Raw])) == len(data)
    except (ValueError, RecursionError):
        return False
