"""Configuration files of a Slurm for tests: nodes with fake typed GPUs, all daemons on loopback."""

from typing import NamedTuple


class Node(NamedTuple):
    """One slurmd: a node of `gpus` fake GPUs of one type."""

    name: str
    gpu: str
    gpus: int = 4
    cores: int = 16
    memory_mb: int = 16000
    weight: int = 1


class Partition(NamedTuple):
    """A Slurm partition; `options` is further slurm.conf text such as `MaxTime=60`."""

    name: str
    nodes: tuple[str, ...]
    options: str = ""


class Place(NamedTuple):
    """Where the daemons live: folder, loopback address and ports (slurmctld, slurmdbd, slurmds)."""

    folder: str
    address: str
    slurmctld: int
    slurmdbd: int
    slurmd: tuple[int, ...]


NODES = (Node("v1", "volta"), Node("v2", "volta"), Node("t1", "turing"), Node("r1", "radeon"))
PARTITIONS = (
    Partition("gpu", ("v1", "v2", "t1"), "Default=YES"),
    Partition("lab", ("t1", "r1")),
)
PARAMETERS = {
    "AuthType": "auth/munge",
    "SlurmUser": "root",
    "SlurmdUser": "root",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "MailProg": "/bin/true",
    "MpiDefault": "none",
    "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
    "SlurmdParameters": "config_overrides",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core_Memory",
    "GresTypes": "gpu",
    "PriorityType": "priority/basic",
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,bf_interval=1",
    "JobAcctGatherType": "jobacct_gather/none",
    "AccountingStoreFlags": "job_comment",
    "ReturnToService": "2",
    "MinJobAge": "300",
    "SlurmdTimeout": "20",
    "DefMemPerCPU": "100",
}


def slurm_conf(place, nodes, partitions, parameters):
    """The text of slurm.conf; `parameters` are added to PARAMETERS or replace them."""
    folder, munge = place.folder, f"{place.folder}/run/munge.socket"
    types = sorted({node.gpu for node in nodes})
    lines = {
        "ClusterName": "adlro",
        "SlurmctldHost": f"localhost({place.address})",
        "SlurmctldPort": place.slurmctld,
        "AuthInfo": f"socket={munge},cred_expire=5",
        "StateSaveLocation": f"{folder}/state",
        "SlurmdSpoolDir": f"{folder}/spool/%n",
        "SlurmctldPidFile": f"{folder}/run/slurmctld.pid",
        "SlurmdPidFile": f"{folder}/run/slurmd-%n.pid",
        "SlurmctldLogFile": f"{folder}/log/slurmctld.log",
        "SlurmdLogFile": f"{folder}/log/slurmd-%n.log",
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": place.address,
        "AccountingStoragePort": place.slurmdbd,
        "AccountingStoragePass": munge,
        "AccountingStorageTRES": ",".join(["gres/gpu", *(f"gres/gpu:{each}" for each in types)]),
    } | PARAMETERS
    text = [f"{name}={value}" for name, value in (lines | parameters).items()]
    for node, port in zip(nodes, place.slurmd, strict=True):
        text.append(
            f"NodeName={node.name} NodeHostname=localhost NodeAddr={place.address} Port={port} "
            f"CPUs={node.cores} RealMemory={node.memory_mb} Gres=gpu:{node.gpu}:{node.gpus} "
            f"Feature={node.gpu} Weight={node.weight} State=UNKNOWN"
        )
    for each in partitions:
        names = ",".join(each.nodes)
        text.append(f"PartitionName={each.name} Nodes={names} State=UP {each.options}")
    return "\n".join(text) + "\n"


def gres_conf(place, nodes):
    """The text of gres.conf: each GPU is a link to /dev/null, which Slurm takes for a device."""
    return "".join(
        f"NodeName={node.name} Name=gpu Type={node.gpu} "
        f"File={place.folder}/dev/gpu[0-{node.gpus - 1}]\n"
        for node in nodes
    )


def slurmdbd_conf(place):
    """The text of slurmdbd.conf; MariaDB is reached by the socket in MYSQL_UNIX_PORT."""
    lines = {
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={place.folder}/run/munge.socket",
        "DbdHost": "localhost",
        "DbdAddr": place.address,
        "DbdPort": place.slurmdbd,
        "SlurmUser": "root",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "localhost",
        "StorageUser": "root",
        "StorageLoc": "slurm_acct",
        "CommunicationParameters": "NoInAddrAny",
        "LogFile": f"{place.folder}/log/slurmdbd.log",
        "PidFile": f"{place.folder}/run/slurmdbd.pid",
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items())
