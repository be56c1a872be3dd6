"""Engine 2: who is represented in sampled personas and biographies, and how."""
