/** The checks of a run find what is altered after it. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { suite } from 'uvu';
import { PROCESS_LEASE } from '../../src/processors/runner/index.js';
import { CHARGE_PREFIX } from '../../src/providers/payments/simulated.js';
import { CALLS_OF_ANSWERS, checkAnswered } from './checks/answered.js';
import { checkDisputes } from './checks/disputes.js';
import { checkErasure } from './checks/erasure.js';
import { checkEvidence } from './checks/evidence.js';
import { checkGifts } from './checks/gifts.js';
import { watchLease } from './checks/leases.js';
import { differenceOf } from './checks/histories.js';
import { checkLog } from './checks/log.js';
import { checkMoney } from './checks/money.js';
import { checkReadModels } from './checks/readModels.js';
import { checkStreams } from './checks/streams.js';
import { watchSwaps } from './checks/swaps.js';
import { checkWallets } from './checks/wallets.js';
import { busRouter, openSimulatedBus } from './engines/bus.js';
import type { StoredEvent } from './engines/eventLog.js';
import { openSimulatedReadStore, readStoreDisk } from './engines/readStore.js';
import type { Finding } from './model/finding.js';
import { type Run, simulate } from './simulate.js';
import { noFaults } from './world/faults.js';
import { IMMEDIATE } from './world/link.js';

const test = suite<{ run: Run }>('simulation/checks');
/** Types of events that the tests alter. What a seed does depends on src: the first seed that has them all is taken. */
const NEEDED = ['GiftRedeemed', 'WalletDebited', 'NotificationSent', 'PaymentCharged'];
test.before(async (context) => {
  for (let number = 1; number <= 5; number++) {
    context.run = await simulate({ seed: `checks ${number}`, faults: noFaults(), forMs: 60_000 });
    assert.deepEqual(context.run.findings, []);
    const types = new Set(context.run.cluster.log.stored.map(({ type }) => type));
    if (NEEDED.every((type) => types.has(type))) return;
  }
  assert.fail('no seed does all that the tests alter');
});

const texts = (findings: readonly Finding[]): string => findings.map(({ text }) => text).join('\n');

/** The log without some events, or with others. */
const altered = ({ cluster }: Run, change: (event: StoredEvent) => readonly StoredEvent[]) => ({
  stored: cluster.log.stored.flatMap(change),
});

test('finds a redemption that is missing or comes twice', ({ run }) => {
  const twice = altered(run, (event) => (event.type === 'GiftRedeemed' ? [event, event] : [event]));
  assert.match(texts(checkLog(twice)), /is in the log twice/);
  assert.match(texts(checkLog(twice)), /is redeemed twice/);
  const missing = altered(run, (event) => (event.type === 'GiftRedeemed' ? [] : [event]));
  assert.match(texts(checkLog(missing)), /was not to be reversed/);
});

test('finds a history that lacks, invents or alters an event of a gift', ({ run }) => {
  const { stored } = run.cluster.log;
  const gift = stored.find(({ type }) => type === 'GiftRedeemed')?.stream.slice('gift-'.length) ?? '';
  const life = stored
    .filter(({ stream }) => stream === `gift-${gift}` || stream === `notification-${gift}`)
    .map(({ metadata, ...event }) => ({ ...event, by: (JSON.parse(metadata) as { readonly by: object }).by }));
  const difference = (data: readonly object[]): string | undefined =>
    differenceOf(gift, { status: 200, headers: {}, body: { data } }, stored);
  assert.equal(difference(life), undefined);
  assert.match(difference(life.slice(1)) ?? '', /lacks .* GiftIssued/);
  assert.match(difference(life.toReversed()) ?? '', /not in the order/);
  const altered = life.map((event) => (event.type === 'GiftRedeemed' ? { ...event, by: { user: 'mallory' } } : event));
  assert.match(difference(altered) ?? '', /does not hold .* GiftRedeemed .* by mallory/);
});

test('finds a wallet that is debited twice, for nothing, or not at all', ({ run }) => {
  assert.deepEqual(checkWallets(run.cluster.log), []);
  const debits = (change: (event: StoredEvent) => readonly StoredEvent[]): string =>
    texts(checkWallets(altered(run, (event) => (event.type === 'WalletDebited' ? change(event) : [event]))));
  assert.match(
    debits((event) => [event, event]),
    /was decided twice/,
  );
  assert.match(
    debits(() => []),
    /the wallet has undefined as the debit of/,
  );
  assert.match(
    debits((event) => [{ ...event, type: 'WalletDebitRefused' }]),
    /was refused, with \d+ left/,
  );
  assert.match(
    debits((event) => [{ ...event, data: event.data.replace(/"amount":\d+/, '"amount":9000') }]),
    /leaves -/,
  );
});

test('finds a dispute that the log does not know, and gifts that stay usable', () => {
  const dispute = { transaction: 't', disputeId: 'dp_t', pence: 400, outcomes: ['lost' as const] };
  const event = (stream: string, type: string, data: object): StoredEvent => ({
    id: `${stream} ${type}`,
    stream,
    type,
    data: JSON.stringify(data),
    revision: 0,
    position: '',
    at: '',
    metadata: '{}',
  });
  const issued = event('gift-g', 'GiftIssued', { transaction_id: 't' });
  const opened = event('transaction-t', 'DisputeOpened', { dispute_id: 'dp_t', amount: 400 });
  const lost = event('transaction-t', 'DisputeClosed', { dispute_id: 'dp_t', outcome: 'lost' });
  const blocked = event('gift-g', 'GiftBlocked', { cause: 'dispute:dp_t' });
  const freed = event('gift-g', 'GiftUnblocked', { cause: 'dispute:dp_t' });
  const cancelled = event('gift-g', 'GiftCancelled', {});
  const foundIn = (stored: StoredEvent[], outcomes: readonly ('won' | 'lost')[] = ['lost']): string =>
    texts(checkDisputes({ stored }, [{ ...dispute, outcomes }]));
  assert.equal(foundIn([issued, opened, blocked, lost]), '');
  assert.equal(foundIn([issued, opened, lost, cancelled]), '');
  assert.match(foundIn([issued, blocked, lost]), /is opened 0 times/);
  assert.match(foundIn([issued, opened, opened, blocked, lost]), /is opened 2 times/);
  assert.match(foundIn([issued, opened, blocked]), /ended as lost, the log says undefined/);
  assert.match(foundIn([issued, opened, lost]), /the gift g is not blocked/);
  assert.match(foundIn([issued, opened, blocked, lost], ['lost', 'won']), /ended as won/);
  assert.match(foundIn([issued, opened, blocked, lost, freed]), /the gift g is not blocked/);
});

test('finds a process that requests work while another one has the lease', async () => {
  const disk = readStoreDisk();
  const leases = watchLease(disk.records, () => 0);
  const records = (process: string) => leases.storeOf(process, openSimulatedReadStore(disk, IMMEDIATE)).records;
  const take = async (process: string, holder: string | null): Promise<unknown> =>
    records(process).put(`lease/${PROCESS_LEASE}`, { holder, fence: 1 });
  const bus = leases.busOf(
    'one',
    openSimulatedBus(busRouter(), IMMEDIATE, () => undefined),
  );
  await bus.serve('payments.charge', 'workers', async () => ({}));
  const ask = async (): Promise<unknown> => bus.request('payments.charge', {}, { timeoutMs: 1_000 });
  await take('one', 'name of one');
  await ask();
  await take('one', null);
  await ask();
  assert.deepEqual(leases.findings(), []);
  await take('two', 'name of two');
  await ask();
  assert.match(texts(leases.findings()), /one requests payments.charge, while two has the lease/);
  await bus.close();
});

test('finds a write that is in the log and was not answered, where nothing but its key was in trouble', ({ run }) => {
  const { log } = run.cluster;
  const index = run.history.findIndex(({ operation, answer }) => operation.kind === 'redeem' && answer?.status === 201);
  const redeemed = run.history[index];
  assert.ok(redeemed?.answer !== undefined);
  const unheard = [{ ...redeemed, answer: { ...redeemed.answer, status: 503 } }];
  assert.match(texts(checkAnswered(unheard, log, () => false)), /log has what this request did/);
  assert.deepEqual(
    checkAnswered(unheard, log, () => true),
    [],
  );
  assert.deepEqual(
    checkAnswered(run.history, log, () => false),
    [],
  );
  assert.deepEqual(
    ['documents get gifts@1', 'documents get idempotency:k', 'events read gift-1', 'events follow'].map((call) =>
      CALLS_OF_ANSWERS.test(call),
    ),
    [true, false, true, false],
  );
});

test('finds readers that go over to a build behind the one that they leave', async () => {
  const disk = readStoreDisk();
  const swaps = watchSwaps(disk.documents, () => '5');
  const storeOf = (process: string) => swaps.storeOf(process, openSimulatedReadStore(disk, IMMEDIATE));
  const [one, two] = [storeOf('one'), storeOf('two')];
  const collectionOf = (version: number) => ({ name: 'gifts', version, indexes: [] });
  const reach = async (store: typeof one, version: number, position: string): Promise<void> => {
    const checkpoint = { projection: `gifts@${version}`, position };
    await store.write([{ collection: collectionOf(version), documents: [], checkpoint }]);
  };
  await reach(one, 1, '4');
  await one.activate('gifts', 1);
  await reach(one, 2, '4');
  await one.activate('gifts', 2);
  await reach(one, 3, '9');
  await one.activate('gifts', 3);
  await two.activate('gifts', 1);
  await one.activate('gifts', 2);
  assert.deepEqual(swaps.findings(), []);
  await reach(one, 4, '3');
  await one.activate('gifts', 4);
  assert.match(texts(swaps.findings()), /from gifts@2 at 4 to @4 at 3/);
});

test('finds a gift that is used before its issue, and a command that appends to a stream again', ({ run }) => {
  const unissued = altered(run, (event) =>
    event.type === 'GiftIssued' ? [] : [{ ...event, revision: event.stream.startsWith('gift-') ? 0 : event.revision }],
  );
  assert.match(texts(checkStreams(unissued.stored)), /comes before the gift .* is issued/);
  const again = altered(run, (event) =>
    event.type === 'GiftsPurchased' ? [event, { ...event, revision: event.revision + 7 }] : [event],
  );
  assert.match(texts(checkStreams(again.stored)), /is of a command that had appended before/);
});

test('finds a gift that is redeemed after its cancellation or its cancelled key, or claimed twice', ({ run }) => {
  const { stored } = run.cluster.log;
  const redeemed = stored.find(({ type }) => type === 'GiftRedeemed');
  assert.ok(redeemed !== undefined);
  const { redemption_id = '' } = JSON.parse(redeemed.data) as { readonly redemption_id?: string };
  const before = (type: string, data: object): string =>
    texts(
      checkStreams([
        { ...redeemed, revision: 1, type, data: JSON.stringify(data) },
        { ...redeemed, revision: 2 },
      ]),
    );
  assert.match(before('GiftCancelled', {}), /redeemed after it was cancelled/);
  assert.match(
    before('RedemptionVoided', { redemption_id: redemption_id.slice(-20) }),
    /was cancelled for good before/,
  );
  assert.equal(before('GiftBlocked', {}), '');
  const claim = { ...redeemed, type: 'GiftClaimed', data: '{}' };
  const cancelled = { ...redeemed, revision: 2, type: 'GiftCancelled' };
  assert.match(texts(checkStreams([1, 2].map((revision) => ({ ...claim, revision })))), /claimed twice/);
  assert.match(texts(checkStreams([{ ...redeemed, revision: 1 }, cancelled])), /cancelled while it is redeemed/);
});

test('finds a second voucher, and a second outcome of one attempt', ({ run }) => {
  const sent = altered(run, (event) => (event.type === 'NotificationSent' ? [event, event] : [event]));
  assert.match(texts(checkStreams(sent.stored)), /the outcome of attempt 1 for the second time/);
  const [issued] = run.cluster.log.stored.filter(({ type }) => type === 'GiftIssued');
  assert.ok(issued !== undefined);
  const vouchers = [1, 2].map((revision) => ({ ...issued, revision, type: 'VoucherAssigned' }));
  assert.match(texts(checkStreams(vouchers)), /a voucher for the second time/);
});

test('finds charges that only one side knows, or of another amount', ({ run }) => {
  const { ledger, log } = run.cluster;
  const unknown = altered(run, (event) => (event.type === 'PaymentCharged' ? [] : [event]));
  assert.match(texts(checkMoney(unknown, ledger)), /the provider charged .* and the log does not know it/);
  assert.match(texts(checkMoney(unknown, ledger)), /neither charged nor declined/);
  const charges = ledger.list(CHARGE_PREFIX, Number.MAX_SAFE_INTEGER, undefined, 0);
  const charge = charges.find(({ value }) => value.includes('"charged"'));
  assert.ok(charge !== undefined);
  const entry = JSON.parse(charge.value) as { readonly amount: number };
  ledger.put(charge.key, JSON.stringify({ ...entry, amount: entry.amount + 1 }), {}, 0);
  assert.match(texts(checkMoney(log, ledger)), /the provider charged .*, the log/);
  ledger.delete(charge.key, undefined, 0);
  assert.match(texts(checkMoney(log, ledger)), /does not know the charge/);
  ledger.put(charge.key, charge.value, {}, 0);
  assert.deepEqual(checkMoney(log, ledger), []);
});

test('finds gifts that were never issued, and receivers who were not told', ({ run }) => {
  const missing = altered(run, (event) => (event.type === 'GiftIssued' ? [] : [event]));
  assert.match(texts(checkGifts(missing)), /was never issued/);
  const untold = altered(run, (event) => (event.type.startsWith('Notification') ? [] : [event]));
  assert.match(texts(checkGifts(untold)), /neither notified nor given up/);
});

test('finds a document that is not as the log says', async ({ run }) => {
  const { documents } = run.cluster.readStore;
  const version = documents.active('gifts') ?? 0;
  const gifts = { name: 'gifts', version, indexes: [] };
  const [gift] = documents.find(gifts, {});
  const row = documents.row(gifts, gift?.id ?? '');
  assert.ok(row !== undefined);
  const before = row.body;
  row.body = before.replace('"', '"changed');
  assert.match(texts(await checkReadModels(run.cluster)), /^gifts has 1 other documents/);
  row.body = before;
  assert.deepEqual(await checkReadModels(run.cluster), []);
});

test('finds a log that is not what was signed, and one whose end has no head', async ({ run: { cluster } }) => {
  const stored = cluster.log.stored as StoredEvent[];
  const index = stored.findIndex(({ type }) => type === 'GiftRedeemed');
  const event = stored[index];
  assert.ok(event !== undefined);
  stored[index] = { ...event, data: event.data.replace('"value":', '"value":1') };
  assert.match(texts(await checkEvidence(cluster)), /altered/);
  stored[index] = event;
  // A run removes its tiles at its end.
  assert.match(texts(await checkEvidence(cluster)), /have no proofs/);
  cluster.log.append('gift-late', [{ ...event, id: 'late' }], 'none');
  assert.match(texts(await checkEvidence(cluster)), /no head covers GiftRedeemed/);
});

test('finds what still names a person', async ({ run: { cluster } }) => {
  // A run removes its folder at its end.
  mkdirSync(cluster.config('projector').dataDir);
  const found = texts(await checkErasure(cluster, ['07700 900001', 'ann@test.example', 'nobody at all']));
  cluster.close();
  assert.match(found, /07700 900001 is in the key store/);
  assert.match(found, /ann@test.example is in the read store: doc_accounts/);
  assert.doesNotMatch(found, /nobody/);
});

test.run();
