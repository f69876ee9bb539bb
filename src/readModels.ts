/** All projections, and the read models that queries and commands read. */
import type { ReadStore } from './ports/readStore.js';
import { type AccountDocument, accountsProjection } from './projections/accounts.js';
import { type CatalogueDocument, catalogueProjection } from './projections/catalogue.js';
import { type GiftDocument, gifts } from './projections/gifts.js';
import { type ParkedDocument, parkedProjection } from './projections/parked.js';
import type { Projection } from './projections/projection.js';
import { openReadModel } from './projections/readModel.js';
import { type RedemptionGiftDocument, redemptions } from './projections/redemptions.js';
import { type TransactionDocument, transactions } from './projections/transactions.js';
import { type VoucherCodeDocument, voucherCodesProjection } from './projections/voucherCodes.js';

/** Every projection that the projector runs. */
export const PROJECTIONS: readonly Projection[] = [gifts, transactions, accountsProjection, catalogueProjection, voucherCodesProjection, redemptions, parkedProjection] as unknown as readonly Projection[];

/** Opens every read model on a store; nothing is kept open. */
export function openReadModels(store: ReadStore) {
  return {
    gifts: openReadModel<GiftDocument>(store, gifts),
    transactions: openReadModel<TransactionDocument>(store, transactions),
    accounts: openReadModel<AccountDocument>(store, accountsProjection),
    catalogue: openReadModel<CatalogueDocument>(store, catalogueProjection),
    voucherCodes: openReadModel<VoucherCodeDocument>(store, voucherCodesProjection),
    redemptions: openReadModel<RedemptionGiftDocument>(store, redemptions),
    parked: openReadModel<ParkedDocument>(store, parkedProjection),
  };
}

/** Every read model. */
export type ReadModels = ReturnType<typeof openReadModels>;
