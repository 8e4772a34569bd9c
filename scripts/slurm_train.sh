#!/bin/bash
# Train on several machines of a Slurm cluster, and go on after each time limit until the run is finished.
#   sbatch --nodes=2 --gpus-per-node=8 scripts/slurm_train.sh experiment=wmt14_en_de_big
# Start it from the top of the repository, with `make setup` done and the data prepared on a disk that all machines share.
# Without Slurm, on each of two machines (the first is called node1):
#   .venv/bin/python scripts/torchrun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d \
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
stopped=143  # what nmt leaves with when it was asked to stop and has saved all
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
gpus=${SLURM_GPUS_ON_NODE:-1}

"$python" -m nmt describe "$@" || exit 2  # a mistake in the settings is said once, before any machine starts

# a process that fails is started again with the others, from the last checkpoint, three times at most
srun --kill-on-bad-exit=1 "$python" scripts/torchrun --nnodes="$SLURM_JOB_NUM_NODES" --nproc-per-node="$gpus" \
    --max-restarts=3 --rdzv-backend=c10d --rdzv-endpoint="$first:$((20000 + SLURM_JOB_ID % 20000))" --rdzv-id="$SLURM_JOB_ID" \
    -m nmt train "$@" &
training=$!

save() {  # SIGTERM, which torchrun passes on, makes nmt save after the step it is at
    kill -TERM "$training"
}
again() {
    echo "slurm_train: time is nearly up; saving, then queueing the job again" >&2
    requeue=yes
    save
}
requeue=no
trap again USR1
trap save TERM  # cancelled, or pre-empted: in the second case Slurm itself queues it again

wait "$training"; code=$?
while kill -0 "$training" 2>/dev/null; do wait "$training"; code=$?; done
if [ "$requeue" = yes ] && [ "$code" -ne 0 ] && [ "$code" -ne 2 ]; then
    scontrol requeue "$SLURM_JOB_ID"
    exit "$stopped"
fi
exit "$code"
