"""Templates: the settings of new logs, by patterns of their names.

:mod:`zlog.aio.templates` has the same functions for asyncio.
"""

from zlog.sync.templates import Applied as Applied
from zlog.sync.templates import Setting as Setting
from zlog.sync.templates import Template as Template
from zlog.sync.templates import apply_template as apply_template
from zlog.sync.templates import list_templates as list_templates
from zlog.sync.templates import remove_template as remove_template
from zlog.sync.templates import set_template as set_template
from zlog.sync.templates import settings_of as settings_of
