/** Callers that go away before they are answered: what takes long is not finished for nobody. */
import type { ServerResponse } from 'node:http';

/** The caller has gone: nobody is answered. */
export class CallerLeftError extends Error {
  override readonly name = 'CallerLeftError';
  constructor() {
    super('the caller left before the answer');
  }
}

/** What the access log and the metrics show in place of a status that nobody got, as nginx does. */
export const CALLER_LEFT = 499;

/**
 * Aborted, with CallerLeftError, when the connection closes before the answer has been sent, or the caller says that
 * nothing more will come: whoever goes away can't be told from whoever only sends no more before the answer is written,
 * and what takes long is made for those alone who surely still wait.
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
 * Whether an answer that broke off did so since its caller went, not by a fault of ours. Faults of engines are told as
 * UnavailableError; a connection's own name a system call.
 */
export function brokenByCaller(error: object): boolean {
  const { code, syscall } = error as NodeJS.ErrnoException;
  return (
    error instanceof CallerLeftError ||
    code === 'ERR_STREAM_PREMATURE_CLOSE' ||
    (syscall !== undefined && (code === 'ECONNRESET' || code === 'EPIPE'))
  );
}
