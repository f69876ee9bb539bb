import { constants } from 'node:buffer';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { writeLines } from '../../src/cli/terminal.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { gift as command, type Said, saidBy } from '../support/service/cli.js';
import { eventsOf } from '../support/engines/eventStoreEvents.js';
import { withLogIn } from '../support/engines/eventStoreFolder.js';
import { fileWith, wholeFile } from '../support/fixtures/importFile.js';
import { GIFT } from '../support/service/programs.js';

interface Context {
  dir: string;
  file: string;
}

const test = suite<Context>('cli/import');

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'cli-'));
  context.file = join(context.dir, 'file.json');
  writeFileSync(context.file, JSON.stringify(wholeFile()));
});

test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

/** Runs a command line on the data folder `data` in the test's folder. */
const gift = async (dir: string, args: readonly string[], more: Parameters<typeof command>[2] = {}): Promise<Said> =>
  saidBy(await command(join(dir, 'data'), args, more));
const eventsIn = (dir: string): Promise<RecordedEvent[]> =>
  withLogIn(join(dir, 'data'), (log) => eventsOf(log.readAll(undefined)));

const WHOLE = [
  'integrations: 1 added',
  'merchants: 1 added',
  'segments: 1 added',
  'brands: 2 added',
  'voucher_codes: 2 added',
  'products: 2 added',
  'stores: 1 added',
  'categories: 1 added',
  'users: 2 added',
  'clients: 1 added',
  'top_ups: 1 added',
  'payment_methods: 2 added',
  '17 added; 0 unchanged',
  '',
].join('\n');

/** The note of an import that has made a log, which may be in the wrong folder. */
const madeIn = (dir: string): string =>
  `gift: there was no event log in ${join(dir, 'data')}, and this import has made one: if the service's is elsewhere, set DATA_DIR to it\n`;

test('what was imported goes to standard output, by array; that a log was made, to standard error', async ({
  dir,
  file,
}) => {
  assert.equal(await gift(dir, ['import', file]), { code: 0, out: WHOLE, err: madeIn(dir) });
  assert.equal(await gift(dir, ['import', file]), { code: 0, out: 'nothing changed; 16 unchanged\n', err: '' });
  const [first] = await eventsIn(dir);
  assert.match(first?.metadata.by.user ?? '', /^cli:[^@]+@.+$/);
});

test('refuses a repeated name with its place, among other faults, and imports nothing', async ({ dir, file }) => {
  writeFileSync(
    file,
    '{"users": [{"id": "u1", "username": "ann",\n  "password": "secret", "\\u0069d": "u2"}],\n "merchants": [{"id": "m1"}],\n "users": []}\n',
  );
  const { code, out, err } = await gift(dir, ['import', file, '--prune', '--reason', 'gone', '--yes']);
  assert.equal([code, out], [1, '']);
  assert.equal(err.split('\n').slice(0, 3), [
    'users[0].id: stands there twice: see line 1, column 13 and line 2, column 25',
    'users: stands there twice: see line 1, column 2 and line 4, column 2',
    'merchants[0].name: is required',
  ]);
  assert.match(err, /file\.json has 3 faults; nothing was imported/);
  assert.equal(await eventsIn(dir).catch(() => []), []);
  const json = await gift(dir, ['import', file, '--json', '--dry-run']);
  assert.equal(JSON.parse(json.out.split('\n')[1] ?? ''), {
    place: 'users',
    fault: 'stands there twice: see line 1, column 2 and line 4, column 2',
  });
});

test('a byte order mark in front is no part of the file', async ({ dir, file }) => {
  writeFileSync(file, `\ufeff${JSON.stringify(wholeFile())}`);
  assert.is((await gift(dir, ['import', file])).code, 0);
});

test('refuses a file too large for a text before it is read, and standard input likewise', async ({ dir, file }) => {
  const limit = constants.MAX_STRING_LENGTH;
  truncateSync(file, limit + 1);
  const refused = (name: string): string =>
    `gift: ${name} is larger than ${limit} bytes, which is the most an import may have: split it, leaving each array whole where entries are pruned\n`;
  assert.equal(await gift(dir, ['import', file]), { code: 1, out: '', err: refused(file) });
  const piece = Buffer.alloc(16_777_216, ' ');
  const endless = Readable.from(
    (function* () {
      for (;;) yield piece;
    })(),
  );
  assert.equal(await gift(dir, ['import', '-'], { stdin: endless }), {
    code: 1,
    out: '',
    err: refused('standard input'),
  });
});

test('leaves neither log nor keys behind after a dry run without a log, and says so', async ({ dir, file }) => {
  const left = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('gift-dry-run-'));
  const before = left();
  const { code, out, err } = await gift(dir, ['import', file, '--dry-run']);
  assert.equal([code, out.trimEnd().split('\n').at(-1)], [0, 'would be 17 added; 0 unchanged']);
  assert.is(err, `there is no event log in ${join(dir, 'data')}: shown is what a first import would do\n`);
  assert.equal(readdirSync(dir), ['file.json']);
  assert.equal(left(), before);
});

test("imports nothing without the log's key: codes would be handed out twice", async ({ dir, file }) => {
  await gift(dir, ['import', file]);
  const before = (await eventsIn(dir)).length;
  rmSync(join(dir, 'data', 'hash.key'));
  const { code, out, err } = await gift(dir, ['import', file]);
  assert.equal([code, out], [1, '']);
  assert.match(
    err,
    /^gift: HASH_KEY: the key that the event log was made with is missing: put the installation's hash\.key into DATA_DIR/,
  );
  assert.equal([(await eventsIn(dir)).length, readdirSync(join(dir, 'data')).includes('hash.key')], [before, false]);
});

test('names in a file do not move the cursor of a terminal that shows its faults', async ({ dir }) => {
  const stdin = (): Readable =>
    Readable.from([
      Buffer.from(
        '{"products": [{"id": "p", "brand_id": "b", "name": "n", "sale_price": 1, "x\\u001b[2J\\u009b\\u202ey": 1}], "z\\u001b]0;t\\u0007": []}',
      ),
    ]);
  const { code, err } = await gift(dir, ['import', '-'], { stdin: stdin() });
  assert.is(code, 1);
  assert.match(err, /^z\]0;t: unknown array; .*\nproducts\[0\]\.x\[2Jy: unknown field\n/);
  const { out } = await gift(dir, ['import', '-', '--json'], { stdin: stdin() });
  assert.match(
    out,
    /^\{"place":"z\\u001b\]0;t\\u0007",.*\}\n\{"place":"products\[0\]\.x\\u001b\[2J\\u009b\\u202ey",.*\}\n/,
  );
});

test('standard input is read where the file is -', async ({ dir }) => {
  const bom = `\uFEFF${JSON.stringify(wholeFile())}`;
  const stdin = Readable.from([Buffer.from(bom).subarray(0, 100), Buffer.from(bom).subarray(100)]);
  assert.equal(await gift(dir, ['import', '-'], { stdin }), { code: 0, out: WHOLE, err: madeIn(dir) });
});

test('--json: one object a line', async ({ dir, file }) => {
  const { code, out, err } = await gift(dir, ['import', file, '--json']);
  const lines = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.equal([code, err, lines.length], [0, madeIn(dir), 18]);
  assert.equal(lines[0], { action: 'add', array: 'integrations', id: '1' });
  const { position, ...done } = lines.at(-1) ?? {};
  assert.type(position, 'string');
  assert.equal(done, { action: 'done', dry_run: false, added: 17, changed: 0, retired: 0, unchanged: 0, events: 21 });
  const again = await gift(dir, ['import', file, '--json']);
  assert.equal(JSON.parse(again.out), {
    action: 'done',
    dry_run: false,
    added: 0,
    changed: 0,
    retired: 0,
    unchanged: 16,
    events: 0,
  });
});

test('a dry run shows every entry and does nothing', async ({ dir, file }) => {
  await gift(dir, ['import', file]);
  const before = (await eventsIn(dir)).length;
  writeFileSync(
    file,
    JSON.stringify(
      fileWith((one) => {
        one['products']![0]!['name'] = 'Mocha';
        one['products']![0]!['sale_price'] = 1;
        one['merchants']!.push({ id: 'm2', name: 'New' });
        one['stores'] = [];
      }),
    ),
  );
  assert.equal(await gift(dir, ['import', file, '--prune', '--dry-run']), {
    code: 0,
    out: 'would add merchants m2\nwould change products p1: name, sale_price\nwould retire stores s1\nwould be 1 added, 1 changed, 1 retired; 14 unchanged\n',
    err: '',
  });
  assert.is((await eventsIn(dir)).length, before);
  await gift(dir, ['import', file, '--prune', '--reason', 'x']);
  assert.is((await gift(dir, ['import', file, '--prune', '--dry-run'])).out, 'nothing would change; 16 unchanged\n');
});

test('pruning wants a reason, and beyond 10 entries a yes', async ({ dir, file }) => {
  const merchants = Array.from({ length: 11 }, (_, n) => ({ id: `m${n}`, name: 'M' }));
  writeFileSync(file, JSON.stringify({ merchants }));
  await gift(dir, ['import', file]);
  writeFileSync(file, '{"merchants": []}');
  assert.equal(await gift(dir, ['import', file, '--prune']), {
    code: 2,
    out: '',
    err: 'gift: --prune wants --reason "<why>"\n',
  });
  assert.is((await gift(dir, ['import', file, '--prune', '--reason', ' '])).code, 2);
  assert.equal(await gift(dir, ['import', file, '--prune', '--reason', 'x'.repeat(501)]), {
    code: 2,
    out: '',
    err: 'gift: --reason has at most 500 characters\n',
  });
  assert.equal(await gift(dir, ['import', file, '--reason', 'x']), {
    code: 2,
    out: '',
    err: 'gift: --reason goes with --prune\n',
  });
  assert.match(
    (await gift(dir, ['import', file, '--prune', '--dry-run'])).out,
    /^would retire merchants m0\n.*\nmore than 10 entries would be pruned: this wants --yes\n$/s,
  );
  assert.equal(await gift(dir, ['import', file, '--prune', '--reason', 'closed']), {
    code: 1,
    out: '',
    err: 'gift: 11 entries would be pruned, more than 10: look at them with --dry-run, then repeat with --yes\n',
  });
  assert.equal(await gift(dir, ['import', file, '--prune', '--reason', 'closed', '--yes']), {
    code: 0,
    out: 'merchants: 11 retired\n11 retired; 0 unchanged\n',
    err: '',
  });
  assert.equal((await eventsIn(dir)).at(-1)?.data, { reason: 'closed' });
});

test('reports every fault with its place, and imports nothing', async ({ dir, file }) => {
  writeFileSync(file, '{"products": [{"id": "p", "brand_id": "b9", "name": "", "sale_price": 1}]}');
  assert.equal(await gift(dir, ['import', file]), {
    code: 1,
    out: '',
    err: `products[0].name: must not be empty\nproducts[0].brand_id: no such brand "b9"\ngift: ${file} has 2 faults; nothing was imported: correct the file and repeat; there was no event log in ${join(dir, 'data')}: if the service's is elsewhere, set DATA_DIR to it\n`,
  });
  const json = await gift(dir, ['import', file, '--json']);
  assert.equal(
    json.out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
    [
      { place: 'products[0].name', fault: 'must not be empty' },
      { place: 'products[0].brand_id', fault: 'no such brand "b9"' },
    ],
  );
  writeFileSync(file, '[]');
  assert.equal(await gift(dir, ['import', file]), {
    code: 1,
    out: '',
    err: `the file must be a JSON object of arrays\ngift: ${file} has 1 fault; nothing was imported: correct the file and repeat\n`,
  });
  assert.equal(await eventsIn(dir), []);
});

test('refuses a file that is unreadable or no JSON, without showing its text', async ({ dir, file }) => {
  assert.equal(await gift(dir, ['import', join(dir, 'none')]), {
    code: 1,
    out: '',
    err: `gift: cannot read ${join(dir, 'none')}: there is no such file\n`,
  });
  assert.equal(await gift(dir, ['import', dir]), { code: 1, out: '', err: `gift: cannot read ${dir}: EISDIR\n` });
  writeFileSync(file, `{"users": [\n  {"password": "hunter2"${' '.repeat(100)}]}`);
  const broken = await gift(dir, ['import', file]);
  assert.is(broken.code, 1);
  assert.match(broken.err, /^gift: .*file\.json is not JSON: see line 2, column \d+\n$/);
  writeFileSync(file, 'hunter2');
  const text = await gift(dir, ['import', file]);
  assert.match(text.err, /^gift: .*file\.json is not JSON[^\n]*\n$/);
  assert.not.match(broken.err + text.err, /hunter2/);
  writeFileSync(file, Buffer.from([0x7b, 0xff, 0x7d]));
  assert.equal(await gift(dir, ['import', file]), { code: 1, out: '', err: `gift: ${file} is not UTF-8 text\n` });
  assert.is((await gift(dir, ['import', '-'], { stdin: Readable.from([Buffer.from('{')]) })).code, 1);
  const broke = new PassThrough();
  broke.destroy(new Error('the pipe broke'));
  assert.equal(await gift(dir, ['import', '-'], { stdin: broke }), { code: 1, out: '', err: 'gift: the pipe broke\n' });
});

test('refuses wrong settings and foreign files', async ({ dir, file }) => {
  const settings = await gift(dir, ['import', file], {
    env: { DATA_DIR: join(dir, 'data'), PORT: 'x', HASH_KEY: 'short' },
  });
  assert.is(settings.code, 1);
  assert.match(settings.err, /^gift: settings are wrong:\n(?=.*HASH_KEY must have)(?=.*PORT must be)/s);
  await gift(dir, ['import', file]);
  writeFileSync(join(dir, 'data', 'events.db'), 'something else'.repeat(1_000));
  const foreign = await gift(dir, ['import', file]);
  assert.is(foreign.code, 1);
  assert.match(foreign.err, /^gift: .*events\.db .*\n$/);
});

test('an interrupted import ends with 130', async ({ dir, file }) => {
  const interrupted = new AbortController();
  interrupted.abort();
  assert.equal(await gift(dir, ['import', file], { signal: interrupted.signal }), {
    code: 130,
    out: '',
    err: 'gift: interrupted after 0 events; repeat the import to finish it\n',
  });
  const later = new AbortController();
  const waiting = gift(dir, ['import', '-'], { stdin: new PassThrough(), signal: later.signal });
  later.abort();
  assert.equal(await waiting, {
    code: 130,
    out: '',
    err: 'gift: interrupted before anything was read; nothing was done\n',
  });
});

test('help and wrong usage', async ({ dir, file }) => {
  const help = await gift(dir, ['--help']);
  assert.equal([help.code, help.err], [0, '']);
  assert.match(help.out, /import .*<file>/);
  const own = await gift(dir, ['import', '--help']);
  assert.equal([own.code, own.err], [0, '']);
  for (const word of ['--prune', '--dry-run', '--yes', '--reason', '--json', '$ gift import examples/demo.json'])
    assert.ok(own.out.includes(word), word);
  for (const args of [[], ['nonsense'], ['import'], ['import', file, 'two'], ['import', file, '--nonsense']]) {
    const { code, out, err } = await gift(dir, args);
    assert.equal([code, out], [2, ''], args.join(' '));
    assert.ok(err.length > 0);
  }
});

test('progress shows on a terminal only, and is removed', async ({ dir, file }) => {
  const { err } = await gift(dir, ['import', file], { tty: true });
  assert.match(err, /importing [█░]{24} \d+ % \| [\d,]+ of 21 entries/);
});

test('lines wait for a slow reader, and are dropped when it goes away', async () => {
  const slow = new PassThrough({ highWaterMark: 4 });
  const writing = writeLines(slow, ['one', 'two', 'three']);
  let read = '';
  slow.on('data', (chunk: Buffer) => (read += chunk.toString()));
  await writing;
  assert.is(read, 'one\ntwo\nthree\n');
  const gone = new PassThrough({ highWaterMark: 4 });
  const waiting = writeLines(gone, ['one', 'two', 'three']);
  gone.destroy();
  await waiting;
  await writeLines(gone, ['four']);
});

/** Nothing tells from outside that the program waits for its input: it sends itself the signal. */
const CTRL_C_WHILE_READING = `
  const waiting = setInterval(() => {
    if (process.stdin.listenerCount('readable') === 0) return;
    clearInterval(waiting);
    process.kill(process.pid, 'SIGINT');
  }, 10);`;

/** Runs the program itself. */
async function spawned(
  dir: string,
  args: readonly string[],
  act: (child: ReturnType<typeof spawn>) => void = () => undefined,
  preload = '',
): Promise<Said> {
  const child = spawn(
    process.execPath,
    ['--enable-source-maps', '--import', `data:text/javascript,${encodeURIComponent(preload)}`, GIFT, ...args],
    { env: { ...process.env, DATA_DIR: join(dir, 'data') } },
  );
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  act(child);
  const [code] = (await once(child, 'close')) as [number];
  return { code, out, err };
}

test('the program itself: done, wrong usage, Ctrl-C, and a reader that goes away', async ({ dir, file }) => {
  const [done, usage, interrupted] = await Promise.all([
    spawned(dir, ['import', file]),
    spawned(dir, ['nonsense']),
    spawned(dir, ['import', '-'], undefined, CTRL_C_WHILE_READING),
  ]);
  assert.equal(done, { code: 0, out: WHOLE, err: madeIn(dir) });
  assert.is(usage.code, 2);
  assert.equal(interrupted, {
    code: 130,
    out: '',
    err: 'gift: interrupted before anything was read; nothing was done\n',
  });
  const merchants = Array.from({ length: 3_000 }, (_, n) => ({ id: `m${n}`, name: 'M' }));
  writeFileSync(file, JSON.stringify({ merchants }));
  const piped = await spawned(dir, ['import', file, '--json'], (child) => {
    child.stdout?.once('data', () => child.stdout?.destroy());
  });
  assert.equal([piped.code, piped.err], [0, '']);
  assert.is((await eventsIn(dir)).filter(({ type }) => type.startsWith('Merchant')).length, 1 + 3_000);
});

test('two imports side by side on one data folder', async ({ dir, file }) => {
  const ran = await Promise.all([gift(dir, ['import', file]), spawned(dir, ['import', file])]);
  assert.equal(
    ran.map(({ code }) => code),
    [0, 0],
  );
  // Either may find the log that the other has made.
  for (const { err } of ran) assert.ok(['', madeIn(dir)].includes(err), err);
  assert.is((await eventsIn(dir)).length, 21);
  assert.ok(readdirSync(join(dir, 'data')).includes('hash.key'));
});

test.run();
