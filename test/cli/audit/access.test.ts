import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { accessRecorder } from '../../../src/commands/recordAccess.js';
import { shortcodesUnder } from '../../../src/domain/giftIds.js';
import { keyedHash } from '../../../src/domain/keyedHash.js';
import { loadConfig } from '../../../src/service/config.js';
import { loadKeys } from '../../../src/service/keys.js';
import { openLog } from '../../../src/service/engines.js';
import { gift, type Ran } from '../../support/service/cli.js';

const test = suite('gift audit access');

const GIFT = '5f2c9d6a1b7e4c80d3a1';
const MANY = 1_200;
let data: string;

test.before(async () => {
  data = mkdtempSync(join(tmpdir(), 'audit-access-'));
  const { events } = await openLog(loadConfig({ DATA_DIR: data }));
  const seen = async (day: string, user: string, what: string, asked: object): Promise<void> =>
    accessRecorder(events, () => `${day}T12:00:00.000Z`).shown(
      { by: { user } },
      { what, asked: asked as Record<string, unknown>, personal: false, reason: null },
      1,
    );
  await seen('2026-05-01', 'sue', 'GET person', { personId: 'u42' });
  await seen('2026-05-02', 'aud', 'GET gift', { giftId: GIFT });
  for (let n = 0; n < MANY; n++) await seen('2026-05-03', 'sue', `call ${n}`, {});
  await events.close();
});
test.after(() => rmSync(data, { recursive: true }));

const access = async (...args: readonly string[]): Promise<Ran> => gift(data, ['audit', 'access', ...args]);
const whatOf = ({ records, out }: Ran): unknown[] =>
  out === '' ? [] : records().map(({ data }) => (data as { readonly what: unknown }).what);

test('shows a span of days, by person, gift and who', async () => {
  const within = ['--from', '2026-05-01', '--to', '2026-05-02', '--json'];
  assert.equal(whatOf(await access(...within)), ['GET person', 'GET gift']);
  assert.equal(whatOf(await access(...within, '--person', 'u42')), ['GET person']);
  assert.equal(whatOf(await access(...within, '--gift', GIFT)), ['GET gift']);
  const shortcode = shortcodesUnder(keyedHash(loadKeys(loadConfig({ DATA_DIR: data })).hashKey)).of(GIFT);
  assert.equal(whatOf(await access(...within, '--gift', shortcode)), ['GET gift']);
  assert.equal(whatOf(await access(...within, '--who', 'aud')), ['GET gift']);
  assert.equal(whatOf(await access(...within, '--who', 'cli:root@host')), []);
  for (const misspelled of [
    ['--person', 'u4'],
    ['--gift', '5f2c9d6a1b7e4c80d3a2'],
    ['--who', 'Eve'],
  ]) {
    const { code, err } = await access(...within, ...misspelled);
    assert.is(code, 2);
    assert.match(
      err,
      /^gift: --(person|gift|who): "?\w+"? is not known, and no record of this time is (about it|theirs)/,
    );
  }
});

test('shows days with thousands of records, each once, in all its forms', async () => {
  const span = ['--from', '2026-05-01', '--to', '2026-05-31'];
  const json = whatOf(await access(...span, '--json'));
  assert.equal([json.length, new Set(json).size], [MANY + 2, MANY + 2]);
  const csv = (await access(...span, '--csv')).out.trimEnd().split('\n');
  assert.is(csv.length, MANY + 3);
  const inZone = (await access('--day', '2026-05-02', '--csv', '--time-zone', 'Pacific/Kiritimati')).out;
  assert.match(inZone, /,2026-05-02T12:00:00\.000Z,2026-05-03,/);
  const table = (await access(...span)).out.trimEnd().split('\n');
  assert.is(table.filter((line) => line.startsWith('when ')).length, 1);
  assert.is(table.length, MANY + 4);
});

test('records itself once, and does not show that', async () => {
  const before = whatOf(await access('--json')).length;
  const again = whatOf(await access('--json'));
  assert.is(again.length, before + 1);
  assert.equal(new Set(again), new Set(['gift audit access']));
});

test('refuses days and filters that it can not read', async () => {
  for (const [args, words] of [
    [['--from', 'today'], /--from "today" is not a day: give one such as 2026-05-04/],
    [['--day', '2026-05-01', '--from', '2026-05-01'], /give --day, or --from and --to/],
    [['--to', '2026-05-01'], /--to wants --from/],
    [['--from', '2026-05-02', '--to', '2026-05-01'], /--from is later than --to/],
    [['--gift', 'none'], /--gift: give a gift's id or shortcode/],
  ] as const) {
    const { code, out, err } = await access(...args);
    assert.equal([code, out], [2, '']);
    assert.match(err, words);
  }
});

test.run();
