"""The history as Slurm prints it: `sacct -P -D`, `scontrol show node` and `show partition`.

As seen on a real Slurm 22.05: a job that has started shows the one partition it ran in, and a gang
asked for by `--gpus` has ReqNodes=1 even if it spans nodes; only SubmitLine tells what was asked.
A requeued job has two records of one JobID, the second submitted when the first ended. The column
Restarts is younger than 22.05.
"""

import datetime
import re

from tests.truth.cluster import LONGEST

BEGIN = datetime.datetime(2026, 1, 12, 6, 0)  # local time, no change of the clock near
COLUMNS = (
    "JobID", "JobName", "User", "Account", "Partition", "QOS", "State", "ExitCode", "Submit",
    "Eligible", "Start", "End", "ElapsedRaw", "TimelimitRaw", "ReqTRES", "AllocTRES", "ReqNodes",
    "NNodes", "NodeList", "ReqCPUS", "AllocCPUS", "ReqMem", "Priority", "Restarts", "Reason",
    "SubmitLine",
)  # fmt: skip
EXIT = {"FAILED": "1:0", "OUT_OF_MEMORY": "0:125"}
REASON = {"dependency": "Dependency", "begin": "BeginTime", "hold": "JobHeldUser", "": "None"}


def moment(seconds):
    """Local time without zone, in whole seconds."""
    return (BEGIN + datetime.timedelta(seconds=seconds)).isoformat()


def hostlist(names):
    """Slurm's short form of node names: a[01-02],v01."""
    parts = []
    for prefix in dict.fromkeys(re.sub(r"\d+$", "", name) for name in names):
        digits = sorted(
            name[len(prefix) :] for name in names if re.sub(r"\d+$", "", name) == prefix
        )
        runs = []
        for each in digits:
            if runs and int(runs[-1][-1]) + 1 == int(each):
                runs[-1].append(each)
            else:
                runs.append([each])
        texts = [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
        parts.append(prefix + (digits[0] if len(digits) == 1 else f"[{','.join(texts)}]"))
    return ",".join(parts)


def sacct(runs, nodes, drop=()):
    """`sacct -P -D`, job steps included; `drop` names constraints that are left out of it."""
    kinds = {node.name: node.gpu for node in nodes}
    columns = [name for name in COLUMNS if not (name == "SubmitLine" and "submit-line" in drop)]
    lines = ["|".join(columns)]
    for run in sorted(runs, key=lambda run: (run.submit, run.job.seq)):
        for row in _rows(run, kinds, drop):
            lines.append("|".join(str(row.get(name, "")) for name in columns))
    return "\n".join(lines) + "\n"


def _rows(run, kinds, drop):
    job, count = run.job, max(1, run.job.gpus)
    used = {}
    for name, gpus in run.gpus.items():
        used[kinds[name]] = used.get(kinds[name], 0) + gpus
    asked = {job.gpu: job.gpus} if "type" not in drop else {"": job.gpus}
    total = (count * job.cores, count * job.memory_mb)
    whole = {
        "JobID": job.id, "JobName": job.name, "User": job.user, "Account": job.account,
        "Partition": "" if "partition" in drop else run.partition, "QOS": "normal",
        "State": run.state, "ExitCode": EXIT.get(run.state, "0:0"), "Submit": moment(run.submit),
        "Eligible": moment(run.submit if "eligible" in drop else run.eligible),
        "Start": moment(run.start), "End": moment(run.end), "ElapsedRaw": run.end - run.start,
        "TimelimitRaw": job.limit // 60, "ReqTRES": _tres(asked, *total, 1),
        "AllocTRES": _tres(used, *total, len(run.gpus)),
        "ReqNodes": "" if "one-node" in drop else 1, "NNodes": len(run.gpus),
        "NodeList": hostlist(list(run.gpus)), "ReqCPUS": total[0], "AllocCPUS": total[0],
        "ReqMem": f"{total[1] // 1000}G", "Priority": 4294901759 - job.seq,
        "Restarts": int(run.submit != job.submit), "Reason": REASON[job.why],
        "SubmitLine": submit_line(job, drop),
    }  # fmt: skip
    step = {
        name: whole[name]
        for name in ("Account", "End", "ElapsedRaw", "NNodes", "NodeList", "AllocCPUS")
    }
    step |= {"Submit": whole["Start"], "Eligible": whole["Start"], "Start": whole["Start"]}
    step |= {
        "AllocTRES": whole["AllocTRES"].partition(",")[2],
        "ReqCPUS": total[0],
        "ExitCode": "0:0",
    }
    ended = {"TIMEOUT": "CANCELLED", "REQUEUED": "CANCELLED"}.get(run.state, run.state.split()[0])
    yield whole
    yield step | {"JobID": f"{job.id}.batch", "JobName": "batch", "State": ended}
    extern = {"JobID": f"{job.id}.extern", "JobName": "extern", "State": "COMPLETED"}
    yield step | extern | {"AllocTRES": whole["AllocTRES"]}
    if len(run.gpus) > 1:
        yield step | {"JobID": f"{job.id}.0", "JobName": "python", "State": ended}


def _tres(gpus, cores, memory_mb, nodes):
    """The TRES of a job in the words and the order of sacct."""
    words = [f"billing={cores}", f"cpu={cores}"]
    words += [f"gres/gpu:{kind}={count}" for kind, count in sorted(gpus.items()) if kind and count]
    if sum(gpus.values()):
        words.append(f"gres/gpu={sum(gpus.values())}")
    return ",".join([*words, f"mem={memory_mb // 1000}G", f"node={nodes}"])


def submit_line(job, drop=()):
    """The command that submitted the job: the only record of two partitions and of `--gpus`."""
    words = ["sbatch", f"--job-name={job.name}"]
    if "partition" not in drop:
        words.append(f"--partition={','.join(job.partitions)}")
    if job.gpus:
        kind = f"{job.gpu}:" if job.gpu and "type" not in drop else ""
        whole = job.one_node and "one-node" not in drop
        words += (
            ["--nodes=1", f"--gres=gpu:{kind}{job.gpus}"] if whole else [f"--gpus={kind}{job.gpus}"]
        )
        words += [f"--cpus-per-gpu={job.cores}", f"--mem-per-gpu={job.memory_mb}"]
    else:
        words += [f"--cpus-per-task={job.cores}", f"--mem={job.memory_mb}"]
    words.append(f"--time={job.limit // 60}")
    if "_" in job.id:
        words.append("--array=0-99")
    words += {"hold": ["--hold"], "begin": [f"--begin={moment(job.eligible)}"]}.get(job.why, [])
    return " ".join([*words, "job.sh"])


def show_nodes(nodes, one_line=False):
    """`scontrol show node`, or with -o: the same on one line a node."""
    blocks = []
    for node in nodes:
        gres = f"gpu:{node.gpu}:{node.gpus}(S:0-1)" if node.gpus else "(null)"
        tres = f"cpu={node.cores},mem={node.memory_mb}M,billing={node.cores}"
        if node.gpus:
            tres += f",gres/gpu={node.gpus},gres/gpu:{node.gpu}={node.gpus}"
        features = f"{node.gpu},ib" if node.gpu else "(null)"
        blocks.append([
            f"NodeName={node.name} Arch=x86_64 CoresPerSocket={node.all_cores // 2} ",
            f"CPUAlloc=0 CPUEfctv={node.cores} CPUTot={node.all_cores} CPULoad=0.31",
            f"AvailableFeatures={features}",
            f"ActiveFeatures={features}",
            f"Gres={gres}",
            f"NodeAddr={node.name} NodeHostName={node.name} Version=22.05.8",
            "OS=Linux 6.1.0-18-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01) ",
            f"RealMemory={node.memory_mb} AllocMem=0 FreeMem=201337 Sockets=2 Boards=1",
            f"CoreSpecCount={node.all_cores - node.cores} MemSpecLimit=4096",
            "State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A",
            f"Partitions={','.join(node.partitions)} ",
            "BootTime=2026-01-02T08:11:45 SlurmdStartTime=2026-01-02T08:13:02",
            f"LastBusyTime={moment(0)}",
            f"CfgTRES={tres}",
            "AllocTRES=",
            "CapWatts=n/a",
            "CurrentWatts=0 AveWatts=0",
            "ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s",
        ])  # fmt: skip
    return _blocks(blocks, one_line)


def show_partitions(nodes):
    """`scontrol show partition`."""
    blocks = []
    for name, days in LONGEST.items():
        inside = [node for node in nodes if name in node.partitions]
        cores, memory = (sum(node[field] for node in inside) for field in (3, 5))
        kinds = {
            node.gpu: sum(n.gpus for n in inside if n.gpu == node.gpu)
            for node in inside
            if node.gpu
        }
        tres = f"cpu={cores},mem={memory}M,node={len(inside)},billing={cores}"
        tres += f",gres/gpu={sum(kinds.values())}" if kinds else ""
        tres += "".join(f",gres/gpu:{kind}={count}" for kind, count in sorted(kinds.items()))
        blocks.append([
            f"PartitionName={name}",
            "AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL",
            f"AllocNodes=ALL Default={'YES' if name == 'gpu' else 'NO'} QoS=N/A",
            "DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
            f"MaxNodes=UNLIMITED MaxTime={days}-00:00:00 MinNodes=0 LLN=NO "
            "MaxCPUsPerNode=UNLIMITED",
            f"Nodes={hostlist([node.name for node in inside])}",
            "PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO",
            "OverTimeLimit=NONE PreemptMode=OFF",
            f"State=UP TotalCPUs={cores} TotalNodes={len(inside)} SelectTypeParameters=NONE",
            "JobDefaults=(null)",
            "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED",
            f"TRES={tres}",
        ])  # fmt: skip
    return _blocks(blocks, one_line=False)


def _blocks(blocks, one_line):
    if one_line:
        return "".join(" ".join(block) + "\n" for block in blocks)
    return "".join("\n   ".join(block) + "\n\n" for block in blocks)
