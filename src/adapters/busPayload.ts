/** What comes over a bus: JSON, or refused. */
import { RemoteError } from '../ports/bus.js';

/** Reads a message or an answer. @throws RemoteError naming the subject, and nothing of what came, when it is no JSON */
export function payloadOf(body: string, subject: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    throw new RemoteError(`a message on ${subject} that is no JSON`);
  }
}
