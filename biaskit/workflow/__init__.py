"""What a command and a notebook both do: resolve, ask, analyse, compare, and hand back a result."""
