"""The parts of the paper's DQN: network, replay buffer, learner and training loop."""
