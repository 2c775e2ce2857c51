"""Who leads a namespace: candidates, the lease, takeovers, and the leader's maintenance."""
