"""Local models on transformers: the only place that imports torch and transformers.

Read in this order: `folder` (its content and digests), `demo`, `loading` (weights and tokenizer, device and
precision), `local_model` (the part that scorer and generator share); `rendering` (a prompt as tokens),
`preparing` (requests as tokens), `prefixes` (which prompts go together), `states` (hidden states at the nodes
of a trie), `head` (log-probabilities from them), `listing` (the most probable tokens), `scorer`; `generator`.
"""

import os

# AMX kernels round bfloat16 differently at another batch size (of 64 samples of the demo model 46 were equal
# at batch 16 and 64, without AMX all), and many machines have none: texts would depend on the machine. oneDNN
# reads this once, at its first product; a user's own setting stays.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
