/** What the checks of the model give and are given. */

/** Something that no document allows. */
export interface Finding {
  /** Which rule of the model. */
  readonly rule: string;
  /** What was seen and what was expected, in at most 30 lines. */
  readonly text: string;
}

/** How exactly the model may judge. */
export interface Leeway {
  /** By how much clocks of processes may differ from that of the history, ms. */
  readonly clockMs: number;
  /** By how much the clocks of two processes may differ, ms: lists are ordered by them. Default: 0. */
  readonly skewMs?: number;
  /** A request whose outcome is unknown has its effect within so many ms, or never; default: at any time. */
  readonly effectMs?: number;
  /** Whether the log may have been silent in this span (ms): reads then go on with what the read models show. */
  readonly mayBeStale?: (sent: number, answered: number) => boolean;
  /** The store of answers may fail: a repeat is then answered from the log, and its key may be held for so many ms. */
  readonly answersLostMs?: number;
  /** How long the answer of a purchase waits for the charge, ms, if it is known. */
  readonly chargeWaitMs?: number;
  /**
   * From this time on nothing was written any more, and read models were current, ms. Lists that were read later show
   * everything. Default: never.
   */
  readonly quietFrom?: number | undefined;
}
