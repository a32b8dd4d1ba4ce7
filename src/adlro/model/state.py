"""The records every world fills and every policy reads: one flat array a noun.

Dimensions: J jobs, T job types, M GPU models, P pools, N nodes, G GPUs, Q waiting jobs, R running
jobs, E events, K kinds of demand, H quotas.

*Workload* (read-only): jobs [J], est [J, M], allowed [J, P].
*Rules* (read-only, applied by the world): holders [J, 2], quotas [H], caps [H, M], ageing.
*Truth* (simulator only, never handed to a policy): seconds [J, M], events [E], colocation [T, T],
readings [T + 1, M] (the last row: idle).
*State* (small; a clone copies only what is in use): totals, queue, eligible, running, pools, nodes,
gpus and the policy's own memory; on the side of the truth undone [Q], ends [R], wear [G, 2] and
cells [T, M].

WAITING.job, RUNNING.job, GPU.job and DECISION.job are a job's row in `jobs` and `est`. The
simulator has a row for every job; a live cluster reuses rows, so a row tells no age: JOB.id does.
Memory is in whole MB and GPU shares in thousandths, so that giving back what was taken is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Records = NDArray[Any]  # a record array of one of the dtypes below
Row = Any  # one record of it: compiled code reads its fields as attributes
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]

WHOLE = 1000  # thousandths of a GPU

# What a decision can be.
START, PREEMPT, MIGRATE, WAKE = range(4)
DECISION_KINDS = ("start", "preempt", "migrate", "wake")

# What can happen, in the order in which simultaneous events are handled (then by job id).
FINISH, REPAIR, FAILURE, SPEED, ARRIVAL, TIMER = range(6)
EVENT_KINDS = ("finish", "repair", "failure", "speed", "arrival", "timer")
PREEMPTION = -1  # how a run can end besides FINISH and FAILURE

JOB = np.dtype(
    [
        ("id", "i8"),  # grows with arrival and is never reused: of two jobs, the smaller is older
        ("arrival", "f8"),  # seconds since the start of the run
        ("requested", "f8"),  # seconds the user asked for, on the reference GPU
        ("limit", "f8"),  # seconds after which a run is ended; infinite = never
        ("priority", "f8"),  # in [0, 1], 1 = most important
        ("communication", "f8"),  # extra share of run time when a gang spans reference nodes
        ("checkpoint", "f8"),  # seconds that saving and restoring cost; < 0 = cannot
        ("interval", "f8"),  # working seconds between the saves it makes itself; infinite = none
        ("least_run", "f8"),  # seconds that a run must last before it may be preempted
        ("type", "i4"),
        ("gpus", "i4"),  # gang size: GPUs of one pool, started and released as one
        ("share", "i4"),  # thousandths of each GPU; WHOLE unless the job takes a slice
        ("cores", "i4"),  # CPU cores for each GPU
        ("memory", "i4"),  # MB of host memory for each GPU
        ("gpu_memory", "i4"),  # MB of GPU memory on each GPU
        ("user", "i4"),
        ("account", "i4"),  # the queue or account that the job is charged to
    ],
    align=True,
)

WAITING = np.dtype(
    [
        ("job", "i4"),
        ("restarts", "i4"),  # how often it has been preempted or lost to a failure
        ("saved", "i4"),  # 1 = its next run restores a checkpoint first
        ("unused", "i4"),  # no gap between the fields: bytes compare
        ("since", "f8"),  # when it (last) began to wait
        ("left", "f8"),  # share of its work still to do by the estimate, in (0, 1]
        ("served", "f8"),  # GPU-seconds that it has had so far, useful or not
    ],
    align=True,
)

RUNNING = np.dtype(
    [
        ("job", "i4"),
        ("pool", "i4"),
        ("gpu", "i4"),  # its first GPU; the others follow GPU.next
        ("nodes", "i4"),  # how many nodes it spans
        ("restarts", "i4"),
        ("saved", "i4"),  # 1 = it began with restoring a checkpoint
        ("after", "i4"),  # the next slice on the same GPU: its place in `running`, or -1
        ("before", "i4"),  # the slice before it, or -1
        ("start", "f8"),  # when this run began
        ("expected", "f8"),  # when it ends by the estimate (see room.expected_end)
        ("left", "f8"),  # share of its work that was still to do at `start`, by the estimate
        ("served", "f8"),  # GPU-seconds that it had had before `start`
    ],
    align=True,
)

POOL = np.dtype(
    [
        ("model", "i4"),  # column of est
        ("partition", "i4"),
        ("first_node", "i4"),  # its nodes are nodes[first_node : first_node + nodes]
        ("nodes", "i4"),
        ("first_gpu", "i4"),  # its GPUs, all nodes together, start here in `gpus`
        ("gpus", "i4"),  # GPUs that are up
        ("free", "i4"),  # GPUs with nothing on them
        ("sliced", "i4"),  # GPUs that hold slices
        ("size", "i4"),  # GPUs in all, up or down
        ("node_gpus", "i4"),  # GPUs of one node
        ("gpu_memory", "i4"),  # MB on each GPU
        ("unused", "i4"),  # no gap between the fields: bytes compare
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
        ("free", "i4"),  # GPUs with nothing on them
        ("cores", "i4"),
        ("free_cores", "i4"),
        ("memory", "i4"),  # MB
        ("free_memory", "i4"),
        ("up", "i4"),  # 1 = in service
        ("unused", "i4"),  # no gap between the fields: bytes compare
        ("rooms", "i8"),  # what it has free, as bits (see model/free_index.py)
        ("block", "i8"),  # the same of a whole block of the pool's nodes
    ],
    align=True,
)

GPU = np.dtype(
    [
        ("node", "i4"),
        ("free", "i4"),  # thousandths not handed out; 0 while its node is down
        ("free_memory", "i4"),  # MB not handed out to slices
        ("job", "i4"),  # the job that holds all of it, or -1
        ("next", "i4"),  # the next GPU of the same gang, or -1
        ("slice", "i4"),  # the first of the slices on it: its place in `running`, or -1
        ("busy", "f8"),  # GPU-seconds served by runs that have ended
        ("utilisation", "f8"),  # the four readings of telemetry: share of the time busy, 0 to 1
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
        ("at", "f8"),  # WAKE: when to be asked again
    ],
    align=True,
)

# The clock, the counters and the integrals of a simulated world: never handed to a policy.
TOTALS = np.dtype(
    [
        ("now", "f8"),
        ("wake", "f8"),  # the one timer: earliest wake asked for, infinite = none
        ("job_seconds", "f8"),  # integral of the jobs in the system
        ("wait_seconds", "f8"),  # integral of the jobs that wait
        ("idle_seconds", "f8"),  # integral of the idle GPUs that are up
        ("stranded_seconds", "f8"),  # integral of what is free on GPUs that hold slices
        ("head", "i8"),  # the queue is queue[head : head + waiting]
        ("waiting", "i8"),
        ("running", "i8"),
        ("arrived", "i8"),  # of the list of arrivals
        ("arrived_before", "i8"),  # jobs that had arrived before that list begins
        ("rows", "i8"),  # of the table of jobs that have been in use
        ("finished", "i8"),
        ("up_gpus", "i8"),
        ("busy_gpus", "i8"),  # GPUs handed out whole
        ("busy_slices", "i8"),  # thousandths handed out to slices
        ("stranded", "i8"),  # thousandths free on GPUs that hold slices
        ("events_done", "i8"),  # of the list of failures, repairs and speed changes
        ("worn", "i8"),  # 1 = the speed of a GPU or of a cell has changed
        ("preemptions", "i8"),  # runs that the policy ended, migrations included
        ("spans", "i8"),  # rows of the span log in use
        ("events", "i8"),
        ("decisions", "i8"),  # calls of decide
        ("real_decisions", "i8"),  # those with at least one feasible pair
        ("wakes", "i8"),  # timers in a row with no finish, event or arrival between them
        ("fault", "i8"),  # why the run stopped, 0 = it did not (see model/violations.py)
        ("fault_job", "i8"),
        ("fault_pool", "i8"),
        ("fault_value", "f8"),
    ],
    align=True,
)

# The true side of running[i]; work is counted in seconds at slowness 1.
ENDS = np.dtype(
    [
        ("end", "f8"),  # when it really ends
        ("since", "f8"),  # when `todo` was last brought up to date
        ("todo", "f8"),  # work still to do then
        ("kept", "f8"),  # work still to do after the last checkpoint
        ("slowness", "f8"),  # seconds that one second of work takes now
        ("slot", "i4"),  # heap[k]: which running record stands at place k of the heap
        ("place", "i4"),  # where running[i] stands in the heap
    ],
    align=True,
)

OUTCOME = np.dtype(
    [
        ("start", "f8"),  # of the first run
        ("finish", "f8"),
        ("lost", "f8"),  # work thrown away by preemptions and failures, seconds at slowness 1
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
        ("why", "i4"),  # how the run ended: FINISH, FAILURE or PREEMPTION
    ],
    align=True,
)

# What happens to the cluster, drawn before the run; sorted by time, then kind.
EVENT = np.dtype(
    [
        ("time", "f8"),
        ("value", "f8"),  # SPEED: the new speed; FAILURE: 1 = planned, its jobs are saved
        ("heat", "f8"),  # SPEED of a GPU: degrees on top of its temperature
        ("kind", "i4"),  # REPAIR, FAILURE or SPEED
        ("node", "i4"),  # REPAIR and FAILURE
        ("gpu", "i4"),  # SPEED: this GPU's, or -1: that of a type on a model
        ("type", "i4"),
        ("model", "i4"),
        ("unused", "i4"),  # no gap between the fields: bytes compare
    ],
    align=True,
)

# One kind of demand and how often it comes: what placement by fragmentation looks ahead to.
DEMAND = np.dtype(
    [
        ("weight", "f8"),  # all weights add up to 1
        ("pools", "i8"),  # bit p = may run on pool p
        ("gpus", "i4"),
        ("share", "i4"),
        ("cores", "i4"),  # for each GPU
        ("memory", "i4"),  # MB for each GPU
    ],
    align=True,
)

# What a pod asks for that comes to stay: all of its cores and memory, on one node.
POD = np.dtype(
    [
        ("pools", "i8"),  # bit p = may run on pool p
        ("gpus", "i4"),  # 0 = none
        ("share", "i4"),  # thousandths of each GPU; 0 without a GPU
        ("cores", "i4"),  # in whatever unit NODE.cores has
        ("memory", "i4"),  # MB
    ],
    align=True,
)

# What a job type on a whole GPU of a model adds to the readings of the idle GPU, at full speed.
READING = np.dtype(
    [
        ("utilisation", "f8"),
        ("bandwidth", "f8"),
        ("temperature", "f8"),
        ("power", "f8"),
    ],
    align=True,
)

# What one holder, an account or a user, is entitled to.
QUOTA = np.dtype(
    [
        ("worth", "f8"),  # of the GPUs it is entitled to; infinite = not limited by a share
        ("borrows", "i8"),  # 1 = may go beyond where nobody waits for what is theirs
    ],
    align=True,
)
