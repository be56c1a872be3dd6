"""The harness's half of speed.py: score requests with lm-evaluation-harness, in its own environment.

Run by speed.py as `PYTHON harness_side.py MODEL_FOLDER REQUESTS.json OUT.json BATCH_SIZE`.
"""

import json
import sys

from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM


def main() -> None:
    folder, requests_file, out_file, batch_size = sys.argv[1:5]
    with open(requests_file, encoding="utf-8") as file:
        requests = json.load(file)
    model = HFLM(pretrained=folder, dtype="float32", batch_size=int(batch_size), device="cpu")
    instances = [
        Instance(request_type="loglikelihood", doc={}, arguments=(prompt, text), idx=i)
        for i, (prompt, text) in enumerate(requests)
    ]
    scores = [score for score, _ in model.loglikelihood(instances, disable_tqdm=True)]
    with open(out_file, "w", encoding="utf-8") as file:
        json.dump(scores, file)


if __name__ == "__main__":
    main()
