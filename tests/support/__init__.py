"""What several suites need: real clusters, and stores on every host."""
