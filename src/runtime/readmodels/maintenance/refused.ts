/** The next step. Each caller that shows the error adds how to request it. */
export type Remedy = 'abort' | 'rebuild' | 'rollback' | 'status' | 'verify';

/** Nothing was changed. The message says why. */
export abstract class MaintenanceRefusedError extends Error {
  readonly remedy: Remedy | undefined;
  constructor(message: string, remedy?: Remedy) {
    super(message);
    this.remedy = remedy;
  }
}
