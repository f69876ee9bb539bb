/** Callers that leave before they are answered: long work is not finished for them. */
import type { ServerResponse } from 'node:http';

/** The caller has left: there is no answer. */
export class CallerLeftError extends Error {
  override readonly name = 'CallerLeftError';
  constructor() {
    super('the caller left before the answer');
  }
}

/** Shown by the access log and the metrics as the status of an answer that nobody got, as nginx does. */
export const CALLER_LEFT = 499;

/**
 * Aborted, with CallerLeftError, when the connection closes before the answer was sent, or the caller ends its side: a
 * caller that left can't be told from one that only sends no more. For work too long to do for nobody.
 */
export function callerLeft(response: ServerResponse): AbortSignal {
  const leaving = new AbortController();
  const leave = (): void => {
    if (!response.writableFinished) leaving.abort(new CallerLeftError());
  };
  const { socket } = response.req;
  if (response.closed || socket.readableEnded) leave();
  else {
    socket.once('end', leave);
    response.once('close', () => {
      socket.off('end', leave);
      leave();
    });
  }
  return leaving.signal;
}

/**
 * Whether an answer broke off since its caller left. Errors of engines are UnavailableErrors; those of a connection
 * name a system call.
 */
export function brokenByCaller(error: object): boolean {
  const { code, syscall } = error as NodeJS.ErrnoException;
  return (
    error instanceof CallerLeftError ||
    code === 'ERR_STREAM_PREMATURE_CLOSE' ||
    (syscall !== undefined && (code === 'ECONNRESET' || code === 'EPIPE'))
  );
}
