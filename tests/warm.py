"""Imported by the process that runs are forked from: loads what they import and compile, so that each starts at once.

No gradient is taken and no group joined, as a fork could not go on with the threads of those.
"""

import torch
from training import small

import train

assert torch._dynamo  # imported by the first optimiser

trainer = train.Trainer(small())
trainer.prepare(trainer.play())
trainer.measure()
