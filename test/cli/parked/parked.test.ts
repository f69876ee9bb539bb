import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { loadConfig } from '../../../src/service/config.js';
import { parkedId } from '../../../src/domain/parked.js';
import { interruptedGroups } from '../../../src/ops/parked/decideGroup.js';
import { parkedWork } from '../../../src/ops/status/parkedWork.js';
import { openLog } from '../../../src/service/engines.js';
import { type Ran, gift } from '../../support/service/cli.js';
import { openTestEngines } from '../../support/engines/engines.js';
import { parkedPurchase, parkedRefund, parkedTimes, startWithTrouble } from '../../support/fixtures/parkedWork.js';
import { type Json, type Service, startService } from '../../support/service/service.js';
import { eventOf } from '../../support/service/testLog.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('cli/parked');
let service: Service;
test.before(async () => {
  service = await startWithTrouble();
});
test.after(() => service.close());

const parked = async (...args: readonly string[]): Promise<Ran> => gift(service.settings, ['parked', ...args]);
const REASON = ['--reason', 'the provider is up'] as const;
const rows = async (...args: readonly string[]): Promise<Json[]> => {
  const { code, out, err, records } = await parked('list', '--json', ...args);
  assert.deepEqual([code, err], [0, '']);
  return out === '' ? [] : (records() as Json[]);
};
const row = async (entity: string, ...args: readonly string[]): Promise<Json> =>
  (await rows(...args)).find((one) => one.entity === entity);

test('with nothing parked it says so', async () => {
  assert.deepEqual(
    [(await parked('list')).out, (await parked('list', '--state', 'discarded')).out],
    ['no work waits for a person\n', 'there is no such work\n'],
  );
  const { code, err } = await parked('retry', '--all', ...REASON);
  assert.deepEqual(
    [code, err],
    [1, 'gift: nothing is parked that could be retried: gift parked list --state all shows what there is\n'],
  );
});

test('lists and shows what could not be done, for whom, how often, since when and why', async () => {
  const { transaction } = await parkedPurchase(service);
  const id = parkedId('purchase', transaction);
  const { out, code } = await parked('list');
  assert.equal(code, 0);
  const lines = out.split('\n');
  assert.match(lines[0] ?? '', /^id +process +step +of +times +parked at +cause$/);
  assert.match(
    out,
    new RegExp(
      `${id}  purchase  charge  ${transaction} +1  \\d{4}-.+Z  the simulated provider does not take this request`,
    ),
  );
  assert.match(out, /\n1 parked; times are UTC; gift parked show ID shows one whole\n$/);
  const listed = await row(transaction);
  assert.deepEqual([listed.id, listed.process, listed.state, listed.by], [id, 'purchase', 'parked', null]);
  assert.deepEqual(await row(transaction, '--process', 'refund'), undefined);
  assert.deepEqual(await row(transaction, '--step', 'issue'), undefined);
  // Neither may pass for nothing being parked at all: there may be no such step.
  for (const filter of [
    ['--process', 'refund'],
    ['--step', 'chrage'],
  ] as const) {
    assert.equal(
      (await parked('list', ...filter)).out,
      'no such work waits for a person: gift parked list shows all that does\n',
    );
  }

  for (const name of [id, transaction]) {
    const shown = await parked('show', name);
    assert.equal(shown.code, 0, shown.err);
    assert.match(
      shown.out,
      new RegExp(
        `^parked work ${id}: purchase charge of ${transaction}\nparked, after being parked 1 time in a row; it waits for a person: gift parked retry ${id} `,
      ),
    );
    assert.match(shown.out, /\ncause: the simulated provider does not take this request\n/);
    assert.match(shown.out, /WorkParked\n +by system:process-managers/);
    assert.match(shown.out, new RegExp(`\ngift history ${transaction} shows all that happened around it\n$`));
  }
  const [whole] = (await parked('show', id, '--json')).records() as Json[];
  const { events, settled, reason, ...rest } = whole;
  assert.deepEqual([settled, reason], [false, null]);
  assert.deepEqual(rest, listed);
  assert.deepEqual(
    (events as Json[]).map(({ type }) => type),
    ['WorkParked'],
  );
});

test('retries with who and why, counts another failure, and is done at last', async () => {
  const { transaction, gift: giftId } = await parkedPurchase(service, [{ user_id: 'bob' }]);
  const id = parkedId('purchase', transaction);
  const first = await parked('retry', id, ...REASON);
  assert.deepEqual(
    [first.code, first.out],
    [0, `${id}: purchase charge of ${transaction} handed back (parked 1 time in a row)\n`],
  );
  assert.equal(first.err, 'a running service does it, and parks again what fails again: gift parked list\n');
  await parkedTimes(service, 'purchase', transaction, 2);
  assert.deepEqual([(await row(transaction)).times, (await row(transaction)).state], [2, 'parked']);
  const [second] = (await parked('retry', transaction, '--json', '--reason', 'really up')).records() as Json[];
  assert.deepEqual([second.state, second.times, second.recorded, second.reason], ['retried', 2, true, 'really up']);
  await eventually(async () => (await service.events.read(`notification-${giftId}`)).length === 2);
  const late = await parked('retry', id, ...REASON);
  assert.deepEqual(
    [late.code, late.out, late.err],
    [0, `${id}: purchase charge of ${transaction} was handed back before (parked 2 times in a row)\n`, ''],
  );
  assert.equal((await row(transaction, '--state', 'retried')).times, 2);
  assert.match((await parked('show', id)).out, /retried, after being parked 2 times in a row; it is over\n/);

  const refusal = await parked('discard', id, ...REASON);
  assert.deepEqual(
    [refusal.code, refusal.err],
    [1, 'gift: this work has been retried: it can be discarded once it is parked again (gift parked show)\n'],
  );
  const told = (await gift(service.settings, ['history', giftId, '--json'])).records() as Json[];
  const retries = told.filter(({ type }) => type === 'WorkRetried');
  assert.deepEqual(
    retries.map(({ data }) => data.reason),
    ['the provider is up', 'really up'],
  );
  assert.match(retries[0].by.user as string, /^cli:.+@/);
});

test('a discard takes it off the list for good, and it stays in the log', async () => {
  const { refund, transaction } = await parkedRefund(service);
  const id = parkedId('refund', refund);
  assert.match((await parked('show', refund)).out, new RegExp(`refund of ${refund} \\(transaction ${transaction}\\)`));
  const { code, out, err } = await parked('discard', refund, '--reason', 'given back by bank transfer');
  assert.deepEqual([code, out, err], [0, `${id}: refund refund of ${refund} discarded (parked 1 time in a row)\n`, '']);
  assert.match((await parked('discard', refund, ...REASON)).out, /was discarded before/);
  assert.equal(await row(refund), undefined);
  const kept = await row(refund, '--state', 'all', '--process', 'refund');
  assert.equal(kept.state, 'discarded');
  assert.equal((await parked('show', refund, '--json')).records()[0]?.['reason'], 'given back by bank transfer');
  assert.match((await parked('list', '--state', 'all')).out, /state +times/);
  assert.match(
    (await parked('show', refund)).out,
    /discarded, after being parked 1 time in a row; it will not be done/,
  );
});

test('names a charge whose discard died before it was declined, until it is discarded again', async () => {
  const { transaction } = await parkedPurchase(service);
  const id = parkedId('purchase', transaction);
  const count = parkedWork(service.events);
  const before = (await count()).get('purchase') ?? 0;
  const work = { entity: transaction, transaction_id: transaction, step: 'charge', times: 1, reason: 'x' };
  await service.events.append('parked-purchase', [eventOf('WorkDiscarded', work)], 'any');
  const again = `gift parked discard ${id} --reason "<why>" ends it\n`;
  const open = `${id}: the discard of this purchase charge was interrupted, so it is open still: ${again}`;
  assert.equal((await parked('list')).err, open);
  assert.equal((await parked('list', '--process', 'refund')).err, '');
  assert.match((await parked('show', id)).out, /in a row; its discard was interrupted: gift parked discard /);
  assert.equal((await count()).get('purchase'), before, 'the alert goes on');
  const found = (await interruptedGroups(service.events)).map(({ example }) => example);
  assert.deepEqual(found, [id], 'the diagnosis names it');

  assert.equal((await parked('discard', id, ...REASON)).code, 0);
  assert.equal((await parked('list')).err, '');
  assert.match((await parked('show', id)).out, /in a row; it will not be done/);
  assert.equal((await count()).get('purchase'), before - 1);
  assert.deepEqual(await interruptedGroups(service.events), []);
});

test('decides many at once, all or by id, and reports those that it could not', async () => {
  const made = [await parkedPurchase(service), await parkedPurchase(service)];
  const other = await parkedRefund(service);
  const all = (
    await parked('retry', '--all', '--process', 'purchase', '--step', 'charge', '--json', ...REASON)
  ).records() as Json[];
  for (const { transaction } of made)
    assert.ok(all.some(({ entity, recorded }) => entity === transaction && recorded === true));
  assert.ok(all.every(({ process }) => process === 'purchase'));
  for (const { transaction } of made) await parkedTimes(service, 'purchase', transaction, 2);
  const [first] = made;
  const some = await parked('discard', first?.transaction ?? '', 'nothing', other.refund, ...REASON);
  assert.equal(some.code, 1);
  assert.equal(some.out.trimEnd().split('\n').length, 2);
  assert.equal(
    some.err,
    'nothing: Parked work not found: gift parked list --state all shows what there is\ngift: 1 of 3 could not be discarded: see above\n',
  );
});

test('an interrupted run says what is left', async () => {
  const { transaction } = await parkedPurchase(service);
  const { code, err } = await gift(service.settings, ['parked', 'retry', transaction, ...REASON], {
    signal: AbortSignal.abort(),
  });
  assert.deepEqual(
    [code, err],
    [130, 'gift: interrupted: 0 of 1 were seen to; those that are left are parked still\n'],
  );
  assert.equal((await row(transaction)).times, 1);
});

test('unknown ids and wrong usage are refused, and nothing is changed', async () => {
  const { transaction } = await parkedPurchase(service);
  for (const args of [
    ['show', 'nothing'],
    ['retry', 'nothing', ...REASON],
    ['discard', 'nothing', ...REASON],
  ]) {
    const { code, err, out } = await parked(...args);
    assert.deepEqual(
      [code, err, out],
      [1, 'gift: Parked work not found: gift parked list --state all shows what there is\n', ''],
    );
  }
  const usage: readonly (readonly [readonly string[], RegExp])[] = [
    [['retry', transaction], /^gift: retry wants --reason "<why>"\n$/],
    [['discard', transaction, '--reason', ' '], /--reason must not be empty/],
    [['retry', ...REASON], /retry wants ids, or --all/],
    [['retry', transaction, '--all', ...REASON], /give ids or --all, not both/],
    [['retry', transaction, '--step', 'charge', ...REASON], /--process and --step go with --all/],
    [['list', '--state', 'lost'], /Allowed choices are parked, retried, discarded, all/],
    [['list', '--process', 'lost'], /Allowed choices are purchase, notification, refund, dispute/],
    [['discard', '--all', ...REASON], /unknown option '--all'|missing required argument/],
  ];
  for (const [args, message] of usage) {
    const { code, err } = await parked(...args);
    assert.equal(code, 2, args.join(' '));
    assert.match(err, message);
  }
  assert.equal((await row(transaction)).state, 'parked');
});

test('help shows an example of each', async () => {
  for (const command of ['', 'list', 'show', 'retry', 'discard']) {
    const { code, out } = await parked(...(command === '' ? ['--help'] : [command, '--help']));
    assert.equal(code, 0);
    assert.match(out, /Examples?:\n {2}\$ gift parked /, command);
  }
});

test('it works without a running service, whose read model then stands still', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cli-parked-'));
  const engines = await openTestEngines();
  const own = await startService({ dataDir, engines, split: false });
  const { settings } = own;
  await own.close();
  const { events } = await openLog(loadConfig(settings));
  try {
    const metadata = { commandId: 'x', correlationId: 'x', by: { user: 'system:process-managers' } };
    const data = { entity: 'tx-1', transaction_id: 'tx-1', step: 'charge', cause: 'down', event_id: 'e', times: 1 };
    for (const name of ['refund', 'purchase'])
      await events.append(
        `parked-${name}`,
        [{ id: crypto.randomUUID(), type: 'WorkParked', at: new Date().toISOString(), data, metadata }],
        'any',
      );
    const run = async (...args: readonly string[]): Promise<Ran> => gift(settings, ['parked', ...args]);
    assert.equal((await run('retry', 'tx-1', ...REASON)).code, 0);
    assert.deepEqual(
      ((await run('list', '--json')).records() as Json[]).map(({ process }) => process),
      ['refund'],
    );
    assert.match(
      (await run('discard', 'tx-1', ...REASON)).out,
      /: refund charge of tx-1 discarded/,
      'of two with the same id the one that waits is meant',
    );
    assert.equal((await run('list')).out, 'no work waits for a person\n');
  } finally {
    await events.close();
    await engines.close();
    rmSync(dataDir, { recursive: true });
  }
});

test.run();
