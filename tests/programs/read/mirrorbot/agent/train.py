"""Learns the values of pushes from recorded transitions: python -m agent.train"""
import keras
import tensorflow as tf

from . import nets, replay
from .settings import Settings


def learn(settings: Settings) -> tuple[nets.Agent, list[float]]:
    with settings.strategy.scope():
        agent = nets.Agent(settings)
        state = tf.zeros((1, replay.FEATURES))
        agent(state), agent.target(state)
        agent.target.set_weights(agent.online.get_weights())
        agent.compile(optimizer=keras.optimizers.SGD(settings.rate, momentum=0.9))
        agent.optimizer.build(agent.online.trainable_variables)
    data = replay.dataset(512, 5, settings.batch_size, settings.noise)
    told = agent.fit(data, epochs=settings.epochs, verbose=0, callbacks=[nets.Calmer()])
    return agent, told.history["error"]


def main() -> None:
    agent, errors = learn(Settings())
    print("errors", " ".join(f"{error:.4f}" for error in errors))
    state = replay.transitions(64, 6)["state"]
    left, right = tf.unstack(agent.online(state), axis=-1)
    slow = agent.target(state)
    print(f"error {errors[-1]:.4f} left {tf.reduce_mean(left):.4f} right {tf.reduce_mean(right):.4f} "
          f"apart {tf.reduce_mean(tf.abs(left - right)):.4f} target {tf.reduce_mean(slow):.4f}")


if __name__ == "__main__":
    main()
