import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { streamBetween } from '../../../src/ops/history/streamBetween.js';
import type { EventStore, RecordedEvent } from '../../../src/ports/eventStore.js';

const test = suite('audit/streamBetween');
const at = (position: number): string => String(position).padStart(16, '0');

/** A stream whose events stand at every tenth position, and how many events have been read of it. */
function longStream(length: number): { readonly events: Pick<EventStore, 'read'>; given(): number } {
  let given = 0;
  return {
    given: () => given,
    events: {
      async read(stream, { from = 0, limit = Number.POSITIVE_INFINITY } = {}) {
        const count = Math.max(0, Math.min(limit, length - from));
        given += count;
        return Array.from(
          { length: count },
          (_, n) => ({ stream, revision: from + n, position: at((from + n) * 10) }) as RecordedEvent,
        );
      },
    },
  };
}

async function between(
  length: number,
  after: number,
  through?: number,
): Promise<{ readonly revisions: readonly number[]; readonly given: number }> {
  const { events, given } = longStream(length);
  const revisions: number[] = [];
  for await (const page of streamBetween(events, 's', at(after), through === undefined ? undefined : at(through)))
    revisions.push(...page.map(({ revision }) => revision));
  return { revisions, given: given() };
}

test('exactly the events between two places, wherever they lie', async () => {
  for (const length of [0, 1, 499, 500, 501, 1_000, 1_001, 5_003]) {
    for (const after of [0, 5, 10, 4_990, 5_000, 5_001, 49_990, 999_999]) {
      for (const through of [undefined, after, after + 1, after + 10, after + 7_001]) {
        const expected = Array.from({ length }, (_, revision) => revision).filter(
          (revision) => revision * 10 > after && (through === undefined || revision * 10 <= through),
        );
        assert.equal(
          (await between(length, after, through)).revisions,
          expected,
          `${length} ${after} ${through ?? 'end'}`,
        );
      }
    }
  }
});

test('it costs what the part costs, not what the stream does', async () => {
  const { revisions, given } = await between(1_000_000, 7_000_000, 7_000_100);
  assert.equal(
    revisions,
    Array.from({ length: 10 }, (_, n) => 700_001 + n),
  );
  assert.ok(given < 1_100, String(given));
});

test.run();
