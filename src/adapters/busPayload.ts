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
