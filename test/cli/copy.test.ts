import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { canonicalText } from '../../src/ops/backup/logHash.js';
import type { StreamAppend } from '../../src/ports/eventStore.js';
import { gift as command, type Said, saidBy } from '../support/service/cli.js';
import { event, eventsOf } from '../support/engines/eventStoreEvents.js';
import { withLogIn } from '../support/engines/eventStoreFolder.js';
import { GIFT } from '../support/service/programs.js';

interface Context {
  dir: string;
  from: string;
  to: string;
}

const test = suite<Context>('cli/copy');

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'cli-copy-'));
  context.from = join(context.dir, 'from');
  context.to = join(context.dir, 'to');
});

test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

const gift = async (args: readonly string[], more: Parameters<typeof command>[2] = {}): Promise<Said> =>
  saidBy(await command({}, args, more));

/** A log of `count` events in streams of four, interleaved. */
async function fill(dir: string, count: number): Promise<void> {
  await withLogIn(dir, async (store) => {
    const appends = Array.from({ length: count }, (_, n): StreamAppend => {
      const round = Math.floor(n / (count / 4));
      return {
        stream: `gift-${n % (count / 4)}`,
        events: [event('GiftRedeemed', { n, location_id: 'kettle-covent-garden' })],
        expected: round === 0 ? 'none' : round - 1,
      };
    });
    await store.appendInOrder!(appends);
  });
}

const textsOf = async (dir: string): Promise<string[]> =>
  withLogIn(dir, async (store) => (await eventsOf(store.readAll(undefined))).map(canonicalText));

test('a folder is copied and sealed; the command line says so, and so does the sealed log', async ({ from, to }) => {
  await fill(from, 40);
  const { code, out, err } = await gift(['copy', '--from', from, '--to', to]);
  assert.equal([code, err], [0, '']);
  assert.match(
    out,
    /^41 events in both logs, 41 copied now; hash [0-9a-f]{64}\nlog \S+ \(embedded\) is a copy of \S+ \(embedded\), which is sealed\n$/,
  );
  assert.equal(await textsOf(to), await textsOf(from));
  const refused = await gift(['import', fileURLToPath(new URL('../../../examples/demo.json', import.meta.url))], {
    env: { DATA_DIR: from },
  });
  assert.is(refused.code, 1);
  assert.match(
    refused.err,
    /^gift: the event log is sealed since it was copied to another engine: use that one \(EVENTSTORE_URL, DATA_DIR\)\n$/,
  );
  // Nothing that can be repeated is said to go on when repeated.
  for (const args of [
    ['rebuild', 'gifts'],
    ['rollback', 'gifts'],
    ['repair', 'gifts', '--id', 'x', '--reason', 'ticket 4711'],
  ]) {
    assert.equal(
      await gift(['projections', ...args], { env: { DATA_DIR: from } }),
      { ...refused, out: '' },
      args.join(' '),
    );
  }
  assert.is((await textsOf(from)).length, 41);
  const records = await withLogIn(to, async (store) =>
    (await eventsOf(store.readAll(undefined, { types: ['OperationStarted'] }))).map(
      ({ data }) => (data as { what: string; asked: object }).asked,
    ),
  );
  assert.equal(
    records.map((requested) => Object.keys(requested)),
    [['from', 'to']],
    'who took it along stands in both',
  );
  // A sealed log takes no record, and is not asked to.
  assert.equal((await gift(['copy', '--from', from, '--to', to])).err, '');
});

test('--json and --no-seal', async ({ from, to }) => {
  await fill(from, 8);
  const drill = await gift(['copy', '--from', from, '--to', to, '--no-seal', '--json']);
  const { hash, from: fromId, to: toId, ...rest } = JSON.parse(drill.out) as Record<string, unknown>;
  assert.equal(rest, { action: 'done', events: 9, copied: 9, sealed: false, waits: false });
  assert.match(String(hash), /^[0-9a-f]{64}$/);
  assert.is.not(fromId, toId);
  await withLogIn(from, async (store) => store.append('later', [event()], 'none'));
  const real = JSON.parse((await gift(['copy', '--from', from, '--to', to, '--json'])).out) as Record<string, unknown>;
  assert.equal([real['events'], real['copied'], real['sealed']], [11, 2, true]);
  const words = await gift(['copy', '--from', to, '--to', join(to, 'third'), '--no-seal']);
  assert.match(words.out, /which is not sealed\n$/);
});

test('what is not a log, or not an empty one, is refused with what to do', async ({ from, to }) => {
  assert.equal(await gift(['copy', '--from', from, '--to', to]), {
    code: 1,
    out: '',
    err: `gift: --from: there is no event log in ${from}\n`,
  });
  assert.equal([existsSync(from), existsSync(to)], [false, false]);
  for (const [option, text, message] of [
    ['--from', 'mongodb://user:secret@host/gift', 'starts with esdb:// or esdb+discover://, not with mongodb://'],
    ['--to', 'esdb:/user:secret@host:2113', 'starts with esdb:// or esdb+discover://, not with esdb:/'],
    ['--to', 'ESDB:host', 'starts with esdb:// or esdb+discover://, not with ESDB:'],
    ['--to', ' ', 'starts with esdb:// or esdb+discover://'],
  ] as const) {
    const args = { '--from': from, '--to': to, [option]: text };
    const refused = await gift(['copy', ...Object.entries(args).flat()]);
    assert.equal(refused, {
      code: 2,
      out: '',
      err: `gift: ${option} must be a data folder, or an address that ${message}\n`,
    });
  }
  assert.is((await gift(['copy', '--from', from])).code, 2);
  await fill(from, 4);
  await withLogIn(to, async (store) => store.append('other', [event()], 'none'));
  const other = await gift(['copy', '--from', from, '--to', to]);
  assert.is(other.code, 1);
  assert.match(other.err, /^gift: the target holds something else: .*Name an empty target/);
  const away = await gift([
    'copy',
    '--from',
    from,
    '--to',
    'esdb://user:secret@127.0.0.1:1?tls=false&maxDiscoverAttempts=1&discoveryInterval=10',
  ]);
  assert.is(away.code, 1);
  assert.match(away.err, /^gift: /);
  assert.not.match(away.err, /secret/);
});

test('takes an address from the environment, which may hold a password', async ({ from, to }) => {
  await fill(from, 8);
  const env = { FROM: from, TO: ` ${to} `, BAD: 'mongodb://user:secret@host/gift', EMPTY: ' ' };
  const { code, out, err } = await gift(['copy', '--from', 'env:FROM', '--to', 'env:TO', '--no-seal'], { env });
  assert.equal([code, err], [0, '']);
  assert.match(out, /^9 events in both logs, 9 copied now/);
  for (const name of ['EMPTY', 'NONE', '']) {
    const refused = await gift(['copy', '--from', from, '--to', `env:${name}`], { env });
    assert.equal(refused, {
      code: 2,
      out: '',
      err: `gift: --to names the environment variable "${name}", which is not set\n`,
    });
  }
  const foreign = await gift(['copy', '--from', from, '--to', 'env:BAD'], { env });
  assert.equal(
    [foreign.code, foreign.err],
    [
      2,
      'gift: --to must be a data folder, or an address that starts with esdb:// or esdb+discover://, not with mongodb://\n',
    ],
  );
});

test('Ctrl-C ends it with 130, and it is gone on with; progress shows on a terminal only', async ({ from, to }) => {
  await fill(from, 8_000);
  const interrupted = new AbortController();
  const stderr = Object.assign(new Writable({ write: (_chunk, _encoding, done) => (interrupted.abort(), done()) }), {
    isTTY: true,
  });
  const stopped = await gift(['copy', '--from', from, '--to', to], { stderr, signal: interrupted.signal });
  assert.equal([stopped.code, stopped.out], [130, '']);
  const there = (await textsOf(to)).length;
  assert.ok(there > 0 && there < 8_000, String(there));
  const { code, out, err } = await gift(['copy', '--from', from, '--to', to], { tty: true });
  assert.is(code, 0);
  assert.match(out, new RegExp(`^8002 events in both logs, ${8_002 - there} copied now`));
  assert.match(err, /comparing [█░]{24} \d+ % \| [\d,]+ events/);
  assert.ok(err.lastIndexOf('\u001B[2K') > err.lastIndexOf('events'), 'the bar is removed');
});

test('finishes a copy that was killed at any moment without a gap or a repetition', async ({ from, to }) => {
  await fill(from, 16_000);
  const standing: number[] = [];
  await withLogIn(to, async (store) => {
    const there = async (): Promise<number> => Number((await store.end()) ?? 0);
    for (const wanted of [1, 5_000]) {
      const child = spawn(process.execPath, [GIFT, 'copy', '--from', from, '--to', to, '--no-seal'], {
        stdio: 'ignore',
      });
      const closed = once(child, 'close');
      while ((await there()) < wanted && child.exitCode === null) await sleep(2);
      child.kill('SIGKILL');
      await closed;
      standing.push(await there());
    }
  });
  assert.ok(standing[0]! > 0 && standing[1]! >= 5_000 && standing[1]! < 16_000, standing.join(' '));
  const { code, out } = await gift(['copy', '--from', from, '--to', to]);
  assert.is(code, 0);
  assert.match(out, new RegExp(`^16003 events in both logs, ${16_003 - standing[1]!} copied now`));
  assert.equal(await textsOf(to), await textsOf(from));
});

test.run();
