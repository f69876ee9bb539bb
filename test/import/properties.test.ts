import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedEventStore } from '../../src/adapters/embedded/eventStore/eventStore.js';
import { ImportFaultsError } from '../../src/import/faults.js';
import { holderOf, reservationAggregate } from '../../src/domain/account.js';
import type { AccountEvent } from '../../src/domain/account.js';
import { type Happened, fold } from '../../src/domain/decider.js';
import { type Entry, evolveEntry } from '../../src/domain/entry.js';
import { PASSWORD_HASH, importInto, testHash } from '../support/fixtures/importFile.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';

interface User {
  readonly id: string;
  readonly username: string;
  readonly name: string;
}

interface Merchant {
  readonly id: string;
  readonly name: string;
  readonly adjustment_codes: readonly string[];
}

interface File {
  readonly users: readonly User[];
  readonly merchants: readonly Merchant[];
}

const text = fc.string({ minLength: 1, maxLength: 3, unit: 'grapheme' }).filter((one) => !/[\p{Cs}\0]/u.test(one));
/** Compared to the letter: an import refuses blanks and invisible characters in it. */
const code = text.filter((one) => !/[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u.test(one));
const users = fc
  .uniqueArray(
    fc.record(
      {
        id: fc.constantFrom('u1', 'u2', 'u3', 'u4'),
        username: fc.constantFrom('ann', 'bob', 'cy', 'di', 'ed'),
        name: text,
      },
      { noNullPrototype: true },
    ),
    { selector: ({ id }) => id, maxLength: 4 },
  )
  .filter((list) => new Set(list.map(({ username }) => username)).size === list.length);
const merchants = fc.uniqueArray(
  fc.record(
    { id: fc.constantFrom('m1', 'm2', 'm3'), name: text, adjustment_codes: fc.uniqueArray(code, { maxLength: 2 }) },
    { noNullPrototype: true },
  ),
  { selector: ({ id }) => id, maxLength: 3 },
);
const file: fc.Arbitrary<File> = fc.record({ users, merchants }, { noNullPrototype: true });

const importable = (one: File) => ({
  ...one,
  users: one.users.map((user) => ({ ...user, password_hash: PASSWORD_HASH })),
});
const entryOf = <V extends object>(events: MemoryEvents, stream: string): Entry<V> =>
  events.log
    .filter((event) => event.stream === stream)
    .reduce<Entry<V>>((state, event) => evolveEntry(state, event), { status: 'none' });
const holder = (events: MemoryEvents, username: string): string | undefined =>
  holderOf(
    fold(
      reservationAggregate,
      events.log.filter(
        ({ stream }) => stream === `username-${testHash('username', username)}`,
      ) as Happened<AccountEvent>[],
    ),
  );

/** Later entries win; those of the first alone stay. */
function merged<V extends { readonly id: string }>(first: readonly V[], second: readonly V[]): V[] {
  return [...new Map([...first, ...second].map((entry) => [entry.id, entry])).values()];
}

function assertHolds(events: MemoryEvents, expected: File): void {
  for (const wanted of expected.users) {
    const entry = entryOf<User>(events, `user-${wanted.id}`);
    assert.is(entry.status, 'live');
    if (entry.status === 'live')
      assert.equal({ id: entry.value.id, username: entry.value.username, name: entry.value.name }, wanted);
    assert.is(holder(events, wanted.username), wanted.id);
  }
  for (const wanted of expected.merchants)
    assert.equal(entryOf<Merchant>(events, `merchant-${wanted.id}`), { status: 'live', value: wanted });
}

const test = suite('commands/import/properties');

test('importing twice appends nothing the second time', async () => {
  await fc.assert(
    fc.asyncProperty(file, async (one) => {
      const events = memoryEvents();
      await importInto(events, importable(one));
      assertHolds(events, one);
      assert.is((await importInto(events, importable(one))).events, 0);
    }),
    { numRuns: 60 },
  );
});

test('one file after another gives the later one, and what only the earlier had', async () => {
  await fc.assert(
    fc.asyncProperty(file, file, async (first, second) => {
      const events = memoryEvents();
      await importInto(events, importable(first));
      const before = events.log.length;
      const left = first.users.filter(({ id }) => !second.users.some((user) => user.id === id));
      const contested = second.users.some(({ username }) => left.some((user) => user.username === username));
      if (contested) {
        const error = await importInto(events, importable(second)).catch((reason: unknown) => reason);
        assert.instance(error, ImportFaultsError);
        assert.is(events.log.length, before);
        return;
      }
      await importInto(events, importable(second));
      assertHolds(events, {
        users: merged(first.users, second.users),
        merchants: merged(first.merchants, second.merchants),
      });
      assert.is((await importInto(events, importable(second))).events, 0);
    }),
    { numRuns: 120 },
  );
});

test('with prune, one file after another gives the later one, and the rest retired', async () => {
  await fc.assert(
    fc.asyncProperty(file, file, async (first, second) => {
      const events = memoryEvents();
      await importInto(events, importable(first));
      await importInto(events, importable(second), { prune: { reason: 'test', yes: true } });
      assertHolds(events, second);
      const gone = first.users.filter(({ id }) => !second.users.some((user) => user.id === id));
      for (const { id, username } of gone) {
        assert.is(entryOf(events, `user-${id}`).status, 'retired');
        assert.is.not(holder(events, username), id);
      }
      for (const { id } of first.merchants) {
        if (!second.merchants.some((merchant) => merchant.id === id))
          assert.is(entryOf(events, `merchant-${id}`).status, 'retired');
      }
    }),
    { numRuns: 120 },
  );
});

test('30,000 entries go through the embedded log, and again without an event', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'import-'));
  const events = await openEmbeddedEventStore({ dir });
  try {
    const many = {
      merchants: [{ id: 'm', name: 'M' }],
      brands: [{ id: 'b', name: 'B', merchant_id: 'm' }],
      segments: [{ id: 's', name: 'S', voucherType: 'qr', expiry: 30 }],
      stores: Array.from({ length: 15_000 }, (_, n) => ({
        id: `s${n}`,
        brand_id: 'b',
        name: 'S',
        longitude: n / 1e4,
        latitude: 51,
      })),
      voucher_codes: Array.from({ length: 15_000 }, (_, n) => ({ segment_id: 's', code: `C${n}` })),
    };
    assert.is((await importInto(events, many)).events, 30_003);
    assert.equal(await importInto(events, many), {
      dryRun: false,
      changes: [],
      unchanged: 30_003,
      events: 0,
      unread: [],
      mixedClients: [],
    });
  } finally {
    await events.close();
    rmSync(dir, { recursive: true });
  }
});

test.run();
