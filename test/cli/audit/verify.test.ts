import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { suite } from 'uvu';
import { type Ran, gift } from '../../support/service/cli.js';
import { EMBEDDED } from '../../support/engines/engines.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { buyOne, redeem } from '../../support/service/giftFlow.js';
import { type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('cli/audit verify');
const dir = mkdtempSync(join(tmpdir(), 'verified-'));
const data = join(dir, 'data');
const outside = join(dir, 'head.txt');
let service: Service | undefined;
let bought = '';

const verify = async (...args: readonly string[]): Promise<Ran> => gift(data, ['audit', 'verify', ...args]);

test.before(async () => {
  service = await startService({
    dataDir: data,
    engines: EMBEDDED,
    split: false,
    catalogue: CATALOGUE,
    env: { SEAL_EVERY_MS: '100' },
  });
});
test.after(async () => {
  await service?.close();
  rmSync(dir, { recursive: true });
});

test('says that all is as it was signed, while the service goes on', async () => {
  bought = await buyOne(service!);
  assert.equal((await redeem(service!, bought)).status, 201);
  await eventually(async () => {
    const { code, out, err } = await verify();
    if (err.startsWith('gift: nothing was signed over this log: repeat it once')) return false;
    assert.deepEqual([code, err], [0, '']);
    assert.match(out, /^\d+ events, up to position \d{16}; root \S{44}\n\d+ signed heads; /);
    assert.match(out, /all is as it was signed\n$/);
    const [found] = (await verify('--json')).records();
    return Number(found?.['agreed_size']) > 10;
  });
});

test('keeps no progress of a log that it has read to the end, and overwrites no other file', async () => {
  const progress = join(dir, 'progress');
  const { code, out } = await verify('--progress', progress);
  assert.equal(code, 0);
  assert.match(out, /^\d+ events, up to/);
  assert.equal(existsSync(progress), false);
  writeFileSync(progress, 'my letters');
  const refused = await verify('--progress', progress);
  assert.equal(refused.code, 2);
  assert.match(refused.err, /--progress \S+: it is a file of another kind/);
  assert.equal(readFileSync(progress, 'utf8'), 'my letters');
});

test('calls nothing signed whose signatures no known key has verified', async () => {
  const copy = join(dir, 'copy');
  mkdirSync(copy);
  const database = new Database(join(data, 'events.db'), { readonly: true });
  database.prepare('VACUUM INTO ?').run(join(copy, 'events.db'));
  database.close();
  const { code, out, err } = await gift(copy, ['audit', 'verify', '--json']);
  assert.equal(code, 1, err);
  assert.match(err, /gift: no signature was verified: give the key that signed the heads with --key$/m);
  const [found] = JSON.parse(`[${out}]`) as { readonly agrees: boolean; readonly heads: number }[];
  assert.ok(found?.agrees === false && found.heads > 0, out);
});

test('names the event that was altered in the file of a stopped service, in words and with --json', async () => {
  await eventually(async () => {
    const token = await service!.userToken('aud');
    const { text } = await service!.ask('GET', '/checkpoint', { token });
    writeFileSync(outside, text);
    return Number(text.split('\n')[1]) >= Number(await service!.events.end()) - 1;
  });
  await service!.close();
  service = undefined;
  const database = new Database(join(data, 'events.db'));
  const altered = database
    .prepare(`UPDATE events SET data = replace(data, 'bean-soho', 'bean-bath') WHERE type = 'GiftRedeemed'`)
    .run();
  const records = (): unknown =>
    database.prepare(`SELECT count(*) FROM events WHERE type = 'LogVerified'`).pluck().get();
  const before = Number(records());
  assert.ok(before > 0);
  assert.equal(altered.changes, 1);
  const { code, out, err } = await verify();
  assert.equal(code, 1);
  const named = new RegExp(
    `event \\d+ was altered: there stands GiftRedeemed of \\S+, revision 1 of gift-${bought} \\(`,
  );
  assert.match(out, named);
  assert.match(err, new RegExp(`^gift: the log is not what was signed: ${named.source}`));
  const found = await verify('--json');
  assert.equal(found.code, 1);
  const { difference, agrees } = found.records()[0] as { difference: Record<string, unknown>; agrees: boolean };
  assert.deepEqual(
    [agrees, difference['change'], difference['count'], difference['signed']],
    [false, 'altered', 1, true],
  );
  assert.equal(records(), before, 'an altered log stays as it was found');
  database.close();
});

test('finds what was cut off by a head that was kept outside', async () => {
  const tree = join(data, 'tree');
  for (const id of readdirSync(tree)) renameSync(join(tree, id), join(tree, 'of-another-id'));
  const database = new Database(join(data, 'events.db'));
  database.exec(`DELETE FROM events WHERE position >= (SELECT min(position) FROM events WHERE type LIKE 'Tree%')`);
  database.close();
  const { code: unsigned, out: words, err: why } = await verify();
  assert.equal(unsigned, 1, 'no head is left');
  assert.match(why, /nothing was signed over this log/);
  assert.match(words, /of-another-id has a signed head of another log, of-another-id, of \d+ events, which this log/);
  const { code, out } = await verify('--checkpoint', outside);
  assert.equal(code, 1);
  assert.match(out, /head\.txt, of \d+ events: it covers \d+ events, and the log has \d+/);
});

test('refuses what is no head, no key and no file', async () => {
  for (const [args, words] of [
    [['--checkpoint', join(dir, 'none')], /can't be read \(ENOENT\)/],
    [['--key', 'nonsense'], /--key: a verifier's key is/],
  ] as const) {
    const { code, err } = await verify(...args);
    assert.equal(code, 2);
    assert.match(err, words);
  }
  const file = join(dir, 'events.txt');
  writeFileSync(file, 'no head\n');
  const { code, err } = await verify('--checkpoint', file);
  assert.equal(code, 1);
  assert.match(err, /events\.txt is not a signed head \(a note has an empty line before its signatures\): docs/);
  assert.ok(readFileSync(outside, 'utf8').length > 0);
});

test.run();
