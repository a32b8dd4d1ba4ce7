"""A policy that plays a model of stable-baselines3: one that 02_stable_baselines3.py wrote.

Run it:  adlro compare paper16-single --policies fcfs,min-min,./examples/03_policy_of_sb3.py
The model is maskable_ppo.zip of the present folder, or the file that ADLRO_SB3_MODEL names. For a
scenario of your own, name its file in ADLRO_SB3_SCENARIO too. Loading a model runs code from its
file: load only what you trust.
"""

import os
from pathlib import Path

import numpy as np
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN

from adlro.config.files import find_scenario
from adlro.envs.worlds import typical_seconds
from adlro.features.full_observation_kernel import more, observe_more
from adlro.features.observation_kernel import act, allow, observe, sizes
from adlro.workloads.setting import prepare

FILE = Path(os.environ.get("ADLRO_SB3_MODEL", "maskable_ppo.zip"))
if not FILE.is_file():
    raise FileNotFoundError(f"there is no {FILE} here; run 02_stable_baselines3.py first")
HAS_MASKS = "ppo" in FILE.stem  # what kind of model it is, by its name
MODEL = (MaskablePPO if HAS_MASKS else DQN).load(FILE, device="cpu")


def params(context):
    """What the encoding asks for: window, types, columns, paper's length, length, typical seconds.

    The window follows from the model's number of actions.
    """
    window = int(MODEL.action_space.n) // len(context.gpus)
    shape = sizes(context, context.types, max(window, 1))
    length = MODEL.observation_space.shape[0]
    full = shape.observation + more(len(context.pools), window)
    if int(MODEL.action_space.n) != shape.actions or length not in (shape.observation, full):
        raise ValueError(f"{FILE} was trained on another cluster, or with an action for waiting")
    scenario = os.environ.get("ADLRO_SB3_SCENARIO", context.name)
    seconds = typical_seconds(prepare(find_scenario(scenario)))
    return [window, shape.types, shape.columns, shape.observation, length, seconds]


def decide(view, params, memory, out):
    """See what the environment would show, and do what the model says."""
    window, types, columns, paper, length = (int(number) for number in params[:5])
    x, mask = np.zeros(length, np.float32), np.zeros(window * len(view.gpus), np.bool_)
    if allow(view, window, mask) == 0:
        return 0
    observe(view, window, types, columns, x)
    if length > paper:
        observe_more(view, window, params[5], x[paper:])
    masks = {"action_masks": mask} if HAS_MASKS else {}
    action = int(MODEL.predict(x, deterministic=True, **masks)[0])
    allowed = np.flatnonzero(mask)  # DQN knows no masks: the nearest one, as in the environment
    return act(int(allowed[np.argmin(np.abs(allowed - action))]), view, out)
