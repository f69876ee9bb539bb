import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { commandFailureOf } from '../../../src/cli/projections/shared.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';

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

test.run();
