"""Where a log's positions lie: head, views, epochs, stripes, and every change to them.

``layout`` is a client's picture of it; ``views`` has the steps of a change (seal, tail, propose).
"""
