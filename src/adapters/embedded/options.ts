export interface EmbeddedStoreOptions {
  /** The data folder, created (mode 0700) where missing. */
  readonly dir: string;
  /** Another thread of this process keeps the store open: see `DatabaseOptions.openElsewhere`. */
  readonly openElsewhere?: boolean;
  /** Starts all threads with the store, not when first needed: a running service's program files may be replaced. */
  readonly longLived?: boolean;
}
