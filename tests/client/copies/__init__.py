"""Objects in several copies, of which some are damaged: what clients read, and what heals them."""
