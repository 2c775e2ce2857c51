"""Maps positions to objects. ``layout`` keeps the newest view, and ``views`` changes it."""
