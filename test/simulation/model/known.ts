/** What the clients of a run know so far, by which they choose their next requests. */
import { type Observation, field, listField, textField, toldBy } from './history.js';
import { type Operation, isRead } from './operations.js';
import type { Installation } from './installation.js';

/** A gift that some client has seen. */
export interface KnownGift {
  readonly id: string;
  readonly shortcode: string | undefined;
  readonly product: string;
  readonly buyer: string;
  readonly transaction: string;
  /** The user whom the buyer named. */
  readonly receiver: string | undefined;
}

/** A request to be sent by a user. */
export interface Choice {
  readonly client: string;
  readonly operation: Operation;
}

/** Gathers what answers show. */
export class Known {
  readonly gifts: KnownGift[] = [];
  /** Ids of redemptions, by gift. */
  readonly redemptions = new Map<string, string[]>();
  /** Redemptions that were requested with a key. */
  readonly keyed: Choice[] = [];
  private readonly keyedByGift = new Map<string, Choice[]>();
  /** Writes with a key whose outcome nobody knows, and which nobody has taken up again. */
  readonly open: Choice[] = [];
  /** Writes with a key that were answered. */
  readonly answered: Choice[] = [];
  /** Where each reader of the event feed goes on. */
  readonly cursors = new Map<string, string>();
  /** The latest `Gift-Position` of each user's writes. */
  readonly positions = new Map<string, string>();
  private readonly seen = new Set<string>();

  /** Takes in what a client saw. */
  learn(observation: Observation): void {
    const { client, operation } = observation;
    const choice = { client, operation };
    const answer = toldBy(observation);
    const hasKey = 'key' in operation && operation.key !== undefined;
    if (operation.kind === 'redeem' && hasKey) this.learnKeyed(operation.gift, choice);
    if (hasKey) (answer === undefined ? this.open : this.answered).push(choice);
    if (answer === undefined || answer.status >= 300) return;
    const position = answer.headers['gift-position'];
    if (position !== undefined && !isRead(operation)) this.positions.set(client, position);
    const next = operation.kind === 'listEvents' ? textField(answer.body, 'next') : undefined;
    if (next !== undefined) this.cursors.set(client, next);
    if (operation.kind === 'purchase') this.learnGifts(client, operation, answer.body);
    if (operation.kind === 'redeem' || operation.kind === 'unredeem')
      this.learnRedemption(operation.gift, textField(answer.body, 'data', 'id'));
    if (operation.kind === 'listRedemptions')
      for (const one of listField(answer.body, 'data')) this.learnRedemption(operation.gift, textField(one, 'id'));
  }

  /** Forgets all keys, as if no request had had one. */
  forgetKeys(): void {
    for (const keyed of [this.keyed, this.open, this.answered]) keyed.length = 0;
    this.keyedByGift.clear();
  }

  /** Redemptions of a gift that were requested with a key. */
  keyedOf(gift: string): readonly Choice[] {
    return this.keyedByGift.get(gift) ?? [];
  }

  private learnKeyed(gift: string, choice: Choice): void {
    const ofGift = this.keyedByGift.get(gift) ?? [];
    this.keyedByGift.set(gift, ofGift);
    for (const keyed of [this.keyed, ofGift]) keyed.push(choice);
  }

  private learnGifts(buyer: string, operation: Operation & { readonly kind: 'purchase' }, body: unknown): void {
    for (const [index, gift] of listField(body, 'embedded', 'gifts').entries()) {
      const id = textField(gift, 'id') ?? '';
      if (this.seen.has(id)) continue;
      this.seen.add(id);
      this.gifts.push({
        id,
        shortcode: textField(gift, 'shortcode'),
        product: operation.product,
        buyer,
        transaction: String(field(body, 'data', 'id')),
        receiver: operation.receivers[index]?.user_id,
      });
    }
  }

  private learnRedemption(gift: string, id: string | undefined): void {
    const ids = this.redemptions.get(gift) ?? [];
    if (id !== undefined && !ids.includes(id)) this.redemptions.set(gift, [...ids, id]);
  }
}

/** The users of an installation, by what they do. */
export interface Cast {
  readonly customers: readonly string[];
  readonly tills: readonly string[];
  readonly supporters: readonly string[];
  readonly auditors: readonly string[];
}

/** Customers and merchants' users; staff have a part of their own. */
export function castOf({ users }: Installation): Cast {
  const all = [...users.values()].filter(({ roles }) => roles.length === 0);
  const withRole = (role: string): string[] =>
    [...users.values()].filter(({ roles }) => roles.includes(role)).map(({ id }) => id);
  return {
    customers: all.filter(({ merchant }) => merchant === undefined).map(({ id }) => id),
    tills: all.filter(({ merchant }) => merchant !== undefined).map(({ id }) => id),
    supporters: withRole('support'),
    auditors: withRole('auditor'),
  };
}
