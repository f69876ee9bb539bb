import { RemoteError } from '../ports/bus.js';

export const MAX_PAYLOAD_BYTES = 1_000_000;

const SUBJECT = /^[\w-]+(?:\.[\w-]+)*$/;

export function checkSubject(subject: string): void {
  if (!SUBJECT.test(subject)) throw new TypeError(`not a subject: ${JSON.stringify(subject)}`);
}

export function bodyOf(payload: object): string {
  const body = JSON.stringify(payload);
  if (Buffer.byteLength(body) > MAX_PAYLOAD_BYTES) throw new RangeError(`a message of over ${MAX_PAYLOAD_BYTES} bytes`);
  return body;
}

/** @throws RemoteError naming only the subject, when the body is not JSON */
export function payloadOf(body: string, subject: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    throw new RemoteError(`a message on ${subject} that is no JSON`);
  }
}

/** The longest failure that a requester is sent, in UTF-16 code units: a frame or a header has no room for any text. */
const MAX_FAILURE_LENGTH = 300;

/** The text of a handler's error. Half a surrogate pair, which can't be encoded, is replaced. */
export function failureText(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, MAX_FAILURE_LENGTH).toWellFormed();
}
