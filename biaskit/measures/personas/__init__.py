"""Who is represented in sampled personas and biographies, and how."""
