import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { RecordedEvent } from '../../../../src/ports/eventStore.js';
import { event, events, eventsOf, idsOf, newStream, readUntil } from '../../../support/engines/eventStoreEvents.js';
import { inFolder } from '../../../support/engines/eventStoreFolder.js';
import type { EventStoreProcess } from '../../../support/engines/eventStoreProcess.js';
import { startEventStore } from '../../../support/engines/eventStoreProcess.js';

const test = suite('Embedded event store: several processes');

/** Nothing is missing in the log or in a stream, and nothing is there twice. */
function assertWhole(log: readonly RecordedEvent[]): void {
  const next = new Map<string, number>();
  for (const [index, { position, stream, revision }] of log.entries()) {
    assert.is(Number(position), index + 1);
    assert.is(revision, next.get(stream) ?? 0);
    next.set(stream, revision + 1);
  }
  assert.is(new Set(idsOf(log)).size, log.length);
}

async function withProcesses(
  dir: string,
  count: number,
  run: (processes: EventStoreProcess[]) => Promise<void>,
): Promise<void> {
  const processes = await Promise.all(Array.from({ length: count }, () => startEventStore(dir)));
  try {
    await run(processes);
  } finally {
    await Promise.all(processes.map((process) => process.kill()));
  }
}

test('creates one log where several processes start at the same time', () =>
  inFolder(async ({ dir }) => {
    await withProcesses(dir, 4, async (processes) => {
      assert.is(new Set(processes.map(({ logId }) => logId)).size, 1);
    });
  }));

test('sees at once what another process has appended', () =>
  inFolder(async ({ dir, open }) => {
    const { local } = await open();
    await withProcesses(dir, 1, async ([other]) => {
      assert.is(local?.end(), undefined);
      const stream = newStream();
      for (let n = 0; n < 20; n++) {
        const { position } = await other!.append(stream, [event()], n === 0 ? 'none' : n - 1);
        assert.equal([local?.end(), local?.lastOf(stream)], [position, position]);
      }
    });
  }));

test("delivers another process's append to a follower that has long waited", () =>
  inFolder(async ({ dir, open }) => {
    const store = await open();
    await withProcesses(dir, 1, async ([other]) => {
      const ids: string[] = [];
      const following = readUntil(store.follow(undefined), (all) => all.length === 3);
      for (let n = 0; n < 3; n++) {
        await sleep(n === 1 ? 2_500 : 0);
        const one = event();
        ids.push(one.id);
        await other!.append(newStream(), [one], 'none');
      }
      assert.equal(idsOf(await following), ids);
    });
  }));

test("delivers another process's appends to followers at once", () =>
  inFolder(async ({ dir, open }) => {
    const store = await open();
    await withProcesses(dir, 1, async ([other]) => {
      const delays: number[] = [];
      const stream = newStream();
      const following = (async () => {
        const seen = new Map<string, number>();
        await readUntil(store.follow(undefined), (all) => {
          for (const { id } of all) if (!seen.has(id)) seen.set(id, Date.now());
          return all.length === 20;
        });
        return seen;
      })();
      const appended = new Map<string, number>();
      for (let n = 0; n < 20; n++) {
        const one = event();
        appended.set(one.id, (await other!.append(stream, [one], n === 0 ? 'none' : n - 1)).at);
        await sleep(7);
      }
      const seen = await following;
      for (const [id, at] of appended) delays.push(seen.get(id)! - at);
      // A machine with much to do holds up some, and the polls of a second hold up most.
      const median = delays.toSorted((one, other) => one - other)[delays.length / 2] ?? Number.NaN;
      assert.ok(median < 500, `seen after ${delays.join(', ')} ms`);
    });
  }));

test('decides appends of several processes by the same revisions', () =>
  inFolder(async ({ dir, open }) => {
    const store = await open();
    await withProcesses(dir, 2, async (others) => {
      const shared = newStream();
      const own = [store, ...others].map(async (writer, index) => {
        const won: string[] = [];
        for (let n = 0; n < 40; n++) {
          const one = event();
          await writer.append(`writer-${index}`, [one], n === 0 ? 'none' : n - 1);
          const contested = event();
          const outcome = await writer.append(shared, [contested], n === 0 ? 'none' : n - 1).then(
            () => true,
            (error: Error) => {
              assert.is(error.name, 'ConflictError');
              return false;
            },
          );
          if (outcome) won.push(contested.id);
          // Losers wait until one process has won the round.
          while ((await store.read(shared)).length <= n) await sleep(1);
        }
        return won;
      });
      const won = (await Promise.all(own)).flat();
      assert.equal(idsOf(await store.read(shared)).toSorted(), won.toSorted());
      assert.is(won.length, 40);
      assertWhole(await eventsOf(store.readAll(undefined)));
      assert.is(Number(await store.end()), 3 * 40 + 40);
    });
  }));

test('loses nothing acknowledged when the process is killed while it appends', () =>
  inFolder(async ({ dir, open }) => {
    const acknowledged = new Map<string, string[]>();
    for (let round = 0; round < 3; round++) {
      const writer = await startEventStore(dir);
      let heard = 0;
      writer.load(`round-${round}`, 32, (stream, ids) => {
        acknowledged.set(stream, [...(acknowledged.get(stream) ?? []), ...ids]);
        heard += 1;
      });
      while (heard < 300) await sleep(1);
      await sleep(round * 13);
      await writer.kill();
    }
    const store = await open();
    const log = await eventsOf(store.readAll(undefined));
    assertWhole(log);
    for (const [stream, ids] of acknowledged) assert.equal(idsOf(await store.read(stream, { limit: ids.length })), ids);
    const appended = await store.append('after', events(2), 'none');
    assert.is(Number(appended.position), log.length + 2);
  }));

test.run();
