/** The next step after a refusal. Each caller that shows the error adds how to request that step. */
export type Remedy = 'abort' | 'rebuild' | 'rollback' | 'status' | 'verify';

/** Refusal of a maintenance request: nothing was changed, and the message says why. */
export abstract class MaintenanceRefusedError extends Error {
  readonly remedy: Remedy | undefined;
  constructor(message: string, remedy?: Remedy) {
    super(message);
    this.remedy = remedy;
  }
}
