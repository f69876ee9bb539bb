import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { generateHistory } from '../../bench/support/history.js';
import { openEmbeddedEventStore } from '../../src/adapters/embedded/eventStore.js';
import { positionAt } from '../../src/audit/positionAt.js';
import type { EventStore } from '../../src/ports/eventStore.js';

const test = suite('audit/positionAt');

test('an engine that can only be read through gives the same place as one that looks it up', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'position-'));
  const { events: count } = generateHistory({ dir, events: 8_000 });
  const events = await openEmbeddedEventStore({ dir });
  try {
    const readable: EventStore = { ...events };
    delete readable.positionAt;
    assert.ok(events.positionAt !== undefined);
    const times: string[] = [];
    for await (const { events: batch } of events.readAll(undefined)) times.push(...batch.map(({ at }) => at));
    assert.is(times.length, count);
    const between = Array.from({ length: 12 }, (_, n) => times[Math.floor((n / 12) * times.length)]!);
    for (const time of ['1999-01-01T00:00:00.000Z', times[0]!, ...between, ...between.map((at) => new Date(Date.parse(at) - 1).toISOString()), times.at(-1)!, '2999-01-01T00:00:00.000Z']) {
      const before = times.filter((at) => at <= time).length;
      const expected = before === 0 ? undefined : String(before).padStart(16, '0');
      assert.equal([await positionAt(events, time), await positionAt(readable, time)], [expected, expected], time);
    }
  } finally {
    await events.close();
    rmSync(dir, { recursive: true });
  }
});

test.run();
