/** What holds for every answer, whatever was asked. */
import assert from 'node:assert/strict';
import { type ErrorCode, ERRORS } from '../../../src/domain/errors.js';
import type { Service } from './service.js';

/** An answer, as far as these rules care. */
export interface AnyAnswer {
  readonly status: number;
  readonly text: string;
  header(name: string): string | null;
}

/** The answer of `fetch`, read whole. */
export function answerOf(reply: {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}): AnyAnswer {
  return { status: reply.status, text: reply.text, header: (name) => reply.headers.get(name) };
}

/**
 * Words that tell of the inside: stacks (a line and a column, not the minutes and seconds of a time), paths,
 * statements, names of parts.
 */
const INSIDE =
  /\bat [^"]*(?<!T\d\d):\d+:\d+|node_modules|\/(?:work|src|dist|tmp|home|usr)\/|\.[jt]s:\d+|SQLITE|sqlite|\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM)\b|TypeError|RangeError|SyntaxError|Cannot read prop|is not a function|ENOENT|ECONN/;

/** What ends by itself: callers are told when to ask again. */
export const PASSING: ReadonlySet<string> = new Set([
  'Request in progress.',
  'a notification is still under way.',
  'transaction is not settled yet.',
  'gift is not paid for yet.',
  "gift's payment is disputed.",
]);

/** The secure headers that every answer of the application carries. */
const SECURE_HEADERS: Readonly<Record<string, RegExp>> = {
  'x-content-type-options': /^nosniff$/,
  'x-frame-options': /^SAMEORIGIN$/,
  'strict-transport-security': /^max-age=\d+/,
  'content-security-policy': /default-src/,
  'referrer-policy': /^no-referrer$/,
};

/**
 * Holds an answer against the rules of docs/api/errors.md#general-errors; gives the error's message, `undefined` for a
 * success.
 * @param challenge the scheme that a 401 names: that of the request (RFC 6749 5.2)
 */
export function checked(answer: AnyAnswer, what = '', challenge = /^Bearer$/): string | undefined {
  const told = `${what} ${answer.status} ${answer.text.slice(0, 300)}`;
  assert.ok(answer.status < 500 || answer.status === 503, told);
  assert.match(answer.header('x-request-id') ?? '', /^[A-Za-z0-9._:-]{1,128}$/, told);
  for (const [name, value] of Object.entries(SECURE_HEADERS))
    assert.match(answer.header(name) ?? '', value, `${name}: ${told}`);
  assert.equal(answer.header('x-powered-by'), null);
  if (answer.status < 400) return undefined;
  assert.match(answer.header('content-type') ?? '', /^application\/json(; charset=utf-8)?$/, told);
  assert.doesNotMatch(answer.text, INSIDE, told);
  const body = JSON.parse(answer.text) as { readonly error?: unknown };
  assert.deepEqual(Object.keys(body), ['error'], told);
  assert.ok(typeof body.error === 'string' && body.error !== '' && body.error.length <= 300, told);
  const [status, message] = ERRORS[answer.header('error-code') as ErrorCode] ?? [];
  assert.equal(answer.status, status, `Error-Code ${answer.header('error-code')}: ${told}`);
  if (message !== '') assert.equal(body.error, message, told);
  if (answer.status === 401) assert.match(answer.header('www-authenticate') ?? '', challenge, told);
  if (answer.status === 405) assert.match(answer.header('allow') ?? '', /^[A-Z]+(, [A-Z]+)*$/, told);
  if (PASSING.has(body.error) || answer.status === 429 || answer.status === 503)
    assert.match(answer.header('retry-after') ?? '', /^[1-9]\d*$/, told);
  return body.error;
}

/** The log of a service in this process tells of nothing unforeseen, and the service lives. */
export async function unharmed(service: Service): Promise<void> {
  const trouble = service.log.filter((line) => /"level":(?:50|60|"error"|"fatal")/.test(line));
  assert.deepEqual(trouble, []);
  assert.equal((await service.ask('GET', '/healthz')).status, 200);
  assert.equal((await service.ask('GET', '/api/v2/products', { token: await service.clientToken() })).status, 200);
}
