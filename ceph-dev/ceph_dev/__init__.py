"""The development cluster: a monitor and some OSDs as plain processes in one folder.

It uses the standard library only, because it runs before anything of this project is installed. A
module may use only modules to the right of it:

    cli -> cluster -> gateway, object_class, daemon, monitor, keyring, ports -> settings
"""


class ClusterError(Exception):
    """An error that the user can fix. The message says what happened and what to do."""
