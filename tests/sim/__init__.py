"""The whole of zlog in one thread and in virtual time, under faults that a seed decides."""
