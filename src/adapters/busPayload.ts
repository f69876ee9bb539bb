/**
 * What goes over a bus, and where to: subjects, and payloads that are JSON of bounded length; anything else is refused.
 */
import { RemoteError } from '../ports/bus.js';

/** The most bytes a payload may have as JSON. */
export const MAX_PAYLOAD_BYTES = 1_000_000;

const SUBJECT = /^[\w-]+(?:\.[\w-]+)*$/;

/** @throws TypeError when it is no subject */
export function checkSubject(subject: string): void {
  if (!SUBJECT.test(subject)) throw new TypeError(`not a subject: ${JSON.stringify(subject)}`);
}

/** A payload as it is sent. @throws RangeError when it is too long */
export function bodyOf(payload: object): string {
  const body = JSON.stringify(payload);
  if (Buffer.byteLength(body) > MAX_PAYLOAD_BYTES) throw new RangeError(`a message of over ${MAX_PAYLOAD_BYTES} bytes`);
  return body;
}

/**
 * Reads a message or an answer. @throws RemoteError naming the subject, and nothing of what came, when it is no JSON
 */
export function payloadOf(body: string, subject: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    throw new RemoteError(`a message on ${subject} that is no JSON`);
  }
}
