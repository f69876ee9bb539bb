import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore/eventStore.js';
import type { EventStore, NewEvent, RecordedEvent } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { AlteredDataError } from '../../../src/runtime/personal/alteredData.js';
import { encryptedEvents, type PersonalRules } from '../../../src/runtime/personal/encryptedEvents.js';
import { masterKeys } from '../../../src/runtime/personal/masterKeys.js';
import { openSubjects, type Subjects } from '../../../src/runtime/personal/subjects.js';
import { type MemoryKeys, memoryKeys } from '../../support/engines/memoryKeys.js';
import { rejectionOf } from '../../support/engines/readStoreDocuments.js';
import { eventOf } from '../../support/service/testLog.js';

const test = suite<Opened>('encrypted events');

const RULES: PersonalRules = new Map([
  ['UserAdded', { fields: { name: '', devices: [] }, subjectOf: (stream) => ({ kind: 'user', text: stream }) }],
]);

interface Opened {
  readonly dir: string;
  readonly stored: EventStore;
  readonly keys: MemoryKeys;
  /** The log as another process opens it. */
  open(): EventStore;
}

test.before.each(async (context) => {
  const dir = mkdtempSync(join(tmpdir(), 'encrypted-'));
  const stored = await openEmbeddedEventStore({ dir });
  const keys = memoryKeys();
  Object.assign(context, {
    dir,
    stored,
    keys,
    open: () =>
      encryptedEvents(
        stored,
        openSubjects({
          store: keys,
          master: masterKeys(['m'.repeat(43)]),
          lookupOf: ({ kind, text }) => `${kind}:${text}`,
          secretFor: () => randomBytes(32),
        }),
        RULES,
      ),
  } satisfies Opened);
});
test.after.each(async ({ dir, stored }) => {
  await stored.close();
  rmSync(dir, { recursive: true });
});

const added = (name: string): NewEvent => eventOf('UserAdded', { name, devices: ['device-one'], active: true });

async function all(events: EventStore): Promise<RecordedEvent[]> {
  const found: RecordedEvent[] = [];
  for await (const batch of events.readAll(undefined)) found.push(...batch.events);
  return found;
}

test('stores no personal field in the clear, and reads them in every way', async ({ stored, open }) => {
  const events = open();
  await events.append('user-anna', [added('Anna')], 'none');
  const [kept] = await stored.read('user-anna');
  assert.equal(kept?.data, { active: true });
  assert.not.match(JSON.stringify(kept), 'Anna');
  assert.not.match(JSON.stringify(kept), 'device-one');

  const clear = { name: 'Anna', devices: ['device-one'], active: true };
  const other = open();
  assert.equal((await other.read('user-anna'))[0]?.data, clear);
  assert.equal((await all(other))[0]?.data, clear);
  assert.is((await all(other))[0]?.metadata.personal, undefined);
  const end = new AbortController();
  for await (const batch of other.follow(undefined, {}, { signal: end.signal })) {
    assert.equal(batch.events[0]?.data, clear);
    end.abort();
  }
});

test('appends events without personal fields as they are', async ({ stored, keys, open }) => {
  await open().append('gift-1', [eventOf('GiftIssued', { name: 'open' })], 'none');
  await open().append('user-anna', [eventOf('UserAdded', { active: false })], 'none');
  assert.equal(
    (await all(stored)).map(({ data }) => data),
    [{ name: 'open' }, { active: false }],
  );
  assert.is(keys.rows.size, 0);
});

test('looks at no metadata of events without personal fields', async ({ open, stored }) => {
  const looked = new Set<string>();
  const watched = (event: RecordedEvent): RecordedEvent =>
    Object.defineProperty({ ...event }, 'metadata', {
      get: () => {
        looked.add(event.type);
        return event.metadata;
      },
    });
  await open().append('user-anna', [added('Anna'), eventOf('GiftIssued', {})], 'none');
  const read = stored.read.bind(stored);
  stored.read = async (stream, options) => (await read(stream, options)).map(watched);
  assert.is((await open().read('user-anna')).length, 2);
  assert.equal([...looked], ['UserAdded']);
});

test('reads fields that stand in the clear as they are', async ({ stored, open }) => {
  await stored.append('user-anna', [added('Anna')], 'none');
  assert.equal((await open().read('user-anna'))[0]?.data, { name: 'Anna', devices: ['device-one'], active: true });
});

test('reads empty fields once the key is gone', async ({ keys, open }) => {
  await open().append('user-anna', [added('Anna')], 'none');
  await keys.remove([...keys.rows.keys()]);
  assert.equal((await open().read('user-anna'))[0]?.data, { name: '', devices: [], active: true });
});

for (const [what, change] of [
  ['the event', ({ stream, id, type }: RecordedEvent) => ({ stream, id: `${id.slice(0, -1)}0`, type })],
  ['the stream', ({ id, type }: RecordedEvent) => ({ stream: 'user-bea', id, type })],
] as const)
  test(`refuses fields that were moved to another place, and reads the others: ${what}`, async ({ stored, open }) => {
    await open().append('user-anna', [{ ...added('Anna'), id: '0e7f5b9e-0000-4000-8000-00000000000f' }], 'none');
    const [kept] = await stored.read('user-anna');
    if (kept === undefined) throw new Error('nothing was stored');
    const moved = change(kept);
    await stored.append(moved.stream, [{ ...kept, ...moved }], 'any');
    const data = (await all(open())).at(-1)?.data as { readonly name: string; readonly active: boolean };
    assert.is(data.active, true);
    for (const read of [() => data.name, () => ({ ...data }), () => JSON.stringify(data)])
      assert.throws(
        read,
        (error: unknown) =>
          error instanceof AlteredDataError &&
          /^name, devices of event \d of user-\w+ can't be decrypted: it was altered$/.test(error.message),
      );
  });

test('reads the events of others where a row of the key store was altered', async ({ keys, open }) => {
  const events = open();
  for (const name of ['Anna', 'Bea', 'Cleo']) await events.append(`user-${name}`, [added(name)], 'none');
  const bea = [...keys.rows.values()].find(({ lookup }) => lookup === 'user:user-Bea');
  if (bea === undefined) throw new Error('nothing was stored');
  keys.rows.set(bea.id, { ...bea, secret: bea.secret.slice(0, -4) + (bea.secret.endsWith('AAAA') ? 'BBBB' : 'AAAA') });
  const [anna, altered, cleo] = (await all(open())).map(({ data }) => data as { readonly name: string });
  assert.equal([anna?.name, cleo?.name], ['Anna', 'Cleo']);
  assert.throws(
    () => altered?.name,
    (error: unknown) =>
      error instanceof AlteredDataError && error.message.startsWith('name, devices of event 0 of user-Bea '),
  );
});

test('reads a stream without its personal fields while the key store is away, and nothing else', async ({
  keys,
  open,
}) => {
  await open().append('user-anna', [added('Anna')], 'none');
  const byId = keys.byId.bind(keys);
  keys.byId = async () => Promise.reject(new UnavailableError('away'));
  const events = open();
  const [event] = await events.read('user-anna');
  const data = event?.data as { readonly name: string; readonly active: boolean };
  assert.is(data.active, true);
  assert.throws(
    () => data.name,
    (error: unknown) => error instanceof UnavailableError && !(error instanceof AlteredDataError),
  );
  assert.instance(await rejectionOf(all(events)), UnavailableError, 'who reads the whole log waits');
  keys.byId = byId;
  assert.equal((await events.read('user-anna'))[0]?.data, { name: 'Anna', devices: ['device-one'], active: true });
});

test('refuses to append where the key was erased a moment ago, before it would lose a field', async ({ stored }) => {
  const subjects: Subjects = {
    ids: async (names) => names.map(() => 'gone'),
    find: async () => [],
    propose: async () => [],
    store: async () => true,
    areStored: async () => true,
    secrets: async () => new Map(),
    rowsForErasure: async () => [],
    secretsForErasure: async () => new Map(),
  };
  const events = encryptedEvents(stored, subjects, RULES);
  assert.instance(await rejectionOf(events.append('user-anna', [added('Anna')], 'none')), UnavailableError);
  assert.is((await stored.read('user-anna')).length, 0);
});

test('refuses to append and reads empty fields while a subject is being erased', async ({ stored, keys, open }) => {
  await open().append('user-anna', [added('Anna')], 'none');
  await keys.fence([...keys.rows.keys()]);
  const events = open();
  assert.instance(await rejectionOf(events.append('user-anna', [added('Anna B')], 0)), UnavailableError);
  assert.is((await stored.read('user-anna')).length, 1);
  assert.equal((await events.read('user-anna'))[0]?.data, { name: '', devices: [], active: true });
});

test('repeats an append whose outcome is unknown', async ({ stored, open }) => {
  const event = added('Anna');
  const events = open();
  await events.append('user-anna', [event], 'none');
  await events.append('user-anna', [event], 'none');
  assert.is((await all(stored)).length, 1);
});

test.run();
