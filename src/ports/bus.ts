/**
 * The bus port: request and reply, queue groups, publish. A bus may lose, repeat, reorder or delay messages.
 * Guarantees, tested for every adapter by `test/contract/bus.ts`:
 * - A request goes to one member of each queue group that serves its subject. It ends with its reply, NoRespondersError
 * or DeadlineError.
 * - `close` lets running handlers finish (at most 5 s) and takes no new messages.
 */

/** No process serves the subject. */
export class NoRespondersError extends Error {
  override readonly name = 'NoRespondersError';
  constructor(subject: string) {
    super(`nobody answers on ${subject}`);
  }
}

/** No reply came in time; the request may still have been carried out. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
  constructor(subject: string, timeoutMs: number) {
    super(`no answer on ${subject} within ${timeoutMs} ms`);
  }
}

/** The handler of a request threw an error in the answering process. */
export class RemoteError extends Error {
  override readonly name = 'RemoteError';
}

export type Unsubscribe = () => Promise<void>;

/** Payloads are plain JSON, at most 1 MB. Subjects are dot-separated words without wildcards. */
export interface Bus {
  /** `embedded` or `nats`, as shown by `/readyz`, metrics and the command line. */
  readonly engine: string;
  /**
   * @throws NoRespondersError; DeadlineError after `timeoutMs`, or earlier when the process with the request has fallen
   * silent; RemoteError when the handler threw; UnavailableError without a connection
   */
  request<R>(subject: string, payload: object, options: { timeoutMs: number }): Promise<R>;
  /**
   * Each request reaches one member of the queue group, over all processes. An error of the handler reaches the
   * requester as RemoteError.
   */
  serve<P>(subject: string, queue: string, handler: (payload: P) => Promise<object>): Promise<Unsubscribe>;
  /** Sends a message to every subscriber in every process; resolves once the bus has taken the message. */
  publish(subject: string, payload: object): Promise<void>;
  /** Calls the handler with each message of the subject, in every subscribed process. Its errors are logged. */
  subscribe<P>(subject: string, handler: (payload: P) => void): Promise<Unsubscribe>;
  ping(): Promise<void>;
  close(): Promise<void>;
}
