import type { WorkerRequest } from '../../messages/workerRequest.js';
import type { Bus } from '../../ports/bus.js';
import { answered, type RetryPolicy } from './retry.js';

/** Sends a request to a worker. @throws RetryLaterError, GiveUpError, MalformedMessageError, and the bus's errors */
export async function askWorker<Q extends object, R extends { readonly outcome: string }>(
  { bus, retryPolicy }: { readonly bus: Bus; readonly retryPolicy: Pick<RetryPolicy, 'answerMs'> },
  { subject, reply }: WorkerRequest<Q, R>,
  request: Q,
): Promise<R> {
  return answered<R>(reply(await bus.request(subject, request, { timeoutMs: retryPolicy.answerMs })));
}
