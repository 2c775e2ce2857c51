"""Maps positions to objects: ``layout`` has the newest view, ``views`` the steps to change it."""
