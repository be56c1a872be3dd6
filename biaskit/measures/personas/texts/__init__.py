"""From texts to documents: users' files, tokens, names, and the gender that each text speaks of."""
