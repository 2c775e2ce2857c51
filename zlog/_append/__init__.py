"""How entries get into a log: positions, rounds of writes, retries, rolling, deliveries."""
