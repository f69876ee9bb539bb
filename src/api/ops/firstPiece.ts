/** Streams that are to be answers: what fails before anything has been sent still gets its status. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { CallerLeftError } from '../pipeline/callerLeft.js';

/**
 * Waits for its first piece, or its end. `onError` is told of what fails while a stream is given up, which nobody else
 * would hear of.
 * @throws whatever the stream fails with; CallerLeftError, once it is given up, where nobody waits for it any more
 */
export async function firstPiece(
  stream: Readable,
  response: ServerResponse,
  onError: (error: Error) => void,
): Promise<void> {
  // Not `callerLeft`: who only sends no more still reads what comes.
  const leaving = new AbortController();
  const leave = (): void => leaving.abort();
  response.once('close', leave);
  if (response.closed) leave();
  try {
    await once(stream, 'readable', { signal: leaving.signal });
  } catch (error) {
    stream.on('error', onError).destroy();
    throw leaving.signal.aborted ? new CallerLeftError() : error;
  } finally {
    response.off('close', leave);
  }
}
