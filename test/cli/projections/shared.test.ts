import { Readable } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { OpenedStores } from '../../../src/cli/engines.js';
import { commandFailureOf, maintaining } from '../../../src/cli/projections/shared.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { loadConfig } from '../../../src/service/config.js';
import { buy, newInstallation, settled } from '../../support/fixtures/projecting.js';
import { GIFTS_PROJECTION } from '../../support/fixtures/rebuilding.js';
import { sink } from '../../support/service/cli.js';

const test = suite('cli/projectionsShared');

const told = (message: string, code: string): string =>
  (
    commandFailureOf(
      new UnavailableError(message, { cause: Object.assign(new Error(message), { code }) }),
      'gifts',
      'repeat the command',
    ) as Error
  ).message;

test('names the remedy of an unwritable file before the advice to repeat the command', () => {
  assert.is(
    told('read.db: attempt to write a readonly database', 'SQLITE_READONLY'),
    'read.db: attempt to write a readonly database: see that this user may write all files there, and that it is not mounted read-only; then repeat the command',
  );
  assert.is(
    told('read.db: database or disk is full', 'SQLITE_FULL'),
    'read.db: database or disk is full: see that there is room on its disk, and that the disk is well; then repeat the command',
  );
  assert.is(told('read.db: database is locked', 'SQLITE_BUSY'), 'read.db: database is locked: repeat the command');
  assert.is(
    (commandFailureOf(new UnavailableError('no MongoDB answers'), 'gifts', 'repeat the command') as Error).message,
    'no MongoDB answers: repeat the command',
  );
});

test('places the order of a rebuild again once the log answers', async () => {
  const installation = await newInstallation();
  const { dir, events, store } = installation;
  try {
    await buy(events);
    await settled(await installation.project(), events);
    let failures = 0;
    const end: EventStore['end'] = async () =>
      ++failures === 1 ? Promise.reject(new UnavailableError('the log is away')) : events.end();
    const [out, err] = [sink(), sink()];
    const signal = new AbortController().signal;
    const terminal = { stdin: Readable.from([]), stdout: out.stream, stderr: err.stream, env: {}, signal };
    const opened = { config: loadConfig({ DATA_DIR: dir }), events, stored: { ...events, end }, store };
    const options = { projection: GIFTS_PROJECTION, reason: null, json: true, command: 'rebuild' } as const;
    await maintaining(terminal, opened as unknown as OpenedStores, options, async (run) => {
      const [started] = await run.order('rebuild', { names: ['gifts'] }, 'interrupted');
      assert.equal([started?.name, started?.resumed, run.hasWaited], ['gifts', false, true]);
    });
    assert.match(out.text(), /^\{"action":"waiting","projection":"gifts","cause":"the log is away"\}\n/);
    assert.match(err.text(), /a task failed/);
  } finally {
    await installation.destroy();
  }
});

test.run();
