/** Requested erasures: who may, until when they can be withdrawn, and what restores leave of them. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { CommandContext } from '../../../../src/commands/transact.js';
import { keyedHash } from '../../../../src/domain/keyedHash.js';
import {
  lookupOf,
  PERSONAL_FIELDS,
  type PersonName,
  phoneSubject,
  usernameSubject,
} from '../../../../src/domain/personalFields.js';
import { Refusal } from '../../../../src/domain/refusal.js';
import { erasePerson } from '../../../../src/ops/people/erasure/erasePerson.js';
import type { ErasureDeps } from '../../../../src/ops/people/erasure/derivedData.js';
import { type Erasure, storedErasures, storeErasure } from '../../../../src/ops/people/erasure/erasureRecord.js';
import { erasuresOf, finishErasures } from '../../../../src/ops/people/erasure/erasures.js';
import { reapplyErasures } from '../../../../src/ops/people/erasure/reapplyErasures.js';
import { requestErasure, startRequested, withdrawErasure } from '../../../../src/ops/people/erasure/requestErasure.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { encryptedEvents } from '../../../../src/runtime/personal/encryptedEvents.js';
import { type MemoryEvents, memoryEvents } from '../../../support/engines/memoryEvents.js';
import { type MemoryKeys, memoryKeys } from '../../../support/engines/memoryKeys.js';
import { rejectionOf } from '../../../support/engines/readStoreDocuments.js';
import { memorySubjects } from '../../../support/fixtures/memorySubjects.js';
import { eventOf } from '../../../support/service/testLog.js';

const hash = keyedHash(Buffer.alloc(32, 7));
const RULES = new Map(Object.entries(PERSONAL_FIELDS)) as Parameters<typeof encryptedEvents>[2];
const EVE = { kind: 'user', userId: 'eve' } as const;
const HOUR = 3_600_000;
const WANTED = { reason: 'asked for it', delayMs: 72 * HOUR };

const at = (hour: number): string => new Date(Date.parse('2026-05-04T12:00:00.000Z') + hour * HOUR).toISOString();
let commands = 0;
const by = (user: string, hour = 0): CommandContext => {
  const commandId = `command-${(commands += 1)}`;
  return { commandId, correlationId: commandId, by: { user }, now: at(hour) };
};

interface Town {
  readonly stored: MemoryEvents;
  readonly keys: MemoryKeys;
  readonly deps: ErasureDeps;
}

/** Eve is a customer. `more` of her fields; the log and the key store may be those of an earlier time. */
async function town(more: object = {}, stored = memoryEvents(), keys = memoryKeys()): Promise<Town> {
  const subjects = memorySubjects(keys, (name) => lookupOf(hash, name as PersonName));
  const events = encryptedEvents(stored, subjects, RULES);
  const nothing = async (): Promise<void> => undefined;
  const ends = { settle: nothing, removeRecords: nothing, removeDerived: nothing };
  if (stored.log.length === 0) {
    const [name = ''] = await subjects.ids([usernameSubject('eve@person.example'), phoneSubject('+447700900131')]);
    const eve = { id: 'eve', username: 'eve@person.example', name: 'Eve', phone_number: null, active: true };
    const customer = { roles: [], merchant_id: null, permissions: [] };
    const data = { ...eve, ...customer, password_hash: 'hash', device_tokens: [], ...more };
    await events.append('user-eve', [eventOf('UserAdded', data)], 'none');
    await events.append(`username-${name}`, [eventOf('UsernameTaken', { user_id: 'eve' })], 'none');
  }
  return { stored, keys, deps: { events, keys, subjects, ...ends } };
}

/** What a process with the role `processor` does once. */
async function look({ deps }: Town, hour: number): Promise<void> {
  const ending = new AbortController();
  let failed: Error | undefined;
  const onTrouble = (error: Error | undefined): void => {
    failed = error;
    ending.abort();
  };
  await finishErasures(erasuresOf(deps), () => at(hour), { signal: ending.signal, onTrouble });
  if (failed !== undefined) throw failed;
}

const history = ({ stored }: Town): string[] =>
  stored.log.filter(({ stream }) => stream === 'user-eve').map(({ type }) => type);

async function erasures({ keys }: Pick<Town, 'keys'>): Promise<Erasure[]> {
  const found: Erasure[] = [];
  for await (const erasure of storedErasures(keys)) found.push(erasure);
  return found;
}

/** The log's first events, in another log. */
async function logOf({ stored }: Town, count: number): Promise<MemoryEvents> {
  const older = memoryEvents();
  for (const { stream, ...event } of stored.log.slice(0, count)) await older.append(stream, [event], 'any');
  return older;
}

/** The key store with all rows, and with these erasures. */
async function keysOf(made: Town, known: readonly Erasure[]): Promise<MemoryKeys> {
  const older = memoryKeys();
  await older.add([...made.keys.rows.values()]);
  for (const erasure of known) await storeErasure(older, erasure);
  return older;
}

const ERASED = ['UserAdded', 'ErasureRequested', 'ErasureStarted', 'UserRetired', 'PersonErased'];

const test = suite('requested erasures');

test('are carried out once they are due, and not before', async () => {
  const made = await town();
  const requested = await requestErasure(made.deps, EVE, by('sue'), WANTED);
  assert.is(requested.due_at, at(72));
  assert.equal(await requestErasure(made.deps, EVE, by('sid', 1), WANTED), requested, 'the same one');
  await look(made, 71);
  assert.equal(history(made), ['UserAdded', 'ErasureRequested']);
  await look(made, 72);
  assert.equal(history(made), ERASED);
  const [erasure] = await erasures(made);
  assert.equal([erasure?.id, erasure?.done_at], [requested.id, at(72)]);
  await look(made, 80);
  assert.equal(history(made), ERASED);
  const again = await requestErasure(made.deps, EVE, by('sue', 81), WANTED);
  assert.is(again.done_at, at(72), 'done before');
});

test('are carried out at once by the command line, and by an approval', async () => {
  const made = await town();
  const { id } = await requestErasure(made.deps, EVE, by('sue'), WANTED);
  const { erasure } = await erasePerson(made.deps, EVE, by('cli:root@host', 1), 'asked for it');
  assert.is(erasure.id, id);
  assert.equal(history(made), ERASED);
});

test('are withdrawn until they have started, and requested again', async () => {
  const made = await town();
  const first = await requestErasure(made.deps, EVE, by('sue'), WANTED);
  await withdrawErasure(made.deps, EVE, by('sid', 1), 'not theirs');
  await look(made, 100);
  assert.equal(history(made), ['UserAdded', 'ErasureRequested', 'ErasureWithdrawn']);
  const refused = await rejectionOf(withdrawErasure(made.deps, EVE, by('sid', 101), 'not theirs'));
  assert.is((refused as Refusal).code, 'erasure_not_found');
  const second = await requestErasure(made.deps, EVE, by('sue', 101), WANTED);
  assert.is.not(second.id, first.id);
  await look(made, 173);
  assert.equal(history(made).slice(-3), ['ErasureStarted', 'UserRetired', 'PersonErased']);
});

test('stay withdrawn where a request is stored late', async () => {
  const made = await town();
  let store = (): void => undefined;
  const late = new Promise<void>((resolve) => (store = resolve));
  const putErasure: MemoryKeys['putErasure'] = async (row) => {
    await late;
    await made.keys.putErasure(row);
  };
  const slow = requestErasure({ ...made.deps, keys: { ...made.deps.keys, putErasure } }, EVE, by('sue'), WANTED);
  const { id } = await requestErasure(made.deps, EVE, by('sid'), WANTED);
  await withdrawErasure(made.deps, EVE, by('sid', 1), 'not theirs');
  store();
  assert.equal([(await slow).id, (await slow).withdrawn_at], [id, at(1)]);
  assert.equal(
    (await erasures(made)).map(({ withdrawn_at }) => withdrawn_at),
    [at(1)],
  );
  const again = await requestErasure(made.deps, EVE, by('sue', 2), WANTED);
  assert.is.not(again.id, id);
  await look(made, 80);
  assert.equal(history(made).slice(-3), ['ErasureStarted', 'UserRetired', 'PersonErased']);
});

test('are soon as the log has them, where a write of the request takes effect late', async () => {
  const made = await town();
  const requested = await requestErasure(made.deps, EVE, by('sue'), WANTED);
  await withdrawErasure(made.deps, EVE, by('sid', 1), 'not theirs');
  await storeErasure(made.keys, requested);
  await look(made, 2);
  assert.is((await erasures(made))[0]?.withdrawn_at, at(1), 'withdrawn');
  assert.equal(await erasuresOf(made.deps).unfinished(), []);
  const second = await requestErasure(made.deps, EVE, by('sue', 3), WANTED);
  await erasuresOf(made.deps).approve(EVE, by('aly', 4), 'asked for it');
  await storeErasure(made.keys, second);
  await look(made, 5);
  assert.is((await erasures(made)).find(({ id }) => id === second.id)?.done_at, at(5), 'erased');
});

/** Sue's request for a number. Its process was killed before `PersonErased`, and a late write hid its start. */
async function hiddenStart(made: Town): Promise<Erasure> {
  const phoneId = [...made.keys.rows.keys()][1] ?? '';
  const requested = await requestErasure(made.deps, { kind: 'number', phoneId }, by('sue'), WANTED);
  await startRequested(made.deps, requested, by('aly', 1));
  await made.keys.remove([phoneId]);
  await storeErasure(made.keys, requested);
  return requested;
}

test('are finished where a late write hid their start, though the number is removed already', async () => {
  const made = await town();
  await hiddenStart(made);
  await look(made, 2);
  assert.is((await erasures(made))[0]?.done_at, at(2));
});

test('are approved where a late write hid their start, though the number is removed already', async () => {
  const made = await town();
  const { id, person } = await hiddenStart(made);
  assert.is((await erasuresOf(made.deps).approve(person, by('aly', 2), 'asked for it')).view.id, id);
  assert.is((await erasures(made))[0]?.done_at, at(2));
});

/** Sid's withdrawal, which the key store did not store. */
async function withdrawnInLog({ deps }: Town, command = by('sid', 1)): Promise<void> {
  const putErasure = async (): Promise<never> => Promise.reject(new UnavailableError('down'));
  const down = { ...deps, keys: { ...deps.keys, putErasure } };
  assert.instance(await rejectionOf(withdrawErasure(down, EVE, command, 'not theirs')), UnavailableError);
}

test('are carried out at once, but not approved, after a withdrawal that the key store did not store', async () => {
  const made = await town();
  const { id } = await requestErasure(made.deps, EVE, by('sue'), WANTED);
  await withdrawnInLog(made);
  const approval = erasuresOf(made.deps).approve(EVE, by('aly', 2), 'asked for it');
  assert.is(((await rejectionOf(approval)) as Refusal).code, 'erasure_not_found');
  const other = await town();
  await requestErasure(other.deps, EVE, by('sue'), WANTED);
  await withdrawnInLog(other);
  const { view } = await erasuresOf(other.deps).erase(EVE, by('cli:root@host', 2), 'asked for it');
  assert.is.not(view.id, id);
  assert.is(history(other).at(-1), 'PersonErased');
});

test('are not withdrawn a second time after a withdrawal that the key store did not store', async () => {
  const made = await town();
  await requestErasure(made.deps, EVE, by('sue'), WANTED);
  await withdrawnInLog(made);
  const second = await rejectionOf(withdrawErasure(made.deps, EVE, by('sam', 2), 'she has asked me to'));
  assert.is((second as Refusal).code, 'erasure_not_found');
  assert.is((await erasures(made))[0]?.withdrawn_at, at(1));
});

test('are requested again after a withdrawal that the key store did not store', async () => {
  for (const repeated of [false, true]) {
    const made = await town();
    const first = await requestErasure(made.deps, EVE, by('sue'), WANTED);
    const command = by('sid', 1);
    await withdrawnInLog(made, command);
    if (repeated) {
      assert.is((await withdrawErasure(made.deps, EVE, command, 'not theirs')).withdrawn_at, at(1));
      assert.is((await erasures(made))[0]?.withdrawn_at, at(1), 'a repeat completes it');
    }
    const second = await requestErasure(made.deps, EVE, by('sue', 2), WANTED);
    assert.is.not(second.id, first.id);
    const stored = await erasures(made);
    assert.is(stored.find(({ id }) => id === first.id)?.withdrawn_at, at(1));
    await look(made, 74);
    assert.equal(history(made).slice(-4), ['ErasureRequested', 'ErasureStarted', 'UserRetired', 'PersonErased']);
  }
});

test('are either withdrawn or carried out, in whichever order both reach the log', async () => {
  for (const winner of ['withdrawal', 'start']) {
    const made = await town();
    await requestErasure(made.deps, EVE, by('sue'), WANTED);
    let raced = false;
    // The other one is first, between reading and appending.
    const racing: ErasureDeps = {
      ...made.deps,
      events: {
        ...made.deps.events,
        async append(stream, events, expected) {
          if (!raced) {
            raced = true;
            if (winner === 'withdrawal') await withdrawErasure(made.deps, EVE, by('sid', 72), 'not theirs');
            else await erasePerson(made.deps, EVE, by('aly', 72), 'asked for it');
          }
          return made.deps.events.append(stream, events, expected);
        },
      },
    };
    const loser =
      winner === 'withdrawal'
        ? erasePerson(racing, EVE, by('aly', 72), 'asked for it')
        : withdrawErasure(racing, EVE, by('sid', 72), 'not theirs');
    const outcome = await loser.then(
      () => undefined,
      (error: unknown) => (error instanceof Refusal ? error.code : error),
    );
    await look(made, 90);
    if (winner === 'withdrawal') {
      assert.is(outcome, 'erasure_not_found');
      assert.equal(history(made), ['UserAdded', 'ErasureRequested', 'ErasureWithdrawn']);
    } else {
      assert.ok(history(made).includes('PersonErased'));
      assert.not.ok(history(made).includes('ErasureWithdrawn'));
    }
  }
});

test('are refused for staff, users of merchants and oneself, whoever asks', async () => {
  const refusedFor = async (more: object, user: string): Promise<unknown> => {
    const made = await town(more);
    const refusals = [
      await rejectionOf(requestErasure(made.deps, EVE, by(user), WANTED)),
      await rejectionOf(erasePerson(made.deps, EVE, by(user), 'asked for it')),
    ].map((error) => (error as Refusal).code);
    assert.equal(history(made), ['UserAdded']);
    assert.equal(await erasures(made), []);
    assert.is(refusals[0], refusals[1]);
    return refusals[0];
  };
  assert.is(await refusedFor({ roles: ['support'] }, 'sue'), 'erasure_of_staff');
  assert.is(await refusedFor({ roles: ['auditor'] }, 'cli:root@host'), 'erasure_of_staff');
  assert.is(await refusedFor({ merchant_id: 'm1', roles: [] }, 'sue'), 'erasure_of_staff');
  assert.is(await refusedFor({ roles: [] }, 'eve'), 'another_user_required');
  const left = await town({ roles: ['support'], active: false });
  await erasePerson(left.deps, EVE, by('sue'), 'asked for it');
  assert.ok(history(left).includes('PersonErased'));
});

test('wait for a person who has become staff', async () => {
  const made = await town();
  await requestErasure(made.deps, EVE, by('sue'), WANTED);
  await made.deps.events.append('user-eve', [eventOf('UserChanged', { roles: ['support'] })], 'any');
  await look(made, 80);
  assert.not.ok(history(made).includes('ErasureStarted'));
  await made.deps.events.append('user-eve', [eventOf('UserChanged', { roles: [] })], 'any');
  await look(made, 81);
  assert.ok(history(made).includes('PersonErased'));
});

test('wait as long again in a log that is from before them', async () => {
  const made = await town();
  const requested = await requestErasure(made.deps, EVE, by('sue'), WANTED);
  const restored = await town({}, await logOf(made, 2), made.keys);
  assert.is((await reapplyErasures(restored.deps, at(70))).again, 0);
  await look(restored, 80);
  assert.equal(history(restored), ['UserAdded', 'ErasureRequested']);
  assert.is((await erasures(restored))[0]?.due_at, at(152));
  await look(restored, 151);
  assert.equal(history(restored), ['UserAdded', 'ErasureRequested']);
  await look(restored, 152);
  assert.equal(history(restored), ERASED);
  assert.is((await erasures(restored))[0]?.id, requested.id);
});

test('are carried out once where two processes append them again at the same time', async () => {
  const made = await town();
  await requestErasure(made.deps, EVE, by('sue'), WANTED);
  const restored = await town({}, await logOf(made, 2), made.keys);
  await Promise.all([look(restored, 80), look(restored, 80)]);
  assert.equal(history(restored), ['UserAdded', 'ErasureRequested']);
  assert.is((await erasures(restored))[0]?.withdrawn_at, undefined);
  assert.is((await reapplyErasures(restored.deps, at(81))).again, 0);
  await look(restored, 152);
  assert.equal(history(restored), ERASED);
});

test('wait as long again after a restore, since a withdrawal may be lost', async () => {
  const made = await town();
  await requestErasure(made.deps, EVE, by('sue'), WANTED);
  const restored = { ...eventOf('LogRestored', {}), at: at(50) };
  await made.deps.events.append('log-restored', [restored], 'any');
  await look(made, 72);
  assert.equal(history(made), ['UserAdded', 'ErasureRequested']);
  await look(made, 121);
  assert.equal(history(made), ['UserAdded', 'ErasureRequested']);
  await look(made, 122);
  assert.equal(history(made), ERASED);
});

test('are known again to a key store from before them', async () => {
  const made = await town();
  const requested = await requestErasure(made.deps, EVE, by('sue'), WANTED);
  const older = await town({}, made.stored, await keysOf(made, []));
  await reapplyErasures(older.deps, at(1));
  assert.equal(await erasures(older), [requested]);
  await look(older, 72);
  assert.equal(history(older), ERASED);
});

test('go on in a key store from before them where they had started', async () => {
  const made = await town();
  await requestErasure(made.deps, EVE, by('sue'), WANTED);
  const dying: ErasureDeps = {
    ...made.deps,
    settle: async () => Promise.reject(new Error('killed')),
  };
  await rejectionOf(erasePerson(dying, EVE, by('sid', 1), 'asked for it'));
  assert.ok(history(made).includes('ErasureStarted'));
  const older = await town({}, made.stored, await keysOf(made, []));
  await reapplyErasures(older.deps, at(2));
  await look(older, 3);
  assert.is(history(older).at(-1), 'PersonErased');
});

test('stay withdrawn in a log and in a key store from before the withdrawal', async () => {
  const made = await town();
  const requested = await requestErasure(made.deps, EVE, by('sue'), WANTED);
  const count = made.stored.log.length;
  const withdrawn = await withdrawErasure(made.deps, EVE, by('sid', 1), 'not theirs');

  const log = await town({}, await logOf(made, count), made.keys);
  await reapplyErasures(log.deps, at(2));
  assert.is(history(log).at(-1), 'ErasureWithdrawn');
  await look(log, 200);
  assert.is(history(log).at(-1), 'ErasureWithdrawn');

  const keys = await town({}, made.stored, await keysOf(made, [requested]));
  await look(keys, 200);
  assert.is(history(keys).at(-1), 'ErasureWithdrawn');
  assert.is((await erasures(keys))[0]?.withdrawn_at, at(1));

  // Both, with a list that is stored elsewhere.
  const both = await town({}, await logOf(made, count), await keysOf(made, [requested]));
  await reapplyErasures(both.deps, at(2), { listed: [withdrawn] });
  await look(both, 200);
  assert.is(history(both).at(-1), 'ErasureWithdrawn');
});

test('come back from a list where log and key store are from before them, and are not carried out at once', async () => {
  const made = await town();
  const requested = await requestErasure(made.deps, EVE, by('sue'), WANTED);
  const both = await town({}, await logOf(made, 2), await keysOf(made, []));
  assert.is((await reapplyErasures(both.deps, at(10), { listed: [requested] })).again, 0);
  assert.equal(history(both), ['UserAdded']);
  await look(both, 73);
  assert.equal(history(both), ['UserAdded', 'ErasureRequested']);
  await look(both, 145);
  assert.equal(history(both), ERASED);
});

test.run();
