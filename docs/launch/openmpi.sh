#!/bin/sh
# Trains with one rank for each slot of a hostfile ("node1 slots=8" a line), or RANKS of them, under Open MPI:
#
#     RANKS=16 docs/launch/openmpi.sh hosts plan.bin corpus.txt checkpoints
#     RANKS=2 docs/launch/openmpi.sh "" plan.bin corpus.txt checkpoints        # on this host alone
#
# ftexec has to be in the PATH of all hosts and all paths seen by them. It needs nothing of MPI but the variables that mpirun
# sets. Saving and ending: kill -USR1 the mpirun, which passes it on (SIGTERM it answers by ending the ranks within seconds).
hosts=$1
plan=${2:-plan.bin}
data=${3:-corpus.txt}
checkpoints=${4:-checkpoints}

# Rank 0 is on the first host of the file. (Within a Slurm allocation ftexec finds it out by itself.)
if [ -n "$hosts" ]; then
    MASTER_ADDR=$(awk '!/^#/ && NF { print $1; exit }' "$hosts")
    export MASTER_ADDR
    set -- --hostfile "$hosts" -x MASTER_ADDR
else
    set --
fi

# --bind-to none: threads of a rank may use more than one core. orte_abort_on_non_zero_status (Open MPI 4; 5 names it
# prte_abort_on_non_zero_status): the first rank that ends after saving must not take the others with it.
exec mpirun ${RANKS:+-n "$RANKS"} "$@" --bind-to none -x OMP_NUM_THREADS="${OMP_NUM_THREADS:-8}" \
    --mca orte_abort_on_non_zero_status 0 \
    ftexec "$plan" --data="$data" --steps=100000 \
    --checkpoint-dir="$checkpoints" --save-every=30m --resume=auto --grace=240 \
    --metrics="$checkpoints.metrics.jsonl"
