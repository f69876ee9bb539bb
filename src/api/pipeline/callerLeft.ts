import type { ServerResponse } from 'node:http';

export class CallerLeftError extends Error {
  override readonly name = 'CallerLeftError';
  constructor() {
    super('the caller left before the answer');
  }
}

/** The status of unread answers in access log and metrics, as in nginx. */
export const CALLER_LEFT = 499;

/**
 * Signal for long work. It is aborted with CallerLeftError when the connection closes before the answer, or the caller
 * ends its side, which looks the same.
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
 * Whether an answer broke off because its caller left. Connection errors name a system call; engines throw
 * UnavailableErrors.
 */
export function brokenByCaller(error: object): boolean {
  const { code, syscall } = error as NodeJS.ErrnoException;
  return (
    error instanceof CallerLeftError ||
    code === 'ERR_STREAM_PREMATURE_CLOSE' ||
    (syscall !== undefined && (code === 'ECONNRESET' || code === 'EPIPE'))
  );
}
