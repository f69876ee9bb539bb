/** Streamed answers: an error before the first byte still gets its status. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { CallerLeftError } from './callerLeft.js';

/**
 * Waits for a stream's first piece, or its end. `onError` gets errors of an abandoned stream.
 * @throws the stream's own error; CallerLeftError where the connection closed first
 */
export async function firstPiece(
  stream: Readable,
  response: ServerResponse,
  onError: (error: Error) => void,
): Promise<void> {
  // Not `callerLeft`: a caller that has only ended its side still reads.
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
