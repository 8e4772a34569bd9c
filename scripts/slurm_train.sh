#!/bin/bash
# Train on several machines of a Slurm cluster, and resume after each time limit until the run is finished.
#   sbatch --nodes=2 --gpus-per-node=8 scripts/slurm_train.sh experiment=wmt14_en_de_big
# Start it from the top of the repository, after `make setup`, with the data prepared on a disk that all machines share.
# Without Slurm, on each of two machines (the first is called node1):
#   .venv/bin/torchrun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d \
#       --rdzv-endpoint=node1:29400 --rdzv-id=wmt14 -m nmt train experiment=wmt14_en_de_big
#SBATCH --job-name=nmt
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=12:00:00
#SBATCH --signal=B:USR1@180
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=outputs/slurm-%j.log
set -u
python=${PYTHON:-.venv/bin/python}
stopped=143  # exit code of nmt after it was asked to stop and saved a checkpoint
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
gpus=${SLURM_GPUS_ON_NODE:-1}

"$python" -m nmt describe "$@" || exit 2  # reports a mistake in the settings once, before training starts

export TORCH_ELASTIC_SHUTDOWN_TIMEOUT=120  # seconds in which the processes may save
# if a process fails, torchrun restarts all of them from the last checkpoint, at most three times; srun of Slurm 22.05
# to 23.02 does not know the job's --cpus-per-task, and would give all processes of a machine one core
srun --kill-on-bad-exit=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:-16}" "$python" -m torch.distributed.run \
    --nnodes="$SLURM_JOB_NUM_NODES" --nproc-per-node="$gpus" --max-restarts=3 --rdzv-backend=c10d --rdzv-endpoint="$first:$((20000 + SLURM_JOB_ID % 20000))" --rdzv-id="$SLURM_JOB_ID" \
    -m nmt train "$@" &
training=$!

save() {  # torchrun forwards SIGTERM, upon which nmt saves after its current step
    kill -TERM "$training"
}
requeue_later() {
    echo "slurm_train: the time limit is near; saving, then requeueing the job" >&2
    requeue=yes
    save
}
requeue=no
trap requeue_later USR1
trap save TERM  # cancelled or pre-empted; after a pre-emption Slurm requeues the job itself

wait "$training"; code=$?
while kill -0 "$training" 2>/dev/null; do wait "$training"; code=$?; done
if [ "$requeue" = yes ] && [ "$code" -ne 0 ]; then
    scontrol requeue "$SLURM_JOB_ID"
    exit "$stopped"
fi
exit "$code"
