"""The sequencer: a network service that grants the positions of any number of logs.

``machine`` contains the logic and ``server`` the connections. ``election`` decides who leads, and
takes logs over. ``service`` combines them for ``zlog seqr``.
"""
