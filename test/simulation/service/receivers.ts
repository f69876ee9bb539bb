/** The receivers of webhooks: what they were sent survives all crashes. */
import type { Sender } from '../../../src/deliveries/index.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { type Link, linkTo } from '../world/link.js';
import type { SimulatedProcess } from '../world/simulatedProcess.js';
import type { Simulation } from '../world/simulation.js';

/** One delivery, as it came. */
export interface Received {
  readonly url: string;
  readonly id: string;
  readonly body: string;
}

export interface Receivers {
  /** Deliveries in the order in which they came, repeats too. */
  readonly received: readonly Received[];
  /** What a process sends webhooks by. */
  senderOf(process: SimulatedProcess): Sender;
}

export function openReceivers(simulation: Simulation): Receivers {
  const received: Received[] = [];
  return {
    received,
    senderOf(process) {
      const link: Link = linkTo('receiver', process, simulation);
      return {
        async send({ url, headers, body }, signal) {
          const id = headers['webhook-id'] ?? '';
          const effect = (): number => {
            if (link.happens('answers 500')) return 500;
            const isRepeat = received.some((one) => one.id === id);
            simulation.marks.sometimes('a webhook is delivered twice', isRepeat);
            received.push({ url, id, body });
            return link.happens('answers 500 to what it has') ? 500 : 200;
          };
          try {
            const status = await unlessAborted(link.call({ text: `deliver ${id}`, effect, repeatable: true }), signal);
            return { status, response: '' };
          } catch (error) {
            if (!(error instanceof UnavailableError) && !signal.aborted) throw error;
            return { error: 'the connection was closed without an answer' };
          }
        },
        close: () => undefined,
      };
    },
  };
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(new Error('aborted'));
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
