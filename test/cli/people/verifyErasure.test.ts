import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedReadStore } from '../../../src/adapters/embedded/readStore/readStore.js';
import { accessStream } from '../../../src/domain/access.js';
import { openLog } from '../../../src/service/engines.js';
import { loadConfig } from '../../../src/service/config.js';
import { temporaryFolder } from '../../../src/lib/files/folders.js';
import { gift, type Ran } from '../../support/service/cli.js';

const test = suite('cli/verify erasure');

const NUMBER = '+447700900177';
const IN_EVENT = 'a reason that names somebody';
const MESSAGE = `${'a long message, '.repeat(600)}end`;
let dir = '';
let other = '';

/** Nothing of it is open any more. */
test.before.each(async () => {
  dir = mkdtempSync(join(tmpdir(), 'verify-erasure-'));
  other = join(dir, 'other');
  mkdirSync(other);
  const config = loadConfig({ DATA_DIR: join(dir, 'data') });
  const log = await openLog(config);
  await log.subjects.ids([{ kind: 'phone', text: NUMBER }]);
  await log.events.append(
    'notes',
    [
      {
        id: '6f0d6b0a-0000-4000-8000-000000000001',
        type: 'Noted',
        at: '2026-01-01T00:00:00.000Z',
        data: { reason: IN_EVENT },
        metadata: { commandId: 'c', correlationId: 'c', by: {} },
      },
    ],
    'none',
  );
  const store = await openEmbeddedReadStore({ dir: join(dir, 'data') });
  await store.boundTo(log.events.logId);
  await store.records.put('record/1', { text: MESSAGE });
  await store.close();
  await log.events.close();
});
test.after.each(() => rmSync(dir, { recursive: true, force: true }));

const verify = async (input: string, ...args: readonly string[]): Promise<Ran> =>
  gift(join(dir, 'data'), ['people', 'verify-erasure', ...args], { stdin: Readable.from([Buffer.from(input)]) });

test('says what it looked at where nothing is found, and leaves a record', async () => {
  const { code, out, err } = await verify('nobody at all\n+447700900178\n');
  assert.equal([code, err], [0, '']);
  assert.match(
    out,
    /^looked at \d+ events, \d+ rows of the read store, 1 rows of the key store, 0 erasures, \d+ files/,
  );
  const log = await openLog(loadConfig({ DATA_DIR: join(dir, 'data') }));
  const today = new Date().toISOString();
  const records = await log.events.read(accessStream(today));
  await log.events.close();
  assert.equal(
    records.map(({ data }) => (data as { asked: object }).asked),
    [{ values: 2, also: [] }],
  );
});

test('finds values in log, read store, key store and files, and prints none', async () => {
  writeFileSync(join(other, 'service.log'), `sent to ${NUMBER.slice(1)}\n`);
  writeFileSync(join(other, `${NUMBER}.txt`), NUMBER);
  const input = [NUMBER, '', MESSAGE, 'not there', IN_EVENT].join('\n');
  const { code, out, err, records } = await verify(input, '--json', '--also', other);
  assert.is(code, 1);
  for (const value of [NUMBER.slice(1), MESSAGE.slice(0, 30), IN_EVENT]) assert.not.ok(`${out}${err}`.includes(value));
  const found = records()
    .flatMap(({ found: one }) => (typeof one === 'object' ? [one as { line: number; in: string; place: string }] : []))
    .map(
      ({ line, in: where, place }) => `${line} ${where} ${place.replace(/\d{5,}|subject .*/, '…').replace(dir, '')}`,
    );
  for (const expected of [
    '1 key store …',
    '1 file /other/service.log, byte 8',
    '1 file (its name holds the value), byte 0',
    '3 read store record record/1',
    '5 event log event at …',
  ])
    assert.ok(found.includes(expected), `${expected} in ${found.join('; ')}`);
  assert.ok(found.some((one) => one.startsWith('5 file /data/events.db')));
  assert.ok(found.every((one) => !one.startsWith('4')));
  assert.match(err, '3 of 4 values were found');
  assert.equal(records().at(-1)?.['found'], 3);
});

test('reads values as a search for persons does', async () => {
  const log = await openLog(loadConfig({ DATA_DIR: join(dir, 'data') }));
  await log.subjects.ids([{ kind: 'username', text: 'eve@person.example' }]);
  await log.events.close();
  for (const input of [
    `\uFEFF${NUMBER}`,
    ` ${NUMBER}\t`,
    `\u202A${NUMBER}\u202C`,
    '+44 7700\u200B 900177',
    '07700 900177',
    '(07700) 900-177',
    '+44 (0)7700 900177',
    '\u00A0EVE@Person.Example\u2060',
    'ｅｖｅ@person.example',
    'A REASON that names somebody',
  ]) {
    const { code, err } = await verify(`${input}\n`);
    assert.is(code, 1, `${JSON.stringify(input)}: ${err}`);
  }
});

test('refuses what is not UTF-8, and names UTF-16', async () => {
  const text = `${NUMBER}\r\nZoë\r\n`;
  const wide = Buffer.from(text, 'utf16le');
  const refused: readonly (readonly [Buffer, RegExp])[] = [
    [Buffer.concat([Buffer.from([0xff, 0xfe]), wide]), /is UTF-16: give UTF-8/],
    [Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(wide).swap16()]), /is UTF-16: give UTF-8/],
    [wide, /is UTF-16: give UTF-8/],
    [Buffer.from(text, 'latin1'), /is not UTF-8 text/],
  ];
  for (const command of [
    ['verify-erasure'],
    ['find', '--name', '-', '--reason', 'a test'],
    ['show', '--phone', '-', '--reason', 'a test'],
  ])
    for (const [input, words] of refused) {
      const { code, err } = await gift(join(dir, 'data'), ['people', ...command], { stdin: Readable.from([input]) });
      assert.is(code, 2, `${command[0] ?? ''}: ${err}`);
      assert.match(err, words);
    }
});

test('looks into what killed commands left in the folder for temporary files', async () => {
  const left = temporaryFolder('gift-look-');
  try {
    writeFileSync(join(left, 'read.db'), 'a value that was left behind');
    const { code, out } = await verify('value that was left\n');
    assert.is(code, 1);
    assert.match(out, `line 1 is in the file: ${join(left, 'read.db')}`);
  } finally {
    rmSync(left, { recursive: true });
  }
});

test('refuses input without values, with too many or too short ones, and unknown folders', async () => {
  const refused: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['', [], /standard input is empty/],
    ['\n \n', [], /standard input is empty/],
    ['long enough\nab\n', [], /line 2 has fewer than 3 characters/],
    ['value\n'.repeat(1_001), [], /1001 values, at most 1000/],
    ['value', ['--also', '/no/such/folder'], /no such folder/],
  ];
  for (const [input, args, words] of refused) {
    const { code, out, err } = await verify(input, ...args);
    assert.equal([code, out], [2, '']);
    assert.match(err, words);
    assert.is(err.trimEnd().split('\n').length, 1);
  }
});

test.run();
