/**
 * How each event of the feed is made to happen in a sandbox, by the routes that apps use (docs/api/sandbox.md#trigger).
 */
import type { EntryType } from '../../projections/feed/entryTypes.js';
import { CommandFailure } from '../terminal.js';
import { type Api, type ApiAnswer, type As, described } from './api.js';

/** A purchase of one gift. */
interface Bought {
  readonly transactionId: string;
  readonly giftId: string;
  /** The last valid day. */
  readonly expiresOn: string;
  /** A store where the gift may be redeemed. */
  readonly location: string;
}

interface Sandbox {
  /** Buys a gift for nobody, or as `purchase` says. `card`: of docs/api/sandbox.md#cards. */
  buy(options?: { readonly card?: string; readonly purchase?: object }): Promise<Bought>;
  /** @throws CommandFailure for another answer than one of 2xx */
  done(method: 'POST' | 'PATCH', path: string, as: As, body: object): Promise<ApiAnswer>;
  /** Moves the clock of the whole sandbox, unless it is later already. */
  moveTo(time: Date): Promise<void>;
  /** The time of the sandbox, so much later. */
  later(seconds: number): Promise<Date>;
}

interface Scenario {
  readonly what: string;
  readonly movesClock?: true;
  /** @returns the transaction that the event is of */
  readonly make: (sandbox: Sandbox) => Promise<string>;
}

/** Why an event can't be made by apps. */
type Impossible = { readonly why: string };

const HOUR_S = 3_600;
const DAY_MS = 24 * HOUR_S * 1_000;
/** A gift that is valid for less is not said to expire soon (docs/api/events.md#expiry-events). */
const SHORTEST_DAYS = 40;

const purchase = (what: string, options?: Parameters<Sandbox['buy']>[0]): Scenario => ({
  what,
  make: async ({ buy }) => (await buy(options)).transactionId,
});

/** @param days how many after the last valid day of a gift for a phone number */
const nearExpiry = (what: string, days: number): Scenario => ({
  what,
  movesClock: true,
  async make({ buy, moveTo }) {
    const { transactionId, expiresOn } = await buy({ purchase: FOR_A_NUMBER });
    await moveTo(new Date(Date.parse(`${expiresOn}T12:00:00Z`) + days * DAY_MS));
    return transactionId;
  },
});

const bySupport = (command: string): Impossible => ({ why: `only support does this: ${command}` });

/** A number that belongs to no person: it is reserved for films. */
const FOR_A_NUMBER = { receivers: [{ phone_number: '07700 900998' }] };
const redeem = async ({ done }: Sandbox, { giftId, location }: Bought): Promise<void> => {
  await done('POST', `/api/v2/gifts/${giftId}/redemptions`, 'user', { location_id: location });
};

export const SCENARIOS: Readonly<Record<EntryType, Scenario | Impossible>> = {
  'transaction.created': purchase('buys a gift'),
  'transaction.charged': purchase('buys a gift'),
  'transaction.declined': purchase('buys with a card that is declined', { card: 'pm_card_chargeDeclined' }),
  'transaction.authentication_required': purchase('buys with a card whose bank asks its buyer', {
    card: 'pm_card_authenticationRequired',
  }),
  'transaction.refunded': purchase('buys with a card whose charge is refunded at the provider', {
    card: 'pm_card_refundedByHand',
  }),
  'transaction.refund_failed': bySupport('gift purchases refund, of a purchase by pm_card_refundFail'),
  'transaction.rescheduled': {
    what: 'buys a gift for later, and changes when it is sent',
    async make({ buy, done, later }) {
      const { transactionId } = await buy({ purchase: { ...FOR_A_NUMBER, send_at: await later(24 * HOUR_S) } });
      const send_at = await later(48 * HOUR_S);
      await done('PATCH', `/api/v2/transactions/${transactionId}`, 'user', { send_at });
      return transactionId;
    },
  },
  'gift.issued': purchase('buys a gift'),
  'gift.released': {
    what: 'buys a gift for in an hour',
    movesClock: true,
    async make({ buy, later, moveTo }) {
      const { transactionId } = await buy({ purchase: { ...FOR_A_NUMBER, send_at: await later(HOUR_S) } });
      await moveTo(await later(HOUR_S + 60));
      return transactionId;
    },
  },
  'gift.notified': purchase('buys a gift for a phone number', { purchase: FOR_A_NUMBER }),
  'gift.reminded': nearExpiry('buys a gift for a phone number, and lets it nearly expire', -1),
  'gift.claimed': {
    what: 'buys a gift for nobody, and claims it',
    async make({ buy, done }) {
      const { transactionId, giftId } = await buy();
      await done('POST', `/api/v2/gifts/${giftId}/claim`, 'user', {});
      return transactionId;
    },
  },
  'gift.redeemed': {
    what: 'buys a gift and redeems it',
    async make(sandbox) {
      const bought = await sandbox.buy();
      await redeem(sandbox, bought);
      return bought.transactionId;
    },
  },
  'gift.unredeemed': {
    what: 'buys a gift, redeems it, and reverses that at the till; wants --till',
    async make(sandbox) {
      const bought = await sandbox.buy();
      await redeem(sandbox, bought);
      await sandbox.done('PATCH', `/api/v2/gifts/${bought.giftId}/redemptions/latest`, 'till', { redeemed: false });
      return bought.transactionId;
    },
  },
  'gift.voucher_assigned': {
    what: 'buys a gift and takes its voucher',
    async make({ buy, done }) {
      const { transactionId, giftId } = await buy();
      await done('POST', `/api/v2/gifts/${giftId}/voucher/claimed`, 'user', {});
      return transactionId;
    },
  },
  'gift.cancelled': purchase('buys with a card whose charge is refunded at the provider', {
    card: 'pm_card_refundedByHand',
  }),
  'gift.blocked': purchase('buys with a card whose charge is disputed', { card: 'pm_card_createDispute' }),
  'gift.unblocked': {
    why: 'it takes support (gift gifts unblock), or a dispute that is won after it blocked the gift',
  },
  'gift.reassigned': bySupport('gift gifts reassign'),
  'gift.replaced': bySupport('gift gifts replace'),
  'gift.extended': bySupport('gift gifts extend'),
  'gift.expiring': nearExpiry('buys a gift and lets it nearly expire', -1),
  'gift.expired': nearExpiry('buys a gift and lets it expire', 2),
};

/** @param product the id to buy; absent: a cheap one of the till's merchant, or of any */
export function openSandbox(
  api: Api,
  { product, hasTill }: { readonly product?: string; readonly hasTill: boolean },
): Sandbox {
  const expected = async (
    answer: Promise<ApiAnswer>,
    what: string,
    statuses: readonly number[],
  ): Promise<ApiAnswer> => {
    const got = await answer;
    if (!statuses.includes(got.status)) throw new CommandFailure(`${what}: ${described(got)}`);
    return got;
  };
  const done: Sandbox['done'] = async (method, path, as, body) =>
    expected(api.call(method, path, { as, body }), `${method} ${path}`, [200, 201, 202]);

  async function productToBuy(): Promise<string> {
    if (product !== undefined) return product;
    const path = '/api/v2/products?embed[]=brand';
    const { body } = await expected(api.call('GET', path, { as: 'user' }), `GET ${path}`, [200]);
    const { data, embedded } = body as unknown as Products;
    const merchant = hasTill ? await merchantOfTill() : undefined;
    const merchantOf = new Map(embedded.brands.map(({ id, merchant_id }) => [id, merchant_id]));
    const [found] = data
      .filter(({ segments, valid_days }) => segments.length > 0 && valid_days >= SHORTEST_DAYS)
      .filter(({ brand_id }) => merchant === undefined || merchantOf.get(brand_id) === merchant)
      // The clock goes ten years ahead at most, so gifts that expire should do so soon.
      .sort((one, other) => one.valid_days - other.valid_days || one.sale_price - other.sale_price);
    if (found === undefined) throw new CommandFailure('the catalogue has no such product: name one by --product');
    return found.id;
  }

  async function merchantOfTill(): Promise<string | null> {
    const { body } = await expected(api.call('GET', '/api/v2/me', { as: 'till' }), 'GET /api/v2/me', [200]);
    return (body as unknown as { readonly data: { readonly merchant_id: string | null } }).data.merchant_id;
  }

  const now = async (): Promise<number> => {
    const path = '/sandbox/clock';
    const { body } = await expected(api.call('GET', path, { as: 'client' }), `GET ${path}`, [200]);
    return Date.parse((body as unknown as { readonly data: { readonly now: string } }).data.now);
  };

  return {
    done,
    async buy({ card = 'pm_card_visa', purchase: more = {} } = {}) {
      await done('POST', '/sandbox/payment-methods', 'user', { reference: card });
      const path = '/api/v2/transactions?embed[]=gifts&embed[]=gifts.purchase.brand.stores';
      const body = {
        payment: { method: 'card', reference: card },
        purchase: { type: 'gift', reference: await productToBuy(), ...more },
      };
      // A decline is the outcome that some cards are for.
      const answer = await expected(api.call('POST', path, { as: 'user', body }), 'the purchase', [201, 402]);
      const { data, embedded } = answer.body as unknown as Partial<Transaction>;
      return {
        transactionId: data?.id ?? answer.headers.get('Transaction-Id') ?? '',
        giftId: data?.gifts[0] ?? '',
        expiresOn: embedded?.gifts[0]?.expiry_date ?? '',
        location: embedded?.stores?.[0]?.id ?? '',
      };
    },
    async moveTo(time) {
      if (time.getTime() > (await now())) await done('POST', '/sandbox/clock', 'client', { now: time.toISOString() });
    },
    later: async (seconds) => new Date((await now()) + seconds * 1_000),
  };
}

interface Products {
  readonly data: readonly {
    readonly id: string;
    readonly brand_id: string;
    readonly sale_price: number;
    readonly valid_days: number;
    readonly segments: readonly string[];
  }[];
  readonly embedded: { readonly brands: readonly { readonly id: string; readonly merchant_id: string }[] };
}

interface Transaction {
  readonly data: { readonly id: string; readonly gifts: readonly string[] };
  readonly embedded: {
    readonly gifts: readonly { readonly expiry_date: string }[];
    readonly stores?: readonly { readonly id: string }[];
  };
}
