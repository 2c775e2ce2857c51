"""The development cluster: a monitor and some OSDs as plain processes in a folder of their own.

It uses the standard library only, because it runs before anything of this project is installed.
Data goes down one step at a time:

    cli -> cluster -> object_class, daemon, monitor, keyring, ports -> settings
"""


class ClusterError(Exception):
    """Something the user can act on; the message says what happened and what to do."""
