"""Record dtypes of the state that worlds maintain and policies read: one flat array of each.

Dimensions: J jobs, T job types, M GPU models, P pools, N nodes, G GPUs, Q waiting jobs, R running
jobs, E events, K kinds of demand, H quotas.

*Workload* (read-only): jobs [J], est [J, M], allowed [J, P].
*Rules* (read-only, applied by the world): holders [J, 2], quotas [H], caps [H, M], ageing.
*Ground truth* (simulator only, never visible to a policy): seconds [J, M], events [E],
colocation [T, T], readings [T + 1, M] (the last row: idle).
*State* (small; a clone copies only the part in use): totals, queue, eligible, running, pools,
nodes, gpus and the memory of the policy; hidden from policies: undone [Q], ends [R], wear [G, 2]
and cells [T, M].

WAITING.job, RUNNING.job, GPU.job and DECISION.job are rows of `jobs` and `est`. The simulator has
one row per job; a live cluster reuses rows, so age is given by JOB.id, not by the row. Memory is in
whole MB and GPU shares in thousandths, so that a release restores the free amounts exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Records = NDArray[Any]  # a record array of one of the dtypes below
Row = Any  # one record of such an array; compiled code reads its fields as attributes
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]

WHOLE = 1000  # thousandths of a GPU
PARTITION_BITS = 31


def partition_bit(number: int) -> int:
    """Return the bit of a partition, by its number in the cluster; those from 30 on share one."""
    return 1 << min(number, PARTITION_BITS - 1)


# Kinds of decisions.
START, PREEMPT, MIGRATE, WAKE = range(4)
DECISION_KINDS = ("start", "preempt", "migrate", "wake")

# Kinds of events, in the order in which simultaneous events are handled (then by job id).
FINISH, REPAIR, FAILURE, SPEED, CORES, ARRIVAL, TIMER = range(7)
EVENT_KINDS = ("finish", "repair", "failure", "speed", "cores", "arrival", "timer")
CRASH, PLANNED, DRAIN = range(3)  # EVENT.value of a FAILURE
PREEMPTION = -1  # end of a run by the policy; besides FINISH and FAILURE

JOB = np.dtype(
    [
        ("id", "i8"),  # increases with arrival, never reused: the smaller id is the older job
        ("arrival", "f8"),  # seconds since the start of the run
        ("requested", "f8"),  # seconds requested by the user, on the reference GPU
        ("limit", "f8"),  # seconds after which a run is killed; infinite = never
        ("priority", "f8"),  # in [0, 1], 1 = most important
        ("communication", "f8"),  # extra share of run time when a gang spans reference nodes
        ("checkpoint", "f8"),  # seconds to save, and to restore; < 0 = cannot checkpoint
        ("interval", "f8"),  # working seconds between automatic saves; infinite = none
        ("least_run", "f8"),  # minimum length of a run before it may be preempted, seconds
        ("start_delay", "f8"),  # seconds from the allocation of its GPUs until a run begins to work
        ("type", "i4"),
        ("gpus", "i4"),  # gang size: GPUs of one pool, allocated and released together
        ("share", "i4"),  # thousandths of each GPU; WHOLE unless the job takes a slice
        ("cores", "i4"),  # CPU cores for each GPU
        ("memory", "i4"),  # MB of host memory for each GPU
        ("gpu_memory", "i4"),  # MB of GPU memory on each GPU
        ("user", "i4"),
        ("account", "i4"),  # the queue or account that the job is charged to
        ("one_node", "i4"),  # 1 = all its GPUs must be on one node
        ("partitions", "i4"),  # that it was submitted to, as bits (see partition_bit)
    ],
    align=True,
)

WAITING = np.dtype(
    [
        ("job", "i4"),
        ("restarts", "i4"),  # number of preemptions and failures so far
        ("saved", "i4"),  # 1 = its next run restores a checkpoint first
        ("unused", "i4"),  # fills the padding, so that records compare by bytes
        ("since", "f8"),  # when it (last) began to wait
        ("left", "f8"),  # share of its work still to do by the estimate, in (0, 1]
        ("served", "f8"),  # GPU-seconds received so far, useful or not
    ],
    align=True,
)

RUNNING = np.dtype(
    [
        ("job", "i4"),
        ("pool", "i4"),
        ("gpu", "i4"),  # its first GPU; the others follow GPU.next
        ("nodes", "i4"),  # number of nodes that it spans
        ("restarts", "i4"),
        ("saved", "i4"),  # 1 = it began with restoring a checkpoint
        ("after", "i4"),  # the next slice on the same GPU: its index in `running`, or -1
        ("before", "i4"),  # the previous slice, or -1
        ("start", "f8"),  # when this run began
        ("expected", "f8"),  # its end by the estimate (see feasibility.expected_end)
        ("left", "f8"),  # share of its work that was still to do at `start`, by the estimate
        ("served", "f8"),  # GPU-seconds received before `start`
    ],
    align=True,
)

POOL = np.dtype(
    [
        ("model", "i4"),  # column of est
        ("partitions", "i4"),  # that its nodes are in, as bits (see partition_bit)
        ("first_node", "i4"),  # its nodes are nodes[first_node : first_node + nodes]
        ("nodes", "i4"),
        ("first_gpu", "i4"),  # the GPUs of all its nodes start here in `gpus`
        ("gpus", "i4"),  # GPUs that are up
        ("free", "i4"),  # GPUs without any job
        ("sliced", "i4"),  # GPUs that hold slices
        ("size", "i4"),  # all GPUs, up or down
        ("node_gpus", "i4"),  # GPUs of one node
        ("gpu_memory", "i4"),  # MB on each GPU
        ("draining", "i4"),  # GPUs that jobs hold on nodes out of service: they do not come back
        ("span_cost", "f8"),  # spanning nodes multiplies run time by 1 + communication * span_cost
        ("worth", "f8"),  # of one GPU, relative to the reference GPU
    ],
    align=True,
)

NODE = np.dtype(
    [
        ("pool", "i4"),
        ("first_gpu", "i4"),  # its GPUs are gpus[first_gpu : first_gpu + gpus]
        ("gpus", "i4"),
        ("free", "i4"),  # GPUs without any job
        ("cores", "i4"),
        ("free_cores", "i4"),
        ("memory", "i4"),  # MB
        ("free_memory", "i4"),
        ("up", "i4"),  # 1 = in service; 0 = down, or draining while jobs still run on it
        ("short_cores", "i4"),  # cores that CPU-only jobs should hold but did not find free
        ("rooms", "i8"),  # free capacity as bits (see model/free_index.py)
        ("block", "i8"),  # union of these bits over a block of the pool's nodes
    ],
    align=True,
)

GPU = np.dtype(
    [
        ("node", "i4"),
        ("free", "i4"),  # thousandths not allocated; 0 while its node is down
        ("free_memory", "i4"),  # MB not allocated to slices
        ("job", "i4"),  # the job that holds all of it, or -1
        ("next", "i4"),  # the next GPU of the same gang, or -1
        ("slice", "i4"),  # the first slice on it: its index in `running`, or -1
        ("busy", "f8"),  # GPU-seconds served by runs that have ended
        ("utilisation", "f8"),  # the four telemetry readings: share of the time busy, 0 to 1
        ("bandwidth", "f8"),  # GB/s of GPU memory in use
        ("temperature", "f8"),  # degrees Celsius
        ("power", "f8"),  # W
    ],
    align=True,
)

DECISION = np.dtype(
    [
        ("kind", "i4"),  # START, PREEMPT, MIGRATE or WAKE
        ("job", "i4"),
        ("pool", "i4"),
        ("node", "i4"),  # -1 = the world chooses; else the gang fills this node first
        ("gpu", "i4"),  # -1 = the world chooses; else this GPU is the gang's first
        ("at", "f8"),  # WAKE: when to call the policy again
    ],
    align=True,
)

# Clock, counters and integrals of a simulated world: never visible to a policy.
TOTALS = np.dtype(
    [
        ("now", "f8"),
        ("wake", "f8"),  # the single timer: earliest wake requested, infinite = none
        ("job_seconds", "f8"),  # integral of the number of jobs in the system
        ("wait_seconds", "f8"),  # integral of the number of waiting jobs
        ("idle_seconds", "f8"),  # integral of the number of idle GPUs that are up
        ("stranded_seconds", "f8"),  # integral of the free share on GPUs that hold slices
        ("head", "i8"),  # the queue is queue[head : head + waiting]
        ("waiting", "i8"),
        ("running", "i8"),
        ("arrived", "i8"),  # arrivals of the list handled so far
        ("arrived_before", "i8"),  # jobs that had arrived before that list begins
        ("rows", "i8"),  # rows of the job table that have been in use
        ("finished", "i8"),
        ("up_gpus", "i8"),
        ("busy_gpus", "i8"),  # GPUs allocated to whole-GPU jobs
        ("busy_slices", "i8"),  # thousandths allocated to slices
        ("stranded", "i8"),  # thousandths free on GPUs that hold slices
        ("events_done", "i8"),  # events of the list (failures, repairs, speeds) handled so far
        ("worn", "i8"),  # 1 = the speed of a GPU or of a cell has changed
        ("preemptions", "i8"),  # runs ended by the policy, migrations included
        ("spans", "i8"),  # rows of the span log in use
        ("events", "i8"),
        ("decisions", "i8"),  # calls of decide
        ("real_decisions", "i8"),  # calls with at least one feasible pair
        ("wakes", "i8"),  # consecutive timers without a finish, event or arrival between them
        ("fault", "i8"),  # violation that stopped the run, 0 = none (see model/violations.py)
        ("fault_job", "i8"),
        ("fault_pool", "i8"),
        ("fault_value", "f8"),
    ],
    align=True,
)

# Hidden part of running[i], and the heap of ends; work is counted in seconds at slowness 1.
ENDS = np.dtype(
    [
        ("end", "f8"),  # true end of the run
        ("since", "f8"),  # when `todo` was last updated
        ("todo", "f8"),  # work still to do at `since`
        ("kept", "f8"),  # work still to do after the last checkpoint
        ("slowness", "f8"),  # seconds that one second of work takes now
        ("slot", "i4"),  # of ends[k]: index of the running record at position k of the heap
        ("place", "i4"),  # of ends[i]: position of running[i] in the heap
    ],
    align=True,
)

OUTCOME = np.dtype(
    [
        ("start", "f8"),  # of the first run
        ("finish", "f8"),
        ("lost", "f8"),  # work lost by preemptions and failures, seconds at slowness 1
        ("pool", "i4"),  # of the last run
        ("nodes", "i4"),
        ("restarts", "i4"),
        ("killed", "i4"),  # 1 = ended by its limit
    ],
    align=True,
)

SPAN = np.dtype(
    [
        ("start", "f8"),
        ("end", "f8"),
        ("job", "i4"),
        ("gpu", "i4"),
        ("share", "i4"),
        ("why", "i4"),  # reason of the run's end: FINISH, FAILURE or PREEMPTION
    ],
    align=True,
)

# Changes of the cluster, drawn before the run; sorted by time, then kind.
EVENT = np.dtype(
    [
        ("time", "f8"),
        # SPEED: the new speed. CORES: cores that CPU-only jobs take (> 0) or return (< 0). FAILURE:
        # CRASH, PLANNED (jobs save a checkpoint first) or DRAIN (running jobs end, none starts).
        ("value", "f8"),
        ("heat", "f8"),  # SPEED of a GPU: degrees added to its temperature
        ("kind", "i4"),  # REPAIR, FAILURE, SPEED or CORES
        ("node", "i4"),  # REPAIR, FAILURE and CORES
        ("gpu", "i4"),  # SPEED: of this GPU, or -1: of a job type on a GPU model
        ("type", "i4"),
        ("model", "i4"),
        ("unused", "i4"),  # fills the padding, so that records compare by bytes
    ],
    align=True,
)

# One kind of demand and its frequency, for placement by fragmentation (model/fragmentation.py). A
# single demand of 0 GPUs stands for placement on nodes in order (model/placement.py).
DEMAND = np.dtype(
    [
        ("weight", "f8"),  # frequency; all weights sum to 1
        ("pools", "i8"),  # bit p = may run on pool p
        ("gpus", "i4"),
        ("share", "i4"),
        ("cores", "i4"),  # for each GPU
        ("memory", "i4"),  # MB for each GPU
    ],
    align=True,
)

# Demand of a pod that never ends; its cores and memory are totals, on one node.
POD = np.dtype(
    [
        ("pools", "i8"),  # bit p = may run on pool p
        ("gpus", "i4"),  # 0 = none
        ("share", "i4"),  # thousandths of each GPU; 0 without a GPU
        ("cores", "i4"),  # in the unit of NODE.cores
        ("memory", "i4"),  # MB
    ],
    align=True,
)

# What a job type adds to the readings of an idle GPU of a model, on a whole GPU at full speed.
READING = np.dtype(
    [
        ("utilisation", "f8"),
        ("bandwidth", "f8"),
        ("temperature", "f8"),
        ("power", "f8"),
    ],
    align=True,
)

# Entitlement of one holder, an account or a user.
QUOTA = np.dtype(
    [
        ("worth", "f8"),  # worth of the GPUs it is entitled to; infinite = no share
        ("borrows", "i8"),  # 1 = may exceed it where no other holder waits for its entitlement
    ],
    align=True,
)
