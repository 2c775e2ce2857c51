"""The sequencer's state machine, without I/O: bytes and events in, bytes and effects out."""
