import type { Background } from './background.js';

export interface EmbeddedStoreOptions {
  /** The data folder, created (mode 0700) where missing. */
  readonly dir: string;
  /** As in `DatabaseOptions`: whether another thread of this process has the file open. */
  readonly openElsewhere?: boolean;
  /** Whether all threads start with the store: later, a running service's program files may have been replaced. */
  readonly longLived?: boolean;
  /** Thread that moves pages of the file's WAL; by default the store starts one when it is needed. */
  readonly background?: Background | undefined;
}
