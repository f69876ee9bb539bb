/** `gifts` as version 2 folded it: a voucher did not say when it came to expire later. */
import type { Body } from '../../ports/readStore.js';
import type { Projection } from '../../runtime/readmodels/projection.js';

type Vouchered = Body & { readonly voucher?: { readonly updated_at?: string } };

/** The fold of version 2, by the present one. */
export function giftsOfVersion2<D extends Vouchered>(present: Projection<D>): Projection {
  return {
    ...present,
    version: 2,
    evolve(document, ...event) {
      const made = present.evolve(document as D | undefined, ...event);
      if (made.voucher?.updated_at === undefined) return made;
      const { updated_at: _, ...voucher } = made.voucher;
      return { ...made, voucher };
    },
  };
}
