"""Small files in the format of Alibaba's openb trace."""

from openb_placement import openb

NODES = "sn,cpu_milli,memory_mib,gpu,model"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"


def write(folder, nodes, pods, heads=(NODES, PODS)):
    """Two files of such rows; where they are."""
    paths = folder / "nodes.csv", folder / "pods.csv"
    for path, head, rows in zip(paths, heads, (nodes, pods), strict=True):
        path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return paths


def trace(folder, nodes, pods):
    """What the files of such rows hold."""
    return openb.read(*write(folder, nodes, pods))
