import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { type FollowerHealth, type FollowerRun, followers } from '../../../src/runtime/supervision/followers.js';
import { until } from '../../support/assertions/until.js';

const test = suite('followers');

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly restartMs?: number;
}

function kept() {
  const lines: Line[] = [];
  const parts = followers({
    logger: pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line) as Line) }),
  });
  const health = (): FollowerHealth | undefined => parts.health()[0];
  return { lines, parts, health };
}

const forever = ({ signal }: FollowerRun): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve()));

/** An error of every class, and what is no error. */
const ERRORS: readonly unknown[] = [
  new UnavailableError('no disk'),
  new RangeError('range'),
  new TypeError('type'),
  new Error('plain'),
  'a text',
  undefined,
];

test('a follower that fails or ends is started again until it is closed', async () => {
  const { parts, lines } = kept();
  const left = [...ERRORS];
  let runs = 0;
  const follower = parts.start(
    'f',
    async (run) => {
      runs += 1;
      if (left.length > 0) throw left.shift();
      if (runs === ERRORS.length + 1) return;
      run.well();
      await forever(run);
    },
    { restartMs: [1, 2] },
  );
  await until(() => runs === ERRORS.length + 2);
  await follower.close();
  assert.is(lines.filter(({ msg }) => msg === 'f: failed, starting again').length, ERRORS.length + 1);
  assert.equal(parts.health(), []);
  await sleep(20);
  assert.is(runs, ERRORS.length + 2, 'a closed one is not started again');
});

test('a follower that throws before its first await fails as any other', async () => {
  const { parts } = kept();
  let runs = 0;
  const follower = parts.start(
    'f',
    (run) => {
      if (++runs === 1) throw new RangeError('at once');
      return forever(run);
    },
    { restartMs: [1, 1] },
  );
  await until(() => runs === 2);
  await follower.close();
});

test('the waits double up to the longest, less up to half by chance', async () => {
  const { parts, lines } = kept();
  const follower = parts.start('f', () => Promise.reject(new Error('no')), { restartMs: [8, 32] });
  await until(() => lines.length >= 5);
  await follower.close();
  const waits = lines.slice(0, 5).map(({ restartMs = 0 }) => restartMs);
  for (const [at, most] of [8, 16, 32, 32, 32].entries())
    assert.ok((waits[at] ?? 0) >= most / 2 && (waits[at] ?? 0) <= most, `${waits.join()}`);
});

test('an engine that did not answer is asked again soon, whatever the longest wait', async () => {
  const { parts, lines } = kept();
  const restartMs = [60_000, 600_000] as const;
  const all = [new UnavailableError('away'), new Error('no')].map((error) =>
    parts.start('f', () => Promise.reject(error), { restartMs }),
  );
  await until(() => lines.length === 2);
  const [away = 0, other = 0] = lines.map((line) => line.restartMs);
  assert.ok(away <= 5_000 && other >= 30_000, `${away}, ${other}`);
  await Promise.all(all.map(async (one) => one.close()));
});

test('a follower is failing from its second failure on, until it has worked for a second', async () => {
  const { parts, health, lines } = kept();
  let fail: (error: Error) => void = () => undefined;
  let works = (): void => undefined;
  const run = ({ signal, well }: FollowerRun): Promise<void> =>
    new Promise((resolve, reject) => {
      works = well;
      fail = (error) => {
        fail = () => undefined;
        reject(error);
      };
      signal.addEventListener('abort', () => resolve());
    });
  const follower = parts.start('f', run, { restartMs: [1, 1] });
  assert.equal(health(), { part: 'f', failing: false, failures: 0 });
  fail(new TypeError('/a/path'));
  await until(() => health()?.failures === 1);
  assert.is(health()?.failing, false);
  const since = health()?.since ?? '';
  assert.ok(Math.abs(Date.now() - Date.parse(since)) < 5_000);
  await until(() => lines.length === 1);
  await sleep(10);
  fail(new UnavailableError('/data/events.db', { publicReason: 'its disk is full' }));
  await until(() => health()?.failures === 2);
  assert.equal(health(), {
    part: 'f',
    failing: true,
    since,
    failures: 2,
    why: 'its disk is full',
    error: 'UnavailableError',
  });
  await sleep(10);
  works();
  assert.is(health()?.failing, true, 'an instant proves nothing');
  await until(() => health()?.failing === false);
  assert.equal(health(), { part: 'f', failing: false, failures: 0 });
  assert.equal(
    lines.map(({ level }) => level),
    [40, 40, 30],
  );
  await follower.close();
});

test('an unexpected failure shows its class alone, and is logged as an error from the second on', async () => {
  const { parts, health, lines } = kept();
  const follower = parts.start('f', () => Promise.reject(new RangeError('not a position: 18446744073709551615')), {
    restartMs: [1, 1],
  });
  await until(() => lines.length >= 2);
  assert.is(health()?.why, 'RangeError: see the log of that process');
  assert.equal(
    lines.slice(0, 2).map(({ level }) => level),
    [40, 50],
  );
  await follower.close();
});

test('a follower that waits for an engine is failing after two seconds, until it answers', async () => {
  const { parts, health, lines } = kept();
  let told: FollowerRun['onTrouble'] = () => undefined;
  const follower = parts.start('f', (run) => {
    told = run.onTrouble;
    return forever(run);
  });
  told(new UnavailableError('down'));
  told(new UnavailableError('down'));
  assert.is(health()?.failing, false);
  await until(() => health()?.failing === true);
  assert.is(health()?.why, 'an engine does not answer');
  told(undefined);
  await until(() => health()?.failing === false);
  assert.equal(
    lines.map(({ msg }) => msg),
    ['f: waits for an engine, trying on', 'f: works again'],
  );
  await follower.close();
});

test('the health of followers includes those of other threads', async () => {
  const { parts } = kept();
  const elsewhere = { part: 'projector', failing: true, failures: 3, since: '2026-01-01T00:00:00.000Z', why: 'no' };
  parts.include(() => [elsewhere]);
  assert.equal(parts.health(), [elsewhere]);
});

test.run();
