"""The sequencer: a network service that grants the positions of any number of logs.

``machine`` contains its logic, and ``server`` handles its connections. ``election`` decides which
sequencer leads, and takes over logs. ``service`` combines them for ``zlog seqr``.
"""
