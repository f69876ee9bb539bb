/** The HTTP request of each operation, as docs/api describes it: whichever transport sends it. */
import type { GiftPath, ListOperation, Operation, Purchase } from './operations.js';

/** A request without its token. */
export interface Request {
  readonly method: 'GET' | 'POST' | 'PATCH';
  /** With the query. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON; `undefined` without a body. */
  readonly body: unknown;
}

const giftPath = ({ gift, shortcode }: GiftPath): string => `/api/v2/gifts/${encodeURIComponent(shortcode ?? gift)}`;

/** What is sent for an operation. */
export function requestOf(operation: Operation): Request {
  const key = 'key' in operation ? operation.key : undefined;
  const headers: Record<string, string> = {};
  if (key !== undefined) headers['idempotency-key'] = key;
  if ('position' in operation && operation.position !== undefined) headers['gift-position'] = operation.position;
  const { method, path, body } = plain(operation);
  if (body !== undefined) headers['content-type'] = 'application/json';
  return { method, path, headers, body };
}

function plain(operation: Operation): Omit<Request, 'headers' | 'body'> & { readonly body?: unknown } {
  switch (operation.kind) {
    case 'purchase':
      return { method: 'POST', path: '/api/v2/transactions?embed[]=gifts', body: purchaseBody(operation) };
    case 'getTransaction':
      return { method: 'GET', path: `/api/v2/transactions/${operation.transaction}?embed[]=gifts` };
    case 'getGift':
      return { method: 'GET', path: giftPath(operation) };
    case 'redeem':
      return { method: 'POST', path: `${giftPath(operation)}/redemptions`, body: { location_id: operation.location } };
    case 'unredeem': {
      const path = `${giftPath(operation)}/redemptions/${encodeURIComponent(operation.redemption)}`;
      return { method: 'PATCH', path, body: { redeemed: false } };
    }
    case 'claim':
      return { method: 'POST', path: `${giftPath(operation)}/claim` };
    case 'listRedemptions':
      return { method: 'GET', path: `${giftPath(operation)}/redemptions?limit=100` };
    case 'lookUpKey': {
      const gift = encodeURIComponent(operation.shortcode ?? operation.gift);
      return { method: 'GET', path: `/api/v2/idempotency-keys/${encodeURIComponent(operation.of)}?gift_id=${gift}` };
    }
    case 'makeVoucher': {
      const { segment, version } = operation;
      const path = `${giftPath(operation)}/voucher${version === 2 ? '/claimed' : ''}`;
      return { method: 'POST', path, body: segment === undefined ? {} : { segmentId: segment } };
    }
    case 'getVoucher':
      return { method: 'GET', path: `${giftPath(operation)}/voucher/claimed` };
    case 'block':
    case 'unblock':
    case 'replace':
      return supported(operation.gift, operation.kind, {});
    case 'supportUnredeem':
      return supported(operation.gift, 'unredeem', {});
    case 'extend':
      return supported(operation.gift, 'extend', { expiry_date: operation.expiryDate });
    case 'reassign':
      return supported(operation.gift, 'reassign', { user_id: operation.user });
    case 'refund': {
      const { transaction, gifts } = operation;
      const body = { reason: REASON, ...(gifts.length === 0 ? {} : { gift_ids: gifts }) };
      return { method: 'POST', path: `/ops/transactions/${transaction}/refund`, body };
    }
    case 'listTransactionGifts': {
      const { transaction, page, perPage } = operation;
      return { method: 'GET', path: `/api/v2/transactions/${transaction}/gifts?page=${page}&per_page=${perPage}` };
    }
    case 'reconcile':
      return { method: 'GET', path: `/ops/payments/reconciliation?day=${operation.day}` };
    case 'totals':
      return { method: 'GET', path: '/ops/totals' };
    default:
      return { method: 'GET', path: listPath(operation) };
  }
}

const REASON = 'the simulation';

function supported(gift: string, action: string, body: object): Omit<Request, 'headers'> {
  return {
    method: 'POST',
    path: `/ops/gifts/${encodeURIComponent(gift)}/${action}`,
    body: { reason: REASON, ...body },
  };
}

function listPath(operation: ListOperation): string {
  const query = new URLSearchParams();
  if (operation.after !== undefined) query.set('after', operation.after);
  if (operation.limit !== undefined) query.set('limit', String(operation.limit));
  switch (operation.kind) {
    case 'listTransactions':
      return `/api/v2/transactions?${query.toString()}`;
    case 'listMerchantRedemptions':
      return `/api/v2/redemptions?${query.toString()}`;
    case 'listGifts':
      if (operation.as !== undefined) query.set('as', operation.as);
      if (operation.status !== undefined) query.set('status', operation.status);
      return `/api/v2/gifts?${query.toString()}`;
    case 'listEvents':
      for (const type of operation.types ?? []) query.append('types[]', type);
      return `/api/v2/events?${query.toString()}`;
  }
}

function purchaseBody(operation: Purchase): object {
  const { payment, product, receivers, order } = operation;
  return {
    payment: { method: 'card', reference: payment },
    purchase: {
      type: 'gift',
      reference: product,
      reference_id: order,
      ...(receivers.length === 0 ? {} : { receivers }),
    },
  };
}
