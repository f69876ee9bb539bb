/**
 * Embedded entities of gifts (docs/api/gifts.md#look-up-a-gift, docs/api/purchases.md#buy-gifts;
 * docs/api/conventions.md#embedding).
 */
import type { Catalogue } from '../projections/catalogue/wholeCatalogue.js';
import { brandEntity, integrationEntity, productEntity, segmentEntity, storeEntity } from './catalogue.js';
import type { EmbeddedCollector, EmbeddedKind } from './embedded.js';
import { type Viewer, messageEntity, redemptionEntity, seesMessage, seesVoucher, voucherV1 } from './gifts.js';
import type { JoinedGift } from './joinedGift.js';

const PRODUCT_RELATIONS = [
  'purchase',
  'purchase.brand',
  'purchase.segments',
  'purchase.brand.stores',
  'purchase.brand.integration',
] as const;

export const LISTED_GIFT_RELATIONS = ['message', 'voucher', 'voucher.segment', ...PRODUCT_RELATIONS] as const;

export const GIFT_RELATIONS = ['message', 'redeemed', 'voucher', 'voucher.segment', ...PRODUCT_RELATIONS] as const;

export const TRANSACTION_RELATIONS = [
  'gifts',
  ...LISTED_GIFT_RELATIONS.map((relation) => `gifts.${relation}`),
] as const;

const KINDS: Readonly<Record<(typeof GIFT_RELATIONS)[number], EmbeddedKind>> = {
  message: 'messages',
  redeemed: 'redemptions',
  voucher: 'vouchers',
  'voucher.segment': 'segments',
  purchase: 'products',
  'purchase.brand': 'brands',
  'purchase.segments': 'segments',
  'purchase.brand.stores': 'stores',
  'purchase.brand.integration': 'integrations',
};

export function requestKinds(embedded: EmbeddedCollector, relations: readonly string[]): void {
  for (const relation of relations) embedded.request(KINDS[relation as keyof typeof KINDS]);
}

export function embedGift(
  embedded: EmbeddedCollector,
  joined: JoinedGift,
  relations: readonly string[],
  viewer: Viewer,
  catalogue: Catalogue,
): void {
  const wants = (relation: keyof typeof KINDS): boolean => relations.includes(relation);
  const { id, gift, transaction } = joined;
  const { redemption, voucher } = gift;
  if (wants('message') && seesMessage(joined, viewer.user))
    embedded.add('messages', gift.message_id, () => messageEntity(joined));
  if (wants('redeemed') && redemption?.redeemed === true)
    embedded.add('redemptions', redemption.id, () => redemptionEntity(id, redemption));
  if (wants('voucher') && voucher !== undefined && seesVoucher(joined, viewer.user, catalogue)) {
    embedded.add('vouchers', voucher.id, () => voucherV1(id, voucher));
    if (wants('voucher.segment')) embedSegment(embedded, voucher.segment_id, catalogue);
  }
  if (wants('purchase')) embedProduct(embedded, transaction.product_id, wants, viewer, catalogue);
}

function embedSegment(embedded: EmbeddedCollector, id: string, catalogue: Catalogue): void {
  const segment = catalogue.segments.get(id);
  if (segment !== undefined) embedded.add('segments', id, () => segmentEntity(segment));
}

/** A bought product stays visible, even if it is no longer sold (docs/api/catalogue.md#sellable-products). */
function embedProduct(
  embedded: EmbeddedCollector,
  productId: string,
  wants: (relation: keyof typeof KINDS) => boolean,
  viewer: Viewer,
  catalogue: Catalogue,
): void {
  const product = catalogue.products.get(productId);
  if (product === undefined) return;
  embedded.add('products', product.id, () => productEntity(product));
  if (wants('purchase.segments')) for (const id of product.segments) embedSegment(embedded, id, catalogue);
  const brand = catalogue.brands.get(product.brand_id);
  if (brand === undefined || !wants('purchase.brand')) return;
  embedded.add('brands', brand.id, () => brandEntity(catalogue, brand, viewer.user.id));
  if (wants('purchase.brand.stores'))
    for (const store of catalogue.storesOf(brand.id)) embedded.add('stores', store.id, () => storeEntity(store));
  const integration = catalogue.integrations.get(brand.integration_id ?? '');
  if (integration !== undefined && wants('purchase.brand.integration'))
    embedded.add('integrations', integration.id, () => integrationEntity(integration));
}
