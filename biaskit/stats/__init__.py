"""Pure functions on arrays of numbers; each says its formula and where methods/index defines it."""
