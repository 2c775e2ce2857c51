"""The sequencer: a network service that grants the positions of any number of logs.

``machine`` has the logic, ``server`` the connections, and ``election`` decides who leads and takes
logs over. ``service`` combines them for ``zlog seqr``.
"""
