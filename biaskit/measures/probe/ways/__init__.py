"""Whether answers depend on how one asks: formats × system prompts × wordings (methods/reliability#ways)."""
