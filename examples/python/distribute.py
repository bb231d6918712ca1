# SPDX-License-Identifier: Apache-2.0
"""What fashion.py and tagger.py share: a model and its optimizer become those of a job.

    alone     one process, no job: it computes what all trainers would
    workers   weft.torch.DistributedOptimizer, the optimizer in each trainer
    pservers  the same with the optimizer on the pservers
    ddp       DistributedDataParallel with weft's hook; its own process group is Gloo's"""
import argparse

import torch
import weft
import weft.torch


def parser_of(text, **defaults):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=("alone", "workers", "pservers", "ddp"), default="alone")
    for name in ("pservers", "trainer_id", "num_gradient_servers", "transport"):
        parser.add_argument("--" + name)  # not given: from PADDLE_INIT_*, as weft.init does
    parser.add_argument("--ddp_port", type=int, default=29500, help="of DistributedDataParallel's own group")
    parser.add_argument("--num_passes", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch in each process")
    for name, value in defaults.items():
        parser.add_argument("--" + name, type=type(value), default=value)
    return parser


class Job:
    """This process's place in the job, and its model, made distributed."""

    def __init__(self, options, model, make_optimizer):
        self.mode = options.mode
        torch.set_num_threads(options.threads)
        names = ("pservers", "trainer_id", "num_gradient_servers", "transport")
        settings = {name: getattr(options, name) for name in names}
        weft.init(**settings)
        self.trainer, self.trainers = weft.trainer_id(), weft.num_gradient_servers()
        self.model, self.optimizer = model, make_optimizer(model.parameters())
        if self.mode in ("workers", "pservers"):
            named = model.named_parameters()
            self.optimizer = weft.torch.DistributedOptimizer(self.optimizer, named, on=self.mode)
            weft.torch.broadcast_parameters(model.state_dict())
        elif self.mode == "ddp":
            self._under_ddp(options)

    def _under_ddp(self, options):
        where = "tcp://127.0.0.1:%d" % options.ddp_port
        torch.distributed.init_process_group(
            "gloo", init_method=where, rank=self.trainer, world_size=self.trainers
        )
        state = weft.torch.HookState(self.model)
        self.model = torch.nn.parallel.DistributedDataParallel(self.model, gradient_as_bucket_view=True)
        self.model.register_comm_hook(state, weft.torch.push_pull_hook)

    def batches(self, rows, rows_of_trainer, number):
        """Row numbers of a pass, cut into steps; alone: the rows of all trainers in each."""
        order = torch.randperm(rows, generator=torch.Generator().manual_seed(number))
        step = rows_of_trainer * self.trainers
        for first in range(0, rows - step + 1, step):
            batch = order[first : first + step]
            yield batch if self.mode == "alone" else batch[self.trainer :: self.trainers]

    def train(self, loss_of, batches):
        """One pass; the mean over all trainers of the mean cost of a batch."""
        total, count = 0.0, 0
        for batch in batches:
            self.optimizer.zero_grad()
            loss = loss_of(self.model, batch)
            loss.backward()
            self.optimizer.step()
            total, count = total + loss.item(), count + 1
        if self.mode != "alone":
            total, count = weft.reduce([total, count])
        return total / count

    def tell(self, number, cost, test):
        if self.trainer == 0:
            digest = sum(p.double().abs().sum().item() for p in self.model.parameters())
            print("pass %d cost %.6f test %.4f weights %.6f" % (number, cost, test, digest), flush=True)

    def end(self):
        if self.mode != "alone":
            print("copied_bytes %d" % weft.stats()["copied_bytes"], flush=True)
        if self.mode == "ddp":
            torch.distributed.barrier()
        weft.close()
