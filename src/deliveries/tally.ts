import type { DisabledBy } from '../domain/webhookEndpoint.js';

/** `unreached`: a failure while no endpoint answers, which may be our own outage. */
const OUTCOMES = ['delivered', 'failed', 'given_up', 'unreached'] as const;

type DeliveryOutcome = (typeof OUTCOMES)[number];

/**
 * `failing`: several attempts in a row have failed, or the receiver has requested a pause. `stalled`: a delivery is due
 * and nothing is done about it, which is our own fault.
 */
export const ENDPOINT_STATES = ['working', 'failing', 'stalled'] as const;

type EndpointState = (typeof ENDPOINT_STATES)[number];

export interface EndpointStatus {
  readonly state: EndpointState;
  readonly waiting: number;
  /** See `Backlog.oldest`. */
  readonly oldest: { readonly untried?: string; readonly failed?: string };
}

export interface DeliveryStatus {
  readonly leading: boolean;
  /** Attempts by outcome, since the start of the process. */
  readonly outcomes: ReadonlyMap<DeliveryOutcome, number>;
  readonly disabled: ReadonlyMap<DisabledBy, number>;
  /** Status of each enabled endpoint; empty where another process leads. */
  readonly endpoints: readonly EndpointStatus[];
}

export interface DeliveryTally {
  count(outcome: DeliveryOutcome): void;
  countDisabled(cause: DisabledBy): void;
  /** This process leads. @param endpoints called at each `status` */
  leads(endpoints: () => readonly EndpointStatus[]): void;
  stands(): void;
  status(): DeliveryStatus;
}

export function deliveryTally(): DeliveryTally {
  const outcomes = new Map<DeliveryOutcome, number>(OUTCOMES.map((outcome) => [outcome, 0]));
  const disabled = new Map<DisabledBy, number>([
    ['failures', 0],
    ['gone', 0],
    ['inactive', 0],
  ]);
  let endpoints: (() => readonly EndpointStatus[]) | undefined;
  return {
    count: (outcome) => void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1),
    countDisabled: (cause) => void disabled.set(cause, (disabled.get(cause) ?? 0) + 1),
    leads: (read) => void (endpoints = read),
    stands: () => void (endpoints = undefined),
    status: () => ({ leading: endpoints !== undefined, outcomes, disabled, endpoints: endpoints?.() ?? [] }),
  };
}
