/**
 * The bus port: request and reply, queue groups, publish. It may lose, repeat, reorder or delay: nothing above it
 * relies on more.
 *
 * Guarantees, tested for every adapter by `test/contract/bus.ts`:
 * - A request goes to one member of each queue group that serves its subject, and ends with its reply,
 * NoRespondersError or DeadlineError.
 * - `close` lets handlers that run finish (at most 5 s) and takes no new messages.
 */

/** Nobody serves the subject. */
export class NoRespondersError extends Error {
  override readonly name = 'NoRespondersError';
  constructor(subject: string) {
    super(`nobody answers on ${subject}`);
  }
}

/** No reply came in time; what was asked may have been done all the same. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
  constructor(subject: string, timeoutMs: number) {
    super(`no answer on ${subject} within ${timeoutMs} ms`);
  }
}

/** The other side failed to answer: its handler threw. */
export class RemoteError extends Error {
  override readonly name = 'RemoteError';
}

/** Takes a message off the bus; ends a subscription. */
export type Unsubscribe = () => Promise<void>;

/** The engine. Payloads are plain JSON, at most 1 MB. Subjects are dot-separated words without wildcards. */
export interface Bus {
  /** `embedded`, `nats`: as `/readyz`, metrics and the command line name it. */
  readonly engine: string;
  /**
   * Sends a request and waits for the reply.
   * @throws NoRespondersError, DeadlineError (after `timeoutMs`, or before: whoever has the request is seen to be
   * silent), RemoteError (the handler threw), UnavailableError (no connection).
   */
  request<R>(subject: string, payload: object, options: { timeoutMs: number }): Promise<R>;
  /**
   * Answers requests on a subject; of all members of one queue group in all processes one gets each request. What the
   * handler throws reaches the requester as RemoteError.
   */
  serve<P>(subject: string, queue: string, handler: (payload: P) => Promise<object>): Promise<Unsubscribe>;
  /** Tells every subscriber of the subject, in whatever process; resolves when handed over. */
  publish(subject: string, payload: object): Promise<void>;
  /** Receives what is published on the subject. What the handler throws is logged. */
  subscribe<P>(subject: string, handler: (payload: P) => void): Promise<Unsubscribe>;
  ping(): Promise<void>;
  close(): Promise<void>;
}
