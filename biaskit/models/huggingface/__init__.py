"""Local models on transformers: the only place that imports torch and transformers."""

import os

# AMX kernels round bfloat16 otherwise at another batch size (of 64 draws of the demo model 46 were equal at
# batch 16 and 64, without AMX all), and many machines have none: texts would depend on the machine. oneDNN
# reads this once, at its first product; a choice that is there already stays.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
