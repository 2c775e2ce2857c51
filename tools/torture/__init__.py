"""Does a table have every entry of a log once, however often the query that fills it is killed?

A log is appended to all the while. ``zlog spark tail`` copies it, and is killed with SIGKILL at
moments that nobody chose: the driver's Python and JVM, the planner, the workers, all at once. It is
started again, and so on; in the end the table is read by Spark and compared with the log.
"""
