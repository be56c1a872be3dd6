"""Two jobs, fifty templates, one model: of whom does it think first.

Run as `python examples/first_result.py [MODEL]`; the default is the demo model.
"""

import sys

import biaskit as bk


def main() -> None:
    model = sys.argv[1] if len(sys.argv) > 1 else "demo"
    result = bk.probe(model, jobs="nurse,plumber")
    for row in result.groups.itertuples():
        if row.gender == "female":
            print(
                f"{row.bias_type}, {row.job_group} jobs: P(female | target words) = {row.share:.3f}"
                f" [{row.ci_low:.3f}, {row.ci_high:.3f}], coverage {row.coverage:.3f}"
            )
    for warning in result.warnings:
        print("Note:", warning)


if __name__ == "__main__":
    main()
