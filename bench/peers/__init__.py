"""zlog beside what else keeps a log: in turns, on one machine, each as durable as the other."""
