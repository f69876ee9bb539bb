export interface EmbeddedStoreOptions {
  /** Created (mode 0700) where missing. */
  readonly dir: string;
  /** See `DatabaseOptions`. */
  readonly openElsewhere?: boolean;
  /** Starts all threads with the store: later, a running service's program files may have been replaced. */
  readonly longLived?: boolean;
}
