"""Whether the answers of a model and its texts agree: asks nothing, reads the tables of two kinds."""
