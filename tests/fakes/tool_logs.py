"""Logs that Inspect and lm-eval write themselves, each in a process of its own; a task of ours, no network.

python tool_logs.py inspect|lm-eval FOLDER
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

N = 40
RIGHT = {"first": 0.9, "second": 0.4}
"""How often each of two models answers rightly."""


def inspect_logs(folder: Path) -> None:
    """FOLDER/MODEL/*.eval of a task of sums, two epochs, two scorers; a sample of the second model fails."""
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes, match

    for name, right in RIGHT.items():
        rng = random.Random(name)

        def answer(
            messages: Any, *_: Any, name: str = name, right: float = right, rng: Any = rng
        ) -> ModelOutput:
            asked = int(messages[-1].text.split("+")[0])
            if asked == 7 and name == "second":
                raise ValueError("no answer")
            said = ModelOutput.from_content(name, str(asked + 1 if rng.random() < right else -1))
            # Without this Inspect fetches a tokenizer to count with.
            return said.model_copy(
                update={"usage": ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)}
            )

        samples = [Sample(id=f"s{i}", input=f"{i}+1=", target=str(i + 1)) for i in range(N)]
        task = inspect_ai.Task(dataset=samples, scorer=[match(numeric=True), includes()], name="sums")
        model = get_model(f"mockllm/{name}", custom_outputs=answer)
        inspect_ai.eval(
            task, model=model, epochs=2, log_dir=str(folder / name), display="none", fail_on_error=False
        )


YAML = """task: sums
dataset_path: json
dataset_kwargs:
  data_files: {{test: {data}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{q}}}}"
doc_to_choice: "{{{{c}}}}"
doc_to_target: a
"""


def lm_eval_logs(folder: Path) -> None:
    """FOLDER/MODEL/results_*.json and samples_sums_*.jsonl of a multiple-choice task in a local YAML file."""
    import lm_eval
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Fixed(LM):
        """Prefers the first option, which is right, at random."""

        def __init__(self, right: float, seed: str) -> None:
            super().__init__()
            self.right, self.rng = right, random.Random(seed)

        def loglikelihood(self, requests: Any) -> Any:
            return [(-0.5 if one.idx else -self.rng.random() / self.right, False) for one in requests]

        def loglikelihood_rolling(self, requests: Any) -> Any:
            raise NotImplementedError

        def generate_until(self, requests: Any) -> Any:
            raise NotImplementedError

    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "documents.jsonl"
    documents = [{"q": f"{i}+1=", "c": [str(i + 1), str(i + 2)], "a": 0} for i in range(N)]
    data.write_text("".join(f"{json.dumps(one)}\n" for one in documents))
    (folder / "sums.yaml").write_text(YAML.format(data=data))
    tasks = TaskManager(include_path=str(folder), include_defaults=False)
    for name, right in RIGHT.items():
        tracker = EvaluationTracker(output_path=str(folder))
        tracker.general_config_tracker.log_experiment_args("dummy", f"pretrained={name}", None, None, False)
        model = Fixed(right, name)
        made = lm_eval.simple_evaluate(model, tasks=["sums"], task_manager=tasks, bootstrap_iters=10)
        samples = made.pop("samples")
        tracker.save_results_aggregated(results=made, samples=samples)
        tracker.save_results_samples(task_name="sums", samples=samples["sums"])


if __name__ == "__main__":
    {"inspect": inspect_logs, "lm-eval": lm_eval_logs}[sys.argv[1]](Path(sys.argv[2]))
