"""``zlog check``: the head against every object, and every entry against its checksum."""
