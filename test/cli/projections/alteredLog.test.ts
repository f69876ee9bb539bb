import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { gift, type Ran } from '../../support/service/cli.js';
import { type StoredLog, KEYS, storedLog } from '../../support/fixtures/storedTree.js';

const test = suite<{ log: StoredLog }>('cli/projections of an altered log');

test.before.each(async (context) => {
  context.log = await storedLog();
  await context.log.fill(5, 'tested-a');
  await context.log.keepUntilSigned();
});
test.after.each(({ log }) => log.close());

const projections = ({ dir }: StoredLog, ...args: readonly string[]): Promise<Ran> =>
  gift({ DATA_DIR: dir, SEAL_KEY: KEYS[0] ?? '', SEAL_DIR: `${dir}/none` }, ['projections', ...args]);
const alter = (log: StoredLog): Promise<void> =>
  log.tamper((database) => database.prepare(`UPDATE events SET data = '{"n":9}' WHERE position = 2`).run());
const REFUSED =
  /^gift: the log is not what was signed, and would be carried into the read model: one or more of the events 1 to \d+ were altered/;

test('a rebuild is made of a log that is what was signed', async ({ log }) => {
  const { code, err } = await projections(log, 'rebuild', 'parked');
  assert.equal(code, 0, err);
});

test('a rebuild of a log that was altered is refused, and made for a reason', async ({ log }) => {
  await alter(log);
  const refused = await projections(log, 'rebuild', 'parked', '--reason', 'a drill');
  assert.equal(refused.code, 1);
  assert.match(refused.err, REFUSED);
  assert.equal((await projections(log, 'rebuild', '--all')).code, 1);
  const unsaid = await projections(log, 'rebuild', 'parked', '--altered');
  assert.deepEqual([unsaid.code, unsaid.err], [2, 'gift: --altered wants --reason "<why>"\n']);
  const made = await projections(log, 'rebuild', 'parked', '--altered', '--reason', 'looked into');
  assert.equal(made.code, 0, made.err);
  const day = new Date().toISOString().slice(0, 10);
  const records = (await log.events.read(`access-${day}`)).map(({ data }) => data as Record<string, unknown>);
  assert.ok(
    records.some(
      ({ asked, reason }) => JSON.stringify(asked) === '{"name":"parked","altered":true}' && reason === 'looked into',
    ),
  );
});

const REBUILD = ['projections', 'rebuild', 'gifts', '--altered', '--reason', 'a drill'];
for (const [column, rebuilds] of [
  ['data', [REBUILD]],
  // No read model reads it of all events.
  ['metadata', []],
] as const)
  test(`commands end where the ${column} of an event are no JSON, and say which event it is`, async ({ log }) => {
    await log.tamper((database) => database.exec(`UPDATE events SET ${column} = '{' WHERE position = 2`));
    for (const args of [
      ...rebuilds,
      ['backup', `${log.dir}/backup-${column}`],
      ['copy', '--from', log.dir, '--to', `${log.dir}/copy-${column}`],
    ]) {
      const { code, err } = await gift(
        { DATA_DIR: log.dir, SEAL_KEY: KEYS[0] ?? '', SEAL_DIR: `${log.dir}/none` },
        args,
      );
      assert.equal(code, 1, args.join(' '));
      assert.match(
        err,
        /gift: the event at position 0{15}2 \(GiftRedeemed, .*\) can't be read: its \w+ are no JSON object: gift audit verify names what was altered/,
        args.join(' '),
      );
    }
  });

test('a repair of a log that was altered is refused', async ({ log }) => {
  await alter(log);
  const { code, err } = await projections(log, 'repair', 'gifts', '--id', 'x', '--reason', 'a drill');
  assert.equal(code, 1);
  assert.match(err, REFUSED);
});

test.run();
