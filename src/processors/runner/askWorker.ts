import type { WorkerRequest } from '../../messages/workerRequest.js';
import { answered, type RetryPolicy } from './retry.js';
import type { StepDeps } from './stepDeps.js';

interface AskDeps extends Pick<StepDeps, 'bus' | 'mayAct'> {
  readonly retryPolicy: Pick<RetryPolicy, 'answerMs'>;
}

/**
 * Sends a request to a worker, if this process may still act.
 * @throws NotOursError, RetryLaterError, GiveUpError, MalformedMessageError, and the bus's errors
 */
export async function askWorker<Q extends object, R extends { readonly outcome: string }>(
  { bus, mayAct, retryPolicy }: AskDeps,
  { subject, reply }: WorkerRequest<Q, R>,
  request: Q,
): Promise<R> {
  mayAct();
  return answered<R>(reply(await bus.request(subject, request, { timeoutMs: retryPolicy.answerMs })));
}
