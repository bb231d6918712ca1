# SPDX-License-Identifier: Apache-2.0
"""One trainer of a run: a process that makes so many steps when it is told to, and says how long they took."""

import os
import time

from ddp_bench import hosts, models

WARM_UP = 4  # steps: DistributedDataParallel builds its buckets, and weft's hook moves them
# How a run exchanges gradients, and which of these are under DistributedDataParallel.
HOOK, GROUP, GLOO, NOTHING, NONE = "hook", "group", "gloo", "nothing", "none"
WORKERS, PSERVERS = "workers", "pservers"
IN_BACKWARD = "in backward"  # on the pservers, with push_in_backward
UNDER_DDP = (HOOK, GROUP, GLOO, NOTHING)
BY_OPTIMIZER = (WORKERS, PSERVERS, IN_BACKWARD)
HAVE_PSERVER = (HOOK, GROUP, *BY_OPTIMIZER)


class _Stepper:
    """A model, its optimizer, and what makes a step of them."""

    def __init__(self, job, rank):
        import torch
        import weft.distributed
        import weft.torch

        torch.set_num_threads(1)
        self.job, self.last_ns = job, 0
        self.model, self.loss_of = models.make(job.model, job.mebibytes)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-6, momentum=0.9)
        self.whole = self.model
        if job.how in HAVE_PSERVER and job.how != GROUP:
            weft.init(
                pservers=job.pservers,
                ports_num=job.lanes,
                num_gradient_servers=job.ranks,
                trainer_id=rank,
                transport=job.transport_of(rank),
            )
        if job.how in BY_OPTIMIZER:
            self.optimizer = weft.torch.DistributedOptimizer(
                self.optimizer,
                self.model.named_parameters(),
                on=PSERVERS if job.how == IN_BACKWARD else job.how,
                push_in_backward=job.how == IN_BACKWARD,
            )
            weft.torch.broadcast_parameters(self.model.state_dict())
        if job.how in UNDER_DDP:
            self._wrap(torch, weft, rank)

    def _wrap(self, torch, weft, rank):
        def nothing(_, bucket):
            future = torch.futures.Future()
            future.set_result(bucket.buffer())
            return future

        torch.distributed.init_process_group(
            "weft" if self.job.how == GROUP else "gloo",
            init_method="tcp://" + self.job.meeting,
            rank=rank,
            world_size=self.job.ranks,
        )
        state = weft.torch.HookState(self.model) if self.job.how == HOOK else None
        self.whole = torch.nn.parallel.DistributedDataParallel(
            self.model, gradient_as_bucket_view=True, bucket_cap_mb=self.job.bucket_mebibytes
        )
        if state is not None:
            self.whole.register_comm_hook(state, weft.torch.push_pull_hook)
        if self.job.how == NOTHING:
            self.whole.register_comm_hook(None, nothing)

    def step(self):
        """Returns when backward began, when it had computed the last gradient, if that was asked for, and when
        it returned, in ns of the clock that weft trace uses."""
        self.optimizer.zero_grad()
        loss = self.loss_of(self.whole)
        self.last_ns = 0
        begin = time.monotonic_ns()
        loss.backward()
        end = time.monotonic_ns()
        if self.job.steps_optimizer:
            self.optimizer.step()
        elif self.job.how == WORKERS:
            self.optimizer.synchronize()
        return begin, self.last_ns or end, end

    def note_gradients(self):
        """From now on. Returns what ends it."""

        def came(_):
            self.last_ns = time.monotonic_ns()

        return [parameter.register_hook(came) for parameter in self.model.parameters()]

    def run(self, count, notes):
        """So many steps."""
        handles = self.note_gradients() if notes else []
        begin = time.perf_counter()
        backward = [self.step() for _ in range(count)]
        seconds = time.perf_counter() - begin
        for handle in handles:
            handle.remove()
        return seconds, backward

    def close(self):
        import torch
        import weft

        if self.job.how in UNDER_DDP:
            torch.distributed.barrier()
        if self.job.how == GROUP:
            torch.distributed.destroy_process_group()
        elif self.job.how in HAVE_PSERVER:
            weft.close()


def main(job, rank, line):
    """In a process of its own. `line`: one end of a multiprocessing.Pipe. It gets numbers of steps, and
    whether times of gradients are wanted. Each is answered with the seconds that the steps took, and
    [(begin, last gradient, end)] of their backward passes. 0 steps end it."""
    if job.network[rank] is not None:
        hosts.enter(job.network[rank])
    os.environ.update(job.environment(rank))
    stepper = _Stepper(job, rank)
    stepper.run(WARM_UP, False)
    line.send("ready")
    while True:
        count, notes = line.recv()
        if count == 0:
            break
        line.send(stepper.run(count, notes))
    stepper.close()
    line.send("closed")
