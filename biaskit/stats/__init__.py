"""Pure functions on arrays of numbers; each says its formula and where docs/methods.md defines it."""
