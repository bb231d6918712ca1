# SPDX-License-Identifier: Apache-2.0
"""What python_bench.py ddp measures: a step of PyTorch's DistributedDataParallel, exchanged in several ways."""
