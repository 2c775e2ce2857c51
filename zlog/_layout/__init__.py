"""How positions map to objects: views, epochs, stripes, and every change to them.

``layout`` holds the newest view that a client knows. ``views`` has the steps of a change (seal,
tail, propose).
"""
