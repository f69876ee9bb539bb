/** Refusals of work on a read model's builds: nothing was changed. */

/** What helps. The message says why and what; each side that shows it adds how that is asked for. */
export type Remedy = 'abort' | 'rebuild' | 'rollback' | 'status' | 'verify';

/** The message says why it can't be done as things stand. */
export abstract class MaintenanceRefusedError extends Error {
  readonly remedy: Remedy | undefined;
  constructor(message: string, remedy?: Remedy) {
    super(message);
    this.remedy = remedy;
  }
}
