/** Messages between the processes that serve behind one port and the process that supervises them. */

/** What a process shows of itself: its parts of `/readyz`, its values of `/metrics`. */
const SHOWN = ['readiness', 'metrics'] as const;

export type Shown = (typeof SHOWN)[number];

/** What a process is to do: to show something, or to commit appends of another one (`CommitLink`). */
export type Question = Shown | 'commits';

/** `starting`: does not serve yet; `waiting`: has ended, and is started again soon. */
export type ProcessState = 'starting' | 'serving' | 'waiting';

export interface ProcessAnswer {
  /** From 1; the process that is started in the place of one that died has its number. */
  readonly number: number;
  readonly state: ProcessState;
  /** Whether a process of this number has served since the service was started. */
  readonly hasServed: boolean;
  /** How many processes of this number have died. */
  readonly deaths: number;
  /** What the process shows; `undefined`: it did not answer in time. */
  readonly value: unknown;
}

/** Addresses of the listeners, as the log shows them. */
export interface Addresses {
  readonly url: string | undefined;
  readonly health: string | undefined;
  readonly ops: string | undefined;
}

export type ToSupervisor =
  | { readonly kind: 'serving'; readonly addresses: Addresses }
  /** Asks what all processes show, or has appends committed by the process that commits for all. */
  | { readonly kind: 'ask'; readonly id: number; readonly what: Question; readonly requests?: unknown }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown };

export type ToProcess =
  | { readonly kind: 'ask'; readonly id: number; readonly what: Question; readonly requests?: unknown }
  /** Of what all processes show: `ProcessAnswer`s. */
  | { readonly kind: 'answers'; readonly id: number; readonly answers: unknown }
  /** Which process commits for all; `undefined`: each for itself. */
  | { readonly kind: 'committer'; readonly number: number | undefined };

/** Variable by which the supervisor tells a process its place: `Place` as JSON. It is no setting. */
export const PLACE = 'GIFT_COMMERCE_PROCESS';

export interface Place {
  readonly number: number;
  /** Release of the supervisor. The release folder may have been replaced since it was loaded. */
  readonly version: string;
  /** Whether a process has served before: then this one accepts connections only once it serves, too. */
  readonly late: boolean;
}
