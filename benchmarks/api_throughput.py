"""What the client of API models adds to the network: 2,000 short requests, rows written and fsynced.

    python benchmarks/api_throughput.py [--repeat 3]

The test server runs as a process of its own; so does every measurement, so that each begins cold: no
connection, no known window, and with 500 ms openai not imported. With 500 ms latency the time from opening
the model to the last durable row is held against the ideal (requests x latency / 100). With 50 ms, where the
client's own work decides, it is held against a bare loop of the same openai client with 100 requests in
flight and nothing written; the two take turns, and the import is left out of both. Memory: resident size
after each quarter of the requests. Ratios are of one run on one machine; nothing here is a test.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fakes.api_server import ApiProcess
from fakes.numbered_runs import entry

AT_ONCE = 100
TOKENS = 8
GOAL_SLOW, GOAL_FAST = 1.3, 1.2


def prompt_of(number: int) -> str:
    """Prompts differ, as those of a study do."""
    return f"Biography of nurse number {number % 50}\n\n"


def resident_mb() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


# --- the two ways, each in a process of its own ---------------------------------------------------------


def ours(url: str, n: int) -> dict[str, Any]:
    """The generator as `biaskit personas` uses it, and the run's own writer."""
    from biaskit.models.api.abilities import Abilities
    from biaskit.models.api.endpoint import open_endpoint
    from biaskit.models.api.opening import open_api_generator
    from biaskit.models.api.options import ApiOptions
    from biaskit.records import Prompt, Sample, SampleRequest, Sampling
    from biaskit.runs.store import RowWriter

    spec = f"api:toy@{url}"
    # What doctor finds of this server; as in a resumed run, it is not asked again.
    found = Abilities(answered_by="toy", completions=True, latency=0.5, parallel=4.0)
    endpoint = open_endpoint(spec, label="toy", keys={}, endpoint_name=None)
    known = entry(abilities=found.as_json(), fingerprint=endpoint.fingerprint)
    requests = [
        SampleRequest(f"{i:032x}", Prompt(prompt_of(i), "completion"), Sampling(max_new_tokens=TOKENS), i, i)
        for i in range(n)
    ]
    sizes: list[float] = []
    with tempfile.TemporaryDirectory() as folder, RowWriter(Path(folder), "personas") as writer:
        started, worked = time.perf_counter(), time.process_time()
        generator = open_api_generator(spec, label="toy", options=ApiOptions(), known=known)
        written = 0
        for group in generator.generate(generator.plan_samples(requests).batches):
            rows = [
                {"key": a.key, "text": a.text, "finish": a.finish} for a in group if isinstance(a, Sample)
            ]
            writer.append(rows)
            written += len(rows)
            if len(sizes) < 4 * written // n:
                sizes.append(resident_mb())
        seconds, cpu = time.perf_counter() - started, time.process_time() - worked
        assert written == n == len(writer.keys), (written, n)
        generator.close()
    return {"seconds": seconds, "cpu": cpu, "mb": sizes}


def bare(url: str, n: int) -> dict[str, Any]:
    """The client alone, AT_ONCE requests in flight from the first moment: what any loop around it pays."""
    started, worked = time.perf_counter(), time.process_time()
    import openai

    async def run() -> None:
        client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
        numbers: Iterator[int] = iter(range(n))
        settings: dict[str, Any] = {"model": "toy", "max_tokens": TOKENS, "temperature": 1.0, "top_p": 1.0}

        async def work() -> None:
            for i in numbers:
                answer = await client.completions.create(prompt=prompt_of(i), seed=i, **settings)
                assert answer.choices

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        await client.close()

    asyncio.run(run())
    seconds, cpu = time.perf_counter() - started, time.process_time() - worked
    return {"seconds": seconds, "cpu": cpu, "mb": [resident_mb()]}


def measure(way: str, latency: float, n: int, *, warm: bool) -> dict[str, Any]:
    """One way in a fresh process against a fresh server."""
    with ApiProcess("--latency", str(latency)) as server:
        command = [sys.executable, __file__, "--way", way, "--url", server.url, "--requests", str(n)]
        done = subprocess.run(
            [*command, *(["--warm"] if warm else [])], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        most = server.stats()["in_flight_most"]
    return {**json.loads(done.stdout.splitlines()[-1]), "in_flight_most": most}


def show(name: str, found: dict[str, Any], beside: str) -> None:
    """One measurement."""
    memory = ", ".join(f"{size:.0f}" for size in found["mb"])
    print(
        f"{name:<5}{found['seconds']:7.2f} s{beside}; {found['cpu']:.2f} s of computing, at most"
        f" {found['in_flight_most']} in flight, memory {memory} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--only", choices=["slow", "fast"], help="one of the two latencies")
    parser.add_argument("--way", choices=["ours", "bare"], help=argparse.SUPPRESS)
    parser.add_argument("--warm", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    args = parser.parse_args()
    n = args.requests
    if args.way:
        if args.warm:
            import openai  # noqa: F401
        print(json.dumps({"ours": ours, "bare": bare}[args.way](args.url, n)))
        return

    ratios: dict[str, list[float]] = {"slow": [], "fast": []}
    for _ in range(args.repeat):
        if args.only != "fast":
            ideal = n * 0.5 / AT_ONCE
            for way in ("ours", "bare"):
                found = measure(way, 0.5, n, warm=False)
                times = found["seconds"] / ideal
                show(way, found, f" at 500 ms, {times:.2f} times the ideal {ideal:g} s")
                if way == "ours":
                    ratios["slow"].append(times)
        if args.only != "slow":
            ours_, bare_ = (measure(way, 0.05, n, warm=True) for way in ("ours", "bare"))
            ratios["fast"].append(ours_["seconds"] / bare_["seconds"])
            show("ours", ours_, f" at 50 ms, {ratios['fast'][-1]:.2f} times the bare loop")
            show("bare", bare_, " at 50 ms")
    for name, goal, against in (("slow", GOAL_SLOW, "ideal"), ("fast", GOAL_FAST, "bare loop")):
        if ratios[name]:
            shown = ", ".join(f"{ratio:.2f}" for ratio in ratios[name])
            median = statistics.median(ratios[name])
            print(f"{name}: {median:.2f} times the {against} (goal {goal}); each {shown}")


if __name__ == "__main__":
    main()
