"""A history as Slurm prints it: `sacct -a -X -P`, `scontrol show config` and `show partition`.

Nodes are printed by tests/truth/slurm_text.py.
"""

from tests.planted.jobs import DAY, MAX_LIMIT
from tests.truth.slurm_text import EXIT, hostlist, moment

COLUMNS = (
    "JobID", "JobName", "User", "Account", "Partition", "QOS", "State", "ExitCode", "Submit",
    "Eligible", "Start", "End", "ElapsedRaw", "TimelimitRaw", "ReqTRES", "AllocTRES", "ReqNodes",
    "NNodes", "NodeList", "ReqCPUS", "AllocCPUS", "ReqMem", "Priority", "SubmitLine",
)  # fmt: skip


def sacct(site, runs):
    """One line a job, in order of submission."""
    models = {node.name: node.gpu for node in site.nodes}
    rows = (_row(run, models) for run in runs)
    lines = ["|".join(str(row[name]) for name in COLUMNS) for row in rows]
    return "\n".join(["|".join(COLUMNS), *lines]) + "\n"


def _row(run, models):
    job, cpus = run.job, run.job.gpus * run.job.cores
    used = {}
    for name in run.nodes:
        used[models[name]] = used.get(models[name], 0) + job.per_node
    return {
        "JobID": job.id, "JobName": job.name, "User": job.user, "Account": job.account,
        "Partition": job.partition, "QOS": "normal", "State": job.state,
        "ExitCode": EXIT.get(job.state, "0:0"), "Submit": moment(job.submit),
        "Eligible": moment(job.submit), "Start": moment(run.start), "End": moment(run.end),
        "ElapsedRaw": run.end - run.start, "TimelimitRaw": job.limit // 60,
        "ReqTRES": _tres(job, {job.model: job.gpus}), "AllocTRES": _tres(job, used),
        "ReqNodes": job.nodes, "NNodes": len(run.nodes), "NodeList": hostlist(list(run.nodes)),
        "ReqCPUS": cpus, "AllocCPUS": cpus, "ReqMem": f"{job.gpus * job.memory_gb}G",
        "Priority": run.priority, "SubmitLine": submit_line(job),
    }  # fmt: skip


def _tres(job, gpus):
    """The TRES of a job in the words and the order of sacct; a request may have no type."""
    cpus = job.gpus * job.cores
    words = [f"billing={cpus}", f"cpu={cpus}"]
    words += [f"gres/gpu:{model}={count}" for model, count in sorted(gpus.items()) if model]
    words += [f"gres/gpu={job.gpus}", f"mem={job.gpus * job.memory_gb}G", f"node={job.nodes}"]
    return ",".join(words)


def submit_line(job):
    """The command that submitted the job."""
    kind = f"{job.model}:" if job.model else ""
    return (
        f"sbatch --job-name={job.name} --partition={job.partition} --nodes={job.nodes} "
        f"--gres=gpu:{kind}{job.per_node} --cpus-per-gpu={job.cores} "
        f"--mem-per-gpu={job.memory_gb}G --time={job.limit // 60} job.sh"
    )


def config(site):
    """`scontrol show config` (the lines about scheduling), then `scontrol show partition`."""
    weights = site.weights
    settings = {
        "AccountingStorageTRES": "cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu",
        "ClusterName": "planted",
        "GresTypes": "gpu",
        "PreemptMode": "OFF",
        "PreemptType": "preempt/none",
        "PriorityParameters": "(null)",
        "PrioritySiteFactorParameters": "(null)",
        "PrioritySiteFactorPlugin": "(null)",
        "PriorityDecayHalfLife": "7-00:00:00",
        "PriorityCalcPeriod": "00:05:00",
        "PriorityFavorSmall": "No",
        "PriorityFlags": "",
        "PriorityMaxAge": f"{weights.max_age // DAY}-00:00:00",
        "PriorityUsageResetPeriod": "NONE",
        "PriorityType": "priority/multifactor",
        "PriorityWeightAge": weights.age,
        "PriorityWeightAssoc": 0,
        "PriorityWeightFairShare": 0,
        "PriorityWeightJobSize": weights.size,
        "PriorityWeightPartition": weights.partition,
        "PriorityWeightQOS": 0,
        "PriorityWeightTRES": "(null)",
        "SchedulerParameters": "bf_continue,bf_max_job_test=1000,bf_window=4320",
        "SchedulerTimeSlice": "30 sec",
        "SchedulerType": "sched/backfill",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CORE_MEMORY",
        "SLURM_VERSION": "22.05.8",
    }
    lines = [f"Configuration data as of {moment(0)}"]
    lines += [f"{key:<24}= {value}".rstrip() for key, value in settings.items()]
    lines += ["", "Slurmctld(primary) at ctl is UP", ""]
    parts = [_partition(site, part) for part in site.partitions]
    return "\n".join([*lines, *parts])


def _partition(site, part):
    inside = [node for node in site.nodes if part.name in node.partitions]
    cores, memory = sum(n.cores for n in inside), sum(n.memory_mb for n in inside)
    models = sorted({node.gpu for node in inside})
    tres = f"cpu={cores},mem={memory}M,node={len(inside)},billing={cores}"
    tres += f",gres/gpu={site.gpus(part.name)}"
    tres += "".join(f",gres/gpu:{model}={site.gpus(part.name, model)}" for model in models)
    lines = [
        f"PartitionName={part.name}",
        f"AllowGroups=ALL AllowAccounts={','.join(part.accounts) or 'ALL'} AllowQos=ALL",
        f"AllocNodes=ALL Default={'YES' if part.name == site.calm else 'NO'} QoS=N/A",
        "DefaultTime=01:00:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
        f"MaxNodes=UNLIMITED MaxTime={MAX_LIMIT // DAY}-00:00:00 MinNodes=0 LLN=NO "
        "MaxCPUsPerNode=UNLIMITED",
        f"Nodes={hostlist([node.name for node in inside])}",
        f"PriorityJobFactor={part.job_factor} PriorityTier=1 RootOnly=NO ReqResv=NO "
        "OverSubscribe=NO",
        "OverTimeLimit=NONE PreemptMode=OFF",
        f"State=UP TotalCPUs={cores} TotalNodes={len(inside)} SelectTypeParameters=NONE",
        "JobDefaults=(null)",
        "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED",
        f"TRES={tres}",
    ]
    return "\n   ".join(lines) + "\n"
