"""``zlog check``: compares the head with every object, and verifies every entry's checksum."""
