"""``zlog check``: compares the head with every object, and every entry with its checksum."""
