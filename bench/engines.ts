/**
 * Each engine's adapter beside its bare client, in the same run: at least 0.8 of what the client does by itself.
 * EventStoreDB at TEST_EVENTSTORE_URL, MongoDB at TEST_MONGODB_URL, NATS at TEST_NATS_URL or a `nats-server` of its
 * own; without the first two the tests' stand-ins, which show that the bench works and judge nothing.
 * `--engine=eventstoredb,mongodb,nats` (default all), `--rounds=N` (default 7), `--amount=N` (default 2,000 appends and
 * requests a round, ten times as many events and documents).
 */
import { parseArgs } from 'node:util';
import { eventStoreArena } from './engines/eventStore.js';
import { mongoArena } from './engines/mongodb.js';
import { natsArena } from './engines/nats.js';
import { type Arena, compete } from './support/contest.js';

const LEAST = 0.8;

const { values } = parseArgs({
  options: {
    engine: { type: 'string', default: 'eventstoredb,mongodb,nats' },
    rounds: { type: 'string', default: '7' },
    amount: { type: 'string', default: '2000' },
  },
});
const amount = Number(values.amount);
const arenas: Readonly<Record<string, () => Promise<Arena>>> = {
  eventstoredb: () => eventStoreArena(amount),
  mongodb: () => mongoArena(amount * 10),
  nats: () => natsArena(amount),
};

for (const name of values.engine.split(',')) {
  const enter = arenas[name];
  if (enter === undefined) throw new Error(`no such engine: ${name}`);
  const arena = await enter();
  try {
    await compete(arena, Number(values.rounds), LEAST);
  } finally {
    await arena.close();
  }
}
