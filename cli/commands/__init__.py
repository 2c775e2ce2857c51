"""The commands, each in a module or package of its name. The parent package has shared code."""
