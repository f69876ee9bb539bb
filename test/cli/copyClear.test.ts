/** A log from before the encryption of personal data is encrypted on its way to another engine. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { keyedHash } from '../../src/domain/keyedHash.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import {
  appendClearLog,
  CLEAR_VALUES,
  clearLog,
  NUMBER,
  OTHER_NUMBER,
  PHONES_GIFT,
  TRANSACTION,
  USERS_GIFT,
} from '../support/fixtures/clearLog.js';
import { eventsOf } from '../support/engines/eventStoreEvents.js';
import { withLogIn } from '../support/engines/eventStoreFolder.js';
import { gift, type Said, saidBy } from '../support/service/cli.js';

interface Context {
  dir: string;
  from: string;
  to: string;
}

const test = suite<Context>('cli/copy of a clear log');
const HASH_KEY = 'h'.repeat(43);
const LOG = clearLog(keyedHash(Buffer.from(HASH_KEY)));

test.before.each(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'cli-copy-clear-'));
  context.from = join(context.dir, 'from');
  context.to = join(context.dir, 'to');
  await withLogIn(context.from, async (store) => appendClearLog(store, LOG));
  writeFileSync(join(context.from, 'hash.key'), HASH_KEY);
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true, force: true }));

const ask = async (args: readonly string[], dir?: string): Promise<Said> =>
  saidBy(await gift(dir === undefined ? {} : { DATA_DIR: dir }, args));
const copy = async ({ from, to }: Context, ...flags: string[]): Promise<Record<string, unknown>> => {
  const { code, out, err } = await ask(['copy', '--from', from, '--to', to, '--json', ...flags]);
  assert.is(code, 0, err);
  return JSON.parse(out) as Record<string, unknown>;
};
const eventsIn = async (dir: string): Promise<readonly RecordedEvent[]> =>
  withLogIn(dir, async (store) => eventsOf(store.readAll(undefined)));
const linesOf = ({ out }: Said): Record<string, unknown>[] =>
  out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test('encrypts it on the way, resumes, and leaves nothing in the clear', async (context) => {
  const first = await copy(context, '--no-seal');
  assert.is(first['encrypted'], 12);
  await withLogIn(context.from, async (store) =>
    appendClearLog(store, [
      [`gift-${PHONES_GIFT}`, 'GiftUnblocked', { cause: 'support:T-in-the-clear', reason: 'reason-in-the-clear' }],
    ]),
  );
  const rest = await copy(context);
  assert.equal([rest['copied'], rest['encrypted'], rest['sealed']], [2, 13, true]);
  assert.is((await copy(context))['copied'], 0, 'a repeat finds the same events');
  const [source, copied] = [await eventsIn(context.from), await eventsIn(context.to)];
  const outline = ({ id, type, at, revision, metadata: { by, commandId } }: RecordedEvent): unknown => [
    id,
    type,
    at,
    revision,
    by,
    commandId,
  ];
  assert.equal(copied.map(outline), source.map(outline));
  const stored = JSON.stringify(copied);
  for (const value of [
    ...CLEAR_VALUES,
    ...LOG.flatMap(([stream]) => (/^(username|phone)-/.test(stream) ? [stream.replace(/^\w+-/, '')] : [])),
    'phone_hash',
  ])
    assert.not.match(stored, value);
  const hashed = copied.filter(({ metadata }) => metadata.bodyHash !== undefined).map(({ type }) => type);
  assert.equal(hashed, ['PaymentCharged', 'GiftIssued', 'GiftRedeemed']);
  const causes = copied.flatMap(({ data }) => ('cause' in data ? [data.cause] : []));
  assert.equal([causes.length, causes[0], causes[2]], [4, causes[1], causes[3]]);
  assert.is.not(causes[0], causes[2]);
});

test('shows the same history, gifts and totals as before', async (context) => {
  const totals = async (dir: string): Promise<unknown> => {
    const rows = linesOf(await ask(['audit', 'totals', '--json', '--from', '2026-01-01', '--to', '2026-01-02'], dir));
    return rows.map((row) => ({ ...row, through: undefined }));
  };
  const before = await totals(context.from);
  await copy(context);
  cpSync(join(context.from, 'hash.key'), join(context.to, 'hash.key'));
  const shown = linesOf(await ask(['history', TRANSACTION, '--json', '--personal', '--reason', 'a drill'], context.to));
  const of = (type: string): Record<string, unknown>[] =>
    shown.filter((one) => one['type'] === type).map(({ data }) => data as Record<string, unknown>);
  const [purchase] = of('GiftsPurchased');
  assert.equal(
    [purchase?.['message'], purchase?.['receivers']],
    ['message-in-the-clear', [{ user_id: 'ada' }, { phone_number: OTHER_NUMBER }]],
  );
  const [reassigned] = of('GiftReassigned');
  assert.equal([reassigned?.['phone_number'], reassigned?.['reason']], [NUMBER, 'reason-in-the-clear']);
  assert.equal(
    of('GiftBlocked').map(({ ticket, reason }) => [ticket, reason]),
    Array(2).fill(['T-in-the-clear', 'reason-in-the-clear']),
  );
  const person = JSON.parse((await ask(['people', 'export', 'ada', '--reason', 'a drill'], context.to)).out) as {
    parts: { part: string; records: Record<string, unknown>[] }[];
  };
  const part = (name: string): Record<string, unknown>[] =>
    person.parts.find((one) => one.part === name)?.records ?? [];
  assert.equal([part('account')[0]?.['name'], part('account')[0]?.['phone_number']], ['Ada-of-the-clear-log', NUMBER]);
  assert.equal(part('names'), [{ username: 'ada@clear.example' }, { phone_number: NUMBER }]);
  assert.equal(part('payment methods')[0]?.['customer'], 'cus-in-the-clear');
  assert.equal(
    part('gifts').map(({ gift_id, as }) => [gift_id, as]),
    [
      [USERS_GIFT, 'receiver'],
      [PHONES_GIFT, 'later receiver'],
    ],
  );
  assert.equal(await totals(context.to), before);
  const asOf = async (id: string, time: string): Promise<Record<string, unknown>> => {
    const asked = ['history', id, '--as-of', time, '--viewer', 'ada', '--json'];
    return linesOf(await ask(asked, context.to))[0]?.['data'] as Record<string, unknown>;
  };
  assert.is((await asOf(USERS_GIFT, '2026-01-01T00:01:00Z'))['gift_status'], 'redeemed');
  // The number is known by one id in the reservation and in the gift.
  assert.is((await asOf(PHONES_GIFT, '2026-01-01T00:01:00Z'))['receiver_id'], 'ada');
  assert.is((await asOf(PHONES_GIFT, '2026-01-01T00:00:10Z'))['receiver_id'], '');
  const verified = saidBy(
    await gift({ DATA_DIR: context.to }, ['people', 'verify-erasure'], {
      stdin: Readable.from([
        `${CLEAR_VALUES.filter((value) => ![NUMBER, OTHER_NUMBER, 'ada@clear.example'].includes(value)).join('\n')}\n`,
      ]),
    }),
  );
  assert.is(verified.code, 0, verified.out);
});

test('takes the HASH_KEY of the log', async (context) => {
  rmSync(join(context.from, 'hash.key'));
  const { code, err } = await ask(['copy', '--from', context.from, '--to', context.to]);
  assert.is(code, 1);
  assert.match(err, 'which is encrypted on the way: that takes its HASH_KEY');
});

test.run();
