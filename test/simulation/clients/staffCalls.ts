/** The answered calls of staff in a run, each of which leaves a record of who saw what (docs/support.md#access-records). */
import { type Answer, listField, textField } from '../model/history.js';
import type { Request } from '../model/requests.js';
import type { Simulation } from '../world/simulation.js';

export interface StaffCall {
  readonly user: string;
  readonly method: string;
  readonly path: string;
  /** Gifts that the body names; a call that names gifts is about no others of its purchase. */
  readonly gifts: readonly string[];
  /** The answer's `X-Request-Id`. */
  readonly requestId: string;
  /** When it was answered, ms since the epoch. */
  readonly answered: number;
}

/** Status that callers poll is recorded once a minute. */
const POLLED = /^\/ops\/(diagnosis|projections)/;

export interface StaffCalls {
  readonly answered: readonly StaffCall[];
  /** Forgets those since a moment, ms since the epoch, to which the log was put back. */
  forgetSince(moment: number): void;
}

const calls = new WeakMap<Simulation, StaffCall[]>();

export const staffCallsOf = (simulation: Simulation): StaffCalls => ({
  answered: [...(calls.get(simulation) ?? [])],
  forgetSince: (moment) =>
    void calls.set(
      simulation,
      (calls.get(simulation) ?? []).filter(({ answered }) => answered < moment),
    ),
});

export function noteCall(simulation: Simulation, user: string, { method, path, body }: Request, answer: Answer): void {
  const requestId = answer.headers['x-request-id'];
  if (!path.startsWith('/ops/') || POLLED.test(path) || answer.status >= 300 || requestId === undefined) return;
  const all = calls.get(simulation) ?? [];
  calls.set(simulation, all);
  const gifts = [
    ...listField(body, 'gift_ids').map(String),
    ...listField(body, 'items').map((one) => textField(one, 'id') ?? ''),
  ];
  all.push({ user, method, path, gifts, requestId, answered: simulation.now() });
}
