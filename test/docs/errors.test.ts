/** docs/api/errors.md lists every code, with what the service does about it. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EARLY_ERRORS } from '../../src/api/listener/earlyRefusals.js';
import { ERRORS, type ErrorCode } from '../../src/api/pipeline/errors.js';
import { isKept, restsOnRequest, retryAfterOf } from '../../src/api/pipeline/repeats.js';

const DOCUMENT = fileURLToPath(new URL('../../../docs/api/errors.md', import.meta.url));
const test = suite('docs: errors');

const WAITS: ReadonlySet<string> = new Set([
  'too_many_requests',
  'request_in_progress',
  'unavailable',
] satisfies ErrorCode[]);

/** What they rest on is the state of the service, which may be another one later. */
const OF_SERVICE: ReadonlySet<string> = new Set([
  'projection_busy',
  'projection_refused',
  'reset_refused',
] satisfies ErrorCode[]);

function retry(code: ErrorCode): string {
  if (code === 'internal') return 'yes';
  if (WAITS.has(code) || 'Retry-After' in retryAfterOf(code)) return 'after `Retry-After`';
  if (isKept(code)) return 'no, a key keeps the answer';
  return restsOnRequest(code) && !OF_SERVICE.has(code) ? 'no, change the request' : 'once its cause is gone';
}

const row = (code: string, status: number | string, message: string, advice: string): string =>
  `| \`${code}\` | ${status} | ${message === '' ? 'says what is wrong' : `\`${message}\``} | ${advice} |`;

test('docs/api/errors.md has a row for each error, and no other', () => {
  const early = Object.entries(EARLY_ERRORS).filter(([code]) => !(code in ERRORS));
  const wanted = [
    ...(Object.keys(ERRORS) as ErrorCode[]).map((code) => row(code, ...ERRORS[code], retry(code))),
    ...early.map(([code, [status, message]]) =>
      row(code, Number.parseInt(status, 10), message, code === 'request_timed_out' ? 'yes' : 'no, change the request'),
    ),
  ];
  const rows = readFileSync(DOCUMENT, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  assert.equal(rows.join('\n'), wanted.join('\n'));
});

test.run();
