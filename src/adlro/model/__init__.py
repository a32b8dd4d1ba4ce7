"""The nouns of the field: GPU models, clusters, and the records that a policy sees and answers."""
