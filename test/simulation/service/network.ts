/** The network between clients and the service: a request and its answer are an entry each. */
import type { Entry } from '../world/entryQueue.js';
import type { SimulatedProcess } from '../world/simulatedProcess.js';
import type { Simulation } from '../world/simulation.js';
import type { HttpAnswer, HttpRequest } from './listener.js';
import type { Member } from './member.js';

/** No answer came: the request may have been carried out. */
export class NoAnswerError extends Error {
  override readonly name: string = 'NoAnswerError';
}

/** No connection was made: the request was certainly not carried out. */
export class NoConnectionError extends NoAnswerError {
  override readonly name = 'NoConnectionError';
}

/** Virtual ms that one way takes. */
const WAY = { least: 0.5, most: 20 };
/** Virtual ms after which a client waits no longer. */
const PATIENCE_MS = 30_000;

/** Idempotency keys of requests that have arrived and are not answered. */
const keysInHand = new WeakMap<Simulation, Set<string>>();

/** Sends a request of a client's process to a member. @throws NoAnswerError, NoConnectionError */
export async function send(
  simulation: Simulation,
  { from, to, request }: { readonly from: SimulatedProcess; readonly to: Member; readonly request: HttpRequest },
): Promise<HttpAnswer> {
  const chance = simulation.chance.stream(`request ${simulation.entries()}`);
  const wayMs = (): number => chance.between(WAY.least, WAY.most);
  const text = `${request.method} ${request.path}`;
  const key = request.headers['idempotency-key'];
  const inHand = keysInHand.get(simulation) ?? new Set();
  keysInHand.set(simulation, inHand);
  return new Promise((resolve, reject) => {
    const process = to.process();
    const listener = to.listener();
    const pending: Entry[] = [];
    let forget = (): void => undefined;
    const settle = (inMs: number, kind: string, done: () => void): void => {
      const run = (): void => {
        for (const entry of pending) entry.cancelled = true;
        if (key !== undefined) inHand.delete(key);
        forget();
        done();
      };
      pending.push(simulation.schedule({ owner: from, inMs, kind, text, run }));
    };
    const fail = (inMs: number, cause: string): void =>
      settle(inMs, cause, () => reject(new NoAnswerError(`${text}: ${cause}`)));
    const answered = (answer: HttpAnswer | undefined): void => {
      if (answer === undefined || simulation.faults.happens('network loses an answer'))
        fail(wayMs(), 'connection lost');
      else settle(wayMs(), `answer ${answer.status}`, () => resolve(answer));
    };
    if (!process.alive || !listener.isOpen)
      return settle(wayMs(), 'connection refused', () => reject(new NoConnectionError(text)));
    forget = process.onEnd(() => fail(wayMs(), 'connection lost'));
    fail(PATIENCE_MS, 'no answer');
    simulation.schedule({
      owner: process,
      inMs: wayMs(),
      kind: 'request',
      text,
      run() {
        if (simulation.faults.happens('network loses a request')) return fail(wayMs(), 'connection lost');
        if (key !== undefined) {
          simulation.marks.sometimes('two requests with one key at once', inHand.has(key));
          inHand.add(key);
        }
        return listener.take(request, answered);
      },
    });
    return undefined;
  });
}
