/** Expects a promise to fail in one way. */
import assert from 'node:assert/strict';
import { Refusal } from '../../../src/domain/refusal.js';

/** Whether it is this refusal: for `assert.throws`. */
export const refusal =
  (code: string) =>
  (error: unknown): boolean =>
    error instanceof Refusal && error.code === code;

/** The promise fails with an error of this kind and message. @returns the error */
export async function rejects<E extends Error>(
  promise: Promise<unknown>,
  kind: new (...args: never[]) => E,
  message: RegExp,
): Promise<E> {
  const error = await promise.then(
    (reply) => assert.fail(`no failure: ${JSON.stringify(reply)}`),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof kind, String(error));
  assert.match(error.message, message);
  return error;
}
