#!/bin/bash
# A job array of shards: sbatch --array=1-8 examples/slurm.sh probe hf:ORG/NAME --study occugender
#
# Each task asks its part of the plan and stores every answer at once. A task that is stopped, by its time limit
# or by a node that fails, is queued again and goes on where it was. When all are done:
#
#     biaskit analyze biaskit-runs/occugender-*-shard-*-of-8 --out whole
#
# One task of an array alone: SHARDS=8 sbatch --array=3 examples/slurm.sh ...
#
#SBATCH --job-name=biaskit
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=4
#SBATCH --mem=48G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@120

set -euo pipefail
if [ $# -lt 2 ]; then
    echo "usage: sbatch --array=1-N examples/slurm.sh probe|personas MODEL... [OPTIONS]" >&2
    exit 2
fi

# Two minutes before the time limit: finish the row at hand, then stand in line again.
again() {
    kill -TERM "$task" 2>/dev/null || true
    wait "$task" || true
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
    exit 0
}
trap again TERM

# A task of its own folder: nobody shares a lock, and --yes answers the question that long runs ask.
biaskit "$@" --yes --shard "${SLURM_ARRAY_TASK_ID}/${SHARDS:-$SLURM_ARRAY_TASK_MAX}" &
task=$!
wait "$task"
