/** Where an embedded store is, and how it is opened. */
export interface EmbeddedStoreOptions {
  /** The data folder; made (mode 0700) when there is none. */
  readonly dir: string;
  /** Another thread of this process has the store open for longer: see `DatabaseOptions.openElsewhere`. */
  readonly openElsewhere?: boolean;
  /**
   * Threads are started with the store, not when first needed: the program's files may be replaced while a service
   * runs. Default false.
   */
  readonly longLived?: boolean;
}
