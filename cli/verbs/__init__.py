"""The verbs: one module or package for each, named as the verb. What they share lies above."""
