"""The paper's DQN, as it is written there: many copies of the simulator, large batches in torch."""
