/**
 * Seeded clients: they choose requests at random, mostly for a few gifts, so that requests for one gift meet. They know
 * only what they saw. Whatever transport sends the requests, the same random numbers and answers give the same choices.
 */
import type { History, Observation } from './history.js';
import type { Claim, GiftPath, Operation, Purchase, Receiver, Redeem, Unredeem } from './operations.js';
import type { Installation } from './installation.js';
import { type Cast, type Choice, Known, type KnownGift, castOf } from './known.js';
import { firstPages, lookUp, readsOfKnown } from './lastReads.js';

/**
 * `support`: actions on gifts, and refunds; `vouchers`; `lists`: pages of all lists and of the event feed, also by the
 * API client's own token (a client named `client:{id}`).
 */
export const PARTS = ['support', 'vouchers', 'lists'] as const;
export type Part = (typeof PARTS)[number];

/** What the clients may do. */
export interface ClientOptions {
  readonly installation: Installation;
  /** From 0 up to, not including, 1. */
  readonly random: () => number;
  /** References of payment methods that purchases use; default all. */
  readonly payments?: readonly string[];
  /** Products that are bought; default all. */
  readonly products?: readonly string[];
  /** The API client through which all users are logged in, and which reads the feed by its own token; default `app`. */
  readonly apiClient?: string;
  /** What they do beside buying, redeeming, reversing, claiming and looking up; default nothing. */
  readonly parts?: readonly Part[];
}

/** Clients, of which any number may have a request in progress. */
export interface Clients {
  /** The next request. */
  next(): Choice;
  /** Takes in what became of a request. */
  learn(observation: Observation): void;
  /** The latest answered writes with a key, of each kind: to be repeated at the end of a run. */
  repeats(): Choice[];
  /** Forgets all idempotency keys: after a day they are free again (docs/api/conventions.md#idempotency-keys). */
  forgetKeys(): void;
  /** Forgets all but what this history shows. */
  beginAgain(history: History): void;
  /** Repeats of what nobody knows the outcome of, each once. */
  takeUpAll(): Choice[];
  /** Reads of all that the clients know, and the first pages of all lists (`readWhole`): for the end of a run. */
  readAll(): Choice[];
  /** All three, for the end of a run. */
  last(): Choice[];
}

/** Of so many of the latest gifts clients mostly choose. */
const HOT_GIFTS = 5;
/** Keys that all users have in common, as those of tills that number their receipts: scopes keep them apart. */
const COMMON = { share: 0.1, keys: 3 };
/** Repeats of each kind of write at the end of a run. */
const REPEATS = 3;

export function seededClients(options: ClientOptions): Clients {
  const chooser = new Chooser(options);
  return {
    next: () => chooser.next(),
    learn: (observation) => chooser.known.learn(observation),
    forgetKeys: () => chooser.forgetKeys(),
    beginAgain: (history) => chooser.beginAgain(history),
    repeats: () => chooser.repeats(),
    takeUpAll: () => chooser.takeUpAll(),
    readAll: () => chooser.readAll(),
    last: () => [...chooser.takeUpAll(), ...chooser.repeats(), ...chooser.readAll()],
  };
}

class Chooser {
  known = new Known();
  private readonly cast: Cast;
  private readonly options: ClientOptions;
  private readonly buyers: readonly (readonly [string, string])[];
  private readonly products: readonly string[];
  private keys = 0;
  /** Rises when keys are forgotten. */
  private era = 1;
  private orders = 0;

  constructor(options: ClientOptions) {
    this.options = options;
    const {
      installation,
      payments = [...installation.payments.keys()],
      products = [...installation.products.keys()],
    } = options;
    this.cast = castOf(installation);
    this.products = products;
    this.buyers = payments.flatMap((reference) =>
      (installation.payments.get(reference)?.users ?? []).map((user) => [user, reference] as const),
    );
  }

  next(): Choice {
    const { open, answered, gifts } = this.known;
    if (open.length > 0 && this.chance(0.4)) return this.takeUp(open);
    if (answered.length > 0 && this.chance(0.04)) return this.repeat(this.one(answered));
    if (gifts.length < 2 || this.chance(0.07)) return this.buy();
    return this.useGift(this.hotGift());
  }

  takeUpAll(): Choice[] {
    return this.known.open.splice(0);
  }

  repeats(): Choice[] {
    const counts = new Map<string, number>();
    return this.known.answered.toReversed().filter(({ operation: { kind } }) => {
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      return count <= REPEATS;
    });
  }

  forgetKeys(): void {
    this.known.forgetKeys();
    this.era += 1;
  }

  beginAgain(history: History): void {
    this.known = new Known();
    for (const observation of history) this.known.learn(observation);
  }

  readAll(): Choice[] {
    const own = readsOfKnown(this.known);
    return this.has('lists') ? [...own, ...firstPages(this.known, this.cast, this.readers())] : own;
  }

  /** Those who follow the event feed; the API client itself first. */
  private readers(): string[] {
    return [`client:${this.options.apiClient ?? 'app'}`, ...this.cast.customers, ...this.cast.tills];
  }

  /** A till that lost an answer repeats, looks up, or cancels (docs/api/tills.md). */
  private takeUp(open: Choice[]): Choice {
    const [choice] = open.splice(Math.floor(this.options.random() * open.length), 1);
    if (choice === undefined) throw new Error('no request is open');
    const { client, operation } = choice;
    if (operation.kind !== 'redeem' || this.chance(0.5)) return choice;
    if (this.chance(0.5)) return lookUp(client, operation);
    // A lost request may come after its cancellation, which must hold.
    if (this.chance(0.5)) open.push(choice);
    return cancelOf(client, operation);
  }

  /** A repeat of what was answered, now and then with another body. */
  private repeat(choice: Choice): Choice {
    const { client, operation } = choice;
    if (operation.kind !== 'redeem' || this.chance(0.7)) return choice;
    return { client, operation: { ...operation, location: this.one(this.locations()) } };
  }

  private buy(): Choice {
    const [client, payment] = this.one(this.buyers);
    const receivers = Array.from({ length: this.count([0, 0, 0, 1, 1, 1, 2, 3]) }, () => this.receiver());
    const order = `order-${++this.orders}`;
    const operation: Purchase = { kind: 'purchase', product: this.one(this.products), payment, receivers, order };
    return { client, operation: { ...operation, key: this.key(0.9) } };
  }

  private receiver(): Receiver {
    const kind = this.options.random();
    if (kind < 0.2) return {};
    if (kind < 0.8) return { user_id: this.one(this.cast.customers) };
    const phones = [...this.options.installation.users.values()].flatMap(({ phone }) => phone ?? []);
    return { phone_number: kind < 0.95 && phones.length > 0 ? this.one(phones) : '07700 900777' };
  }

  private useGift(gift: KnownGift): Choice {
    const kind = this.options.random() * 100;
    const client = this.userOf(gift);
    const path = this.path(gift);
    if (kind < 30) return this.redeem(client, path);
    if (kind < 46) return this.unredeem(client, path);
    if (kind < 52) return { client, operation: this.claim(gift) };
    if (kind < 57) return this.askForKey(gift) ?? { client, operation: { kind: 'getGift', ...path } };
    if (kind < 60) return { client: gift.buyer, operation: { kind: 'getTransaction', transaction: gift.transaction } };
    if (kind < 66 && this.has('support')) return this.support(gift);
    if (kind >= 66 && kind < 70 && this.has('vouchers')) return this.voucher(client, path);
    if (kind >= 70 && kind < 78 && this.has('lists')) return this.list();
    return { client, operation: { kind: kind < 86 ? 'listRedemptions' : 'getGift', ...path } };
  }

  private support(gift: KnownGift): Choice {
    const key = this.key(0.8);
    const client = this.one([...this.cast.supporters, ...(this.chance(0.05) ? this.cast.tills : [])]);
    const of = { gift: gift.id, key };
    const choices: Operation[] = [
      { kind: 'block', ...of },
      { kind: 'unblock', ...of },
      { kind: 'unblock', ...of },
      { kind: 'supportUnredeem', ...of },
      { kind: 'extend', ...of, expiryDate: this.one(['2020-01-01', '2030-01-01', '2031-06-30', '2032-12-31']) },
      { kind: 'reassign', ...of, user: this.one([...this.cast.customers, ...this.cast.supporters, 'no-such-user']) },
      { kind: 'replace', ...of },
      { kind: 'refund', transaction: gift.transaction, gifts: this.chance(0.7) ? [gift.id] : [], key },
    ];
    return { client, operation: this.one(choices) };
  }

  private voucher(client: string, path: GiftPath): Choice {
    if (this.chance(0.3)) return { client, operation: { kind: 'getVoucher', ...path } };
    const version = this.chance(0.5) ? 1 : 2;
    const segments = [...this.options.installation.products.values()].flatMap((product) => product.segments);
    const segment = this.chance(0.3) && segments.length > 0 ? this.one(segments) : undefined;
    return { client, operation: { kind: 'makeVoucher', ...path, version, segment, key: this.key(0.6) } };
  }

  /** A page of a list, or of the event feed, while others write. */
  private list(): Choice {
    if (this.chance(0.5)) {
      const client = this.one(this.readers());
      const after = this.known.cursors.get(client);
      return { client, operation: { kind: 'listEvents', after, limit: this.one([1, 5, 50]) } };
    }
    const [client, position] = this.one([...this.known.positions, [this.one(this.cast.customers), undefined]]);
    const page = { limit: this.one([2, 100]), position };
    if (this.cast.tills.includes(client)) return { client, operation: { kind: 'listMerchantRedemptions', ...page } };
    if (!this.cast.customers.includes(client)) return this.list();
    return { client, operation: { kind: this.one(['listTransactions', 'listGifts']), ...page } };
  }

  private redeem(client: string, path: GiftPath): Choice {
    const { users, locations } = this.options.installation;
    const merchant = users.get(client)?.merchant;
    const own = [...locations].filter(([, of]) => of === merchant).map(([id]) => id);
    const location = own.length > 0 && this.chance(0.95) ? this.one(own) : this.one([...this.locations(), 'nowhere']);
    return { client, operation: { kind: 'redeem', ...path, location, key: this.key(0.8) } };
  }

  private unredeem(client: string, path: GiftPath): Choice {
    const ids = this.known.redemptions.get(path.gift) ?? [];
    const keyed = this.known.keyedOf(path.gift);
    const kind = this.options.random();
    if (kind < 0.25 && keyed.length > 0) {
      const of = this.one(keyed);
      return cancelOf(of.client, of.operation as Redeem);
    }
    const redemption = kind < 0.6 && ids.length > 0 ? this.one(ids) : kind < 0.98 ? 'latest' : 'no-such-redemption';
    const operation: Unredeem = { kind: 'unredeem', ...path, redemption };
    return { client, operation: { ...operation, key: this.key(0.7) } };
  }

  private claim(gift: KnownGift): Claim {
    const shortcode = this.chance(0.8) ? gift.shortcode : undefined;
    return { kind: 'claim', gift: gift.id, shortcode, key: this.key(0.7) };
  }

  private askForKey(gift: KnownGift): Choice | undefined {
    const keyed = this.known.keyedOf(gift.id);
    if (keyed.length === 0) return undefined;
    const { client, operation } = this.one(keyed);
    return lookUp(client, operation as Redeem);
  }

  /** Mostly somebody who has to do with the gift. */
  private userOf(gift: KnownGift): string {
    const { users, products } = this.options.installation;
    const merchants = products.get(gift.product)?.merchants ?? [];
    const tills = this.cast.tills.filter((id) => merchants.includes(users.get(id)?.merchant ?? ''));
    const kind = this.options.random();
    if (kind < 0.55 && tills.length > 0) return this.one(tills);
    if (kind < 0.75) return gift.receiver ?? gift.buyer;
    return kind < 0.85 ? gift.buyer : this.one([...this.cast.customers, ...this.cast.tills]);
  }

  private hotGift(): KnownGift {
    const { gifts } = this.known;
    return this.chance(0.85) ? this.one(gifts.slice(-HOT_GIFTS)) : this.one(gifts);
  }

  private path({ id, shortcode }: KnownGift): GiftPath {
    return this.chance(0.3) ? { gift: id, shortcode } : { gift: id };
  }

  private key(probability: number): string | undefined {
    if (!this.chance(probability)) return undefined;
    if (this.chance(COMMON.share)) return `common-${this.era}.${Math.ceil(this.options.random() * COMMON.keys)}`;
    return `key-${++this.keys}`;
  }

  private locations(): string[] {
    return [...this.options.installation.locations.keys()];
  }

  private has(part: Part): boolean {
    return this.options.parts?.includes(part) === true;
  }

  private chance(probability: number): boolean {
    return this.options.random() < probability;
  }

  private count(counts: readonly number[]): number {
    return this.one(counts);
  }

  private one<T>(some: readonly T[]): T {
    const found = some[Math.floor(this.options.random() * some.length)];
    if (found === undefined) throw new Error('nothing to choose from');
    return found;
  }
}

/** Cancels what was requested with a key, whatever becomes of the request. */
export function cancelOf(client: string, { gift, shortcode, key = '' }: Redeem): Choice {
  const operation: Operation = { kind: 'unredeem', gift, shortcode, redemption: `key:${key}` };
  return { client, operation };
}
