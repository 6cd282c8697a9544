"""A player of this library and a policy of another in the same Gymnasium environment, with one total per step.

    pip install 'aftereffect[gym]'
"""

import gymnasium

import aftereffect as ae

ae.environments.register()
env = gymnasium.make("aftereffect/Composite-v0", n_arms=3, max_delay=5, horizon=20_000, gap=0.3)
env.reset(seed=1)
player = ae.default_player(n_arms=3, max_delay=5, seed=1)
done, earned, counts = False, 0.0, [0, 0, 0]
while not done:
    arm = player.ask()
    observation, reward, _, done, _ = env.step(arm)
    player.tell(observation[0])
    earned += reward
    counts[arm] += 1
share = counts[0] / 20_000
print(f"loss per round {-earned / 20_000:.3f}; the best arm, with 0.2, was played in {share:.0%} of the rounds")
