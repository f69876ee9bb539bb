export interface EmbeddedStoreOptions {
  /** The data folder, created (mode 0700) where missing. */
  readonly dir: string;
  /** As in `DatabaseOptions`: whether another thread of this process has the file open. */
  readonly openElsewhere?: boolean;
  /** Whether all threads start with the store: later, a running service's program files may have been replaced. */
  readonly longLived?: boolean;
}
