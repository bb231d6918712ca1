#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A BiLSTM gives each morpheme of the first book of Samuel its part of speech (data/samuel.txt).

A morpheme is read twice: as a word, and letter by letter by a small LSTM of its own, so that those
that were never seen have something to go by. Run it as fashion.py, in one process or in a job.
Prints the cost, and the share of test morphemes that get another tag."""
import os

import torch
from distribute import Job, parser_of
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

here = os.path.dirname(os.path.abspath(__file__))
parser = parser_of(__doc__, data=os.path.join(here, "../../data/samuel.txt"), batch_size=8, rate=0.01)
options = parser.parse_args()

with open(options.data, encoding="utf-8") as file:
    verses = [[pair.split("/") for pair in line.split()] for line in file]
train = verses[: len(verses) * 4 // 5]
tests = verses[len(train) :]


def numbers(things, first):
    return {thing: first + place for place, thing in enumerate(sorted(set(things)))}


words = numbers((word for verse in train for word, _ in verse), 2)  # 0: none, 1: unknown
letters = numbers((letter for verse in train for word, _ in verse for letter in word), 2)
widest = max(len(word) for verse in verses for word, _ in verse)
tags = numbers((tag for verse in train for _, tag in verse), 0)


def tensors(batch):
    """Words [verses, morphemes], letters [verses, morphemes, letters], tags with -1 for none."""
    word = [torch.tensor([words.get(w, 1) for w, _ in verse]) for verse in batch]
    tag = [torch.tensor([tags[t] for _, t in verse]) for verse in batch]
    letter = torch.zeros(len(batch), max(map(len, batch)), widest, dtype=torch.long)
    for i, verse in enumerate(batch):
        for j, (w, _) in enumerate(verse):
            letter[i, j, : len(w)] = torch.tensor([letters.get(c, 1) for c in w])
    return pad_sequence(word, True), letter, pad_sequence(tag, True, -1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(len(words) + 2, 24)
        self.letter = nn.Embedding(len(letters) + 2, 12)
        self.spell = nn.LSTM(12, 16, batch_first=True, bidirectional=True)
        self.read = nn.LSTM(24 + 32, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, len(tags))

    def forward(self, word, letter):
        spelled, _ = self.spell(self.letter(letter.flatten(0, 1)))
        spelled = spelled.max(dim=1).values.unflatten(0, word.shape)
        seen = torch.cat([self.word(word), spelled], dim=2)
        lengths = (word > 0).sum(dim=1)
        said, _ = self.read(pack_padded_sequence(seen, lengths, True, enforce_sorted=False))
        return self.out(pad_packed_sequence(said, True)[0])


torch.manual_seed(1)
tagger = Tagger()
job = Job(options, tagger, lambda parameters: torch.optim.Adam(parameters, lr=options.rate))


def loss_of(model, batch):
    """A sum over morphemes by the number of verses: then a mean over trainers is that of the whole."""
    word, letter, tag = tensors([train[i] for i in batch])
    scores = model(word, letter).flatten(0, 1)
    return nn.functional.cross_entropy(scores, tag.flatten(), ignore_index=-1, reduction="sum") / len(batch) / 25


for number in range(options.num_passes):
    cost = job.train(loss_of, job.batches(len(train), options.batch_size, number))
    with torch.no_grad():
        word, letter, tag = tensors(tests)
        said = tagger(word, letter).argmax(2)
        wrong = ((said != tag) & (tag >= 0)).sum().item() / (tag >= 0).sum().item()
    job.tell(number, cost, wrong)
job.end()
