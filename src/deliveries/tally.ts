import type { DisabledBy } from '../domain/webhookEndpoint.js';

/** `unreached`: of a time at which no endpoint answers. */
export const OUTCOMES = ['delivered', 'failed', 'given_up', 'unreached'] as const;

export type DeliveryOutcome = (typeof OUTCOMES)[number];

/**
 * `failing`: several attempts in a row have failed, or the receiver has asked to be left alone. `stalled`: something is
 * due, and nothing is done about it, which is a fault of ours.
 */
export const ENDPOINT_STATES = ['working', 'failing', 'stalled'] as const;

export type EndpointState = (typeof ENDPOINT_STATES)[number];

export interface EndpointStatus {
  readonly state: EndpointState;
  readonly waiting: number;
  /** `Backlog.oldest`. */
  readonly oldest: { readonly untried?: string; readonly failed?: string };
}

export interface DeliveryStatus {
  readonly leading: boolean;
  /** Since the start of the process. */
  readonly outcomes: ReadonlyMap<DeliveryOutcome, number>;
  readonly disabled: ReadonlyMap<DisabledBy, number>;
  /** Of the enabled ones; none where another process leads. */
  readonly endpoints: readonly EndpointStatus[];
}

export interface DeliveryTally {
  count(outcome: DeliveryOutcome): void;
  countDisabled(cause: DisabledBy): void;
  /** @param endpoints asked for whenever the status is */
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
