import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { suite } from 'uvu';
import { accessStream } from '../../src/domain/access.js';
import { run } from '../../src/cli/program.js';
import { Readable } from 'node:stream';
import { eventually } from '../support/assertions/until.js';
import { gift, sink } from '../support/service/cli.js';
import { buy } from '../support/service/giftFlow.js';
import { GIFT } from '../support/service/programs.js';
import { type Json, type Service, startService } from '../support/service/service.js';

const test = suite('cli/log');
let service: Service;
let id = '';

const log = async (...args: readonly string[]): ReturnType<typeof gift> => gift(service.settings, ['log', ...args]);

test.before(async () => {
  service = await startService();
  [id = ''] = await buy(service, 'latte', [{ phone_number: '07700 900166' }]);
  await eventually(async () => (await service.events.read(`notification-${id}`)).length === 2);
});
test.after(() => service.close());

test('shows the events that the service shows', async () => {
  const token = await service.userToken('aud');
  for (const [query, flags] of [
    [`stream=gift-${id}`, ['--stream', `gift-${id}`]],
    ['category=transaction&type=PaymentCharged', ['--category', 'transaction', '--type', 'PaymentCharged']],
    ['last=4', ['--last', '4']],
    ['category=user&last=2', ['--category', 'user', '--last', '2']],
  ] as const) {
    const { json } = await service.ask('GET', `/ops/log?${query}`, { token });
    const said = await log('--json', ...flags);
    assert.deepEqual([said.code, said.err], [0, '']);
    assert.deepEqual(said.records(), json.data, query);
  }
});

test('shows a text of each event, masked, and personal fields for a reason', async () => {
  const masked = await log('--type', 'GiftsPurchased');
  assert.match(masked.out, /^\d{16,19} {2}\S+Z {2}GiftsPurchased {2}transaction-\w+ #0\n {4}by ann/);
  assert.match(masked.err, /\*\*\* is a personal field/);
  const shown = await log('--type', 'GiftsPurchased', '--personal', '--reason', 'a test');
  assert.match(shown.out, /\+447700900166/);
  const end = (await service.events.read(accessStream(new Date().toISOString()))) as Json[];
  assert.deepEqual(
    end.slice(-2).map(({ type, data }) => [type, data.what, data.reason, data.count, data.complete] as unknown[]),
    [
      ['OperationStarted', 'gift log', 'a test', undefined, undefined],
      ['OperationEnded', undefined, undefined, 1, true],
    ],
  );
  assert.match((await log('--category', 'gift', '--to', '2020-01-01')).err, /^no event is like this\n$/);
});

test('follows the log from its last events until it is interrupted', async () => {
  const [out, err, abort] = [sink(), sink(), new AbortController()];
  const terminal = { stdin: Readable.from([]), stdout: out.stream, stderr: err.stream, env: service.settings };
  const following = run({ ...terminal, signal: abort.signal }, [
    'log',
    '--category=gift',
    '--last=1',
    '--follow',
    '--json',
  ]);
  const types = (): string[] =>
    out
      .text()
      .split('\n')
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { readonly type: string }).type);
  await eventually(async () => types().length === 1);
  const token = await service.userToken('sue');
  for (const [what, type] of [
    ['block', 'GiftBlocked'],
    ['unblock', 'GiftUnblocked'],
  ]) {
    await service.ask('POST', `/ops/gifts/${id}/${what}`, { token, body: { reason: 'lost' } });
    await eventually(async () => types().at(-1) === type);
  }
  abort.abort();
  assert.equal(await following, 0);
  assert.deepEqual(types(), ['GiftIssued', 'GiftBlocked', 'GiftUnblocked']);
  const [, position = ''] = /^gift: ended; --after (\d+) goes on from here\n$/.exec(err.text()) ?? [];
  assert.deepEqual((await log('--json', '--category', 'gift', '--after', position)).out, '');
});

test('follows as a process of its own, which Ctrl-C ends', async () => {
  const child = spawn(process.execPath, [GIFT, 'log', '--stream', `gift-${id}`, '--follow', '--json'], {
    env: { PATH: process.env['PATH'], ...service.settings },
  });
  const ended = once(child, 'close');
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  const token = await service.userToken('sue');
  // Until it has begun to follow, an event is not shown.
  await eventually(async () => {
    for (const what of ['block', 'unblock'])
      await service.ask('POST', `/ops/gifts/${id}/${what}`, { token, body: { reason: 'lost' } });
    return out !== '' || child.exitCode !== null;
  });
  assert.match(out, /"type":"GiftBlocked"|"type":"GiftUnblocked"/);
  child.kill('SIGINT');
  assert.deepEqual(await ended, [0, null]);
});

test('refuses what goes not together, and what no event can match', async () => {
  assert.deepEqual((await log('--last', '5', '--from', '2026-05-04')).code, 2);
  assert.deepEqual((await log('--follow', '--to', '2026-05-04')).code, 2);
  assert.deepEqual((await log('--last', '0')).code, 2);
  const unknown = await log('--stream', 'gift-nothing');
  assert.deepEqual([unknown.code, unknown.err], [1, 'gift: --stream: the log knows no stream "gift-nothing"\n']);
  assert.match((await log('--category', 'access')).err, /gift audit access/);
});

test.run();
