"""The sequencer: a network service that hands out the tail of any number of logs.

``machine`` decides, ``server`` moves bytes, ``activation`` takes logs over, ``service`` puts them
together for ``zlog seqr``.
"""
