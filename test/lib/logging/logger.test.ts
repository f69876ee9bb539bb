import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createLogger, cutGiftIds } from '../../../src/lib/logging/logger.js';
import { until } from '../../support/assertions/until.js';

const test = suite('the log');

const ID = '0123456789abcdef0123';
const SHORTCODE = 'H7KQ2M9XTB4CDEFG';

/** A logger with the lines that it wrote. */
function recording(level = 'info') {
  const lines: string[] = [];
  const logger = createLogger({ level, destination: { write: (line: string) => void lines.push(line) } });
  return { logger, lines, last: () => JSON.parse(lines.at(-1) ?? '{}') as Record<string, unknown> };
}

test('writes a line as JSON with level, ISO time and message', () => {
  const { logger, lines, last } = recording();
  logger.info({ status: 200 }, 'request');
  logger.info('twice');
  assert.match(
    lines[0] ?? '',
    /^\{"level":"info","time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","status":200,"msg":"request"\}\n$/,
  );
  assert.is(last()['msg'], 'twice');
});

test('writes nothing below the level', () => {
  const { logger, lines } = recording('warn');
  logger.info('no');
  logger.warn('yes');
  assert.is(lines.length, 1);
});

test('shows no secret or personal value, however deep and however spelled', () => {
  const { logger, lines } = recording();
  const SECRET = 'hunter2';
  logger.info(
    {
      password: SECRET,
      Authorization: `Bearer ${SECRET}`,
      headers: { 'set-cookie': [SECRET], authorization: SECRET },
      client_secret: SECRET,
      clientSecret: SECRET,
      refresh_token: SECRET,
      body: { anything: SECRET },
      users: [{ phone_number: SECRET, username: SECRET }],
    },
    'login',
  );
  logger.child({ token: SECRET, component: 'auth' }).child({ pin: SECRET }).info('child');
  assert.not.match(lines.join(''), SECRET);
  assert.match(lines[1] ?? '', '"component":"auth"');
});

test('leaves the given object as it is', () => {
  const { logger } = recording();
  const handed = { password: 'hunter2', nested: { token: 't' } };
  logger.info(handed, 'login');
  assert.equal(handed, { password: 'hunter2', nested: { token: 't' } });
});

test('cuts gift ids and shortcodes', () => {
  assert.is(cutGiftIds(`/api/v2/gifts/${ID}/redemptions`), '/api/v2/gifts/012345…/redemptions');
  assert.is(cutGiftIds(`/g/${SHORTCODE.toLowerCase()}`), '/g/h7kq2m…');
  assert.is(cutGiftIds(`gift-${ID}`), 'gift-012345…');
  assert.is(cutGiftIds(`/api/v2/gifts/%30${ID.slice(1)}?embed[]=x`), '/api/v2/gifts/012345…');
  assert.is(cutGiftIds('/api/v2/gifts/%zz'), '/api/v2/gifts/%zz');
  assert.is(cutGiftIds('/api/v2/product-tags/categories'), '/api/v2/product-tags/categories');
  const { logger, lines } = recording();
  logger.info({ path: `/gifts/${ID}`, gift_id: ID, gifts: [ID, SHORTCODE] }, 'x');
  assert.not.match(lines.join(''), ID);
  assert.not.match(lines.join(''), SHORTCODE);
});

test('shows an error with its causes, without its other fields', () => {
  const { logger, last } = recording();
  const cause = Object.assign(new TypeError('inner', { cause: 'a text' }), { code: 'E_INNER' });
  logger.error({ err: Object.assign(new Error('outer', { cause }), { request: { secretive: 'hunter2' } }) }, 'failed');
  const shown = last()['err'] as Record<string, Record<string, unknown>>;
  assert.equal(Object.keys(shown), ['type', 'message', 'stack', 'cause']);
  assert.is(shown['cause']?.['type'], 'TypeError');
  assert.is(shown['cause']?.['code'], 'E_INNER');
  assert.is(shown['cause']?.['cause'], 'string');
  logger.error({ err: new Error(`document ${ID} is quarantined`) }, 'unavailable');
  assert.not.match(JSON.stringify(last()), ID);
  assert.match(JSON.stringify(last()), 'document 012345… is quarantined');
  class UnavailableError extends Error {}
  logger.error(new UnavailableError(`${SHORTCODE} no`));
  assert.match(((last()['err'] as Record<string, unknown>)['stack'] as string).split('\n')[0] ?? '', 'H7KQ2M… no');
  assert.match(cutGiftIds('UnavailableError'), 'Unavai…');
  const bare = new Error('no stack');
  delete bare.stack;
  logger.error(bare);
  assert.is((last()['err'] as Record<string, unknown>)['stack'], undefined);
  logger.error(new Error('alone'));
  assert.is((last()['err'] as Record<string, unknown>)['message'], 'alone');
  let chain = new Error('0');
  for (let depth = 1; depth < 20; depth++) chain = new Error(String(depth), { cause: chain });
  logger.error({ err: chain }, 'long');
  assert.ok(JSON.stringify(last()).length < 20_000);
});

test('shows every error of an AggregateError, as a cause too, and a bounded number of them', () => {
  const { logger, last } = recording();
  const failures = [Object.assign(new TypeError(`no ${ID}`), { code: 'E_ONE', request: 'hunter2' }), 'a text'];
  const closing = new AggregateError(failures, 'closing failed');
  logger.error({ err: new Error('outer', { cause: closing }) }, 'stopping failed');
  const shown = last()['err'] as { readonly cause: { readonly errors: readonly Record<string, unknown>[] } };
  const [first, ...others] = shown.cause.errors;
  assert.equal([first?.['type'], first?.['message'], first?.['code']], ['TypeError', 'no 012345…', 'E_ONE']);
  assert.equal(others, ['string']);
  assert.not.match(JSON.stringify(last()), 'hunter2');
  assert.not.match(JSON.stringify(last()), ID);
  logger.error({ err: new AggregateError(Array.from({ length: 1_000 }, (_, n) => n)) }, 'many');
  assert.is((last()['err'] as Record<string, unknown[]>)['errors']?.length, 50);
  let nested = new AggregateError([], '0');
  for (let depth = 1; depth < 20; depth++) nested = new AggregateError([nested], String(depth));
  logger.error({ err: nested }, 'deep');
  assert.ok(JSON.stringify(last()).length < 20_000);
});

test('bounds large and odd values', () => {
  const { logger, last } = recording();
  const deep: Record<string, unknown> = {};
  let inner = deep;
  for (let depth = 0; depth < 50; depth++) inner = inner['next'] = {} as Record<string, unknown>;
  logger.info(
    {
      text: 'x'.repeat(10_000),
      list: Array.from({ length: 1_000 }, (_, n) => n),
      deep,
      big: 10n ** 20n,
      bytes: new Uint8Array(9),
      when: new Date(0),
      none: null,
      on: true,
    },
    'odd',
  );
  const line = last();
  assert.is((line['text'] as string).length, 2_001);
  assert.is((line['list'] as unknown[]).length, 50);
  assert.match(JSON.stringify(line['deep']), '[…]');
  assert.is(line['big'], '100000000000000000000');
  assert.is(line['bytes'], '[…]');
  assert.is(line['when'], '1970-01-01T00:00:00.000Z');
  assert.is(line['none'], null);
  assert.is(line['on'], true);
});

test('knows more keys than it caches', () => {
  const { logger, lines } = recording();
  logger.info(Object.fromEntries(Array.from({ length: 1_200 }, (_, n) => [`key${n}`, n])), 'many');
  logger.info({ Pass_Word: 'hunter2' }, 'late');
  assert.not.match(lines.join(''), 'hunter2');
});

/** Starts a script that logs to standard output, in a process of its own. */
function start(script: string) {
  const logger = new URL('../../../src/lib/logging/logger.js', import.meta.url).href;
  return spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `import { createLogger } from ${JSON.stringify(logger)};\nconst logger = createLogger({ level: 'info' });\n${script}`,
    ],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
}

/** Runs such a script to its end. */
async function run(script: string): Promise<{ code: number | null; lines: string[] }> {
  const child = start(script);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, lines: output.split('\n').filter((line) => line !== '') };
}

/** None: the line is not whole. */
function numberIn(line: string): number[] {
  try {
    return [(JSON.parse(line) as { n: number }).n];
  } catch {
    return [];
  }
}

const LOG_MANY = 'for (let n = 0; n < 1000; n++) logger.info({ n }, "line");';

test('writes every line by the end of the process, however it ends', async () => {
  const ends = await Promise.all([
    run(LOG_MANY),
    run(`${LOG_MANY} process.exit(3);`),
    run(
      `${LOG_MANY} throw new Error();`.replace(
        'throw',
        'process.on("uncaughtException", () => process.exit(4)); throw',
      ),
    ),
  ]);
  assert.equal(
    ends.map(({ code }) => code),
    [0, 3, 4],
  );
  for (const [at, { lines }] of ends.entries()) {
    const numbers = lines.flatMap(numberIn);
    assert.is(new Set(numbers).size, 1_000);
    // A line is torn by an exit during a write alone, and stands there whole, too.
    assert.ok(numbers.length === lines.length || (at > 0 && lines.length - numbers.length <= 2));
  }
});

test('shows a line soon, while the process goes on', async () => {
  const child = start('logger.info("early"); setInterval(() => undefined, 60_000);');
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  await until(() => output.includes('early'), 'the line');
  child.kill('SIGKILL');
  await once(child, 'close');
});

test.run();
