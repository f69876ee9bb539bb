/** A read model that is late while all others are not. */
import type { Engines } from '../../../src/ports/engines.js';

/** A collection whose documents are kept from being stored for a time. */
export interface HeldCollection {
  /** The engines with it. */
  readonly through: (engines: Engines) => Engines;
  /** From now on nothing of it is stored. */
  hold(): void;
  /** Stores held documents, and later ones. Resolves when they are stored. */
  free(): Promise<void>;
}

/** Holds the collection of that name; at first it does not. */
export function heldCollection(name: string): HeldCollection {
  let held = Promise.resolve();
  let isHeld = false;
  let release = (): void => undefined;
  let stored: Promise<unknown> = Promise.resolve();
  return {
    through: (engines) => ({
      ...engines,
      store: {
        ...engines.store,
        async write(batches) {
          const isOfIt = ({ collection }: (typeof batches)[number]): boolean => collection.name === name;
          stored = Promise.all([stored, held]).then(() => engines.store.write(batches.filter(isOfIt)));
          await engines.store.write(batches.filter((batch) => !isOfIt(batch)));
          if (!isHeld) await stored;
        },
      },
    }),
    hold() {
      isHeld = true;
      held = new Promise((resolve) => (release = resolve));
    },
    async free() {
      isHeld = false;
      release();
      await stored;
    },
  };
}
