import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EngineError, NoAnswerError } from '../../src/lib/engineError.js';
import { startWithRetries } from '../../src/service/startFailure.js';
import { UnavailableError } from '../../src/ports/unavailable.js';

const test = suite('a start that meets engines that are not there yet');

/** A start that fails with one of these after another. */
async function starting(
  failures: readonly Error[],
  waitMs = 60_000,
): Promise<{ readonly came: unknown; readonly attempts: number; readonly lines: readonly string[] }> {
  const lines: string[] = [];
  let attempts = 0;
  const start = async (): Promise<string> => {
    const failure = failures[attempts++];
    if (failure !== undefined) throw failure;
    return 'started';
  };
  const came = await startWithRetries(
    start,
    pino({}, { write: (line: string) => void lines.push((JSON.parse(line) as { msg: string }).msg) }),
    { waitMs, betweenMs: 5 },
  ).catch((error: unknown) => error);
  return { came, attempts, lines };
}

test('waits for a server that does not answer in time, and says each time for what', async () => {
  const { came, attempts, lines } = await starting([
    new NoAnswerError('MONGODB_URL', 'no MongoDB answers at host:27017'),
    new UnavailableError('the read store took longer than 5000 ms'),
  ]);
  assert.equal([came, attempts], ['started', 3]);
  assert.equal(lines, [
    'not started yet, trying again: MONGODB_URL: no MongoDB answers at host:27017',
    'not started yet, trying again: the read store took longer than 5000 ms',
  ]);
});

test('does not wait where waiting changes nothing', async () => {
  const full = new UnavailableError('events.db: database or disk is full', {
    cause: Object.assign(new Error('full'), { code: 'SQLITE_FULL' }),
  });
  for (const failure of [
    new EngineError('NATS_URL', 'the credentials are refused'),
    new TypeError('a fault of ours'),
    full,
  ]) {
    assert.equal(await starting([failure]), { came: failure, attempts: 1, lines: [] });
  }
});

test('waits no longer than its limit', async () => {
  const failure = new NoAnswerError('NATS_URL', 'no NATS server answers there');
  assert.equal(await starting([failure], 0), { came: failure, attempts: 1, lines: [] });
  const { came, attempts } = await starting(
    Array.from({ length: 10_000 }, () => failure),
    50,
  );
  assert.is(came, failure);
  assert.ok(attempts > 1 && attempts < 100, `${attempts}`);
});

test('ends at once when the process is to stop', async () => {
  const failure = new UnavailableError('another process resets the sandbox of this data folder');
  const stopping = new AbortController();
  const start = async (): Promise<never> => {
    setImmediate(() => stopping.abort());
    throw failure;
  };
  const waits = { waitMs: 3_600_000, betweenMs: 3_600_000, signal: stopping.signal };
  const came = await startWithRetries(start, pino({ level: 'silent' }), waits).catch((error: unknown) => error);
  assert.is(came, failure);
});

test.run();
