"""Local models on transformers: the only place that imports torch and transformers.

To be read in this order: `folder` (what lies there, and its digests), `demo`, `loading` (weights, tokenizer
from it, on which device, in which precision), `local_model` (what scorer and generator share); `rendering`
(a prompt as tokens), `preparing` (requests as tokens), `prefixes` (which prompts go together), `states` (the
hidden states where a token is asked for), `head` (log-probabilities from them), `listing` (the most probable
tokens), `scorer`; `generator`; `sentence` (word vectors).
"""

import os

# AMX kernels round bfloat16 otherwise at another batch size (of 64 draws of the demo model 46 were equal at
# batch 16 and 64, without AMX all), and many machines have none: texts would depend on the machine. oneDNN
# reads this once, at its first product; a choice that is there already stays.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
